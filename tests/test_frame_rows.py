"""Frames of pandas name their rows: these are paired by name, and called by it."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

import netmargin as nm

X = np.random.default_rng(0).normal(size=(24, 4))
WORDS = np.where(X[:, 0] > 0, "high", "low")
NAMES = [f"row {n}" for n in range(24)]
FRAME = pd.DataFrame(X, NAMES)
LABELS = pd.Series(WORDS, NAMES)
NET = torch.nn.Linear(4, 2)
CALLS = {
    "measure": lambda data: nm.measure(NET, data).q,
    "label_errors": lambda data: nm.label_errors(data).scores,
    "robustness": lambda data: nm.robustness(NET, data, attacks=False, progress=False).lower,
    "compare": lambda data: nm.compare([NET, NET], heldout=data, progress=False).reports[0].q,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_labels_in_another_order_of_the_index_are_refused_with_a_way_out(call):
    with pytest.raises(nm.DataError, match=r"names other rows \('row 0', .*'line 0'.*to_numpy"):
        call((FRAME, LABELS.rename(lambda name: name.replace("row", "line"))))
    for labels in (LABELS, pd.Series((X[:, 0] > 0).astype(int), NAMES), LABELS.astype("category")):
        shuffled = labels.sample(frac=1, random_state=0)
        with pytest.raises(nm.DataError, match=r"y\.loc\[X\.index\]"):
            call((FRAME, shuffled))
        expected = call((FRAME, labels))
        for data in ((FRAME, shuffled.loc[FRAME.index]), (FRAME, labels.reset_index(drop=True))):
            assert torch.equal(torch.as_tensor(call(data)), torch.as_tensor(expected))


def test_tables_of_label_errors_call_rows_as_the_frame_does(tmp_path):
    labels = LABELS.copy()
    labels.iloc[7] = "low" if labels.iloc[7] == "high" else "high"
    found = nm.label_errors((FRAME, labels))
    rows = found.frame(5)
    assert [NAMES[n] for n in rows["sample"]] == rows.index.tolist()
    assert labels.loc[rows.index].tolist() == rows["given"].tolist()
    assert re.search(
        rf"\n +row +sample .*\n +{rows.index[0]} +{rows['sample'].iloc[0]} ", str(found)
    )
    assert found.cleanlab().index.tolist() == NAMES
    written = pd.read_csv(found.write_csv(tmp_path / "list.csv"), index_col=0)
    assert written.index.tolist() == found.frame().index.tolist()
    assert nm.load(found.save(tmp_path / "found.pt")).index == found.index
    for plain in ((X, WORDS), (pd.DataFrame(X), pd.Series(WORDS))):
        assert nm.label_errors(plain).index is None
    # The index of the labels names arrays, such as embeddings, of which there is no frame.
    assert nm.label_errors((X, labels)).index == tuple(NAMES)


@pytest.mark.parametrize("alone", [FRAME, LABELS, FRAME.assign(y=LABELS)])
def test_a_frame_without_labels_beside_it_is_refused_with_one_advice(alone):
    for call in CALLS.values():
        with pytest.raises(nm.DataError, match="Pass a pair") as refused:
            call(alone)
        assert str(refused.value).count("Pass") == 1

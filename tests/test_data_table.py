"""The table of data forms in docs/inputs.md, row by row, with every function that takes data."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

import netmargin as nm
from netmargin.callbacks.frameworks import MarginCallback
from tests.docs_blocks import ROOT

N, FEATURES, CLASSES = 12, 4, 3


class Net(nn.Module):
    """An input by name, and weights of a few bits: sums are exact, in batches of any size."""

    def __init__(self):
        super().__init__()
        self.net = nm.models.mlp([FEATURES, 8, CLASSES], bias="none").double()
        for weights in self.parameters():
            weights.data.copy_((8 * weights).round() / 8)

    def forward(self, rows):
        return self.net(rows)


def draw_samples():
    """A net and samples of few bits that it gets right, some of each class."""
    torch.manual_seed(0)
    while True:
        net, X = Net(), (4 * torch.randn(N, FEATURES).double()).round() / 4
        top = net(X).topk(2)
        y = top.indices[:, 0]
        if len(y.unique()) == CLASSES and (top.values[:, 0] > top.values[:, 1]).all():
            return net, X, y


NET, X, Y = draw_samples()
OTHER = Net()


class Rows(list):
    """As Hugging Face's data sets hold them."""

    column_names = ("rows", "label")


def batches(size):
    return [(X[start : start + size], Y[start : start + size]) for start in range(0, N, size)]


def dicts(labels=Y):
    return [
        {"rows": x.tolist(), "label": label} for x, label in zip(X, labels.tolist(), strict=True)
    ]


def join(samples):
    return default_collate([sample["rows"] for sample in samples]), torch.tensor(
        [sample["label"] for sample in samples]
    )


TEXT = np.array([f"class {label}" for label in Y.tolist()])
FORMS = {
    "tensors, arrays, nested lists": lambda size: [
        (X.numpy(), Y.numpy()),
        [X.clone(), Y.clone()],
        (X.tolist(), Y.tolist()),
    ],
    "frames of pandas": lambda size: [(pd.DataFrame(X.numpy()), pd.Series(Y.numpy()))],
    "labels that are text, or categories of pandas": lambda size: [
        (X, TEXT),
        (X, TEXT.tolist()),
        (X.numpy(), pd.Series(TEXT, dtype="category")),
        {"rows": X, "labels": TEXT},
        dicts(TEXT),
    ],
    "inputs by name": lambda size: [{"rows": X, "targets": Y}, ({"rows": X}, Y)],
    "a `Dataset` of torch": lambda size: [TensorDataset(X, Y)],
    "a `DataLoader`, or any iterable of batches": lambda size: [
        DataLoader(TensorDataset(X, Y), size),
        batches(size),
        [{"rows": x, "y": y} for x, y in batches(size)],
    ],
    "a `DataLoader` that shuffles, or drops the last batch": lambda size: [
        DataLoader(TensorDataset(X, Y), size, shuffle, drop_last=not shuffle)
        for shuffle in (True, False)
    ],
    "a `DataLoader` with a `collate_fn`": lambda size: [
        DataLoader(
            [{"rows": x, "label": int(y)} for x, y in zip(X, Y, strict=True)],
            size,
            collate_fn=join,
        )
    ],
    "a generator of batches": lambda size: [iter(batches(size))],
    "rows of Hugging Face's data sets, a list of dicts": lambda size: [dicts(), Rows(dicts())],
    "images as bytes": lambda size: [((16 * X).byte(), Y), {"rows": (16 * X).byte(), "labels": Y}],
}
"""What people have, by the first cell of the row, with batches of a size where there are some."""


class Callback(MarginCallback):
    """One of no framework, which measures once."""

    def __init__(self, data, folder):
        self._set_up(data, folder, 1, "epoch", "margins", {})

    def _log(self, values, step):
        self.values = values


def watch_by_callback(data, folder):
    callback = Callback(data, folder)
    callback._begin(NET, folder / "run", None, 0, [])
    return [callback.values["margins/q_min"], callback.watch.report.q]


def train(data, folder):
    """In one batch, as other batches are other steps."""
    net = copy.deepcopy(NET)
    history = nm.train(
        net, data, until=nm.Epochs(2), lr=nm.ConstantLR(0.125), batch_size=N, progress=False
    )
    return [history.column("q_min"), *net.parameters()]


def write_page(data, folder):
    path = nm.page(NET, data, out=folder / "page.html", class_names=sorted(set(TEXT))).path
    return [path.read_text()]


FUNCTIONS = {
    "measure": lambda data, folder: [nm.measure(NET, data).q],
    "analyse": lambda data, folder: [str(nm.analyse(NET, data).to_dict())],
    "compare": lambda data, folder: [
        r.q for r in nm.compare([NET, OTHER], data, progress=False).reports
    ],
    "input_margins": lambda data, folder: [nm.input_margins(NET, data, progress=False).distances],
    "robustness": lambda data, folder: [
        nm.robustness(NET, data, attacks=False, effort="quick", progress=False).lower
    ],
    "certify": lambda data, folder: [nm.certify(NET, data).relative_epsilon],
    "label_errors": lambda data, folder: [nm.label_errors(data).scores],
    "page": write_page,
    "train": train,
    "Watch": lambda data, folder: [nm.Watch(NET, data).report.q],
    "callbacks": watch_by_callback,
}


def read_table():
    """Who refuses each form, by the first cell of its row in the document; "" where nobody does."""
    text = (ROOT / "docs" / "inputs.md").read_text()
    table = text.split("| you have | how it is read |\n")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[1:]]
    return {have: how.partition("refused by ")[2] for have, how in rows}


REFUSED = read_table()
SENTENCES = {
    "a generator of batches": r"can be read only once",
    "images as bytes": r"X\.float\(\)",
}


def test_every_row_of_the_document_is_tried():
    assert list(REFUSED) == list(FORMS)
    assert {row for row, refused in REFUSED.items() if refused} == set(SENTENCES)


IN_ORDER = [row for row in FORMS if "`" in row]
"""Rows of what has batches of its own."""


def as_numbers(found):
    return [np.asarray(v.detach() if isinstance(v, torch.Tensor) else v) for v in found]


def compute(function, data, folder):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The labels are text")
        return FUNCTIONS[function](data, folder)


@pytest.mark.slow_cases("certify", "robustness")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_form_gives_the_same_numbers_bit_for_bit_or_a_sentence(function, tmp_path):
    plain = as_numbers(compute(function, (X, Y), tmp_path / "plain"))
    trained = function == "train"
    # Steps on a pair draw an order of its samples, in which they are added up.
    in_order = (
        as_numbers(compute(function, batches(N), tmp_path / "in order")) if trained else plain
    )
    for row, make in FORMS.items():
        refuses = REFUSED[row].startswith("all") or f"`{function}`" in REFUSED[row]
        for number, data in enumerate(make(N if trained else 5)):
            folder = tmp_path / f"{list(FORMS).index(row)} {number}"
            if refuses:
                with pytest.raises(nm.DataError, match=SENTENCES[row]):
                    compute(function, data, folder)
                continue
            found = as_numbers(compute(function, data, folder))
            expected = in_order if row in IN_ORDER else plain
            if trained and "shuffles" in row:
                assert all(map(np.allclose, found, expected)), row
            else:
                assert all(map(np.array_equal, found, expected)), (row, number)

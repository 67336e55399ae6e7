"""Samples that are in two sets, or in one with different labels, are said before any work."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import netmargin as nm
from netmargin.cli import main

X = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
y = (X[:, 0] > 0).long()
NET, OTHER = nn.Linear(3, 2), nn.Linear(3, 2)
CALLS = {
    "page": lambda data, heldout, out: nm.page(NET, data, heldout, out=out / "page.html"),
    "compare": lambda data, heldout, _: nm.compare([NET, OTHER], data, heldout, progress=False),
    "Watch": lambda data, heldout, _: nm.Watch(NET, data, heldout=heldout),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_held_out_samples_that_were_trained_on_are_said_once(call, tmp_path):
    loader = DataLoader(TensorDataset(X[:40], y[:40]), batch_size=7, shuffle=True)
    heldout = X[30:].double().numpy(), y[30:].numpy()  # of which ten are in both, in other forms
    with pytest.warns(UserWarning, match="^10 of the 30 held-out samples are also in") as heard:
        call(loader, heldout, tmp_path)
    assert len(heard) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call((X[:30], y[:30]), (X[30:], y[30:]), tmp_path)


def test_pages_say_it_too_also_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("t.npz", X=X.numpy(), y=y.numpy())
    (tmp_path / "seen_net.py").write_text(
        "from torch import nn\ndef make(): return nn.Linear(3, 2)"
    )
    torch.save(NET.state_dict(), "net.pt")
    both = ["--data", "t.npz", "--heldout", "t.npz"]
    assert main(["page", "net.pt", "--factory", "seen_net:make", *both]) == 0
    said = "60 of the 60 held-out samples are also in the training data."
    assert said in capsys.readouterr().err
    assert said in (tmp_path / "page.html").read_text()


TWICE = (
    torch.cat([X, X[4:5], -0.0 * X[:1], 0.0 * X[:1]]),
    torch.cat([y, 1 - y[4:5], y[:1], 1 - y[:1]]),
)
TRAINERS = {
    "train": lambda data, net: nm.train(net, data, until=nm.Epochs(1), progress=False),
    "gradient_flow": lambda data, net: nm.gradient_flow(net, data, time=1, progress=False),
    "Watch": lambda data, net: nm.Watch(net, data),
}  # fmt: skip


@pytest.mark.parametrize("call", TRAINERS.values(), ids=TRAINERS)
@pytest.mark.parametrize("form", ["pair", "loader", "by_name"])
def test_equal_inputs_with_different_labels_are_said_before_training(call, form):
    if form == "loader" and call is TRAINERS["train"]:
        pytest.skip("train reads a loader no more often than it must: test_row_order.py")

    def give(inputs, labels):
        if form == "loader":
            return DataLoader(TensorDataset(inputs, labels), batch_size=7, shuffle=True)
        return (
            (inputs.T.contiguous().T, labels) if form == "pair" else {"input": inputs, "y": labels}
        )

    net = nn.Linear(3, 2)
    said = "Samples 4 and 60 are equal and have different labels .and 1 more such pairs.: no net"
    with pytest.warns(UserWarning, match=said) as heard:
        call(give(*TWICE), net)
    assert [w.filename for w in heard] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(give(torch.cat([X, X[:9]]), torch.cat([y, y[:9]])), net)


def test_an_ascent_on_contradictory_samples_is_refused_before_training():
    with pytest.raises(nm.NotSeparatedError, match="^Samples 4 and 60 are equal"):
        nm.maximize_margin(nn.Linear(3, 2, bias=False), TWICE, progress=False)

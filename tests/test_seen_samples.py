"""Held-out samples that are training samples too are said, wherever both are given."""

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

"""Runs of minutes: `make test-slow`."""

import itertools
import math
import os

import pytest

import netmargin as nm
from netmargin.cli import main
from netmargin.datasets.selection import FOLDER_VARIABLE

pytestmark = pytest.mark.slow
needs_data = pytest.mark.skipif(
    not os.environ.get(FOLDER_VARIABLE), reason=f"{FOLDER_VARIABLE} is not set: MNIST is not here"
)


def margins_rise_after_separation(folder) -> nm.History:
    history = nm.History.load(folder / "history.jsonl")
    separated = [row for row in history.rows if row["smoothed_margin"] > 0]
    for name in (
        "normalized_margin",
        "layer_normalized_margin",
        "smoothed_margin",
        "layer_smoothed_margin",
    ):
        values = [row[name] for row in separated]
        assert all(math.isfinite(v) for v in values)
        quarters = [values[len(values) * i // 4] for i in range(4)] + [values[-1]]
        assert quarters == sorted(quarters)
    losses = history.column("log10_mean_loss")
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))
    return history


@pytest.mark.nightly
def test_digits_to_1e_minus_120(tmp_path):
    """400 of them, which take a quarter of the time of all."""
    command = ["train", "digits-mlp", "--limit", "400", "--until-log10-loss", "-120"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    assert margins_rise_after_separation(tmp_path).rows[-1]["log10_mean_loss"] < -120


@needs_data
@pytest.mark.nightly
@pytest.mark.parametrize("bias", ["first", "all"])
def test_mnist_cnn_to_1e_minus_30(tmp_path, bias):
    command = [
        "train",
        "mnist-cnn-small",
        "--limit",
        "1000",
        "--until-log10-loss",
        "-30",
        "--bias",
        bias,
        "--out",
        str(tmp_path),
    ]
    assert main(command) == 0
    assert margins_rise_after_separation(tmp_path).rows[-1]["log10_mean_loss"] < -30


@pytest.mark.nightly
@needs_data
def test_the_papers_cnn_lowers_the_loss_in_every_accepted_epoch(tmp_path):
    assert (
        main(["train", "mnist-cnn", "--limit", "2000", "--epochs", "20", "--out", str(tmp_path)])
        == 0
    )
    losses = nm.History.load(tmp_path / "history.jsonl").column("log10_mean_loss")
    assert len(losses) == 21
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))

"""Nets compared on the same data: differences that are real are found, those of chance are not."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.margins.bootstrap import ERROR, INPUT, WEIGHTED_ERROR, Z, interval_of, resample
from netmargin.models import mlp


def linear(direction) -> nn.Module:
    """The net of the scores w . x, in float64."""
    net = nn.Linear(2, 1, bias=False).double()
    net.weight.data.copy_(torch.tensor([direction]))
    return net


@pytest.fixture(scope="module")
def plane():
    """300 training and 400 held-out points in the plane, whose labels are the sign of x_1, with
    noise.
    """
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(700, 2, generator=generator).double()
    y = torch.where(X[:, 0] + 0.3 * torch.randn(700, generator=generator) > 0, 1, -1)
    return (X[:300], y[:300]), (X[300:], y[300:])


NETS = {"good": linear([1.0, 0.0]), "alike": linear([3.0, 0.03]), "bad": linear([1.0, 1.0])}


def test_real_differences_are_found_and_others_are_not(plane):
    found = nm.compare(NETS, *plane, progress=False)
    by_name = {(d.number, d.first, d.second): d for d in found.differences}
    for number, sign in ((ERROR, -1), (Z, 1), (WEIGHTED_ERROR, -1)):
        difference = by_name[number, "good", "bad"]
        assert difference.real
        assert sign * difference.value > 0
        assert difference.interval[0] < difference.value < difference.interval[1]
        assert not by_name[number, "good", "alike"].real
    training, heldout = (nm.measure(NETS["bad"], data) for data in plane)
    row = found.frame().loc["bad"]
    assert row["training", "error"] == training.error
    assert row["held-out", "error"] == heldout.error
    assert row["held-out", "z"] == heldout.z
    assert row["held-out", "error to"] == heldout.error_interval[1]
    table = found.difference_frame().set_index(["number", "first", "second"])
    assert table.loc[(ERROR, "good", "bad"), "difference"] == by_name[ERROR, "good", "bad"].value
    # None of them fits its training data, so that input margins do not compare them.
    assert all("does not fit" in d.note for d in found.differences if d.data == "training")
    page = found.summary()
    assert page.index("ON HELD-OUT") < page.index("ON THE TRAINING")
    assert page.count("do not compare") == 3
    json.dumps(found.to_dict(), allow_nan=False)


def test_pairing_sees_what_single_intervals_do_not(plane):
    """Two nets that differ on 12 samples, all in favour of the first: their own intervals overlap,
    that of the difference leaves out 0.
    """
    q = np.random.default_rng(0).normal(0.5, 1, 400)
    worse = q.copy()
    worse[np.flatnonzero(q > 0)[:12]] *= -1
    drawn = resample([q, worse], (ERROR,))[ERROR]
    first, second = map(interval_of, drawn)
    assert second[0] < first[1]
    low, high = interval_of(drawn[1] - drawn[0])
    assert 0 < low < 0.03 < high < 0.06


def test_intervals_cover_what_they_say():
    """95% intervals of z and of the error hold the true value for about 95% of data sets; the
    standard error of 200 trials is 1.5 points.
    """
    generator = np.random.default_rng(0)
    held = {ERROR: 0, Z: 0, INPUT: 0}
    truth = {ERROR: 0.15865525393145707, Z: 1.0, INPUT: 1 - 0.6744897501960817}
    for _ in range(200):
        q = generator.normal(1, 1, 200)
        for name, (drawn,) in resample([q], tuple(held)).items():
            low, high = interval_of(drawn)
            held[name] += low <= truth[name] <= high
    assert all(178 <= count <= 199 for count in held.values()), held


def test_statistics_of_resamples_are_those_of_a_report(plane):
    """On data sets that hold every sample once, they are the numbers of `measure`."""
    from netmargin.margins.bootstrap import STATISTICS

    report = nm.measure(NETS["bad"], plane[1], input_margins=True)
    q = report.q.numpy()[None]
    assert STATISTICS[ERROR](q, 1).item() == pytest.approx(report.error)
    assert STATISTICS[Z](q, 1).item() == pytest.approx(report.z)
    assert STATISTICS[WEIGHTED_ERROR](q, 1).item() == pytest.approx(report.margin_weighted_error)
    distances = report.input_margins.distances.numpy()
    quarter = STATISTICS[INPUT](distances[None], 1).item()
    assert quarter == distances[distances <= report.margins["input"].value].max()


def test_numbers_that_do_not_exist_are_named_as_such():
    """Scores that do not move with the input, margins that are all equal, one held-out sample."""
    flat = mlp([2, 3, 2], bias="all").double()
    with torch.no_grad():
        flat[0].weight.zero_()
        flat[2].bias.copy_(torch.tensor([1.0, 0.0]))
    data = torch.randn(5, 2), torch.zeros(5)
    found = nm.compare([flat, flat], data, ([[1.0, 2.0]], [0]), progress=False)
    by_number = {d.number: d for d in found.differences}
    assert by_number[Z].value is by_number[Z].interval is None
    assert by_number[INPUT].interval is None
    assert not any(d.real for d in found.differences)
    assert found.frame().loc["net 0", ("training", "input margin 25%")] == math.inf
    json.dumps(found.to_dict(), allow_nan=False)
    assert "no difference" in found.summary()


def test_without_held_out_data_and_without_input_margins(plane, tmp_path):
    found = nm.compare(list(NETS.values()), plane[0], input_margins=False, progress=False)
    assert found.differences == ()
    assert "No held-out data" in found.summary()
    assert nm.figures.draw_comparison(found, tmp_path)[0].stat().st_size > 3000
    both = nm.compare(NETS, *plane, progress=False)
    (path,) = nm.figures.draw_comparison(both, tmp_path / "both")
    assert path.stat().st_size > 5000
    assert path.with_suffix(".pdf").exists()


def test_bad_input(plane):
    data, _ = plane
    shuffled = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*data), batch_size=50, shuffle=True
    )
    with pytest.raises(nm.DataError, match="shuffle=False"):
        nm.compare(NETS, shuffled, input_margins=False, progress=False)
    with pytest.raises(nm.DataError, match="shuffle=False"):
        nm.compare(NETS, data, shuffled, input_margins=False, progress=False)
    for models in (NETS["good"], {"one": NETS["good"]}, [], "models"):
        with pytest.raises(nm.ArgumentError, match="at least two nets"):
            nm.compare(models, data, progress=False)
    with pytest.raises(nm.ModelError):
        nm.compare([NETS["good"], None], data, progress=False)

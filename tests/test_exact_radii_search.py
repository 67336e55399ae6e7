"""Exact radii through `robustness`: closed forms, order of efforts, time limits, Ctrl-C."""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.radii.exact.radius import RadiusSearch
from netmargin.result import Status
from tests.chains import is_closed, search_radius
from tests.test_exact_radii_patterns import draw_net, exact_radius
from tests.words import words_of


def radii(net, X, y, **options):
    return nm.robustness(net, (X, y), progress=False, **({"effort": "exact"} | options))


def make_net(*widths, seed=0, kink=nn.ReLU):
    torch.manual_seed(seed)
    layers = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), kink()]
    return nn.Sequential(*layers[:-1]).double()


def label(net, X):
    """The classes that a net gives to samples, so that all are correct."""
    with torch.no_grad():
        return net(X).argmax(1)


class Valley(nn.Module):
    """f(x) = |w . x| - 1 by an own forward: the boundary consists of two planes."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 1, bias=False)
        self.inner.weight.data = torch.tensor([[1.0, -2.0, 2.0]])

    def forward(self, x):
        return torch.abs(self.inner(x)) - 1.0


@pytest.mark.parametrize("attacks", [False, True])
def test_two_planes(attacks):
    X = torch.tensor([[1, 0, 1], [0.1, 0, 0.1], [0, 0, -3]], dtype=torch.float64)
    report = radii(Valley(), X, torch.tensor([1, -1, 1]), attacks=attacks, tol=1e-6)
    # |w . x| is 3, .3 and 6; ||w|| = 3.
    np.testing.assert_allclose(report.lower, [2 / 3, 0.7 / 3, 5 / 3], rtol=2e-6)
    np.testing.assert_allclose(report.upper, [2 / 3, 0.7 / 3, 5 / 3], rtol=1e-9)
    assert report.closed.all()
    assert (report.lower <= report.upper).all()


@pytest.mark.slow
def test_units_of_very_different_scale_move_no_radius():
    """Rows of a layer times 1e-9 to 1e9, which the columns of the next one undo."""
    net, scaled = make_net(4, 6, 5, 3), make_net(4, 6, 5, 3)
    sizes = torch.logspace(-9, 9, 6, dtype=torch.float64)
    with torch.no_grad():
        scaled[0].weight *= sizes[:, None]
        scaled[0].bias *= sizes
        scaled[2].weight /= sizes
    X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1)).double()
    own, other = (radii(which, X, label(net, X), attacks=False) for which in (net, scaled))
    assert own.closed.all()
    assert other.closed.all()
    # Each bracket holds the same radii, up to the rounding of the weights.
    assert (own.lower <= other.upper * (1 + 1e-9)).all()
    assert (other.lower <= own.upper * (1 + 1e-9)).all()


def test_float32_inputs_at_and_beside_ties():
    """f(x) = relu(x - 0.1) - relu(0.1 - x): inputs 0.1 in float32 are 1.5e-9 beside the tie."""
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1, bias=False)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [-1.0]]))
        net[0].bias.copy_(torch.tensor([-0.1, 0.1], dtype=torch.float64))
        net[2].weight.copy_(torch.tensor([[1.0, -1.0]]))
    X = torch.tensor([[0.1], [0.25]], dtype=torch.float32)
    truth = X.double()[:, 0].numpy() - 0.1
    for sign in (1, -1):
        report = radii(net, X, torch.full((2,), sign), attacks=False)
        assert (report.lower <= np.maximum(sign * truth, 0.0) * (1 + 1e-12)).all()
        assert (report.upper >= np.maximum(sign * truth, 0.0) * (1 - 1e-12)).all()
        assert report.closed.all()
    with torch.no_grad():
        net[0].bias.copy_(torch.tensor([-0.25, 0.25]))
    report = radii(net, X, torch.tensor([-1, 1]), attacks=False)
    assert report.lower[1] == report.upper[1] == 0  # the second is a tie itself
    assert report.certified_by[1] == "misclassified"
    assert report.closed.all()


NEVER_LOST = 5
"""The seed of a net with one output whose sign is the same for all inputs."""


@pytest.mark.slow_cases("6]", "11]")
@pytest.mark.nightly_cases("3")
@pytest.mark.parametrize("seed", [s for s in range(12) if s != NEVER_LOST])
def test_small_nets_against_all_patterns(seed):
    chain, x, own = draw_net(np.random.default_rng([seed, 7]))
    truth = exact_radius(chain, x, own)
    # The search finds the nearest misclassified input by itself, from a poor one.
    found = search_radius(chain, x, own, 1.2 * truth).run(tol=1e-3, exact=True, time_limit=None)
    assert found.lower <= truth * (1 + 1e-9)
    assert found.upper >= truth * (1 - 1e-9)
    assert is_closed(found, 1e-3)
    assert found.lower >= (1 - 1e-3) * truth


@pytest.mark.slow
def test_where_no_rival_ever_wins_the_radius_grows_and_stays_open():
    chain, x, own = draw_net(np.random.default_rng([NEVER_LOST, 7]))
    assert math.isinf(exact_radius(chain, x, own))
    found = search_radius(chain, x, own).run(tol=1e-3, exact=True, time_limit=None)
    assert math.isinf(found.upper)
    assert found.lower > 1e5 * np.linalg.norm(x)
    assert math.isfinite(found.lower)  # no ball proves that the radius is infinite


class Slope(nn.Module):
    """f(x) = 3 x_1 + 4 x_2 by an own forward, whose Lipschitz constant is not known."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[3.0, 4.0]]))

    def forward(self, x):
        return nn.functional.linear(x, self.weight)


@pytest.mark.parametrize("effort", ["standard", "exact"])
def test_linear_nets_with_an_own_forward_are_searched(effort):
    X = torch.tensor([[1, 0], [0, -2]], dtype=torch.float64)
    report = radii(Slope(), X, torch.tensor([1, -1]), attacks=False, effort=effort, tol=1e-6)
    np.testing.assert_allclose(report.lower, [0.6, 1.6], rtol=2e-6)
    np.testing.assert_allclose(report.upper, [0.6, 1.6], rtol=1e-9)
    assert report.closed.all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "kink", [nn.ReLU, pytest.param(lambda: nn.LeakyReLU(0.2), marks=pytest.mark.slow)]
)
def test_more_effort_certifies_more(kink):
    net = make_net(4, 8, 6, 3, kink=kink)
    X = torch.randn(4, 4, generator=torch.Generator().manual_seed(1)).double()
    quick, standard, exact = (
        radii(net, X, label(net, X), effort=effort) for effort in ("quick", "standard", "exact")
    )
    assert set(quick.certified_by) == {"Lipschitz constant"}
    assert (quick.lower <= standard.lower).all()
    assert (standard.lower <= exact.lower * (1 + 1e-3)).all()
    assert (exact.lower <= exact.upper).all()
    assert exact.closed.all()
    # The bounds of whole balls are not much worse than the truth, unlike Lipschitz constants.
    assert np.median(exact.lower / standard.lower) < 1.1 < np.median(exact.lower / quick.lower)


def test_misclassified_samples_and_rivals_that_cannot_win_say_so():
    net = make_net(2, 4, 3)
    with torch.no_grad():
        net[-1].weight[1:] = net[-1].weight[0]
        net[-1].bias.copy_(torch.tensor([1.0, 0.0, 0.0]))
    report = radii(net, torch.randn(3, 2), torch.tensor([0, 1, 0]))
    assert report.lower.tolist() == [math.inf, 0.0, math.inf]
    assert report.certified_by[1] == "misclassified"
    assert report.closed.all()


@pytest.mark.slow
def test_no_time_leaves_the_quick_certificate():
    net = make_net(4, 30, 30, 3)
    X = torch.randn(5, 4, generator=torch.Generator().manual_seed(2)).double()
    quick = radii(net, X, label(net, X), effort="quick", attacks=False)
    report = radii(net, X, label(net, X), time_limit=0, attacks=False)
    assert report.status is nm.Status.TIME_LIMIT
    assert (report.lower == quick.lower).all()
    assert not report.closed.any()
    assert "time limit" in report.summary()


@pytest.mark.slow
def test_the_summary_says_what_left_samples_open():
    net = make_net(4, 10, 8, 3)
    X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1)).double()

    def said(net, X, y, **options):
        report = radii(net, X, y, attacks=False, **options)
        assert not report.closed.all()
        return words_of(report.summary())

    data = net, X, label(net, X)
    assert 'open 3 samples: effort="quick"' in said(*data, effort="quick")
    assert "alone; certified radii ignore the box" in said(*data, effort="quick", box=(-9, 9))
    assert "open 3 samples: stopped by the time limit" in said(*data, time_limit=0)
    assert 'not proved; effort="exact" splits' in said(*data, effort="standard", tol=1e-9)
    always = make_net(1, 2, 2)  # the first score is the largest everywhere
    always[-1].weight.data.abs_()[1:] = 0
    always[-1].bias.data.copy_(torch.tensor([2.0, 0.0]))
    first = torch.zeros(1, dtype=torch.long)
    assert "1 sample: no misclassified input" in said(always, X[:1, :1], first, effort="standard")


@pytest.mark.slow
def test_ctrl_c_returns_the_batches_that_are_done(monkeypatch):
    net = make_net(4, 10, 3)
    X = torch.randn(4, 4, generator=torch.Generator().manual_seed(3)).double()
    whole = radii(net, X, label(net, X), batch_size=2)
    run, calls = RadiusSearch.run, []

    def interrupted(self, **options):
        calls.append(self)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(self, **options)

    monkeypatch.setattr(RadiusSearch, "run", interrupted)
    report = radii(net, X, label(net, X), batch_size=2)
    assert (report.status, report.examined) == (Status.INTERRUPTED, 2)
    for found, all_of_it in ((report.lower, whole.lower), (report.upper, whole.upper)):
        assert (found[:2] == all_of_it[:2]).all()
    assert (report.lower[2:] == 0).all()
    assert np.isinf(report.upper[2:]).all()
    assert len(report.flips) == 2
    # Its medians are of what was examined: those of one batch by themselves.
    of_two = radii(net, X[:2], label(net, X[:2]), batch_size=2).summary()
    for row in ("the answer stays up to", "a flip is found at"):
        assert re.search(f"{row}.*", report.summary())[0] == re.search(f"{row}.*", of_two)[0]
    calls[:] = [None, None]
    none = radii(net, X, label(net, X), batch_size=2)
    assert none.examined == 0
    assert "median" not in none.summary()


@pytest.mark.parametrize(
    "options", [{"effort": "exakt"}, {"tol": 0}, {"tol": 1}, {"time_limit": -1}]
)
def test_bad_arguments(options):
    with pytest.raises(nm.ArgumentError):
        radii(nn.Linear(2, 2), torch.randn(3, 2), torch.tensor([0, 1, 0]), **options)


def test_a_net_without_a_rule_says_why():
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
    report = radii(net, torch.randn(4, 2), torch.tensor([0, 1, 0, 1]), attacks=False)
    assert "Tanh" in report.no_chain
    assert "Tanh" in report.summary()
    assert not report.no_lower


def test_large_nets_are_bounded_by_default_only_when_asked_for():
    net, X = make_net(2, 1001, 2), torch.ones(1, 2).double()
    options = {"y": label(net, X), "attacks": False, "time_limit": 0}
    report = radii(net, X, effort="standard", **options)
    assert "1,001 hidden units" in report.no_chain
    assert 'effort="exact"' in report.summary()
    assert set(report.certified_by) == {"Lipschitz constant"}
    assert report.status is nm.Status.FINISHED
    # Others are: they have no time.
    asked = radii(net, X, **options)
    smaller = make_net(2, 1000, 2)
    allowed = radii(smaller, X, effort="standard", **options | {"y": label(smaller, X)})
    for tried in (asked, allowed):
        assert not tried.no_chain
        assert tried.status is nm.Status.TIME_LIMIT

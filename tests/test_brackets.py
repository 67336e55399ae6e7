"""What a bracket says about how far a problem is solved, and promises that are kept or not made."""

import math

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.papers.two_homogeneity import NormalizedNet, NormalizedReLU, early_margin
from netmargin.papers.wei_2018 import narrow_max_margin
from netmargin.result import Bracket, Status, judge_bracket

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("lower", "upper", "gap"),
    [
        (0.0, 0.0, 0.0), (2.0, 2.0, 0.0), (-2.0, -2.0, 0.0), (INF, INF, 0.0),
        (3.0, 4.0, 0.25), (0.0, 1e-9, 1.0), (-1.0, -0.5, 0.5), (-1.0, 0.0, 1.0), (-1.0, 1.0, 2.0), (-1.0, 4.0, 1.25),
        (-1e308, 1e308, 2.0), (1e-320, 2e-320, 0.5),
        (0.0, INF, INF), (1.0, INF, INF), (-INF, 1.0, INF), (-INF, INF, INF), (NAN, 1.0, INF), (1.0, NAN, INF),
    ],
)  # fmt: skip
def test_a_gap_is_0_only_where_both_ends_are_equal(lower, upper, gap):
    assert Bracket(lower, upper).gap == pytest.approx(gap, rel=1e-3)


CLOSED, OPEN, NOTHING = Bracket(1.0, 1.0 + 5e-7), Bracket(1.0, 1.0 + 5e-6), Bracket(0.0, 1e-9)


@pytest.mark.parametrize(
    ("bracket", "ended", "zero", "status", "certified"),
    [
        # What was proved counts, whatever the search believed.
        (CLOSED, Status.STALLED, None, Status.OPTIMAL, True),
        (CLOSED, Status.TIME_LIMIT, None, Status.OPTIMAL, True),
        (CLOSED, Status.INTERRUPTED, None, Status.INTERRUPTED, False),
        (OPEN, Status.OPTIMAL, None, Status.STALLED, False),
        (OPEN, Status.LOCALLY_OPTIMAL, None, Status.LOCALLY_OPTIMAL, False),
        (OPEN, Status.TIME_LIMIT, None, Status.TIME_LIMIT, False),
        (OPEN, Status.INTERRUPTED, None, Status.INTERRUPTED, False),
        # A margin of 0, where nothing above it is attained.
        (NOTHING, Status.STALLED, 1e-8, Status.NOT_SEPARABLE, True),
        (Bracket(-1.0, 1e-9), Status.TIME_LIMIT, 1e-8, Status.NOT_SEPARABLE, True),
        (Bracket(0.0, 0.0), Status.STALLED, 0.0, Status.NOT_SEPARABLE, True),
        (Bracket(0.0, 0.0), Status.STALLED, None, Status.OPTIMAL, True),
        (NOTHING, Status.NOT_SEPARABLE, 1e-10, Status.STALLED, False),
        (NOTHING, Status.INTERRUPTED, 1e-8, Status.INTERRUPTED, False),
        (Bracket(1e-9, 1e-9), Status.STALLED, 1e-8, Status.OPTIMAL, True),
        # A least norm of which no function was found, or none exists.
        (Bracket(1.0, INF), Status.STALLED, None, Status.NOT_REACHED, False),
        (Bracket(1.0, INF), Status.TIME_LIMIT, None, Status.TIME_LIMIT, False),
        (Bracket(INF, INF), Status.STALLED, None, Status.NOT_ATTAINABLE, True),
        (Bracket(NAN, 1.0), Status.OPTIMAL, None, Status.STALLED, False),
    ],
)
def test_one_judge_decides_every_status(bracket, ended, zero, status, certified):
    assert judge_bracket(bracket, 1e-6, ended=ended, zero=zero) == (status, certified)


class TwoFixed(torch.nn.Module):
    """Two features that are the inputs themselves."""

    def forward(self, x):
        return x


def moving_features():
    return (
        NormalizedNet(NormalizedReLU(2, 50), 50),
        [[1.0, 0.5], [-0.3, 1.0], [0.2, -1.0]],
        [1, -1, 1],
    )


def fixed_features():
    """Nearly all the weight is on the feature that does not separate."""
    net = NormalizedNet(TwoFixed(), 2)
    with torch.no_grad():
        for part in (net.a, net.b):
            part.copy_(torch.tensor([0.1, 3.0]))
    return net, [[1.0, 0.1], [-1.0, 0.5]], [1, -1]


@pytest.mark.slow_cases("10000.0-True-moving_features")
@pytest.mark.nightly_cases("1000000.0-True")
@pytest.mark.parametrize("make", [moving_features, fixed_features])
@pytest.mark.parametrize(("time", "says"), [(2.0, False), (1e4, True), (1e6, True)])
def test_an_early_margin_is_promised_and_kept_or_not_promised(make, time, says):
    """At early times the formula of the proof gives negative numbers, which are above the truth."""
    net, X, y = make()
    data = (torch.tensor(X, dtype=torch.float64), torch.tensor(y))
    flow = nm.gradient_flow(net, data, time=time / len(X), levels=[-0.5, -1])
    promised = early_margin(net, data, time=time, states=[*flow.states.values()]).guarantee
    found = flow.rows[-1]["partial_normalized_margin"]
    assert (promised is not None) == says
    assert promised is None or 0 < promised <= found


def test_nothing_is_promised_once_the_features_have_drifted():
    net, X, y = moving_features()
    turned = {f"inner.{name}": -v.detach() for name, v in net.inner.named_parameters()}
    assert early_margin(net, (X, y), time=3e5, states=[net.state_dict()]).guarantee > 0
    assert early_margin(net, (X, y), time=3e5, states=[turned]).guarantee is None


def test_nothing_is_promised_of_features_that_may_drift_and_were_not_followed():
    """A neuron turns to nine samples until it is off the tenth, whose margin stays 0."""
    net, angles = NormalizedNet(NormalizedReLU(2, 1), 1), np.radians([35.0, 0.0, 120.0])
    corners = torch.tensor(np.column_stack([np.cos(angles), np.sin(angles)]))
    with torch.no_grad():
        net.b.copy_(net.a)
        net.inner.v.copy_(corners[:1])
    data = (corners[[1] * 9 + [2]], torch.ones(10, dtype=torch.int64))
    flow = nm.gradient_flow(net, data, time=1e3)
    assert early_margin(net, data, time=1e4).guarantee is None
    assert flow.rows[-1]["partial_normalized_margin"] == 0


def test_an_early_margin_takes_what_measure_takes_and_names_what_it_cannot():
    net = NormalizedNet(NormalizedReLU(2, 50), 50)
    X, y = [[1.0, 0.5], [-0.3, 1.0], [0.2, -1.0]], [1, -1, 1]
    options = {"time": 3e4, "states": [net.state_dict()]}
    expected = early_margin(net, (X, y), **options).guarantee
    assert expected > 0
    batches = [(torch.tensor(X[:2], dtype=torch.float64), torch.tensor(y[:2])), ([X[2]], [y[2]])]
    assert early_margin(net, {"x": X, "labels": y}, **options).guarantee == expected
    assert early_margin(net, batches, **options).guarantee == expected
    assert early_margin(torch.nn.DataParallel(net), (X, y), **options).guarantee == expected
    with pytest.raises(nm.ModelError, match=r"torch\.nn\.Module; got None"):
        early_margin(None, (X, y), time=3e4)
    with pytest.raises(nm.ModelError, match="NormalizedNet; got Linear"):
        early_margin(torch.nn.Linear(2, 1), (X, y), time=3e4)
    with pytest.raises(nm.DataError, match=r"could not process a batch of shape \(2, 1\)"):
        early_margin(net, ([[1.0], [2.0]], [1, -1]), time=3e4)
    with pytest.raises(nm.ArgumentError, match="states"):
        early_margin(net, (X, y), time=3e4, states=5)
    for wrong in (1, torch.ones(2)):
        with pytest.raises(nm.ModelError, match="'inner.v' of a state must be a tensor of shape"):
            early_margin(net, (X, y), time=3e4, states=[{"inner.v": wrong}])


PARITY = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], [1, -1, -1, 1]
LINE = [[0.0], [1.0], [2.0]], [1, -1, 1]


@pytest.mark.parametrize(
    ("data", "width", "bias", "margin"),
    [
        (PARITY, 3, False, 0.0),
        (PARITY, 4, False, 2**0.5 / 8),  # Wei et al. 2018, Lemma D.1, halved
        (LINE, 1, True, 0.0),
        (LINE, 2, True, 0.0),
        (([[1.0], [2.0]], [1, 1]), 1, False, 0.5),
        (([[1.0], [2.0]], [1, -1]), 2, False, 0.0),
        (
            ([[3.0, 4.0], [-3.0, -4.0]], [1, -1]),
            2,
            False,
            1.25,
        ),  # two neurons of mass 1/2, |x| / 2 each
        (([[3e-7, 4e-7], [-3e-7, -4e-7]], [1, -1]), 2, False, 1.25e-7),
    ],
)
def test_narrow_nets_are_bracketed(data, width, bias, margin):
    found = narrow_max_margin(*data, width, bias=bias)
    assert found.margin == pytest.approx(margin, rel=1e-6)
    assert found.margin == pytest.approx(found.normalized_margin(*data), rel=1e-12)
    assert found.margin <= found.upper_bound <= margin * (1 + 1e-6) + 1e-8 * np.abs(data[0]).max()
    assert found.certified
    assert found.status is (Status.OPTIMAL if margin else Status.NOT_SEPARABLE)
    assert (len(found.weights) > 0) == (margin > 0)
    assert found.dual.sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_narrow_nets_hold_and_are_tight(seed):
    """No net of that width, near the solution or drawn anywhere, beats the attained bound."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(4, 2)), np.array([1, -1, 1, 1])
    found = narrow_max_margin(X, y, 2)
    assert found.gap <= 1e-6 if found.margin else found.upper_bound <= 1e-8
    nets = random.normal(size=(20_000, 2, 3))
    if found.margin:
        at_solution = np.zeros((2, 3))
        at_solution[: len(found.weights)] = found.atoms * np.sqrt(found.weights)[:, None]
        nets[::2] = at_solution + 1e-3 * nets[::2]
    outputs = (nets[:, :, 2:] * np.maximum(nets[:, :, :2] @ X.T, 0.0)).sum(1)
    margins = (y * outputs).min(1) / (nets**2).sum((1, 2))
    assert margins.max() <= found.upper_bound


def test_a_narrow_search_that_is_stopped_has_an_open_bracket(monkeypatch):
    from netmargin.papers.wei_2018 import _narrow as narrow

    full = narrow_max_margin(*PARITY, 4)
    none = narrow_max_margin(*PARITY, 4, time_limit=0)
    assert (none.status, none.programs, none.margin, none.certified) == (
        Status.TIME_LIMIT,
        0,
        0.0,
        False,
    )
    assert none.upper_bound == pytest.approx(2**0.5 / 2)
    calls, solve = [], narrow._solve_choice

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == full.programs:
            raise KeyboardInterrupt
        return solve(*arguments)

    monkeypatch.setattr(narrow, "_solve_choice", interrupted)
    stopped = narrow_max_margin(*PARITY, 4)
    assert (stopped.status, stopped.certified) == (Status.INTERRUPTED, False)
    assert stopped.margin <= full.margin <= stopped.upper_bound == none.upper_bound

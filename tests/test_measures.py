"""Nets as measures on the sphere: projection, conversions, the flows there, and optimality."""

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.models import ReLUPower, SignedSum
from netmargin.papers.chizat_bach import FeatureMeasure, projected_flow
from netmargin.solvers import ReLUMeasure
from netmargin.twolayer import slackness, train_both_layers

DATA = np.random.default_rng(0).normal(size=(8, 2)), np.tile([1, -1], 4)


def neurons(m: int, power: int = 1) -> np.ndarray:
    w = np.random.default_rng(1).normal(size=(m, 4))
    w[:, -1] = w[:, -1] if power == 1 else np.sign(w[:, -1])
    return w


@pytest.mark.parametrize("power", [1, 2])
def test_projection_keeps_the_function(power):
    X, y = DATA
    w = neurons(6, power)
    w[2, :-1] = 0.0
    weights = np.arange(6.0)
    measure = ReLUMeasure.projected(w, weights, bias=True, power=power)
    f = np.maximum(np.hstack([X, np.ones((8, 1))]) @ w[:, :-1].T, 0) ** power @ (weights * w[:, -1])
    assert measure.decision_function(X) == pytest.approx(f)
    moving = measure.atoms if power == 1 else measure.atoms[:, :-1]
    assert np.linalg.norm(moving, axis=1) == pytest.approx(np.ones(len(moving)))
    assert measure.mass == pytest.approx(weights @ (w[:, : 4 if power == 1 else 3] ** 2).sum(1))
    unit = measure.normalized()
    assert unit.mass == pytest.approx(1.0)
    assert unit.normalized_margin(X, y) == pytest.approx(measure.normalized_margin(X, y))
    again = ReLUMeasure.projected(measure.atoms, measure.weights, bias=True, power=power)
    assert again.atoms == pytest.approx(measure.atoms)
    net = measure.to_network(width=7)
    back = ReLUMeasure.from_network(net)
    assert back.power == power
    assert back.mass == pytest.approx(measure.mass)
    assert back.decision_function(X) == pytest.approx(f)
    assert net(torch.tensor(X))[:, 0].detach().numpy() == pytest.approx(f)


def test_solutions_are_measures_that_training_starts_near():
    """A solver's solution is a measure, a net, and again a measure with its margin."""
    X, y = DATA
    best = nm.solvers.f1_max_margin(X, y)
    assert ReLUMeasure.from_network(best.to_network()).normalized_margin(X, y) == pytest.approx(
        best.margin
    )
    assert slackness(best, X, y, best.dual).residual < 1e-6 * best.margin


@pytest.mark.slow_cases("1")
@pytest.mark.parametrize("power", [1, 2])
def test_projected_flow_is_gradient_ascent_of_the_net(power):
    """(11), from the start of a run: its steps approach the flow at first order."""
    X, y = DATA
    errors = []
    for steps in (40, 80):
        runs = train_both_layers(
            X,
            y,
            width=12,
            steps=steps,
            rate=lambda t, h=0.8 / steps: np.full(len(t), h),
            power=power,
            snapshots=[0],
            dtype=torch.float64,
            progress=False,
        )
        start = ReLUMeasure.projected(runs.snapshots[0].positions(0), bias=True, power=power)
        flow = projected_flow(
            start, X, y, times=[0.0, 0.8], rtol=1e-9 if power == 2 else 1e-6
        )  # ReLU has kinks
        assert flow.log_masses[0] == pytest.approx(np.log(start.mass))
        assert flow.margins[0] == pytest.approx(start.normalized_margin(X, y))
        end = runs.measures[0]
        errors.append(
            abs(flow.log_masses[-1] - runs.log_masses[-1, 0]) + np.abs(flow.measures[-1].atoms - end.atoms).max()
            + np.abs(flow.measures[-1].weights - end.weights).max()
        )  # fmt: skip
    assert (
        1.6 < errors[0] / errors[1] < (2.4 if power == 2 else 4.0)
    )  # kinks are crossed at different steps
    assert errors[1] < 0.02


def relu(w, x):
    return w[:, -1:] * (w[:, :-2] @ x.T + w[:, -2:-1]).relu()


def test_flow_of_a_feature_of_ones_own():
    """ReLU written by hand is ReLU, from neurons of any size, and a power of order 2 comes near to
    its largest margin.
    """
    X, y = DATA
    start = ReLUMeasure.projected(neurons(6, 2), bias=True)
    own = FeatureMeasure(relu, 2 * start.atoms, start.weights / 4)
    flows = [projected_flow(s, X, y, times=[0.0, 0.3, 0.6]) for s in (start, own)]
    assert flows[1].margins == pytest.approx(flows[0].margins, rel=1e-6)
    assert flows[1].log_masses == pytest.approx(flows[0].log_masses, rel=1e-6)
    assert flows[1].measures[-1].decision_function(X) == pytest.approx(
        flows[0].measures[-1].decision_function(X), rel=1e-6
    )
    # A linear net b a . x: gamma_1 is half of the largest linear margin.
    X, y = np.random.default_rng(0).normal(size=(6, 3)), np.array([1, -1] * 3)
    X = X + y[:, None]
    linear = FeatureMeasure(lambda w, x: w[:, -1:] * (w[:, :-1] @ x.T), neurons(12), np.ones(12))
    best = nm.solvers.linear_max_margin(X, y).margin / 2
    flow = projected_flow(linear, X, y, times=[0.0, 2.0], rtol=1e-4)
    assert 0.93 * best < flow.margins[-1] <= best * (1 + 1e-9)


def test_features_that_are_not_2_homogeneous_or_balanced_are_refused():
    X, y = DATA
    for feature, opposite, said in (
        (lambda w, x: (w[:, :2] @ x.T).relu(), lambda w: -w, "2-homogeneous"),
        (lambda w, x: w[:, -1:] * (w[:, :2] @ x.T + 1).relu(), lambda w: -w, "2-homogeneous"),
        (lambda w, x: w[:, -1:] ** 2 + 0 * (w[:, :2] @ x.T), lambda w: -w, "balanced"),
        (relu, lambda w: -w, "balanced"),
        (lambda w, x: w[:, -1], lambda w: -w, "shape"),
    ):
        start = FeatureMeasure(feature, neurons(4), np.ones(4), opposite)
        with pytest.raises(nm.ArgumentError, match=said):
            projected_flow(start, X, y, times=[0.1])


def test_normalized_flow_is_driven_by_the_whole_measure():
    """(12): d/dt of int Psi d nu_bar = int <grad J', grad Psi> + 4 (J' - mean J') Psi d nu_bar with
    J' of nu_t; with J' of nu_bar_t, as printed, it is not.
    """
    X, y = DATA
    Z = np.hstack([X, np.ones((8, 1))])
    start = ReLUMeasure.projected(
        neurons(15, 2) * [3, 3, 3, 1], bias=True, power=2
    )  # mass 27: nu_t is far from nu_bar_t
    h = 1e-4
    flow = projected_flow(start, X, y, times=[0.0, h], rtol=1e-12)
    Psi = lambda measure: measure.weights @ measure.atoms[:, 0] ** 2  # noqa: E731
    change = (Psi(flow.measures[1]) - Psi(flow.measures[0])) / h
    first = flow.measures[0]
    a, b, weights = first.atoms[:, :-1], first.atoms[:, -1], first.weights

    def expected(dual: np.ndarray) -> float:
        z = np.maximum(a @ Z.T, 0)
        J = b * (z**2 @ (dual * y))
        gradient = 2 * b[:, None] * (z @ ((dual * y)[:, None] * Z)) - 2 * J[:, None] * a
        return float(
            weights @ (2 * a[:, 0] * gradient[:, 0] + 4 * (J - weights @ J) * a[:, 0] ** 2)
        )

    assert change == pytest.approx(expected(flow.duals[0]), rel=1e-2)
    q = y * first.decision_function(X)
    printed = expected(np.exp(-q) / np.exp(-q).sum())
    assert abs(change - printed) > 0.1 * abs(change)


@pytest.mark.slow
def test_long_projected_flows_say_where_they_stop(monkeypatch):
    X, y = DATA
    start = ReLUMeasure.projected(neurons(10), bias=True)
    with pytest.warns(UserWarning, match="by max_evaluations = 200 between t = 1 and 50"):
        flow = projected_flow(start, X, y, times=[0, 1, 50], max_evaluations=200, rtol=1e-3)
    assert list(flow.times) == [0, 1]
    with pytest.warns(UserWarning, match="by max_evaluations = 10 between t = 0 and 5"):
        flow = projected_flow(start, X, y, times=[5], max_evaluations=10)
    assert list(flow.times) == [0]
    with pytest.warns(UserWarning, match="below the precision of t"), np.errstate(all="ignore"):
        flow = projected_flow(start, 1e150 * X, y, times=[0, 1], max_evaluations=10_000)
    assert flow.times[-1] < 1e-100


@pytest.mark.parametrize("power", [1, 2])
def test_slackness_by_brute_force(power):
    X, y = DATA
    measure = ReLUMeasure.projected(
        np.random.default_rng(2).normal(size=(5, 3)) if power == 1 else [[1, 2, 1], [0, 1, -1]],
        bias=False,
        power=power,
    )
    dual = np.random.default_rng(3).uniform(size=8)
    found = slackness(measure, X, y, dual)
    angle = np.linspace(0, 2 * np.pi, 200_001)
    p = dual / dual.sum()
    values = np.abs(
        np.maximum(np.column_stack([np.cos(angle), np.sin(angle)]) @ X.T, 0) ** power @ (p * y)
    )
    q = y * measure.decision_function(X) / measure.mass
    assert found.proved
    assert found.neurons == pytest.approx(values.max() / (2 if power == 1 else 1) - p @ q, rel=1e-6)
    assert found.samples == pytest.approx(p @ q - q.min())


def test_bad_input():
    X, y = DATA
    with pytest.raises(nm.DataError, match="positions"):
        ReLUMeasure.projected([[1.0]], bias=False)
    with pytest.raises(nm.DataError, match="numbers >= 0"):
        ReLUMeasure.projected([[1.0, 1.0]], [-1.0], bias=False)
    with pytest.raises(nm.DataError, match="signs of the output"):
        ReLUMeasure.projected([[1.0, 0.5]], bias=False, power=2)
    nothing = ReLUMeasure.projected(np.zeros((3, 4)), bias=True)
    with pytest.raises(nm.DataError, match="vanished"):
        nothing.normalized()
    with pytest.raises(nm.DataError, match="start must have mass"):
        projected_flow(nothing, X, y, times=[1.0])
    with pytest.raises(ValueError, match="times"):
        projected_flow(ReLUMeasure.projected(neurons(3), bias=True), X, y, times=[1.0, 0.5])
    with pytest.raises(nm.DataError, match="dual"):
        slackness(ReLUMeasure.projected(neurons(3), bias=True), X, y, np.zeros(8))
    with pytest.raises(nm.ModelError, match="ReLUPower"):
        ReLUMeasure.from_network(
            torch.nn.Sequential(torch.nn.Linear(2, 3), ReLUPower(3), SignedSum(torch.ones(3)))
        )


class _TwoLayers(torch.nn.Module):
    """Two layers in a module of one's own, whose forward pass is a function of it and x."""

    def __init__(self, call, **options):
        super().__init__()
        self.call, self.act = call, torch.nn.ReLU()
        self.first = torch.nn.Linear(3, 8, **options)
        self.last = torch.nn.Linear(8, 1, bias=False)

    def forward(self, x):
        return self.call(self, x)


@pytest.mark.parametrize("bias", [False, True])
def test_a_net_of_ones_own_is_the_measure_that_it_computes(bias):
    """What `forward` does decides, not which layers a module holds."""
    torch.manual_seed(0)
    calls = {
        "called": lambda net, x: net.last(torch.relu(net.first(x))),
        "flat": lambda net, x: net.last(net.act(net.first(x))).squeeze(-1),
    }
    for call in calls.values():
        net = _TwoLayers(call, bias=bias)
        X = torch.randn(20, 3)
        back = ReLUMeasure.from_network(net)
        assert back.decision_function(X) == pytest.approx(net(X).detach().numpy().ravel(), abs=1e-5)
        assert back.mass == pytest.approx(
            sum(p.detach().square().sum().item() for p in net.parameters())
        )
    others = {
        "squares": lambda net, x: net.last(net.act(net.first(x)) ** 2),
        "no kinks": lambda net, x: net.last(net.first(x)),
        "scaled": lambda net, x: net.last(net.act(net.first(1.0001 * x))),
        "skip": lambda net, x: net.last(net.act(net.first(x))) + x[:, :1],
        "offset": lambda net, x: net.last(net.act(net.first(x))) + 1e-6,
        "cut off": lambda net, x: net.last(net.act(net.first(x)).clamp(max=100.0)),
        "doubled": lambda net, x: net.last(net.act(net.first(x))) * 2,
    }
    for call in others.values():
        with pytest.raises(nm.ModelError, match="forward pass does something else"):
            ReLUMeasure.from_network(_TwoLayers(call, bias=bias))

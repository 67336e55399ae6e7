"""Dynamics of two-layer nets against propositions, explicit recursions and exact optima."""

import math

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.losses import Exponential, Logistic
from netmargin.twolayer import train_both_layers, train_magnitudes, train_output_layer


def problem(seed: int):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(2, 12)), int(random.integers(1, 40))
    return random.normal(size=(n, m)), np.where(random.random(n) < 0.5, -1, 1)


def softmin_slope(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    p = np.exp(-(z @ a) + (z @ a).min())
    return p / p.sum() @ z


@pytest.mark.parametrize("seed", range(20))
def test_propositions_6_and_7_hold_at_every_iteration(seed):
    features, y = problem(seed)
    runs = [train_magnitudes(features, y, steps=3000)]
    if nm.solvers.linear_max_margin(features, y).margin > 0:
        runs.append(train_output_layer(features, y, steps=3000))
    for run in runs:
        assert run.optimum <= run.proved + 1e-12
        assert run.proved - run.optimum <= 1e-5 * max(abs(run.proved), 1e-3)
        assert (run.best >= run.guarantee - 1e-12).all()
        assert (run.margins <= run.proved + 1e-9).all()


def test_guarantees_are_not_empty():
    """Long enough, both propositions promise more than half of the largest margin."""
    y = np.array([1, -1])
    features = y[:, None] * np.array([[1.0, -0.2], [-0.2, 0.9]])
    for train in (train_magnitudes, train_output_layer):
        run = train(features, y, steps=100_000)
        assert 0.5 * run.optimum < run.guarantee[-1] <= run.best[-1]


def test_magnitudes_are_gradient_ascent_on_r():
    features, y = problem(3)
    run = train_magnitudes(features, y, steps=50)
    z, m = y[:, None] * features, features.shape[1]
    r = np.ones(m)
    for t in range(50):
        a = r**2 / m
        assert run.margins[t] == pytest.approx((z @ a).min() / a.sum(), abs=1e-12)
        assert run.log_sizes[t] == pytest.approx(math.log(a.sum()), abs=1e-12)
        # m grad F = 2 r_j grad_j of the smooth margin at a.
        r = r + 2 * r * softmin_slope(a, z) / (16 * np.abs(z).max() * math.sqrt(t + 1))
    assert run.weights == pytest.approx(r**2 / (r**2).sum(), abs=1e-12)


def test_output_layer_is_gradient_ascent_on_r():
    features, y = problem(3)
    run = train_output_layer(features, y, steps=50)
    z, m = y[:, None] * features, features.shape[1]
    r, beta = np.zeros(m), 1.0
    for t in range(50):
        a = r / m
        beta = max(beta, math.sqrt(m) * np.linalg.norm(a))
        assert run.log_sizes[t] == pytest.approx(math.log(beta), abs=1e-12)
        assert run.margins[t] == pytest.approx((z @ a).min() / beta, abs=1e-12)
        r = r + beta * math.sqrt(2) / (np.abs(z).max() * math.sqrt(t + 1)) * softmin_slope(a, z)


def test_growth_is_at_least_that_of_the_margin():
    """beta(t + 1) / beta(t) >= (1 + 2 eta margin)^2 (Jensen), also where beta is beyond float64."""
    features, y = problem(5)
    run = train_magnitudes(features, y, steps=400, rate=lambda t: np.full(len(t), 0.2 / np.abs(features).max()))
    rate = 0.2 / np.abs(features).max()
    growth = np.diff(run.log_sizes)
    assert (growth >= 2 * np.log1p(2 * rate * run.margins[:-1]) - 1e-12).all()
    long = train_magnitudes(np.array([[1.0], [2.0]]), [1, 1], steps=8000, rate=lambda t: np.full(len(t), 0.1))
    assert long.log_sizes[-1] > 1000
    assert long.margins[-1] == 1.0


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("loss", [Exponential(), Logistic()], ids=str)
def test_steps_of_both_layers_equal_autograd(power, loss):
    """m times the gradient of F, with the neurons of the library's own start, and across the rescaling."""
    random = np.random.default_rng(0)
    X, y, m, steps = random.normal(size=(9, 3)), np.where(random.random(9) < 0.5, -1, 1), 7, 25
    runs = train_both_layers(
        X,
        y,
        width=m,
        steps=steps,
        power=power,
        loss=loss,
        scale=1.5,
        seeds=(4,),
        records=steps,
        dtype=torch.float64,
        progress=False,
    )
    start = np.random.default_rng(4)
    a = start.normal(size=(m, 4))
    a = torch.tensor(1.5 * a / np.linalg.norm(a, axis=1, keepdims=True))
    b = torch.tensor((1.5 if power == 1 else 1.0) * start.choice([-1.0, 1.0], m))
    Z, labels = torch.tensor(np.hstack([X, np.ones((9, 1))])), torch.tensor(y, dtype=torch.float64)
    for t in range(steps + 1):
        a.requires_grad_(True), b.requires_grad_(power == 1)
        q = labels * ((Z @ a.T).relu() ** power @ b / m)
        mass = ((a**2).sum() + ((b**2).sum() if power == 1 else 0.0)) / m
        assert runs.margins[t, 0] == pytest.approx((q.min() / mass).item(), rel=1e-9, abs=1e-12)
        assert runs.log_masses[t, 0] == pytest.approx(math.log(mass.item()), abs=1e-9)
        F = -torch.log((torch.exp(-q) if isinstance(loss, Exponential) else torch.nn.functional.softplus(-q)).mean())
        moved = torch.autograd.grad(F, [a, b] if power == 1 else [a])
        with torch.no_grad():
            a = a + 0.5 / math.sqrt(t + 1) * m * moved[0]
            b = b + 0.5 / math.sqrt(t + 1) * m * moved[1] if power == 1 else b
    assert runs.measures[0].normalized_margin(X, y) == pytest.approx(runs.margins[-1, 0], rel=1e-12)
    assert runs.measures[0].mass == pytest.approx(1.0)


def test_both_layers_approach_the_variation_norm_margin():
    """Two classes in four blobs: margins never exceed gamma_1, come within 5% of it, and wider nets separate more often."""
    random = np.random.default_rng(0)
    corner = random.integers(4, size=40)
    X = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])[corner] + 0.3 * random.uniform(-1, 1, (40, 2))
    y = 1 - 2 * (corner % 2)
    optimum = nm.solvers.f1_max_margin(X, y).upper_bound
    means = []
    for width in (2, 6, 256):
        runs = train_both_layers(X, y, width=width, steps=4000, seeds=range(6), progress=False)
        assert (runs.margins <= optimum * (1 + 1e-6)).all()
        means.append(runs.best.mean())
    assert means[0] < means[1] < means[2]
    assert (runs.best > 0.95 * optimum).all()


def test_runs_side_by_side_are_the_runs_alone():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.tile([1, -1], 6)
    together = train_both_layers(X, y, width=20, steps=300, seeds=(0, 1, 2), dtype=torch.float64, progress=False)
    for index in range(3):
        alone = train_both_layers(X, y, width=20, steps=300, seeds=(index,), dtype=torch.float64, progress=False)
        assert together.margins[:, index] == pytest.approx(alone.margins[:, 0], rel=1e-9, abs=1e-12)


def test_layers_stay_balanced_up_to_the_step():
    """|a_j| = |b_j| is kept by the flow; by steps up to their square, so along a fixed time the drift is of first order."""
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.tile([1, -1], 6)
    drifts = []
    for rate in (0.02, 0.01):
        runs = train_both_layers(
            X, y, width=30, steps=round(4 / rate), rate=lambda t, r=rate: np.full(len(t), r), dtype=torch.float64, progress=False
        )
        atoms = runs.measures[0].atoms
        drifts.append(np.abs((atoms[:, :-1] ** 2).sum(1) - atoms[:, -1] ** 2).max())
    assert drifts[0] < 0.1
    assert 1.5 < drifts[0] / drifts[1] < 2.5


def test_bad_input():
    with pytest.raises(nm.DataError, match="All features are 0"):
        train_magnitudes(np.zeros((3, 2)), [1, -1, 1], steps=10)
    with pytest.raises(nm.DataError, match="gamma_2 = 0"):
        train_output_layer(np.ones((2, 3)), [1, -1], steps=10)
    with pytest.raises(nm.DataError, match="NaN"):
        train_output_layer(np.full((2, 3), np.nan), [1, -1], steps=10)
    with pytest.raises(ValueError, match="steps"):
        train_magnitudes(np.ones((2, 3)), [1, 1], steps=0)
    with pytest.raises(ValueError, match="positive, finite"):
        train_magnitudes(np.ones((2, 3)), [1, 1], steps=5, rate=lambda t: -1.0)
    with pytest.raises(ValueError, match="one number or an array"):
        train_magnitudes(np.ones((2, 3)), [1, 1], steps=5, rate=lambda t: np.ones(3))
    data = ([[0.0, 1.0], [1.0, 0.0]], [1, -1])
    for wrong in (
        {"width": 0},
        {"steps": 0},
        {"power": 3},
        {"scale": -1.0},
        {"seeds": ()},
    ):
        with pytest.raises(ValueError, match="need width"):
            train_both_layers(*data, **({"width": 3, "steps": 3, "progress": False} | wrong))
    with pytest.raises(ValueError, match="loss must be"):
        train_both_layers(*data, width=3, steps=3, loss=Exponential(3), progress=False)

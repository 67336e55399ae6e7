"""Dynamics of two-layer nets against propositions, explicit recursions and exact optima."""

import math

import numpy as np
import pytest

import netmargin as nm
from netmargin.twolayer import train_magnitudes, train_output_layer


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

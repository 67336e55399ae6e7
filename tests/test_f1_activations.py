"""Variation-norm problems of other activations than ReLU, against cone programs over all patterns
and by hand.
"""

import numpy as np
import pytest
import torch
from test_sliding_columns_exact import solve_cone_program

import netmargin as nm
from netmargin.errors import ArgumentError
from netmargin.result import Status
from netmargin.solvers import (
    ReLUMeasure,
    f1_logistic,
    f1_max_margin,
    f1_soft_margin,
    linear_max_margin,
    min_norm_interpolation,
)
from netmargin.solvers.regularized import f1_squared


def leaky(slope):
    return torch.nn.LeakyReLU(slope)


def draw(D: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, labels of both classes, and values."""
    random = np.random.default_rng([seed, D])
    n = int(random.integers(5, 10 if D == 2 else 8))
    X, y = random.normal(size=(n, D)), random.choice([-1.0, 1.0], n)
    y[0] = -y[1]
    return X, y, random.normal(size=n)


def compare(X, y, values, slope) -> None:
    """All three problems equal the cone program over all activation patterns."""
    options = {"bias": False, "activation": leaky(slope)}
    hard = f1_max_margin(X, y, **options)
    best = 0.5 / solve_cone_program(X, y[:, None], slope, "hard")
    assert hard.certified
    assert hard.margin == pytest.approx(best, rel=1e-6)
    assert hard.upper_bound == pytest.approx(best, rel=1e-6)
    assert hard.normalized_margin(X, y) == pytest.approx(hard.margin, rel=1e-12)
    soft = f1_soft_margin(X, y, C=1.0, **options)
    assert soft.certified
    least = solve_cone_program(X, y[:, None], slope, "hinge")
    assert soft.objective == pytest.approx(least, rel=1e-6)
    through = min_norm_interpolation(X, values, **options)
    assert through.certified
    least = solve_cone_program(X, values[:, None], slope, "equality")
    assert through.norm == pytest.approx(least, rel=1e-6)
    assert through.decision_function(X) == pytest.approx(values, abs=1e-6)


@pytest.mark.slow_cases("2-0", "3")
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, -1.0])
@pytest.mark.parametrize("D", [2, 3])
def test_margins_are_those_of_a_cone_program_over_all_patterns(D, slope):
    for seed in range(2):
        compare(*draw(D, seed), slope)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 32))
@pytest.mark.parametrize("slope", [0.0, 0.1, 0.5, -1.0])
def test_more_sets_have_the_margins_of_cone_programs(slope, seed):
    compare(*draw(2 + seed % 2, seed), slope)


@pytest.mark.nightly_cases("6-0.3")
@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.3, -1.0])
@pytest.mark.parametrize("d", [2, 6])
def test_losses_are_bracketed(d, slope):
    """The dual is feasible for every neuron that is tried, and close to what is attained."""
    random = np.random.default_rng(d)
    X, y, price = random.normal(size=(14, d)), random.choice([-1.0, 1.0], 14), 0.02
    U = random.normal(size=(20_000, d))
    t = X @ (U / np.linalg.norm(U, axis=1, keepdims=True)).T
    features = np.where(t > 0, t, slope * t)
    options = {"regularization": price, "bias": False, "activation": leaky(slope)}
    logistic, found = f1_logistic(X, y, **options), f1_squared(X, y, **options)
    for solution, weights, most in (
        (logistic, logistic.dual * y, 2 * price),
        (found, found.dual, price),
    ):
        assert solution.certified
        assert solution.mass > 0
        assert 0.8 * most < np.abs(weights @ features).max() <= most * (1 + 1e-9)
    f = found.decision_function(X)
    objective = ((f - y) ** 2).mean() / 2 + price * found.mass / 2
    assert found.objective == pytest.approx(objective, rel=1e-9)


def test_a_linear_activation_has_the_linear_margin():
    random = np.random.default_rng(0)
    for d in (2, 6):
        X = random.normal(size=(20, d))
        y = np.sign(X @ np.ones(d) + 0.3)
        found, linear = (
            f1_max_margin(X, y, activation="linear"),
            linear_max_margin(np.column_stack([X, np.ones(20)]), y),
        )
        assert found.certified
        assert found.margin == pytest.approx(linear.margin / 2, rel=1e-6)
        y[0] = -y[0]
        y[X.sum(1).argmax()] = -1
        impossible = f1_max_margin(X, y, activation="linear")
        assert impossible.status is Status.NOT_SEPARABLE
        assert "together do" in impossible.note
        Z = np.column_stack([X, np.ones(20)])
        assert np.abs((impossible.dual * y) @ Z).max() < 1e-12


def test_absolute_values_on_a_line_by_hand():
    """f(1) = |w + b| and f(0) = |b| for neurons (w, b): |u . (1, 1)| - |u . (0, 1)| is largest at
    u = (1, 0), |u . (0, 1)| - |u . (1, 1)| at u = (1, -1) / sqrt(2), where 1 and 0 give 0 and 0.7.
    """
    found = f1_max_margin([[1.0], [-2.0]], [1, -1], bias=False, activation="abs")
    assert found.status is Status.NOT_SEPARABLE
    assert "Samples 0 and 1 are multiples of each other" in found.note
    assert "LeakyReLU(-1)" in found.note
    assert found.dual == pytest.approx([2 / 3, 1 / 3])
    same = f1_max_margin([[1.0], [-2.0]], [1, 1], bias=False, activation="abs")
    assert same.margin == pytest.approx(0.5)
    a, b = [1.0, 0.0], [0.0, 1.0]  # f(a) = t, f(b) = -t: one neuron along each
    axes = f1_max_margin([a, b], [1, -1], bias=False, activation="abs")
    assert axes.certified
    assert axes.margin == pytest.approx(0.25)


def test_features_that_are_steep_below_0_by_hand():
    """On a line the features of +1 and -1 are (1, -2) and (-2, 1): half their difference is best."""
    found = f1_max_margin([[1.0], [-1.0]], [1, -1], bias=False, activation=leaky(2.0))
    assert found.certified
    assert found.margin == pytest.approx(0.75, rel=1e-9)
    assert found.upper_bound >= found.margin


@pytest.mark.slow
def test_few_samples_of_many_dimensions_are_proved_by_trees():
    random = np.random.default_rng(1)
    X, y = random.normal(size=(12, 6)), random.choice([-1, 1], 12)
    for slope in (0.2, -1.0):
        found = f1_max_margin(X, y, activation=leaky(slope))
        assert found.certified
        assert "nodes" in found.upper_bound_from


def test_a_measure_is_a_net_of_its_activation_and_back():
    random = np.random.default_rng(2)
    X, y = random.normal(size=(8, 2)), random.choice([-1, 1], 8)
    x = torch.from_numpy(X)
    for slope in (0.25, -1.0):
        found = f1_max_margin(X, y, activation=leaky(slope))
        net = found.to_network(20)
        assert net(x)[:, 0].detach().numpy() == pytest.approx(found.decision_function(X))
        assert nm.measure(net, (x, y)).normalized_margin == pytest.approx(found.margin)
        back = ReLUMeasure.from_network(net)
        assert back.slope == slope
        assert back.mass == pytest.approx(1.0)
        for same in (back, back.normalized(), back.balanced()):
            assert same.normalized_margin(X, y) == pytest.approx(found.margin)
        assert nm.twolayer.slackness(found, X, y, found.dual).neurons < 1e-6


def test_old_files_are_of_relus(tmp_path):
    found = f1_max_margin([[1.0], [-1.0]], [1, -1], activation=leaky(0.5))
    assert nm.load(found.save(tmp_path / "leaky.pt")).slope == 0.5
    assert ReLUMeasure(atoms=np.ones((1, 2)), weights=np.ones(1), bias=False).slope == 0.0


def test_values_of_opposite_points_bind_functions_by_their_activation():
    """A leaky ReLU has f(z) - f(-z) linear in z; |u . z| is the same for z and -z."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -1.0], [1.0, 1.0], [-2.0, -2.0]])
    linear, bump = X @ [1.0, -2.0], np.abs(X @ [1.0, 3.0])
    for slope, y, found in (
        (0.2, linear + bump, True),
        (0.2, linear + bump + [0, 0, 0, 0, 1, 0], False),
        (-1.0, bump, True),
        (-1.0, linear + bump, False),
    ):
        solution = min_norm_interpolation(X, y, bias=False, activation=leaky(slope))
        assert solution.certified
        assert (solution.norm < np.inf) == found
        if found:
            assert solution.decision_function(X) == pytest.approx(y, abs=1e-6)
            least = solve_cone_program(X, y[:, None], slope, "equality")
            assert solution.norm == pytest.approx(least, rel=1e-6)
        else:
            assert solution.status is Status.NOT_ATTAINABLE
            assert solution.dual @ y > 0


@pytest.mark.parametrize("solve", [f1_max_margin, f1_soft_margin])
def test_other_activations_are_refused(solve):
    for activation, why in (
        (torch.tanh, "positively homogeneous"),
        ("squared_relu", "degree 1"),
        ("step", "There is no activation"),
    ):
        with pytest.raises(ArgumentError, match=why):
            solve([[1.0], [2.0]], [1, -1], activation=activation)
    with pytest.raises(ArgumentError, match="power=2 is for ReLU alone"):
        f1_max_margin([[1.0], [2.0]], [1, -1], power=2, activation="abs")
    with pytest.raises(ArgumentError, match="lstsq"):
        min_norm_interpolation([[1.0], [2.0]], [1, -1], activation="linear")
    with pytest.raises(ArgumentError, match="is for ReLU"):
        min_norm_interpolation([[1.0], [2.0]], [1, -1], norm="l2", activation="abs")

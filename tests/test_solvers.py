"""Exact margins against brute force, closed forms, and each other."""

from itertools import combinations, product
from math import comb, sqrt

import numpy as np
import pytest
import torch
from scipy.integrate import quad

import netmargin as nm
from netmargin import kernels
from netmargin.result import Status
from netmargin.solvers import f1_max_margin, f2_max_margin, kernel_max_margin, linear_max_margin, ntk_max_margin
from netmargin.solvers.arrangement import Arrangement
from netmargin.solvers.master import Rows
from netmargin.solvers.polish import polish
from netmargin.solvers.relaxation import relaxed_bound


def random_problem(seed: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 8))
    X = random.normal(size=(n, dimension)) if seed % 3 else random.integers(-2, 3, size=(n, dimension)).astype(float)
    X[random.integers(n)] = X[0]  # now and then a duplicated point, perhaps with the opposite label
    return X, random.choice([-1.0, 1.0], n)


def cells(Z: np.ndarray) -> np.ndarray:
    """All sign patterns of u . z_i, by stepping from every vertex of the arrangement into every direction around it."""
    D, found = Z.shape[1], set()
    random = np.random.default_rng(0)
    for u in random.normal(size=(4000, D)):
        found.add(tuple(u @ Z.T > 0))
    for chosen in combinations(range(len(Z)), D - 1):
        _, _singular, rows = np.linalg.svd(Z[list(chosen)])
        for vertex, step in product((rows[-1], -rows[-1]), random.normal(size=(16, D))):
            found.add(tuple((vertex + 1e-6 * step) @ Z.T > 0))
    return np.array(sorted(found))


@pytest.mark.parametrize("dimension", [1, 2])
def test_equals_brute_force_over_all_cells(dimension):
    """The convex program over every cell at once, against columns found one by one: 50 problems each."""
    for seed in range(50):
        X, y = random_problem(seed, dimension)
        solution = f1_max_margin(X, y, tol=1e-9)
        Z = np.hstack([X, np.ones((len(X), 1))])
        patterns = cells(Z)
        both = np.concatenate([patterns, patterns])
        signs = np.repeat([1.0, -1.0], len(patterns))
        v, _ = polish(Z, Rows(y, np.ones(len(y))), both, signs)
        outputs = np.einsum("k,kd,nd,kn->n", signs, v, Z, both)
        best = max((y * outputs).min() / np.linalg.norm(v, axis=1).sum(), 0.0)
        assert solution.certified
        assert solution.margin == pytest.approx(best / 2, rel=1e-8, abs=1e-9)
        assert solution.margin <= solution.upper_bound


def judged(solution, X, y, bias):
    """Margin, bound and slackness from scratch."""
    Z = np.hstack([X, np.ones((len(X), 1))]) if bias else np.asarray(X, float)
    atoms, weights, dual = solution.atoms, solution.weights, solution.dual
    assert np.allclose(np.linalg.norm(atoms, axis=1), 1)
    assert weights.sum() == pytest.approx(1.0)
    features = np.maximum(Z @ atoms[:, :-1].T, 0) * atoms[:, -1]
    margins = y * (features @ weights)
    assert margins.min() == pytest.approx(solution.margin, rel=1e-10)
    assert dual.sum() == pytest.approx(1.0)
    bound = Arrangement(Z).price(dual * y).upper_bound / 2
    assert bound == pytest.approx(solution.upper_bound, rel=1e-9)
    return margins


@pytest.mark.parametrize(("d", "bias"), [(2, True), (3, False), (3, True)])
def test_solution_is_sparse_slack_and_a_net(d, bias):
    random = np.random.default_rng(d)
    X, y = random.normal(size=(14, d)), random.choice([-1.0, 1.0], 14)
    solution = f1_max_margin(X, y, bias=bias, tol=1e-8)
    assert (solution.status, solution.certified) == (Status.OPTIMAL, True)
    margins = judged(solution, X, y, bias)
    assert len(solution.weights) <= len(X)
    assert solution.slackness < 1e-7
    assert margins[solution.dual > 1e-6] == pytest.approx(solution.margin, rel=1e-5)
    k = len(solution.weights)
    for width in (None, k + 1, 3 * k + 2):
        net = solution.to_network(width)
        assert net[0].out_features == (width or k)
        report = nm.measure(net, (X, y))
        assert report.norm == pytest.approx(1.0)
        assert report.normalized_margin == pytest.approx(solution.margin, rel=1e-10)
    assert np.allclose(solution.decision_function(X), net(torch.from_numpy(X)).detach().numpy()[:, 0])
    with pytest.raises(nm.DataError, match="width must be at least"):
        solution.to_network(k - 1)


def test_published_optima():
    corners = [[1, 1], [-1, -1], [1, -1], [-1, 1]]
    xor = f1_max_margin(corners, [1, 1, -1, -1], bias=False)
    assert (xor.margin, xor.certified) == (pytest.approx(sqrt(2) / 8, rel=1e-9), True)  # Wei et al. 2018, Lemma D.1
    axes = f1_max_margin([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 1, -1, -1], bias=False)
    assert (axes.margin, axes.certified) == (pytest.approx(1 / 8, rel=1e-9), True)  # Wei et al. 2019, (2.5)


def parity(k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    cube = np.array(list(product((-1.0, 1.0), repeat=d)))
    return cube / sqrt(d), cube[:, :k].prod(1)


@pytest.mark.parametrize(("k", "d"), [(2, 2), (2, 3), (2, 4), (4, 4)])
def test_even_parity_on_the_cube(k, d):
    """two-homogeneity 2024, Example 4.1, corrected: C(k-2, k/2-1) / (2^{k-1} sqrt(k d)) over unit-norm features."""
    solution = f1_max_margin(*parity(k, d), bias=False)
    assert solution.certified
    assert solution.margin == pytest.approx(comb(k - 2, k // 2 - 1) / 2 ** (k - 1) / sqrt(k * d) / 2, rel=1e-6)


def test_odd_parity_needs_a_bias():
    X, y = parity(3, 3)
    without = f1_max_margin(X, y, bias=False)
    assert (without.margin, without.status, without.certified) == (0.0, Status.NOT_SEPARABLE, True)
    assert Arrangement(X).price(without.dual * y).upper_bound < 1e-9
    with_bias = f1_max_margin(X, y, bias=True)
    assert with_bias.certified
    assert with_bias.margin == pytest.approx(1 / (4 * sqrt(10)) / 2, rel=1e-6)


def cube_margin(kernel, k: int, d: int) -> float:
    """Kernel margin of k-parity on the full cube: sign flips act transitively, so uniform dual weights are optimal."""
    flips = [(a, b) for a in range(k + 1) for b in range(d - k + 1)]
    points = np.array([[-1.0] * a + [1.0] * (k - a) + [-1.0] * b + [1.0] * (d - k - b) for a, b in flips]) / sqrt(d)
    counts = np.array([(-1) ** a * comb(k, a) * (comb(d - k, b) / 2**d) for a, b in flips])
    return sqrt(counts @ kernel(np.ones((1, d)) / sqrt(d), points)[0])


@pytest.mark.parametrize(
    ("solve", "kernel", "exponent"),
    [
        (f2_max_margin, lambda a, b: kernels.arc_cosine(a, b, bias=False), lambda k: -(k + 1) / 2),
        (ntk_max_margin, kernels.ntk, lambda k: -k / 2),
    ],
)
def test_kernel_margins_of_parity_fall_as_predicted(solve, kernel, exponent):
    """F_2 like d^{-(k+1)/2}, the tangent kernel like d^{-k/2} (two-homogeneity 2024, Example 4.1)."""
    for d in (3, 5, 8):
        X, y = parity(2, d)
        solution = solve(X, y, bias=False)
        assert solution.certified
        assert solution.margin == pytest.approx(cube_margin(kernel, 2, d), rel=1e-6)
    for k in (2, 4):
        dimensions = np.array([100, 140, 200])
        slope = np.polyfit(np.log(dimensions), np.log([cube_margin(kernel, k, int(d)) for d in dimensions]), 1)[0]
        assert slope == pytest.approx(exponent(k), abs=0.08)


def test_data_that_cannot_be_separated_are_named():
    contradiction = f1_max_margin([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]], [1, 1, -1])
    assert (contradiction.margin, contradiction.status) == (0.0, Status.NOT_SEPARABLE)
    assert contradiction.support.tolist() == [0, 2]
    zero_row = f1_max_margin([[1.0, 2.0], [0.0, 0.0]], [1, -1], bias=False)
    assert (zero_row.margin, zero_row.support.tolist()) == (0.0, [1])
    with pytest.raises(nm.DataError, match="no atoms"):
        zero_row.to_network()
    random = np.random.default_rng(0)
    X = random.normal(size=(9, 7))  # too high a rank for complete pricing
    many = f1_max_margin(np.vstack([X, 2 * X[3], X[5]]), [*np.sign(X[:, 0]), -np.sign(X[3, 0]), np.sign(X[5, 0])], bias=False)
    assert (many.margin, many.certified) == (0.0, True)
    assert many.support.tolist() == [3, 9]
    linear = linear_max_margin([[1.0], [2.0], [1.5]], [1, 1, -1])
    assert (linear.margin, linear.status) == (0.0, Status.NOT_SEPARABLE)
    kernel = kernel_max_margin(np.ones((2, 2)), [1, -1])
    assert (kernel.margin, kernel.status) == (0.0, Status.NOT_SEPARABLE)


def test_one_sample_and_one_class():
    assert f1_max_margin([[3.0, 4.0]], [1], bias=False).margin == pytest.approx(2.5)
    assert f1_max_margin([[3.0], [4.0]], [1, 1]).margin == pytest.approx(sqrt(10) / 2)


@pytest.mark.parametrize("step", [1e-4, 1e-6, 1e-7, 1e-8, 1e-9])
def test_tiny_kernel_margins_stay_inside_their_bracket(step):
    """Two points (1, +-step): by symmetry the margin is sqrt((k11 - k12)/2); angle^2 (1/8 - angle/12 pi...) from the series."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        angle = 2 * mpmath.atan(mpmath.mpf(step))
        square = 1 + mpmath.mpf(step) ** 2
        kernel = lambda t: square * (mpmath.sin(t) + (mpmath.pi - t) * mpmath.cos(t)) / (4 * mpmath.pi)  # noqa: E731
        exact = float(mpmath.sqrt((kernel(0) - kernel(angle)) / 2))
    solution = f2_max_margin([[1.0, step], [1.0, -step]], [1, -1], bias=False)
    assert solution.margin <= exact <= solution.upper_bound
    if solution.status is Status.OPTIMAL:
        assert solution.margin == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("step", [1e-6, 1e-9, 1e-11, 9e-13])
def test_tiny_variation_norm_margins_stay_inside_their_bracket(step):
    """u = (0, 1) and (0, -1) give margin step / 2 in l1 units, which no bound may undercut."""
    solution = f1_max_margin([[1.0, step], [1.0, -step]], [1, -1], bias=False)
    assert solution.upper_bound >= step / 4 * (1 - 1e-9)
    linear = linear_max_margin([[1.0, step], [1.0, -step]], [1, -1])
    assert linear.margin <= step * (1 + 1e-9)
    assert step <= linear.upper_bound * (1 + 1e-9)


@pytest.mark.parametrize("factor", [1e-200, 1e-160, 1e160, 1e200])
def test_extreme_scales_neither_overflow_nor_vanish(factor):
    X, y = factor * np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [1, -1, 1]
    one = f1_max_margin(X / factor, y, bias=False).margin
    assert f1_max_margin(X, y, bias=False).margin == pytest.approx(factor * one, rel=1e-9)
    assert f2_max_margin(X, y, bias=False).margin == pytest.approx(
        factor * f2_max_margin(X / factor, y, bias=False).margin, rel=1e-9
    )
    assert linear_max_margin(X, y).status is not Status.STALLED


@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e12])
def test_answers_scale_with_the_data(factor):
    X, y = random_problem(1, 3)
    one, scaled = f1_max_margin(X, y, bias=False), f1_max_margin(factor * X, y, bias=False)
    assert scaled.margin == pytest.approx(factor * one.margin, rel=1e-6)
    assert scaled.rounds == one.rounds
    assert f2_max_margin(factor * X, y, bias=False).margin == pytest.approx(
        factor * f2_max_margin(X, y, bias=False).margin, rel=1e-6
    )


def test_local_pricing_claims_no_proof_and_brackets_the_optimum():
    X, y = random_problem(5, 3)
    exact, local = f1_max_margin(X, y), f1_max_margin(X, y, pricing="local")
    assert not local.certified
    assert local.margin == pytest.approx(exact.margin, rel=1e-4)
    assert local.margin <= exact.upper_bound <= local.upper_bound * (1 + 1e-9)


def test_higher_dimensions_keep_a_valid_bracket_and_agree_over_seeds():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 8))
    y = np.sign(X[:, 0] * X[:, 1])
    solutions = [f1_max_margin(X, y, seed=seed) for seed in range(2)]
    for solution in solutions:
        assert solution.status is Status.LOCALLY_OPTIMAL
        assert 0 < solution.margin <= solution.upper_bound
        assert nm.measure(solution.to_network(), (X, y)).normalized_margin == pytest.approx(solution.margin, rel=1e-10)
    assert solutions[0].margin == pytest.approx(solutions[1].margin, rel=1e-3)


def test_relaxed_bound_is_valid_and_not_vacuous():
    random = np.random.default_rng(0)
    ratios = []
    for _ in range(30):
        Z, c = random.normal(size=(9, 3)), random.normal(size=9)
        exact, bound = Arrangement(Z).price(c).upper_bound, relaxed_bound(Z, c)
        assert bound >= exact * (1 - 1e-9)
        ratios.append(bound / exact)
    assert np.median(ratios) < 2


def test_complete_pricing_beats_dense_search():
    random = np.random.default_rng(1)
    for dimension in (2, 3, 4):
        for n in (1, 3, 7):
            Z, c = random.integers(-1, 2, size=(n, dimension)).astype(float), random.normal(size=n)
            U = random.normal(size=(200_000, dimension))
            U /= np.linalg.norm(U, axis=1, keepdims=True)
            search = np.abs(np.maximum(U @ Z.T, 0) @ c).max()
            found = Arrangement(Z).price(c)
            assert search <= found.upper_bound + 1e-12
            assert found.upper_bound == pytest.approx(search, rel=0.02, abs=1e-12)
            if len(found.values):
                assert np.maximum(found.directions @ Z.T, 0) @ c == pytest.approx(found.values, abs=1e-12)


def test_a_time_limit_returns_a_valid_bracket():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), random.choice([-1, 1], 60)
    hurried = f1_max_margin(X, y, time_limit=0.0)
    assert hurried.status is Status.TIME_LIMIT
    assert not hurried.certified
    assert hurried.margin <= f1_max_margin(X, y).margin * (1 + 1e-6) <= hurried.upper_bound * (1 + 1e-5)


def test_arc_cosine_kernel_equals_quadrature_and_monte_carlo():
    x, z = np.array([1.0, 2.0]), np.array([-0.5, 1.0])

    def integrand(t):
        u = np.array([np.cos(t), np.sin(t)])
        return max(u @ x, 0) * max(u @ z, 0)

    breaks = sorted(np.arctan2(v[1], v[0]) + s * np.pi / 2 for v in (x, z) for s in (-1, 1))
    exact = quad(integrand, -np.pi, np.pi, points=breaks, epsabs=1e-13, epsrel=1e-13)[0] / (2 * np.pi)
    assert kernels.arc_cosine([x], [z], bias=False)[0, 0] == pytest.approx(exact, abs=1e-11)
    random = np.random.default_rng(0)
    X = random.normal(size=(4, 5))
    U = random.normal(size=(400_000, 6))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    features = np.maximum(U @ np.hstack([X, np.ones((4, 1))]).T, 0)
    error = np.abs(features.T @ features / len(U) - kernels.arc_cosine(X))
    assert (error < 5 * features.max() ** 2 / sqrt(len(U))).all()
    active = (U[:, :5] @ X.T > 0).astype(float)
    features = np.maximum(U[:, :5] / np.linalg.norm(U[:, :5], axis=1, keepdims=True) @ X.T, 0)
    estimate = 4 * features.T @ features / len(U) + 9 * (X @ X.T) * (active.T @ active) / len(U)
    exact = kernels.ntk(X, r_w=3, r_u=2)
    assert np.abs(estimate - exact).max() < 0.01 * exact.max()


def test_kernel_of_nearly_parallel_inputs_keeps_its_digits():
    x = np.array([[1.0, 1.0]])
    for step in (1e-4, 1e-7):
        angle = np.arctan2(step, 2 + step) * 1.0
        other = np.array([[1.0, 1.0 + step]])
        angle = np.arctan2(1.0 + step, 1.0) - np.pi / 4
        exact_deficit = angle**3 / (3 * np.pi)  # sin t + (pi - t) cos t = pi (1 - t^2/2) + t^3/3 + ...
        norms = np.linalg.norm(x) * np.linalg.norm(other)
        value = kernels.arc_cosine(x, other, bias=False)[0, 0] * 4 * np.pi / norms / np.pi
        assert value == pytest.approx(1 - angle**2 / 2 + exact_deficit, abs=1e-15)


def test_linear_margins_agree_with_each_other():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4))
    y = np.sign(X @ [1.0, -2.0, 0.5, 0.0])
    l2, l1 = linear_max_margin(X, y), linear_max_margin(X, y, norm="l1")
    for solution, order in ((l2, 2), (l1, 1)):
        assert solution.certified
        assert np.linalg.norm(solution.weights, order) == pytest.approx(1.0)
        assert (y * solution.decision_function(X)).min() == pytest.approx(solution.margin)
    assert l1.margin <= l2.margin
    assert l2.margin == pytest.approx(kernel_max_margin(X @ X.T, y).margin, rel=1e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f1_max_margin([[np.nan]], [1]), "NaN or infinite"),
        (lambda: f1_max_margin([1.0, 2.0], [1, -1]), "shape"),
        (lambda: f1_max_margin([[1.0], [2.0]], [1]), "one label per sample"),
        (lambda: f1_max_margin([[1.0], [2.0], [3.0]], [0, 1, 2]), "netmargin.estimators|-1 and"),
        (lambda: f1_max_margin([["a"]], [1]), "cannot be read"),
        (lambda: kernel_max_margin([[1.0, 2.0], [2.0, 1.0]], [1, -1]), "not positive semidefinite"),
        (lambda: kernel_max_margin(-np.eye(2), [1, -1]), "not positive semidefinite"),
        (lambda: kernel_max_margin([[0.0, 1.0], [1.0, 0.0]], [1, -1]), "not positive semidefinite"),
        (lambda: f1_max_margin(np.zeros((2, 0)), [1, -1]), "n and d at least 1"),
        (lambda: f1_max_margin([[1.0]], [np.nan]), "NaN or infinite labels"),
        (lambda: kernel_max_margin([[1.0, 2.0], [0.0, 1.0]], [1, -1]), "symmetric"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(nm.DataError, match=message):
        call()

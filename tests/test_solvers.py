"""Exact margins against brute force, closed forms, and each other."""

from itertools import combinations, product
from math import comb, sqrt

import mpmath
import numpy as np
import pytest
import torch
from scipy.integrate import quad

import netmargin as nm
from netmargin import kernels
from netmargin.papers.wei_2018 import narrow_max_margin
from netmargin.result import Status
from netmargin.solvers import (
    ReLUMeasure,
    f1_max_margin,
    f1_soft_margin,
    f2_max_margin,
    kernel_max_margin,
    kernel_soft_margin,
    linear_max_margin,
    min_norm_interpolation,
    ntk_max_margin,
)
from netmargin.solvers.columns.master import Constraints
from netmargin.solvers.columns.polish import polish_neurons
from netmargin.solvers.pricing.arrangement import Arrangement
from netmargin.solvers.pricing.branch_and_bound import ActivationBranchAndBound


def random_problem(seed: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 8))
    X = (
        random.normal(size=(n, dimension))
        if seed % 3
        else random.integers(-2, 3, size=(n, dimension)).astype(float)
    )
    X[random.integers(n)] = X[0]  # now and then a duplicated point, perhaps with the opposite label
    return X, random.choice([-1.0, 1.0], n)


def cells(Z: np.ndarray) -> np.ndarray:
    """All sign patterns of u . z_i, by steps from every vertex of the arrangement."""
    D, found = Z.shape[1], set()
    random = np.random.default_rng(0)
    for u in random.normal(size=(4000, D)):
        found.add(tuple(u @ Z.T > 0))
    for chosen in combinations(range(len(Z)), D - 1):
        _, _singular, rows = np.linalg.svd(Z[list(chosen)])
        for vertex, step in product((rows[-1], -rows[-1]), random.normal(size=(16, D))):
            found.add(tuple((vertex + 1e-6 * step) @ Z.T > 0))
    return np.array(sorted(found))


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("dimension", [1, 2])
def test_equals_brute_force_over_all_cells(dimension):
    """The convex program over every cell at once, against columns one by one: 6 problems."""
    for seed in range(6):
        X, y = random_problem(seed, dimension)
        solution = f1_max_margin(X, y, tol=1e-9)
        Z = np.hstack([X, np.ones((len(X), 1))])
        patterns = cells(Z)
        both = np.concatenate([patterns, patterns])
        signs = np.repeat([1.0, -1.0], len(patterns))
        v, *_ = polish_neurons(Z, Constraints(y, np.ones(len(y))), both, signs)
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
    bound = Arrangement(Z).price_neurons(dual * y).upper_bound / 2
    assert bound == pytest.approx(solution.upper_bound, rel=1e-9)
    return margins


@pytest.mark.slow_cases("3-True")
@pytest.mark.parametrize(("d", "bias"), [(2, True), (3, False), (3, True)])
def test_solution_is_sparse_slack_and_a_net(d, bias):
    random = np.random.default_rng(d)
    X, y = random.normal(size=(14, d)), random.choice([-1.0, 1.0], 14)
    solution = f1_max_margin(X, y, bias=bias, tol=1e-8)
    assert (solution.status, solution.certified) == (Status.OPTIMAL, True)
    margins = judged(solution, X, y, bias)
    assert len(solution.weights) <= len(X)
    assert nm.twolayer.slackness(solution, X, y, solution.dual).residual < 1e-7
    assert margins[solution.dual > 1e-6] == pytest.approx(solution.margin, rel=1e-5)
    k = len(solution.weights)
    for width in (None, k + 1, 3 * k + 2):
        net = solution.to_network(width)
        assert net[0].out_features == (width or k)
        report = nm.measure(net, (X, y))
        assert report.norm == pytest.approx(1.0)
        assert report.normalized_margin == pytest.approx(solution.margin, rel=1e-10)
    assert np.allclose(
        solution.decision_function(X), net(torch.from_numpy(X)).detach().numpy()[:, 0]
    )
    with pytest.raises(nm.ArgumentError, match="width must be at least"):
        solution.to_network(k - 1)


def test_published_optima():
    corners = [[1, 1], [-1, -1], [1, -1], [-1, 1]]
    xor = f1_max_margin(corners, [1, 1, -1, -1], bias=False)
    assert (xor.margin, xor.certified) == (
        pytest.approx(sqrt(2) / 8, rel=1e-9),
        True,
    )  # Wei et al. 2018, Lemma D.1
    axes = f1_max_margin([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 1, -1, -1], bias=False)
    assert (axes.margin, axes.certified) == (
        pytest.approx(1 / 8, rel=1e-9),
        True,
    )  # Wei et al. 2019, (2.5)


def parity(k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    cube = np.array(list(product((-1.0, 1.0), repeat=d)))
    return cube / sqrt(d), cube[:, :k].prod(1)


def test_odd_parity_needs_a_bias():
    X, y = parity(3, 3)
    without = f1_max_margin(X, y, bias=False)
    assert (without.margin, without.status, without.certified) == (0.0, Status.NOT_SEPARABLE, True)
    assert Arrangement(X).price_neurons(without.dual * y).upper_bound < 1e-9
    with_bias = f1_max_margin(X, y, bias=True)
    assert with_bias.certified
    assert with_bias.margin == pytest.approx(1 / (4 * sqrt(10)) / 2, rel=1e-6)


def cube_margin(kernel, k: int, d: int) -> float:
    """Kernel margin of k-parity on the cube: by symmetry uniform dual weights are optimal."""
    flips = [(a, b) for a in range(k + 1) for b in range(d - k + 1)]
    points = np.array(
        [[-1.0] * a + [1.0] * (k - a) + [-1.0] * b + [1.0] * (d - k - b) for a, b in flips]
    ) / sqrt(d)
    counts = np.array([(-1) ** a * comb(k, a) * (comb(d - k, b) / 2**d) for a, b in flips])
    return sqrt(counts @ kernel(np.ones((1, d)) / sqrt(d), points)[0])


@pytest.mark.parametrize(
    ("solve", "kernel", "exponent"),
    [
        (f2_max_margin, lambda a, b: kernels.arc_cosine(a, b, bias=False), lambda k: -(k + 1) / 2),
        (ntk_max_margin, lambda a, b: kernels.ntk(a, b, bias=False), lambda k: -k / 2),
    ],
)
def test_kernel_margins_of_parity_fall_as_predicted(solve, kernel, exponent):
    """F_2 like d^{-(k+1)/2}, the tangent kernel like d^{-k/2} (ibid.)."""
    for d in (3, 5, 8):
        X, y = parity(2, d)
        solution = solve(X, y, bias=False)
        assert solution.certified
        assert solution.margin == pytest.approx(cube_margin(kernel, 2, d), rel=1e-6)
    for k in (2, 4):
        dimensions = np.array([100, 140, 200])
        slope = np.polyfit(
            np.log(dimensions), np.log([cube_margin(kernel, k, int(d)) for d in dimensions]), 1
        )[0]
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
    many = f1_max_margin(
        np.vstack([X, 2 * X[3], X[5]]),
        [*np.sign(X[:, 0]), -np.sign(X[3, 0]), np.sign(X[5, 0])],
        bias=False,
    )
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
    """Two points (1, +-step): by symmetry the margin is sqrt((k11 - k12) / 2), to 50 digits."""
    with mpmath.workdps(50):
        angle = 2 * mpmath.atan(mpmath.mpf(step))
        square = 1 + mpmath.mpf(step) ** 2

        def kernel(t):
            return square * (mpmath.sin(t) + (mpmath.pi - t) * mpmath.cos(t)) / (4 * mpmath.pi)

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


def test_margins_that_are_negative_by_rounding_are_attained():
    """Inputs of 1e10 beside a bias of 1: few of these are separated in float64."""
    negative = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        X, y = 1e10 * random.normal(size=(6, 1)), random.permutation([1, -1, -1, 1, -1, -1])
        found = f1_max_margin(X, y)
        negative += found.margin < 0
        Z, atoms = (part.astype(np.longdouble) for part in (np.c_[X, np.ones(6)], found.atoms))
        outer = found.weights * atoms[:, -1]
        mass = found.weights @ (atoms**2).sum(1) if len(atoms) else 1
        assert found.margin <= (y * (np.maximum(Z @ atoms[:, :-1].T, 0) @ outer)).min() / mass
    assert negative


@pytest.mark.slow_cases("1e-160", "1e+160")
@pytest.mark.parametrize("factor", [1e-200, 1e-160, 1e160, 1e200])
def test_extreme_scales_neither_overflow_nor_vanish(factor):
    X, y = factor * np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [1, -1, 1]
    one = f1_max_margin(X / factor, y, bias=False).margin
    assert f1_max_margin(X, y, bias=False).margin == pytest.approx(factor * one, rel=1e-9)
    assert f2_max_margin(X, y, bias=False).margin == pytest.approx(
        factor * f2_max_margin(X / factor, y, bias=False).margin, rel=1e-9
    )
    assert linear_max_margin(X, y).status is not Status.STALLED


def test_local_pricing_claims_no_proof_and_brackets_the_optimum():
    X, y = random_problem(5, 3)
    exact, local = f1_max_margin(X, y), f1_max_margin(X, y, pricing="local")
    assert not local.certified
    assert local.margin == pytest.approx(exact.margin, rel=1e-5)
    assert local.local_gap < 1e-5
    assert local.margin <= exact.upper_bound <= local.upper_bound * (1 + 1e-9)


@pytest.mark.slow
def test_higher_dimensions_are_certified_by_branch_and_bound():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 8))
    y = np.sign(X[:, 0] * X[:, 1])
    solutions = [f1_max_margin(X, y, seed=seed, tol=1e-5) for seed in range(2)]
    for solution in solutions:
        assert solution.certified
        assert len(solution.weights) <= len(X)
        assert nm.measure(solution.to_network(), (X, y)).normalized_margin == pytest.approx(
            solution.margin, rel=1e-10
        )
    assert solutions[0].margin == pytest.approx(solutions[1].margin, rel=2e-5)
    again = f1_max_margin(X, y, tol=1e-5, neurons=solutions[0].atoms[:, :-1])
    assert again.certified
    assert again.rounds < solutions[0].rounds / 2


def test_branch_and_bound_is_valid_when_cut_short():
    random = np.random.default_rng(0)
    Z, c = random.normal(size=(60, 6)), random.normal(size=60)
    tree, bounds = ActivationBranchAndBound(Z, c, floor=0.0, tol=1e-6), []
    U = random.normal(size=(200_000, 6))
    reached = np.abs(np.maximum(U @ Z.T, 0) @ c / np.linalg.norm(U, axis=1)).max()
    for _ in range(4):
        bounds.append(tree.upper_bound())
        tree.grow(nodes=2000, deadline=np.inf)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.9 * bounds[0]
    assert bounds[-1] >= reached


def brute_force_rows(Z: np.ndarray, rows: Constraints) -> float:
    """1 / t of the convex program over every cell at once."""
    patterns = cells(Z)
    both, signs = np.concatenate([patterns, patterns]), np.repeat([1.0, -1.0], len(patterns))
    v, *_ = polish_neurons(Z, rows, both, signs)
    outputs = np.einsum("k,kd,nd,kn->n", signs, v, Z, both)
    mass = np.linalg.norm(v, axis=1).sum()
    return min(
        scale * mass + rows.slack_cost * np.maximum(1 - scale * rows.signs * outputs, 0).sum()
        for scale in np.linspace(0, 3, 301) / max(outputs @ rows.signs / len(outputs), 1e-300)
    )


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("dimension", [1, 2])
def test_soft_margin_equals_brute_force_and_its_net(dimension):
    for seed in range(8):
        X, y = random_problem(seed, dimension)
        C = 10.0 ** (seed % 4 - 1)
        solution = f1_soft_margin(X, y, C=C, tol=1e-8)
        assert solution.certified
        Z = np.hstack([X, np.ones((len(X), 1))])
        coarse = brute_force_rows(Z, Constraints(y, np.ones(len(y)), slack_cost=C))
        assert solution.lower_bound * (1 - 1e-7) <= coarse
        assert solution.objective <= coarse * (1 + 1e-7)
        assert (solution.dual >= 0).all()
        assert (solution.dual <= C * (1 + 1e-9)).all()
        if len(solution.weights):
            net = solution.to_network()
            outputs = net(torch.from_numpy(X)).detach().numpy()[:, 0]
            half = sum(float((p.detach() ** 2).sum()) for p in net.parameters()) / 2
            assert half + C * np.maximum(1 - y * outputs, 0).sum() == pytest.approx(
                solution.objective, rel=1e-9
            )


def test_weights_of_samples_are_copies_of_them():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 2)), random.choice([-1.0, 1.0], 12)
    weights = np.arange(12) % 3 + 1
    weighted = f1_soft_margin(X, y, C=0.4, sample_weight=weights)
    copies = np.repeat(np.arange(12), weights)
    repeated = f1_soft_margin(X[copies], y[copies], C=0.4)
    assert weighted.certified
    assert weighted.objective == pytest.approx(repeated.objective, rel=2e-6)
    hinges = np.maximum(1 - y * weighted.decision_function(X), 0)
    value = weighted.mass / 2 + 0.4 * weights @ hinges
    assert weighted.objective == pytest.approx(value, rel=1e-9)
    assert (weighted.dual <= 0.4 * weights * (1 + 1e-9)).all()
    with pytest.raises(nm.DataError, match="holds zeros"):
        f1_soft_margin(X, y, sample_weight=np.arange(12))
    for seed in range(8):  # the first dual weights are in the units of all others
        random = np.random.default_rng(seed)
        n = int(random.integers(3, 9))
        X, weights = random.normal(size=(n, 2)), random.uniform(0.1, 1.1, n)
        X[-1] = X[0]
        y = random.choice([-1.0, 1.0], n)
        y[:2] = -1, 1
        assert f1_soft_margin(X, y, C=30, sample_weight=weights, bias=False).certified


def test_soft_margins_become_hard():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 2)), random.choice([-1.0, 1.0], 20)
    hard, soft = f1_max_margin(X, y), f1_soft_margin(X, y, C=1e7)
    assert soft.objective == pytest.approx(0.5 / hard.margin, rel=1e-5)
    assert soft.margin == pytest.approx(hard.margin, rel=1e-5)
    K = kernels.arc_cosine(X)
    hard, soft = kernel_max_margin(K, y), kernel_soft_margin(K, y, C=1e7)
    assert soft.certified
    assert soft.objective == pytest.approx(0.5 / hard.margin**2, rel=1e-5)
    assert soft.decision_function(K) == pytest.approx(
        hard.decision_function(K) / hard.margin, rel=1e-4, abs=1e-4
    )


def test_a_soft_kernel_margin_of_0_is_that_of_f_0():
    """Labels that no function of the kernel separates, to its rounding: f = 0 is the best."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        x = random.normal(size=(1, 3))
        K = np.repeat(x, 4, 0) @ np.repeat(x, 4, 0).T * (1 + 1e-16 * random.normal(size=(4, 4)))
        found = kernel_soft_margin((K + K.T) / 2, [1, -1, 1, -1], C=random.uniform(0.1, 3))
        assert found.certified
        assert (found.margin == 0) == (not found.coefficients.any())


def test_the_function_of_a_kernel_has_norm_1_also_where_float64_does_not_do():
    """Nearly dependent features of sizes 1e-6 to 1e6: refined ones, and negative margins."""
    negative = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        X = random.normal(size=(6, 1 + seed % 2)) * 10.0 ** random.integers(-6, 7, size=(6, 1))
        K, y = kernels.arc_cosine(X), random.choice([-1, 1], 6)
        found = kernel_max_margin((K + K.T) / 2, y)
        expected = y * found.dual / (found.upper_bound or 1) * found.coefficients.any()
        assert found.coefficients == pytest.approx(expected, rel=2e-8)
        negative += found.margin < 0
    assert negative


def test_soft_kernel_margin_equals_svc_on_a_centred_kernel():
    """Antipodal points with opposite labels: the intercept that SVC fits is 0 by symmetry."""
    from sklearn.svm import SVC

    random = np.random.default_rng(0)
    X, y = random.normal(size=(15, 3)), random.choice([-1.0, 1.0], 15)
    X, y = np.vstack([X, -X]), np.concatenate([y, -y])
    K = X @ X.T
    for C in (0.01, 1.0):
        ours, theirs = (
            kernel_soft_margin(K, y, C=C),
            SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y),
        )
        assert ours.certified
        assert ours.decision_function(K) == pytest.approx(theirs.decision_function(K), abs=1e-4)
    for C in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(nm.ArgumentError, match="C must be a number above 0"):
            kernel_soft_margin(K, y, C=C)
        with pytest.raises(nm.ArgumentError, match="C must be a number above 0"):
            f1_soft_margin(X, y, C=C)


def test_squared_relu():
    line = f1_max_margin([[1.0], [-1.0]], [1, 1], bias=False, power=2)  # half the mass on each side
    assert (line.margin, line.certified) == (pytest.approx(0.5), True)
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 2))
    y = np.sign(X[:, 0] * X[:, 1])
    solution = f1_max_margin(X, y, power=2)
    assert solution.certified
    report = nm.measure(solution.to_network(len(solution.weights) + 2), (X, y))
    assert (report.order, report.normalized_margin) == (
        2,
        pytest.approx(solution.margin, rel=1e-10),
    )
    scaled = f1_max_margin(1e5 * X, y, power=2, bias=False).margin
    assert scaled == pytest.approx(1e10 * f1_max_margin(X, y, power=2, bias=False).margin, rel=1e-5)
    loose = f1_max_margin(random.normal(size=(20, 6)), random.choice([-1, 1], 20), power=2)
    assert 0 < loose.margin <= loose.upper_bound


def test_nets_and_measures_are_the_same_thing():
    torch.manual_seed(0)
    X, y = torch.randn(20, 3, dtype=torch.float64), torch.randint(0, 2, (20,))
    for bias in (True, False):
        net = torch.nn.Sequential(
            torch.nn.Linear(3, 7, bias=bias), torch.nn.ReLU(), torch.nn.Linear(7, 1, bias=False)
        ).double()
        measure = ReLUMeasure.from_network(net)
        outputs = net(X).detach().numpy()[:, 0]
        report = nm.measure(net, (X, y))
        assert measure.mass == pytest.approx(report.norm**2)
        assert measure.normalized_margin(X, y) == pytest.approx(report.normalized_margin)
        balanced = measure.balanced()
        assert balanced.mass < measure.mass
        for same in (measure, balanced):
            assert same.decision_function(X) == pytest.approx(outputs)
            assert same.to_network(9)(X).detach().numpy()[:, 0] == pytest.approx(outputs)
    with pytest.raises(nm.ModelError, match="Linear - ReLU - Linear"):
        ReLUMeasure.from_network(torch.nn.Linear(2, 1))


def test_empirical_tangent_kernel_equals_gradients_in_any_chunking(monkeypatch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(18, 2)
    )
    X = torch.randn(4, 1, 5, 5)
    gradients = []
    for x in X.double():
        twin = model.double()
        twin.zero_grad()
        twin(x[None])[0, 1].backward()
        gradients.append(torch.cat([p.grad.flatten() for p in twin.parameters()]))
    J = torch.stack(gradients).numpy()
    model = model.float()
    for entries in (1, 10**6):
        monkeypatch.setattr("netmargin.nets.gradients._NUMBERS_AT_ONCE", entries)
        monkeypatch.setattr("netmargin.nets.gradients._NUMBERS_HELD", entries)
        assert kernels.empirical_ntk(model, X, X[:3], output=1) == pytest.approx(
            J @ J[:3].T, rel=1e-5
        )
    assert all(p.grad is not None and p.dtype == torch.float32 for p in model.parameters())
    with pytest.raises(nm.ModelError, match="no parameters"):
        kernels.empirical_ntk(torch.nn.ReLU(), X)
    with pytest.raises(nm.DataError, match="could not process"):
        kernels.empirical_ntk(model, torch.randn(4, 3))


def test_progress_reaches_a_log(capsys, monkeypatch):
    monkeypatch.setattr("netmargin.core.progress._LOG_EVERY_SECONDS", 0.0)
    f1_max_margin([[1.0], [-1.0]], [1, -1], progress=True)
    assert "max margin: round 1  bracket" in capsys.readouterr().err


def test_many_samples_are_warned_of(monkeypatch):
    monkeypatch.setattr("netmargin.core.matrices._MANY_SAMPLES", 3)
    X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    for solve in (f1_max_margin, f1_soft_margin, f2_max_margin, min_norm_interpolation):
        with pytest.warns(UserWarning, match="may take many minutes"):
            solve(X, y)


def test_leaves_at_the_limit_of_precision_end():
    """Columns of sizes 1e-8 to 1; leaves that never close are those of `test_sound_bounds.py`."""
    X = np.diag([1e-8, 1e-4, 1e-2, 1e-6, 1.0]) @ np.random.default_rng(0).normal(size=(5, 4))
    solution = f1_max_margin(X, [1, 1, -1, 1, -1])
    assert solution.certified
    assert solution.margin <= solution.upper_bound


@pytest.mark.parametrize(
    "option",
    [
        {"tol": 0.0},
        {"tol": np.nan},
        {"tol": 2.0},
        {"time_limit": -1.0},
        {"time_limit": np.nan},
        {"pricing": "no"},
    ],
)
def test_impossible_options_are_refused(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        f1_max_margin([[1.0], [2.0]], [0, 1], **option)


def test_neurons_of_a_wrong_shape_are_refused():
    with pytest.raises(nm.DataError, match=r"neurons must have shape \(k, 2\)"):
        f1_max_margin([[1.0], [2.0]], [0, 1], neurons=[[1.0]])
    with pytest.raises(nm.DataError, match="neurons hold NaN"):
        f1_max_margin([[1.0], [2.0]], [0, 1], neurons=[[1.0, np.nan]])


def test_a_time_limit_reaches_the_enumeration_of_the_arrangement(monkeypatch):
    """By a clock that ticks when read: the enumeration looks once per plane, of 11,175."""
    looks = [0]

    def clock() -> float:
        looks[0] += 1
        return 1e-3 * looks[0]

    monkeypatch.setattr("time.monotonic", clock)
    random = np.random.default_rng(0)
    X, y = random.normal(size=(150, 3)), random.choice([-1, 1], 150)
    hurried = f1_max_margin(X, y, pricing="complete", time_limit=0.5)
    assert hurried.status is Status.TIME_LIMIT
    assert hurried.margin <= hurried.upper_bound < 1
    assert len(hurried.weights)
    assert looks[0] <= 5_000  # half a second and a little, of the minutes that 11,175 planes take


def test_linearly_separable_data_have_a_margin_at_once():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 200)), random.choice([-1, 1], 200)
    assert f1_max_margin(X, y, time_limit=0.0).margin > 0.01


@pytest.mark.slow_cases("10000.0")
@pytest.mark.parametrize("C", [1e-10, 1e-3, 1.0, 1e4, 1e8])
def test_soft_margins_of_contradictions(C):
    random = np.random.default_rng(0)
    X, y = np.tile(random.normal(size=(20, 3)), (2, 1)), np.repeat([1.0, -1.0], 20)
    y[[5, 33]] *= -1  # 18 contradictions: f = 0 on them costs 36 C, and nothing costs less
    solutions = [kernel_soft_margin(kernels.arc_cosine(X), y, C=C)]
    if C < 1e5:
        solutions.append(f1_soft_margin(X, y, C=C))
    for solution in solutions:
        assert solution.certified
        assert 36 * C <= solution.objective * (1 + 1e-9) <= 40 * C * (1 + 2e-9)
        assert (solution.dual >= 0).all()
        assert (solution.dual <= C * (1 + 1e-9)).all()


def test_arc_cosine_kernel_equals_quadrature_and_monte_carlo():
    x, z = np.array([1.0, 2.0]), np.array([-0.5, 1.0])

    def integrand(t):
        u = np.array([np.cos(t), np.sin(t)])
        return max(u @ x, 0) * max(u @ z, 0)

    breaks = sorted(np.arctan2(v[1], v[0]) + s * np.pi / 2 for v in (x, z) for s in (-1, 1))
    exact = quad(integrand, -np.pi, np.pi, points=breaks, epsabs=1e-13, epsrel=1e-13)[0] / (
        2 * np.pi
    )
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
    exact = kernels.ntk(X, r_w=3, r_u=2, bias=False)
    assert np.abs(estimate - exact).max() < 0.01 * exact.max()


def test_linear_margins_agree_with_each_other():
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 4))
    y = np.sign(X @ [1.0, -2.0, 0.5, 0.0])
    l2, l1 = linear_max_margin(X, y), linear_max_margin(X, y, norm="l1")
    for solution, order in ((l2, 2), (l1, 1)):
        assert solution.certified
        assert np.linalg.norm(solution.weights, order) == pytest.approx(1.0)
        assert (y * solution.decision_function(X)).min() == pytest.approx(solution.margin)
        contradiction = linear_max_margin(
            np.vstack([X, X[:1]]), np.append(y, -y[0]), norm=f"l{order}"
        )
        assert (contradiction.certified, contradiction.margin, contradiction.support.tolist()) == (
            True,
            0.0,
            [0, 30],
        )
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
        (
            lambda: f1_max_margin([[1e160], [2e160]], [1, -1], power=2),
            "Squares of inputs as large as 2e.160",
        ),
        (
            lambda: f1_max_margin([[1.0], [2.0]], [1, -1]).decision_function([[1.0, 2.0]]),
            "as the inputs that were fitted",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(nm.DataError, match=message):
        call()


@pytest.mark.nightly_cases("4")
@pytest.mark.parametrize(("n", "seed"), [(3, 0), (4, 0)])
def test_margins_of_narrow_nets(n, seed):
    """Theorem 3.2: non-decreasing in the width, and from width n on that of any width."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(n, 2)), random.choice([-1, 1], n)
    y[0], y[1] = 1, -1
    nets = [narrow_max_margin(X, y, m) for m in range(1, n + 2)]
    margins = [net.normalized_margin(X, y) for net in nets]
    best = f1_max_margin(X, y, bias=False)
    assert (np.diff(margins) >= -1e-7).all()
    assert margins[n - 1] == pytest.approx(best.margin, rel=1e-5, abs=1e-9)
    assert margins[n] == pytest.approx(best.margin, rel=1e-5, abs=1e-9)
    assert all(len(net.weights) <= m + 1 for m, net in enumerate(nets))


def test_no_ascent_of_a_narrow_net_finds_more():
    """From beside the best net of width 2: ascent comes back to its margin, not beyond."""
    random = np.random.default_rng(6)
    X, y = random.normal(size=(4, 2)), random.choice([-1, 1], 4)
    y[0], y[1] = 1, -1
    narrow = narrow_max_margin(X, y, 2)
    optimum = narrow.normalized_margin(X, y)
    torch.manual_seed(6)
    net = narrow.to_network(2)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1 + 0.02 * torch.randn_like(parameter))
    before = nm.measure(net, (X, y)).normalized_margin
    reached = nm.maximize_margin(
        net, (torch.tensor(X), torch.tensor(y)), progress=False
    ).report.normalized_margin
    assert 0 < before < 0.99 * optimum < reached <= optimum * (1 + 1e-6)


def test_narrow_margins_refuse_what_they_cannot_try():
    with pytest.raises(nm.DataError, match="rank 3"):
        narrow_max_margin(np.eye(3), [1, -1, 1], 1)
    with pytest.raises(nm.DataError, match="problems"):
        narrow_max_margin(np.random.default_rng(0).normal(size=(40, 2)), np.tile([1, -1], 20), 5)
    with pytest.raises(nm.ArgumentError, match="width"):
        narrow_max_margin([[1.0]], [1], 0)


def test_entries_that_the_linear_program_refuses_leave_a_bracket():
    """A sample 1e255 times as long as the others: columns of 1e15 and more are not taken."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3, 5))
    X[2] *= 1e255
    y = np.array([1, -1, 1])
    found = f1_soft_margin(X, y, C=3.65e-255)
    assert found.lower_bound <= found.objective
    assert np.isfinite(found.objective)


@pytest.mark.parametrize("seed", range(4))
def test_margins_are_in_the_units_that_the_conventions_state(seed):
    """gamma_1 by the parameters, gamma_2 below 2 gamma_1, the tangent margins by their scales."""
    random = np.random.default_rng(seed)
    d, n = seed + 1, 4 + 2 * seed
    X, y = random.normal(size=(n, d)), np.tile([1, -1], n // 2)
    best, second = f1_max_margin(X, y), f2_max_margin(X, y)
    report = nm.measure(net := best.to_network(), (X, y))
    assert report.normalized_margin == pytest.approx(best.margin)
    assert second.margin <= 2 * best.upper_bound
    tangent = lambda r_w, r_u: ntk_max_margin(X, y, r_w=r_w, r_u=r_u).margin  # noqa: E731
    assert tangent(0, 3) == pytest.approx(3 * second.margin, rel=1e-5)
    assert tangent(6, 9) == pytest.approx(3 * tangent(2, 3), rel=1e-5)
    assert tangent(2, 3) > 3 * second.margin
    machine = nm.tangent_svm(net, (X, y), radius=1e-4)
    assert machine.margin == pytest.approx(2 * sqrt(best.margin), rel=1e-3)


def test_the_factor_of_two_between_the_margins_of_both_spaces_is_attained():
    X, y = [[1.0], [-1.0]], [1, -1]
    best, second = f1_max_margin(X, y, bias=False), f2_max_margin(X, y, bias=False)
    assert second.margin == pytest.approx(2 * best.margin, rel=1e-6)

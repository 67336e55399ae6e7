"""Proved bounds of the solvers, on instances that any lost term or rounding margin violates."""

import time
from fractions import Fraction
from itertools import count, product
from math import hypot, sqrt

import mpmath
import numpy as np
import pytest
from scipy.special import xlogy

import netmargin as nm
from netmargin.result import Status
from netmargin.solvers import (
    f1_logistic,
    f1_max_margin,
    f1_soft_margin,
    kernel_max_margin,
    kernel_soft_margin,
    linear_max_margin,
    min_norm_interpolation,
)
from netmargin.solvers.columns import neuron_search
from netmargin.solvers.columns.regularized_problem import RegularizedProblem
from netmargin.solvers.neurons.activations import RELU, Activation
from netmargin.solvers.neurons.samples import respond
from netmargin.solvers.pricing.arrangement import MAX_RANK, Arrangement
from netmargin.solvers.pricing.best_directions import BestDirections
from netmargin.solvers.pricing.bounds import PricingBound
from netmargin.solvers.pricing.branch_and_bound import ActivationBranchAndBound
from netmargin.solvers.pricing.rays import PARALLEL, as_relu_sum
from netmargin.solvers.pricing.relaxation import bound_by_relaxation
from netmargin.solvers.pricing.target_tree import Outcome, TargetTree
from netmargin.solvers.regularized import f1_squared


def best_neuron(Z: np.ndarray, c: np.ndarray, power: int, slope: float = 0.0) -> float:
    """The largest |sum_i c_i phi(u . z_i)| over unit u, from all 4^n pairs of active and pinned
    samples; phi(t) = t^power above 0, slope t below.

    A maximum lies on a face, where some samples are active and some are pinned to u . z_i = 0.
    There the sum is linear (power 1) or a quadratic form (power 2), so that u is the projection of
    the active sum, or an eigenvector, on the span of the face. All pairs are tried, whether or not
    the face exists; every direction tried is evaluated, so that none counts for more than it is
    worth.
    """
    n, D = Z.shape
    subsets = np.array(list(product((0.0, 1.0), repeat=n)))
    linear = np.where(subsets == 1, 1.0, slope) @ (c[:, None] * Z)
    forms = np.einsum("si,i,id,ie->sde", subsets, c, Z, Z)
    best = 0.0
    for pinned in subsets.astype(bool):
        span = np.eye(D)
        if pinned.any():
            _, singular, rows = np.linalg.svd(Z[pinned])
            span = rows[int((singular > 1e-9).sum()) :].T
        if not span.shape[1]:
            continue
        if power == 1:
            tried = linear @ span @ span.T
        else:
            vectors = np.linalg.eigh(span.T @ forms @ span)[1]
            tried = (span @ vectors).transpose(0, 2, 1).reshape(-1, D)
        tried = np.concatenate([tried, span.T])  # a span of one direction has no sum of its own
        sizes = np.linalg.norm(tried, axis=1)
        U = tried[sizes > 1e-9] / sizes[sizes > 1e-9, None]
        t = np.concatenate([U, -U]) @ Z.T
        values = np.where(t > 0, t, slope * t) ** power @ c
        best = max(best, np.abs(values).max())
    return float(best)


def exact_best_neuron_in_the_plane(Z: np.ndarray, c: np.ndarray) -> mpmath.mpf:
    """For ReLU in the plane, to 50 digits: between the samples' lines the sum is linear."""
    with mpmath.workdps(50):
        z = [[mpmath.mpf(float(v)) for v in row] for row in Z]
        angles = sorted(mpmath.atan2(b, a) + side * mpmath.pi / 2 for a, b in z for side in (-1, 1))
        directions = [(mpmath.cos(t), mpmath.sin(t)) for t in angles]
        for left, right in zip(angles, [*angles[1:], angles[0] + 2 * mpmath.pi], strict=True):
            middle = (mpmath.cos((left + right) / 2), mpmath.sin((left + right) / 2))
            active = [i for i, (a, b) in enumerate(z) if a * middle[0] + b * middle[1] > 0]
            v = [mpmath.fsum(mpmath.mpf(float(c[i])) * z[i][k] for i in active) for k in (0, 1)]
            size = mpmath.hypot(*v)
            directions += [(s * v[0] / size, s * v[1] / size) for s in (1, -1) if size]
        return max(abs(exact_value(Z, c, u, 1)) for u in directions)


def exact_value(Z: np.ndarray, c: np.ndarray, u, power: int) -> mpmath.mpf:
    """sum_i c_i relu(u . z_i)^power / |u|^power to 50 digits, which the maximum is at least."""
    with mpmath.workdps(50):
        u = [mpmath.mpf(v) for v in u]
        total = mpmath.mpf(0)
        for row, weight in zip(Z, c, strict=True):
            product_ = mpmath.fsum(a * mpmath.mpf(float(b)) for a, b in zip(u, row, strict=True))
            total += mpmath.mpf(float(weight)) * max(product_, mpmath.mpf(0)) ** power
        return total / mpmath.sqrt(mpmath.fsum(v * v for v in u)) ** power


def price(Z: np.ndarray, c: np.ndarray, power: int = 1, slope: float = 0.0):
    """The complete proof, whichever the rank asks for; it ends where it never would."""
    prover = PricingBound(Z, Activation(slope, power), "complete", time.monotonic() + 20)
    options = {
        "floor": 1e-12,
        "found": np.inf,
        "tol": 1e-9,
        "count": 4,
        "report": lambda _: None,
    }
    return prover, prover.price_neurons(c, **options)


KINDS = {
    "random": lambda random, n, D: random.normal(size=(n, D)),
    "lattice": lambda random, n, D: random.integers(-1, 2, size=(n, D)).astype(float),
    "axes and opposites": lambda random, n, D: np.concatenate([np.eye(D), -np.eye(D)])[
        np.resize(random.permutation(2 * D), n)
    ],
    "rays of many lengths": lambda random, n, D: (
        random.normal(size=(2, D))[random.integers(2, size=n)]
        * random.choice([-3.0, -1.0, 0.5, 2.0], (n, 1))
    ),
    "a bias": lambda random, n, D: np.hstack([random.normal(size=(n, D - 1)), np.ones((n, 1))]),
}


@pytest.mark.slow_cases("rays", "a bias")
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_every_bound_is_above_the_best_neuron_and_the_proved_ones_equal_it(kind, power):
    """Rank 1 to 6: the arrangement up to 4, branch and bound above, the relaxation always."""
    random = np.random.default_rng(power)
    for D in (1, 2, 3, 3, 4, 4, 6):
        n = 5 if power == 2 else 6
        Z = KINDS[kind](random, n, D)
        c = (
            random.choice([-2.0, -1.0, 1.0, 1.5, 0.3], n)
            if kind == "lattice"
            else random.normal(size=n)
        )
        best = best_neuron(Z, c, power)
        prover, found = price(Z, c, power)
        assert found.upper_bound >= best * (1 - 1e-13)
        assert bound_by_relaxation(Z, c, Activation(power=power)) >= best * (1 - 1e-13)
        assert prover.relax(c) >= best * (1 - 1e-13)
        if power == 1 or prover.exact:
            assert found.upper_bound == pytest.approx(best, rel=1e-8, abs=1e-12)
        tree = ActivationBranchAndBound(Z, c, floor=0.0, tol=1e-9)
        shown = [(found.directions, found.values)]
        if power == 1 and D <= MAX_RANK:
            tree.grow(nodes=20_000, deadline=np.inf)
            assert tree.upper_bound() == pytest.approx(best, rel=1e-8, abs=1e-12)
            shown.append(tree.result())
        for directions, values in shown:
            attained = np.maximum(directions @ Z.T, 0.0) ** power @ c
            assert attained == pytest.approx(values, abs=1e-12)


@pytest.mark.slow_cases("axes", "rays", "a bias", "lattice--1.0", "random--1.0")
@pytest.mark.parametrize("slope", [0.3, 1.0, -1.0, 2.5])
@pytest.mark.parametrize("kind", KINDS)
def test_every_bound_of_other_activations_is_above_the_best_neuron(kind, slope):
    random = np.random.default_rng(3)
    for D in (1, 2, 3, 4, 5):
        Z, c = KINDS[kind](random, 5, D), random.normal(size=5)
        best = best_neuron(Z, c, 1, slope)
        prover, found = price(Z, c, slope=slope)
        assert found.upper_bound == pytest.approx(best, rel=1e-8, abs=1e-12)
        assert min(found.upper_bound, prover.relax(c)) >= best * (1 - 1e-13)
        attained = respond(Z, c, found.directions, Activation(slope))
        assert attained == pytest.approx(found.values, abs=1e-12)
        terms = as_relu_sum(Z, c, Activation(slope))
        above, below = TargetTree(*terms, 1.01 * best), TargetTree(*terms, 0.98 * best)
        assert above.grow(np.inf) is Outcome.PROVED
        assert below.grow(np.inf) is Outcome.REFUTED
        assert abs(respond(Z, c, below.neuron[None], Activation(slope))[0]) > 0.98 * best


def test_every_cell_of_four_hyperplanes_is_visited():
    """A cell lies around six planes only: with a side of them left out some are missed."""
    random = np.random.default_rng(0)
    for _ in range(150):
        Z, c = random.normal(size=(4, 4)), random.normal(size=4)
        assert Arrangement(Z).price_neurons(c).upper_bound == pytest.approx(
            best_neuron(Z, c, 1), rel=1e-9
        )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bounds_of_one_sign(sign):
    """The other side of a two-sided bound is 0; and on a line the best u is -1."""
    for power in (1, 2):
        Z, c = np.array([[-2.0], [-1.0], [0.5]]), sign * np.array([1.0, 1.0, 1.0])
        best = 2.0**power + 1.0
        assert Arrangement(Z, power).price_neurons(c).upper_bound == pytest.approx(best)
        assert best <= bound_by_relaxation(Z, c, Activation(power=power)) <= 1.1 * best
    tree = ActivationBranchAndBound(np.array([[-2.0], [-1.0], [0.5]]), c, floor=0.0, tol=1e-9)
    tree.grow(nodes=20_000, deadline=np.inf)
    assert tree.upper_bound() == pytest.approx(3.0)


def test_branch_and_bound_does_not_bound_sums_of_squares():
    """At 60 degrees to e_1 ReLU gives half, its square a quarter: the maximum is larger."""
    tails = 0.5 * np.eye(6)[:1] + sqrt(0.75) * np.eye(6)[1:]
    Z, c = np.concatenate([np.eye(6)[:1], tails]), np.array([1.0] + [-0.3] * 5)
    at_first = float(exact_value(Z, c, np.eye(6)[0], 2))
    assert at_first == pytest.approx(0.625)
    assert best_neuron(Z, c, 1) < at_first
    assert price(Z, c, 2)[1].upper_bound >= at_first


# Nearly parallel points


def nearly_parallel(
    angle: float, length: float, dimension: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two points of this length that enclose the angle, with opposite coefficients, and others that
    count for nothing; and a direction in which the two differ by length * angle, which no bound may
    undercut.
    """
    Z = np.concatenate([np.eye(dimension)[:1], np.eye(dimension)])
    Z[1, 1] = angle
    Z[:2] *= length
    return Z, np.array([3.0, -3.0] + [0.0] * (dimension - 1)), np.eye(dimension)[1]


@pytest.mark.parametrize("length", [1.0, 1e3])
@pytest.mark.parametrize("angle", [0.3 * PARALLEL, 0.9 * PARALLEL, 3e-10, 1e-7])
@pytest.mark.parametrize("dimension", [2, 3, 6])
def test_nearly_parallel_points_are_not_one(angle, length, dimension):
    Z, c, u = nearly_parallel(angle, length, dimension)
    for order in (
        slice(None),
        [1, 0, *range(2, len(Z))],
    ):  # the first of the two is the one that does not move
        least = exact_value(Z[order], c[order], u, 1)
        assert abs(least) == pytest.approx(3 * length * angle)
        prover, found = price(Z[order], c[order])
        assert found.upper_bound >= abs(least)
        assert prover.relax(c[order]) >= abs(least)
        # Squares differ most at 45 degrees to the points.
        least = exact_value(Z[order], c[order], np.eye(dimension)[0] + u, 2)
        prover, found = price(Z[order], c[order], 2)
        assert found.upper_bound >= abs(least) * (1 - 1e-9)
        assert prover.relax(c[order]) >= abs(least) * (1 - 1e-9)


@pytest.mark.parametrize("dimension", [2, 6])
def test_nearly_parallel_points_are_paid_for_by_how_steep_features_are(dimension):
    Z, c, u = nearly_parallel(0.9 * PARALLEL, 1.0, dimension)
    attained = 4.0 * abs(float(exact_value(Z, c, u, 1)))
    assert abs(respond(Z, c, -u[None], Activation(4.0))[0]) == pytest.approx(attained)
    prover, found = price(Z, c, slope=4.0)
    assert min(found.upper_bound, prover.relax(c)) >= attained


@pytest.mark.parametrize("dimension", [3, 4])
def test_kinks_that_were_moved_onto_another_line_still_count(dimension):
    """The ridge of -10 relu(u . z_1) holds the maximum. On the line of z_0, where z_1 was put, the
    sum is smaller by 10 times the angle, and no other line passes through the maximum; 9 relu(u .
    z_0) keeps its negative values small.
    """
    angle, axes = 0.9 * PARALLEL, np.eye(dimension)
    Z = np.array([axes[0], axes[0] + angle * axes[1], axes[0] + axes[1], *axes[2:]])
    c = np.array([9.0, -10.0, 0.8] + [0.7] * (dimension - 2))
    ridge = [-mpmath.mpf(angle) * mpmath.mpf(0.8), 0.8] + [0.7] * (dimension - 2)
    assert Arrangement(Z).price_neurons(c).upper_bound >= exact_value(Z, c, ridge, 1)


def test_points_that_differ_below_the_rank_are_not_one():
    """Their second singular value is 4e-13 of the first, which the arrangement cuts off."""
    Z, c = np.array([[1.0, 0.0], [1.0, 8e-13]]), np.array([1.0, -1.0])
    assert Arrangement(Z).price_neurons(c).upper_bound >= exact_value(Z, c, (0, 1), 1)
    assert Arrangement(Z, 2).price_neurons(c).upper_bound >= abs(exact_value(Z, c, (1, 1), 2)) * (
        1 - 1e-9
    )


# Rounding


def test_bounds_are_above_the_exact_value_where_terms_cancel():
    """Coefficients of 1e8, points 1e-3 apart: float64 finds less than the exact maximum."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        angle = 0.3 + 1e-3 * random.normal(size=6)
        Z = np.column_stack([np.cos(angle), np.sin(angle)]) * random.uniform(0.5, 1, (6, 1))
        c = 1e8 * random.normal(size=6)
        c[-1] -= (c @ Z[:, 0]) / Z[-1, 0] * (1 - 1e-7)  # nearly no sum is left
        exact = exact_best_neuron_in_the_plane(Z, c)
        assert Arrangement(Z).price_neurons(c).upper_bound >= exact
        tree = ActivationBranchAndBound(Z, c, floor=1e-300, tol=1e-16)
        tree.grow(nodes=2000, deadline=np.inf)
        assert tree.upper_bound() >= exact


@pytest.mark.slow
def test_bounds_count_the_rounding_of_merged_rays():
    """Points on one ray whose coefficients cancel but for 1e-12, in rationals: nothing else is left
    of the sum, and bounds relative to what is left would be wrong.
    """
    for seed in range(20):
        random = np.random.default_rng(seed)
        z, multiples = random.integers(1, 1 << 20, 6), random.integers(1, 1 << 20, 40)
        Z = np.outer(multiples, z).astype(float) / 2**40  # without a rounding
        c = random.normal(size=40)
        c[0] -= float(c @ multiples) / multiples[0] * (1 - 1e-12)
        left = sum(Fraction(a) * int(m) for a, m in zip(c.tolist(), multiples, strict=True))
        exact = abs(float(left)) * float(np.linalg.norm(z.astype(float))) / 2**40
        for pricing in ("complete", "local"):
            prover = PricingBound(Z, RELU, pricing, np.inf)
            prover.exact = False  # as above rank 4
            assert prover.relax(c) >= exact
            found = prover.price_neurons(
                c, floor=1e-300, found=1e-300, tol=1e-9, count=1, report=lambda upper: None
            )
            assert found.upper_bound >= exact


@pytest.mark.parametrize("scale", [1e-170, 1e-300])
def test_points_too_short_to_be_squared_still_count(scale):
    random = np.random.default_rng(0)
    for dimension in (2, 6):
        Z = random.normal(size=(5, dimension))
        Z[1:] *= scale
        c = np.array([0.0, 0.3, 0.2, 0.4, -0.1])
        best = best_neuron(Z[1:] / scale, c[1:], 1) * scale
        prover, found = price(Z, c)
        assert found.upper_bound >= best * (1 - 1e-6)
        assert prover.relax(c) >= best * (1 - 1e-6)


def test_relaxed_forms_are_above_their_exact_eigenvalue():
    """Squared ReLU, all of one sign: the largest eigenvalue is attained, so not rounded down."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        Z, c = random.uniform(0.1, 1, (3, 2)), random.uniform(0.1, 1, 3)
        with mpmath.workdps(50):
            a, b, d = (
                mpmath.fsum(
                    mpmath.mpf(w) * mpmath.mpf(z[i]) * mpmath.mpf(z[j])
                    for w, z in zip(c.tolist(), Z.tolist(), strict=True)
                )
                for i, j in ((0, 0), (0, 1), (1, 1))
            )
            exact = (a + d) / 2 + mpmath.sqrt(((a - d) / 2) ** 2 + b * b)
        assert exact <= bound_by_relaxation(Z, c, Activation(power=2)) <= exact * (1 + 1e-9)


# Branch and bound, cut short


class BlindTree(ActivationBranchAndBound):
    """It evaluates no directions: the floor alone is known, as where search misses the best."""

    def _consider(self, v: np.ndarray) -> None:
        pass


@pytest.mark.slow_cases("0.001-100.0", "0.1-1.5", "0.001-3.0")
@pytest.mark.parametrize(
    ("tol", "above"), [(0.1, 0.5), (0.1, 1.5), (1e-3, 0.5), (1e-3, 3.0), (1e-3, 100.0)]
)
def test_what_branch_and_bound_closes_or_gives_up_still_counts(tol, above):
    """The maximum is `above` tolerances above the floor, unfound: no bound passes below."""
    random = np.random.default_rng(0)
    for _ in range(12):
        Z, c = random.normal(size=(9, 3)), random.normal(size=9)
        best = Arrangement(Z).price_neurons(c).upper_bound
        tree = BlindTree(Z, c, floor=best / (1 + above * tol), tol=tol)
        assert tree.upper_bound() >= best * (1 - 1e-12)
        for nodes in (100, 1000, 10_000):
            tree.grow(nodes=nodes, deadline=np.inf)
            assert tree.upper_bound() >= best * (1 - 1e-12)
        assert tree.finished  # leaves that come no nearer are not refined for ever
        assert tree.upper_bound() <= max(best, tree.best * (1 + tol)) * (1 + 1e-6)


def test_relaxation_is_tight_where_it_can_be():
    """One point: c |z|, which Cauchy-Schwarz attains, up to the grid of temperatures."""
    for length, weight in ((1.0, 1.0), (5.0, 0.3), (0.1, -2.0)):
        exact = abs(weight) * length
        assert (
            exact
            <= bound_by_relaxation(np.array([[length, 0.0]]), np.array([weight]))
            <= 1.01 * exact
        )
    # Long points with negative coefficients: |t| >= t^2 / |z| takes the length where it stands.
    for length in (0.1, 10.0):
        Z, c = np.array([[1.0, 0.0], [0.8 * length, 0.6 * length]]), np.array([1.0, -0.3 / length])
        best = best_neuron(Z, c, 1)
        assert best <= bound_by_relaxation(Z, c) <= 1.5 * best


# Margins of the variation norm


@pytest.mark.slow_cases("4-2")
@pytest.mark.parametrize(("positive", "negative"), [(1, 0), (1, 1), (3, 2), (4, 2)])
def test_margins_of_orthogonal_points(positive, negative):
    """p is a / n on each class: the margin is half of 1 / (sqrt n_+ + sqrt n_-), proved."""
    n = positive + negative
    solution = f1_max_margin(
        7.0 * np.eye(n), np.repeat([1, -1], [positive, negative]), bias=False, tol=1e-8
    )
    exact = 7.0 / (sqrt(positive) + sqrt(negative)) / 2
    assert solution.certified
    assert solution.margin <= exact * (1 + 1e-12)
    assert exact <= solution.upper_bound * (1 + 1e-12)
    assert solution.margin == pytest.approx(exact, rel=1e-7)


def test_search_alone_proves_nothing():
    """Above rank 4: without a proof nothing is certified, and bounds are the relaxed ones."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(10, 6)), np.tile([1, -1], 5)
    hard, proved = (
        f1_max_margin(X, y, bias=False, pricing=pricing) for pricing in ("local", "auto")
    )
    assert not hard.certified
    assert hard.status is Status.LOCALLY_OPTIMAL
    assert hard.upper_bound > proved.upper_bound * (1 + 1e-3)
    soft = f1_soft_margin(X, y, bias=False, C=0.3, pricing="local")
    assert not soft.certified
    assert soft.lower_bound < soft.objective * (1 - 1e-3)
    logistic = f1_logistic(X, y, bias=False, regularization=1e-3, pricing="local")
    assert not logistic.certified
    assert logistic.lower_bound < logistic.objective * (1 - 1e-3)


def test_separable_data_of_very_different_sizes_keep_their_margin_in_the_bracket():
    """(0, 1) and (size, 1): the margin is about 1/2, whatever the small sample's weight says."""
    for size in (1e8, 1e9, 1e11):
        solution = f1_max_margin([[0.0], [size]], [1, -1])
        assert solution.status is not Status.NOT_SEPARABLE
        assert solution.margin <= 0.5 <= solution.upper_bound * (1 + 1e-9)


@pytest.mark.slow_cases("3.0")
@pytest.mark.parametrize("C", [0.05, 0.4, 3.0])
def test_soft_margins_are_proved_by_their_dual(C):
    """0 <= p <= C, no neuron promises more than 1, the bound is sum p: by exact maxima."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(8, 2)), np.tile([1.0, -1.0], 4)
        X[1] = X[0]  # a contradiction: the cap matters
        solution = f1_soft_margin(X, y, C=C, bias=False)
        assert solution.certified
        assert (solution.dual >= 0).all()
        assert (solution.dual <= C * (1 + 1e-9)).all()
        assert exact_best_neuron_in_the_plane(X, solution.dual * y) <= 1 + 1e-12
        assert solution.lower_bound <= solution.dual.sum() * (1 + 1e-12)
        assert solution.objective - solution.dual.sum() <= 1e-6 * solution.objective


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_soft_margins_of_weighted_samples_are_proved_by_their_dual(C):
    """At the smaller C the weights that every search begins with are the best."""
    weights = np.array([1.0, 0.1])
    solution = f1_soft_margin([[1.0], [2.0]], [1, -1], C=C, sample_weight=weights, bias=False)
    assert solution.dual.sum() == pytest.approx(solution.lower_bound, rel=1e-12)
    assert (solution.dual <= C * weights * (1 + 1e-12)).all()


# Kernels


def test_kernel_brackets_hold_the_exact_margin_of_two_nearly_parallel_samples():
    """min p'Qp in closed form to 50 digits: known to a few 1e-16, which both ends must say."""
    for seed in range(60):
        random = np.random.default_rng(seed)
        v = np.column_stack(
            [random.uniform(0.5, 1, 2), 10.0 ** random.uniform(-7, -5) * random.normal(size=2)]
        )
        v[1, 0] = v[0, 0]
        K = v @ v.T
        with mpmath.workdps(50):
            a, b, d = (mpmath.mpf(float(K[i, j])) for i, j in ((0, 0), (0, 1), (1, 1)))
            # Q = yy' * K has -b: the least p'Qp is (a d - b^2) / (a + d + 2 b), at p = (d + b, a +
            # b) / (a + d + 2 b).
            exact = mpmath.sqrt(max(a * d - b * b, 0) / (a + d + 2 * b))
        solution = kernel_max_margin(K, [1, -1])
        assert solution.margin <= exact
        assert exact <= solution.upper_bound


def test_kernel_margins_are_attained():
    """The least margin of f, recomputed, with a sample far beyond it."""
    X = np.array([[1.0, 0.2], [-1.0, 0.1], [9.0, 4.0]])
    solution = kernel_max_margin(X @ X.T, [1, -1, 1])
    q = np.array([1, -1, 1]) * (X @ X.T @ solution.coefficients)
    assert solution.margin <= q.min() + 1e-12
    assert solution.margin <= solution.upper_bound


@pytest.mark.parametrize("k", [0.25, 1.0, 9.0])
@pytest.mark.parametrize("share", [0.3, 0.9, 2.0])
def test_soft_kernel_margins_of_one_sample(k, share):
    """f = a k(x, .), a = min(C, 1 / k): C - C^2 k / 2 below C = 1 / k, then 1 / 2k."""
    C = share / k
    exact = C - C**2 * k / 2 if share < 1 else 0.5 / k
    solution = kernel_soft_margin([[k]], [1], C=C)
    assert solution.certified
    assert solution.lower_bound <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= solution.objective
    assert solution.objective == pytest.approx(exact, rel=1e-6)
    assert solution.dual[0] <= C * (1 + 1e-12)


def test_kernels_with_a_small_negative_eigenvalue_are_refused():
    K = np.diag([1.0, 1.0, -1e-6])
    with pytest.raises(nm.DataError, match="not positive semidefinite"):
        kernel_max_margin(K, [1, -1, 1])


# Linear and logistic


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_linear_margins_in_closed_form(norm):
    """One point: its dual norm; opposite labels: half of the dual norm of their difference."""
    size = {"l1": lambda v: np.abs(v).max(), "l2": lambda v: hypot(*v)}[norm]
    for X, y, exact in (
        ([[3.0, 1.0]], [1], size([3.0, 1.0])),
        ([[3.0, 1.0], [-2.0, -1.5]], [1, -1], None),
        ([[2.0, 1.0], [-2.0, 1.0]], [1, -1], size([2.0, 0.0])),
    ):
        solution = linear_max_margin(X, y, norm=norm)
        if exact is None:  # min over p of the dual norm of p x_1 - (1 - p) x_2, by all p
            p = np.linspace(0, 1, 20_001)[:, None]
            hull = p * np.array(X[0]) - (1 - p) * np.array(X[1])
            exact = (np.abs(hull).max(1) if norm == "l1" else np.linalg.norm(hull, axis=1)).min()
        assert solution.certified
        assert solution.margin <= exact * (1 + 1e-9)
        assert exact * (1 - 1e-7) <= solution.upper_bound
        assert solution.margin == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("regularization", [1e-4, 3e-3, 0.05])
def test_logistic_optima_are_proved_by_their_dual(regularization, power):
    """Weights feasible on a grid of directions, entropy the lower bound; the ends meet."""
    random = np.random.default_rng(power)
    X = 3 * random.normal(size=(12, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    found = f1_logistic(X, y, regularization=regularization, bias=False, power=power, tol=1e-5)
    angle = np.linspace(0, 2 * np.pi, 40_001)
    values = np.abs(
        np.maximum(np.column_stack([np.cos(angle), np.sin(angle)]) @ X.T, 0) ** power
        @ (found.dual * y)
    )
    p = len(y) * found.dual * min(1.0, (2 if power == 1 else 1) * regularization / values.max())
    lower = -(xlogy(p, p) + xlogy(1 - p, 1 - p)).mean()
    loss = np.logaddexp(0, -y * found.decision_function(X)).mean()
    objective = loss + regularization * found.mass
    assert found.certified
    assert found.log_loss == pytest.approx(np.log(loss), rel=1e-9)
    assert found.objective == pytest.approx(objective, rel=1e-9)
    assert found.lower_bound <= lower * (1 + 1e-6)
    assert objective - lower <= 1.1e-5 * objective


@pytest.mark.slow
def test_bounds_of_all_slopes_are_above_the_best_neuron(monkeypatch):
    """Slopes change between rounds: a proof holds for those that it is offered with."""
    random = np.random.default_rng(0)
    Z, y = random.normal(size=(7, 5)), np.array([1, -1, 1, 1, -1, -1, 1])
    offered, original = [], RegularizedProblem._offer

    def offer(self, largest, proof):
        offered.append((self.Z.copy(), self._slopes.copy(), largest, proof))
        original(self, largest, proof)

    monkeypatch.setattr(RegularizedProblem, "_offer", offer)
    # Targets in every round, and nothing else.
    monkeypatch.setattr(neuron_search, "_NEAR", 0.0)
    monkeypatch.setattr(ActivationBranchAndBound, "finished", True)
    monkeypatch.setattr(RegularizedProblem, "proof_is_due", lambda self: True)
    looks = count()
    monkeypatch.setattr("time.monotonic", lambda: 2e-3 * next(looks))  # 15 rounds on every machine
    found = f1_logistic(Z, y, regularization=0.02, bias=False, tol=1e-4, time_limit=4)
    assert found.lower_bound <= found.objective
    assert any("nodes" in proof for *_, proof in offered)
    assert len(offered) > 3
    for Z, c, largest, _ in offered[:: max(len(offered) // 6, 1)]:
        assert largest >= best_neuron(Z, c, 1) * (1 - 1e-12)


@pytest.mark.slow_cases("1")
@pytest.mark.parametrize("power", [1, 2])
def test_margins_and_objectives_are_attained_in_rationals(power):
    """By the measure that is returned, whose atoms are of length 1 to rounding only."""

    def evaluate(found, Z):
        atoms = [list(map(Fraction, atom)) for atom in found.atoms.tolist()]
        weights = list(map(Fraction, found.weights.tolist()))
        values = [
            sum(
                w * b * max(sum(x * z for x, z in zip(a, row, strict=True)), 0) ** power
                for w, (*a, b) in zip(weights, atoms, strict=True)
            )
            for row in ([*map(Fraction, z), Fraction(1)] for z in Z.tolist())
        ]
        squares = [(sum(x * x for x in a), b * b * (power == 1)) for *a, b in atoms]
        return values, sum(w * sum(square) for w, square in zip(weights, squares, strict=True))

    for seed in (0, 2, 3, 5):
        random = np.random.default_rng(seed)
        X = random.normal(size=(6, 2)) + 10.0**seed
        y = np.array([1, -1, 1, 1, -1, -1])
        found = f1_max_margin(X, y, power=power, time_limit=1)
        values, mass = evaluate(found, X)
        least = min(int(label) * value for label, value in zip(y, values, strict=True))
        assert found.margin <= 0 or Fraction(found.margin) * mass <= least
        if power == 1:
            soft = f1_soft_margin(X, y, C=0.7, time_limit=1)
            values, mass = evaluate(soft, X)
            hinges = [max(1 - int(s) * v, Fraction(0)) for s, v in zip(y, values, strict=True)]
            assert Fraction(soft.objective) >= mass / 2 + Fraction(0.7) * sum(hinges)


def test_small_sample_weights_bound_from_the_first_on():
    """A first bound for margins of size 1 is none for those of size w = 1e-3."""
    random = np.random.default_rng(0)
    X = random.normal(size=(12, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    weights, C = np.full(12, 1e-3), 1e5
    whole = f1_soft_margin(X, y, C=C, sample_weight=weights, time_limit=2)
    early = f1_soft_margin(X, y, C=C, sample_weight=weights, time_limit=1e-3)
    assert early.lower_bound <= whole.objective
    same = f1_soft_margin(X, y, C=1e-3 * C, time_limit=2)
    assert same.lower_bound <= whole.objective * (1 + 1e-12)
    assert whole.lower_bound <= same.objective * (1 + 1e-12)


def test_samples_at_0_have_no_say_in_a_tree():
    random = np.random.default_rng(0)
    X, c = random.normal(size=(8, 5)), random.normal(size=8)
    X[2] = 0.0
    c[2] = 3.0
    largest = best_neuron(np.delete(X, 2, 0), np.delete(c, 2), 1)
    tree = TargetTree(X, c, 1.01 * largest)
    assert tree.grow(np.inf) is Outcome.PROVED
    assert largest <= tree.upper_bound <= 1.02 * largest
    for size in (1e-170, 1e-290):  # their squares are 0
        tree = TargetTree(size * X, c, 0.9 * size * largest)
        assert tree.grow(np.inf) is Outcome.REFUTED or tree.upper_bound >= size * largest


@pytest.mark.parametrize(
    "call",
    [
        # Once NOT_ATTAINABLE, certified: a function takes these values, of norm beyond float64.
        lambda: min_norm_interpolation([[0.0], [1e-7]], [1e305, -1e305]),
        # Once bounds that were certified and above what is attained, as their products lost digits.
        lambda: min_norm_interpolation([[5e14], [-3e16]], [1.7e-300, 1.8e-300], bias=False),
        lambda: kernel_soft_margin(np.diag([1e-305, 1e-305]), [1, -1], C=1e-20),
        lambda: kernel_soft_margin(np.diag([1e-100, 2e-101]), [1, -1], C=3e-219),
        lambda: kernel_soft_margin(1e300 * np.eye(2), [1, -1], C=1e10),
        lambda: f1_squared([[1.0]], [1.04e-160], regularization=3.13e-161, bias=False),
        lambda: f1_squared([[1e-200]], [1e-200], regularization=1e-3, bias=False),
        lambda: f1_logistic([[1e300], [-1e299]], [1, 1], regularization=1e-20, bias=False),
    ],
)
def test_products_beyond_float64_are_refused_in_words(call):
    with pytest.raises(nm.NetmarginError, match="beyond float64"):
        call()


def test_a_kernel_of_the_least_float_has_a_soft_margin():
    """In its own unit, 4^-537, C would be rounded, which is refused."""
    assert kernel_soft_margin([[5e-324]], [1], C=1.910697167867801).certified


@pytest.mark.slow
def test_a_linear_program_that_breaks_down_does_not_end_the_search():
    """HiGHS gives infinite numbers on the way; the bound was 1.7e8 when they ended it."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 1)), random.choice([-1.0, 1.0], 40)
    X[1::2] = X[::2] + 1e-7 * random.normal(size=(20, 1))
    assert min_norm_interpolation(X, y).lower_bound > 1e9


@pytest.mark.parametrize("power", [1, 2])
def test_critical_points_are_bounded_where_rounding_has_moved_them(power):
    """The value of one sample is largest along it, and less at points beside it."""
    random = np.random.default_rng(power)
    for _ in range(100):
        z = random.normal(size=(1, 4)) * 10 ** random.uniform(-3, 3)
        size, angle = float(np.linalg.norm(z)), 10 ** random.uniform(-7, -1)
        off = random.normal(size=4)
        u = z / size + angle * off / np.linalg.norm(off)
        largest, found = size**power, BestDirections(z, np.ones(1), 1, power)
        v = u if power == 2 else size * u
        reached = found.consider(v, np.array([largest]), angle * largest, size)
        assert largest <= reached * (1 + 1e-15)

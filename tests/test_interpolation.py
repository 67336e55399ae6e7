"""Functions of least norm through points: brute force, dense linear programs, symmetries."""

from itertools import combinations, product
from math import hypot

import clarabel
import mpmath
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import netmargin as nm
from benchmarks.interpolation import OPTIONS, SETS, draw_set, sampled_norm
from netmargin import kernels
from netmargin.core.cone_program import minimize
from netmargin.result import Status
from netmargin.solvers import (
    f1_max_margin,
    f1_soft_margin,
    kernel_interpolation,
    min_norm_interpolation,
)
from netmargin.solvers.columns import margin_problem
from netmargin.solvers.neurons.activations import Activation
from netmargin.solvers.pricing.arrangement import Arrangement
from netmargin.solvers.pricing.bounds import PricingBound
from tests.test_solvers import cells


def with_bias(X) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))])


def judge(solution, X, y, tol: float) -> None:
    """What an interpolation claims, from scratch: values, norm, responses of neurons and rays."""
    Z = with_bias(X)
    features = np.maximum(Z @ solution.atoms[:, :-1].T * np.sqrt(2), 0.0)
    alphas = solution.weights * solution.atoms[:, -1] / np.sqrt(2)
    assert np.linalg.norm(solution.atoms[:, :-1], axis=1) == pytest.approx(
        np.full(len(alphas), 0.5**0.5)
    )
    assert np.abs(features @ alphas - y).max() <= 1e-11 * solution.norm
    assert np.abs(alphas).sum() == pytest.approx(solution.norm, rel=1e-12)
    assert solution.dual @ y == pytest.approx(solution.lower_bound, rel=1e-9)
    random = np.random.default_rng(0).normal(size=(20_000, Z.shape[1]))
    chosen = list(
        combinations(range(min(len(Z), 25)), Z.shape[1] - 1)
    )  # where as many kinks meet as can
    corners = np.linalg.svd(Z[np.array(chosen)])[2][:, -1] if chosen else random[:1]
    U = np.concatenate([random, corners, -corners])
    responses = np.maximum(U @ Z.T, 0.0) @ solution.dual / np.linalg.norm(U, axis=1)
    assert np.abs(responses).max() <= 1 + 1e-9
    assert solution.lower_bound <= solution.norm
    assert solution.gap == (solution.norm - solution.lower_bound) / solution.norm
    assert solution.certified == (solution.gap <= tol)


def assert_set_is_solved(index: int) -> None:
    X, y = draw_set(index)
    options = OPTIONS[X.shape[1]]
    solution = min_norm_interpolation(X, y, **options)
    judge(solution, X, y, options["tol"])
    assert solution.certified
    assert solution.norm <= sampled_norm(X, y) * (1 + options["tol"])


@pytest.mark.slow
@pytest.mark.nightly_cases("8")
@pytest.mark.parametrize("index", [5, 8])
def test_no_search_ends_before_its_best_weights_are_proved(index, monkeypatch):
    """One lost its patience at a gap of 11% on some machines; here it has none to lose."""
    monkeypatch.setattr(margin_problem, "_PATIENCE", 1)
    assert_set_is_solved(index)


QUICK, SLOW = (34, 11, 23), (0, 1, 3, 7, 13, 16, 27, 39, 40, 49, 65, 88, 136)


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(i, marks=pytest.mark.slow if i in SLOW else pytest.mark.nightly)
        if i not in QUICK
        else i
        for i in range(SETS)
    ],
)
def test_gaussian_sets(index):
    assert_set_is_solved(index)


@pytest.mark.slow
def test_a_set_on_which_one_over_the_norm_was_too_small():
    """Maximizing 1 / norm = 0.002 once ended without an answer, and a gap of 0."""
    random = np.random.default_rng(4)
    X, y = random.normal(size=(60, 2)), random.normal(size=60)
    solution = min_norm_interpolation(X, y)
    judge(solution, X, y, 1e-6)
    assert solution.status is Status.OPTIMAL


def brute_force(Z: np.ndarray, y: np.ndarray) -> float:
    """The convex program over every cell at once: min sum |v_j|, v_j in cell j, both signs."""
    active = np.concatenate([cells(Z)] * 2)
    k, (n, D) = len(active), Z.shape
    signs = np.repeat([1.0, -1.0], k // 2)
    values = (signs[:, None, None] * active[:, :, None] * Z).transpose(1, 0, 2).reshape(n, k * D)
    inside = sparse.block_diag([-np.where(a, 1.0, -1.0)[:, None] * Z for a in active])
    norms = -sparse.eye(k + k * D, format="csr")[
        [i for j in range(k) for i in (j, *range(k + j * D, k + (j + 1) * D))]
    ]
    A = sparse.vstack([
        sparse.hstack([sparse.csc_matrix((n, k)), values]),
        sparse.hstack([sparse.csc_matrix((n * k, k)), inside]),
        norms,
    ])  # fmt: skip
    b, cost = np.concatenate([y, np.zeros(A.shape[0] - n)]), np.repeat([1.0, 0.0], [k, k * D])
    cones = [
        clarabel.ZeroConeT(n),
        clarabel.NonnegativeConeT(n * k),
        *[clarabel.SecondOrderConeT(1 + D)] * k,
    ]
    return float(minimize(cost, A, b, cones, tol=1e-10)[0][:k].sum())


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("dimension", [1, 2])
def test_equals_brute_force_over_all_cells(dimension):
    random = np.random.default_rng(dimension)
    for _ in range(6):
        n = int(random.integers(1, 7))
        X, y = random.normal(size=(n, dimension)), random.normal(size=n)
        solution = min_norm_interpolation(X, y, tol=1e-7)
        judge(solution, X, y, 1e-7)
        assert solution.certified
        assert Arrangement(with_bias(X)).price_neurons(solution.dual).upper_bound == pytest.approx(
            1.0, rel=1e-7
        )
        assert solution.norm == pytest.approx(brute_force(with_bias(X), y), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_on_a_line_equals_a_dense_linear_program(seed):
    """Kinks at each sample and 2,000 angles between: worse by the square of half a step."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(12, 1)), random.normal(size=12)
    Z = with_bias(X)
    angles = np.concatenate(
        [np.arctan2(Z[:, 1], Z[:, 0]) + np.pi / 2, np.arange(2000) * np.pi / 2000]
    )
    U = np.stack([np.cos(angles), np.sin(angles)], 1)
    A = np.maximum(Z @ np.concatenate([U, -U]).T, 0.0)
    dense = linprog(np.ones(2 * A.shape[1]), A_eq=np.hstack([A, -A]), b_eq=y, method="highs").fun
    solution = min_norm_interpolation(X, y)
    assert solution.lower_bound <= dense * (1 + 1e-7)
    assert dense == pytest.approx(solution.norm, rel=5e-6)


def permuted(X, y):
    return X[::-1], y[::-1], 1.0


def turned(X, y):
    rotation, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(2, 2)))
    return X @ rotation, y, 1.0


def doubled(X, y):
    return np.concatenate([X, X[:9]]), np.concatenate([y, y[:9]]), 1.0


def stretched(X, y):
    """Samples on one ray ask for one number; so do these, whose multiples are not rounded."""
    return np.concatenate([X, 4 * X[:5]]), np.concatenate([y, 4 * y[:5]]), 1.0


@pytest.mark.slow_cases("doubled", "<lambda>", "permuted")
@pytest.mark.parametrize(
    "change",
    [
        permuted,
        turned,
        doubled,
        stretched,
        lambda X, y: (1e3 * X, y, 1e-3),
        lambda X, y: (X, -1e-3 * y, 1e-3),
        lambda X, y: (1e150 * X, 1e-100 * y, 1e-250),
        lambda X, y: (
            np.linspace(0.1, 10, len(y))[:, None] * X,
            np.linspace(0.1, 10, len(y)) * y,
            1.0,
        ),
    ],
)
def test_symmetries(change):
    random = np.random.default_rng(3)
    X, y = random.normal(size=(25, 2)), random.normal(size=25)
    plain = min_norm_interpolation(X, y, bias=False)
    X, y, factor = change(X, y)
    other = min_norm_interpolation(X, y, bias=False)
    assert plain.certified
    assert other.certified
    assert other.norm / factor == pytest.approx(plain.norm, rel=3e-6)
    assert other.dual @ y == pytest.approx(other.lower_bound, rel=1e-9)
    assert other.residual <= 1e-9 * np.abs(y).max()


@pytest.mark.parametrize(
    ("X", "y", "norm"),
    [
        ([[2.0]], [3.0], 3 / np.sqrt(5)),  # one neuron in the direction of the sample
        ([[1.0], [2.0], [1.0]], [1.0, 0.0, 1.0], np.sqrt(5)),  # equal samples, equal values
        ([[-1.0], [0.0], [2.0]], [7.0, 7.0, 7.0], 7.0),  # the bias alone
        ([[-1.0], [0.0], [2.0]], [0.0, 0.0, 0.0], 0.0),
    ],
)
def test_known_norms(X, y, norm):
    solution = min_norm_interpolation(X, y)
    assert (solution.certified, solution.status) == (True, Status.OPTIMAL)
    assert solution.norm == pytest.approx(norm, rel=2e-6)
    assert solution.lower_bound == pytest.approx(norm, rel=2e-6)
    assert 0 <= solution.gap <= 1e-6


@pytest.mark.parametrize(
    ("X", "y", "bias"),
    [
        ([[1.0], [2.0], [1.0]], [1.0, 0.0, 2.0], True),  # equal samples
        (
            [[1.0, 2.0], [3.0, 6.0], [0.0, 1.0]],
            [1.0, 2.0, 0.0],
            False,
        ),  # on one ray, but f(3 z) = 3 f(z)
        ([[1.0], [0.0]], [1.0, 1e-3], False),  # f(0) = 0
        ([[1.0], [-1.0], [2.0], [-3.0]], [1.0, 2.0, 2.0, 4.0], False),
        # f(z) - f(-z) is linear: of three pairs in the plane two decide
        ([[1.0, 0], [-1, 0], [0, 1], [0, -2], [1, 1], [-1, -1]], [1.0, 0, 1, 0, 1, 0], False),
    ],
)
def test_impossible_values_are_proved(X, y, bias):
    solution = min_norm_interpolation(X, y, bias=bias)
    assert (solution.status, solution.certified) == (Status.NOT_ATTAINABLE, True)
    assert (solution.norm, solution.lower_bound, solution.gap) == (np.inf, np.inf, 0.0)
    assert solution.dual @ y > 1e-4
    assert np.abs(solution.dual).sum() == pytest.approx(1.0)
    Z = with_bias(X) if bias else np.array(X)
    U = np.random.default_rng(0).normal(size=(1000, Z.shape[1]))
    assert np.abs(np.maximum(U @ Z.T, 0.0) @ solution.dual).max() < 1e-13


def test_opposite_samples_with_linear_differences_are_attainable():
    random = np.random.default_rng(0)
    X, w = random.integers(-9, 9, (5, 2)), random.integers(-9, 9, 2)
    even = random.integers(-9, 9, 5)
    X, y = np.concatenate([X, -2 * X]), np.concatenate([even + X @ w, 2 * (even - X @ w)])
    solution = min_norm_interpolation(X, y, bias=False)
    assert solution.certified
    assert solution.residual < 1e-9
    # Linear to rounding is not linear: no function takes these very values.
    for norm in ("l1", "l2"):
        rounded = min_norm_interpolation(X, y / 3 * 0.1, bias=False, norm=norm)
        assert rounded.status is Status.STALLED
        assert rounded.norm < np.inf


def test_kernel_interpolation_and_impossible_values():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 3)), random.normal(size=12)
    solution = min_norm_interpolation(X, y, norm="l2")
    assert solution.certified
    assert solution.decision_function(X) == pytest.approx(y)
    assert solution.norm == pytest.approx(np.sqrt(y @ np.linalg.solve(kernels.arc_cosine(X), y)))
    assert min_norm_interpolation(X, np.zeros(12)).norm == 0.0
    for norm in ("l1", "l2"):
        impossible = min_norm_interpolation([[1.0], [2.0], [1.0]], [1.0, 0.0, 2.0], norm=norm)
        assert (impossible.norm, impossible.status, impossible.certified) == (
            np.inf,
            Status.NOT_ATTAINABLE,
            True,
        )
        assert impossible.dual == pytest.approx([-0.5, 0.0, 0.5], abs=1e-9)


@pytest.mark.slow_cases("1e-13", "1e-10", "1e-08")
@pytest.mark.parametrize("step", [1e-3, 1e-5, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-13])
def test_nearly_equal_samples_claim_only_what_is_reached(step):
    """f rises from 0 to 1 within `step` and falls again: the norm is about 1 / step."""
    X, y = np.array([[0.0], [step], [1.0]]), np.array([0.0, 1.0, 0.0])
    solution = min_norm_interpolation(X, y)
    assert solution.certified or step < 1e-6
    assert 0.01 / step <= solution.lower_bound <= (1 + 3 * step) / step
    if np.isfinite(solution.norm):
        assert solution.residual <= 1e-7
        assert solution.norm >= (1 - 1e-6) / step
        assert solution.certified == (solution.gap <= 1e-6)
    else:
        assert (solution.status, solution.certified, solution.gap) == (
            Status.NOT_REACHED,
            False,
            np.inf,
        )


@pytest.mark.parametrize(
    ("X", "y", "bias", "least", "most"),
    [
        # As of samples 1e-4 and 1e-6 apart with that slope, whose norms are certified.
        ([[0.0], [1.0], [1 + 1e-9]], [0.0, 1.0, 1 + 1e-8], True, 9.9, 13.4537),
        ([[0.0], [1.0], [1 + 3e-14]], [0.0, 1.0, 1 + 1e-8], True, 333_000, 333_000),
        ([[1.0, 0.0], [1.0, 1e-12], [0.3, 1.0]], [1.0, 1 + 1e-10, -0.5], False, 99.9, 99.9),
    ],
)
def test_a_small_residual_does_not_make_a_small_norm(X, y, bias, least, most):
    """f is Lipschitz with its norm: what a residual of 1e-8 hides is 10 to 300,000 times it."""
    for norm in ("l1", "l2"):
        solution = min_norm_interpolation(X, y, bias=bias, norm=norm)
        assert solution.status is not Status.OPTIMAL
        assert not solution.certified
        assert solution.lower_bound <= most
        if solution.norm < least:
            assert 0 < solution.residual < 1e-7


@pytest.mark.parametrize("step", [1e-7, 1e-10])
def test_samples_that_nearly_coincide_are_certified_where_values_agree(step):
    """Of points on a line with one bend, what nearly coincides costs next to nothing."""
    x = np.array([-1.0, 0.5, 0.5 + step, 1.0, 2.0])
    solution = min_norm_interpolation(x[:, None], np.maximum(0.3 * x, 0.0))
    assert solution.certified
    assert solution.norm == pytest.approx(0.3, rel=1e-6)


def least_kernel_norm_to_60_digits(X, y):
    """sqrt(y' K^-1 y) with the arc-cosine kernel of inputs with a bias."""
    with mpmath.workdps(60):
        Z = [[*map(mpmath.mpf, row), mpmath.mpf(1)] for row in X.tolist()]
        lengths = [mpmath.sqrt(mpmath.fdot(z, z)) for z in Z]
        K = mpmath.matrix(len(Z), len(Z))
        for i, j in product(range(len(Z)), repeat=2):
            size = lengths[i] * lengths[j]
            t = mpmath.acos(min(mpmath.fdot(Z[i], Z[j]) / size, mpmath.mpf(1)))
            K[i, j] = size * (mpmath.sin(t) + (mpmath.pi - t) * mpmath.cos(t))
        K /= 2 * mpmath.pi * len(Z[0])
        values = mpmath.matrix(y.tolist())
        return mpmath.sqrt((values.T * mpmath.lu_solve(K, values))[0])


@pytest.mark.parametrize("extended", [500, 1])
@pytest.mark.parametrize("step", [1e-2, 1e-4, 1e-6, 1e-7, 1e-8])
def test_kernel_bounds_hold_to_60_digits(step, extended, monkeypatch):
    monkeypatch.setattr(kernel_interpolation, "_EXTENDED", extended)
    X, y = np.array([[0.0], [step], [1.0], [2.0]]), np.array([0.0, 1.0, 0.0, 1.0])
    solution, least = (
        min_norm_interpolation(X, y, norm="l2"),
        least_kernel_norm_to_60_digits(X, y),
    )
    assert solution.lower_bound <= least
    assert solution.lower_bound == pytest.approx(solution.dual @ y, rel=1e-3)
    if extended > 1:
        assert solution.certified == (step >= 1e-4)
        assert solution.lower_bound >= least * (0.99 if step > 1e-8 else 0.0)
    if np.isfinite(solution.norm):  # rounded up
        assert least <= solution.norm * (1 + 1e-6)
        assert solution.norm == pytest.approx(float(least), rel=1e-6 if extended > 1 else 1e-4)


@pytest.mark.slow_cases("1.0-4-l1", "1.0-16-l1", "3.0-1-l1", "3.0-4-l1", "1.0-1-l1")
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("ulps", [1, 4, 16])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_values_of_inputs_some_ulps_apart_are_attainable(ulps, scale, norm):
    x = scale * (1 + ulps * np.finfo(float).eps)  # relu(x - scale) / apart takes the values
    solution = min_norm_interpolation([[scale], [x]], [0.0, 1.0], norm=norm)
    assert solution.status is not Status.NOT_ATTAINABLE
    assert not solution.certified
    if norm == "l1":
        assert solution.lower_bound <= hypot(1.0, scale) / (x - scale)
    # Without a bias: other directions by an ulp, and relu((x z_1 - z_2) / apart) takes the values.
    rays = min_norm_interpolation([[1.0, scale], [3.0, 3 * x]], [0, 1], norm=norm, bias=False)
    assert rays.status is not Status.NOT_ATTAINABLE
    assert not rays.certified


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_contradictions_are_found_among_inputs_that_nearly_coincide(norm):
    near = 0.1 * (1 + 4 * np.finfo(float).eps)
    X, y = [[near], [0.1], [0.1], [0.7]], [1.0, 1.0, 2.0, 0.0]
    solution = min_norm_interpolation(X, y, norm=norm)
    assert solution.status is Status.NOT_ATTAINABLE
    assert solution.support.tolist() == [1, 2]
    # Opposite up to rounding is not opposite: three pairs in the plane.
    Z = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -2], [1, 1], [-1, -1]])
    odd = [1.0, 0, 1, 0, 1, 0]
    assert min_norm_interpolation(Z, odd, norm=norm, bias=False).status is Status.NOT_ATTAINABLE
    Z[5, 1] = np.nextafter(-1.0, 0.0)
    assert min_norm_interpolation(Z, odd, norm=norm, bias=False).lower_bound < np.inf


def test_beyond_float64_there_is_no_bracket_to_call_valid():
    X, y = [[0.0], [1e-13], [1.0]], [0.0, 1.0, 0.0]
    for norm in ("l1", "l2"):
        solution = min_norm_interpolation(X, y, norm=norm)
        assert (solution.norm, solution.gap, solution.certified) == (np.inf, np.inf, False)
        assert solution.status is Status.NOT_REACHED
        assert "bracket is valid" not in solution.status
        assert 0 < solution.lower_bound < np.inf


def test_an_early_end_returns_what_is_there(monkeypatch):
    X, y = draw_set(10)
    least = min_norm_interpolation(X, y).norm
    now = min_norm_interpolation(X, y, time_limit=0.0)

    def stop(self, rounds, *_):
        if rounds == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("netmargin.core.progress.Progress.draw", stop)
    interrupted = min_norm_interpolation(X, y)
    for cut, status in ((now, Status.TIME_LIMIT), (interrupted, Status.INTERRUPTED)):
        assert (cut.status, cut.certified) == (status, False)
        assert 0 < cut.lower_bound <= least * (1 + 1e-6)
        assert least * (1 - 1e-6) <= cut.norm < np.inf
        assert cut.gap > 1e-3
        assert cut.residual <= 1e-7 * np.abs(y).max()


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 5])
def test_brackets_hold_wherever_the_time_is_up(monkeypatch, d):
    """A clock that stands still until its last look: search and proofs end in the middle."""
    random = np.random.default_rng(d)
    X, y = random.normal(size=(14, d)), random.normal(size=14)
    labels = np.sign(y)
    problems = (
        (lambda **how: min_norm_interpolation(X, y, **how), "norm", "lower_bound"),
        (lambda **how: f1_soft_margin(X, labels, **how), "objective", "lower_bound"),
        (lambda **how: f1_max_margin(X, labels, **how), "upper_bound", "margin"),
    )
    whole = [solve(tol=1e-4) for solve, *_ in problems]
    assert all(solution.certified for solution in whole)
    cases = product(zip(problems, whole, strict=True), (2, 5, 12, 40, 100, 300))
    for ((solve, above, below), exact), looks in cases:
        left = [looks]

        def look(left=left):
            left[0] -= 1
            return 0.0 if left[0] > 0 else 1e6

        with monkeypatch.context() as patched:
            patched.setattr("time.monotonic", look)
            cut = solve(tol=1e-4, time_limit=1e3)
        assert getattr(cut, below) <= getattr(exact, above) * (1 + 1e-9)
        assert getattr(cut, above) >= getattr(exact, below) * (1 - 1e-9)
        assert cut.gap > 1e-4 or cut.certified
        assert cut.status in ((Status.OPTIMAL,) if cut.certified else (Status.TIME_LIMIT,))


@pytest.mark.slow
def test_above_the_arrangement_the_bracket_is_open_and_says_so():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 8)), random.normal(size=40)
    solution = min_norm_interpolation(X, y, pricing="local")
    assert solution.status is Status.LOCALLY_OPTIMAL
    assert not solution.certified
    assert 0 < solution.lower_bound < solution.norm
    assert solution.gap > 1e-6
    small = min_norm_interpolation(X[:6], y[:6])  # branch and bound closes it
    assert small.certified
    judge(small, X[:6], y[:6], 1e-6)


_STEP = 5e-12
_OTHERS = np.eye(5)[1:].tolist()


@pytest.mark.parametrize(
    ("power", "Z", "c", "u"),
    [
        # One hyperplane for both: between the two, and where they cancel, something is left.
        (1, [[1, 0], [1, _STEP], [0.3, 0.7]], [1e9, -1e9, 0], [0, 1]),
        (2, [[10, 0], [10, 10 * _STEP], [0.3, 0.7]], [1e9, -1e9, 0], [0.5**0.5, 0.5**0.5]),
        # A maximum at the kink of the second, where the kink of the first is looked at.
        (
            1,
            [[1, 0, 0], [1, _STEP, 0], [0.5 - _STEP, 1 + 0.5 * _STEP, 0], [0.2, 0.3, 1]],
            [0, -1, 1, 0],
            [-_STEP, 1, 0],
        ),
        (
            1,
            [[1, 0, 0], [1, -_STEP, 0], [0.5 + _STEP, 1 - 0.5 * _STEP, 0], [0.2, 0.3, 1]],
            [0, -1, 1, 0],
            [_STEP, 1, 0],
        ),
        # Of rank 2 up to 1e-12, but not along the third axis.
        (1, [[1, 0, 0], [1, 0, 2e-13], [0.3, 0.7, 0]], [1e9, -1e9, 0], [0, 0, 1]),
        (2, [[10, 0, 0], [10, 0, _STEP], [0.3, 0.7, 0]], [1e9, -1e9, 0], [0.5**0.5, 0, 0.5**0.5]),
        # Of rank 5: branch and bound.
        (
            1,
            [[1, 0, 0, 0, 0], [1, _STEP, 0, 0, 0], *_OTHERS],
            [1e9, -1e9, 0, 0, 0, 0],
            [0, 1, 0, 0, 0],
        ),
    ],
)
def test_nearly_parallel_samples_are_paid_for(power, Z, c, u):
    """Directions 5e-12 apart are priced as one: bounds need the term for what that neglects."""
    Z, c, u = (np.array(part, dtype=float) for part in (Z, c, u))
    attained = abs(float(np.maximum(Z @ u, 0.0) ** power @ c)) / np.linalg.norm(u) ** power
    bounds = [PricingBound(Z, Activation(power=power), "local", np.inf).relax(c)]
    if Z.shape[1] < 5:
        bounds.append(Arrangement(Z, power).price_neurons(c).upper_bound)
    prover = PricingBound(Z, Activation(power=power), "auto", np.inf)
    found = prover.price_neurons(
        c, floor=0.0, found=0.0, tol=1e-6, count=1, report=lambda upper: None
    )
    assert min(*bounds, found.upper_bound) >= attained > 1e-4


@pytest.mark.parametrize(
    "option",
    [
        {"norm": "l3"},
        {"bias": 1},
        {"tol": 0.0},
        {"time_limit": -1.0},
        {"pricing": "no"},
        {"seed": -1},
        {"progress": 2},
    ],
)
def test_impossible_options_are_refused(option):
    with pytest.raises(nm.errors.ArgumentError, match=next(iter(option))):
        min_norm_interpolation([[1.0], [2.0]], [0, 1], **option)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("apart", [1.0, 5e-10, 0.0])
def test_residuals_are_of_all_samples_also_of_those_on_one_ray(norm, apart):
    X = np.array([[1.0, 2.0], [2.0, 4.0], [-1.0, 0.5], [0.0, 0.0]])
    y = np.array([1.0, 2.0 + apart, -1.0, apart])
    found = min_norm_interpolation(X, y, norm=norm, bias=False)
    missed = np.abs(found.decision_function(X) - y).max()
    assert missed <= found.residual + 1e-14 <= missed * (1 + 1e-9) + 1e-13

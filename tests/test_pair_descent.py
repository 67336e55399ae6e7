"""The engine of the kernel solvers: by numba, where it is installed, and without it."""

import importlib.util
import sys

import mpmath
import numpy as np
import pytest
from sklearn.datasets import load_digits, make_moons

from netmargin import kernels
from netmargin.core.deadline import Deadline
from netmargin.result import Status
from netmargin.solvers import kernel_max_margin, kernel_soft_margin
from netmargin.solvers.extended import multiply_extended
from netmargin.solvers.hard_kernel import HardMargin
from netmargin.solvers.kernel_engine import propose_weights, solve_kernel
from netmargin.solvers.kernel_matrix import KernelMatrix
from netmargin.solvers.pair_descent import descend, descent, steps
from netmargin.solvers.soft_kernel import SoftMargin

DIGITS, DIGIT = load_digits(return_X_y=True)
K = kernels.ntk(DIGITS[:200] / 16)
EVEN = np.where(DIGIT[:200] % 2 == 0, 1.0, -1.0)


def load_plain_steps():
    """The module of the steps as it is where numba is not installed."""
    name = "netmargin.solvers.pair_descent.plain_steps"
    spec = importlib.util.spec_from_file_location(name, steps.__file__)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", None)
        spec.loader.exec_module(module)
    return module


PLAIN = load_plain_steps()


@pytest.fixture(params=["numpy", "numba"])
def engine(request, monkeypatch):
    """Both versions of the steps, one after the other."""
    if request.param == "numba":
        pytest.importorskip("numba")
        return steps
    monkeypatch.setattr("netmargin.solvers.pair_descent.steps", PLAIN)
    return PLAIN


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A kernel matrix of some size and kind, and labels."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(5, 60)), int(random.integers(1, 8))
    X = random.normal(size=(n, d)) * 10 ** random.uniform(-1, 1, d)
    y = random.choice([-1.0, 1.0], n)
    if seed % 4 == 0:  # a contradiction
        X[-1], y[-1] = X[0], -y[0]
    kind = seed % 3
    K = (kernels.ntk(X), kernels.arc_cosine(X), X @ X.T + 1)[kind]
    return K, y


def objective(K: np.ndarray, y: np.ndarray, p: np.ndarray) -> float:
    """The dual objective sum p - p'Qp / 2."""
    return float(p.sum() - 0.5 * (y * p) @ K @ (y * p))


def check_soft(seed: int, C: float) -> None:
    """One random problem: an independent check of the bracket, and the cone solver's objective."""
    K, y = random_problem(seed)
    C = C / np.diag(K).mean()
    soft = kernel_soft_margin(K, y, C=C, tol=1e-8)
    cone = propose_weights(y[:, None] * K * y, np.full(len(y), C), np.inf)
    assert soft.certified
    assert soft.objective == pytest.approx(objective(K, y, cone), rel=1e-6)
    # The bracket, recomputed with numpy alone.
    q = y * (K @ soft.coefficients)
    square = soft.coefficients @ K @ soft.coefficients
    assert 0.5 * square + C * np.maximum(1 - q, 0).sum() <= soft.objective * (1 + 1e-12)
    assert objective(K, y, soft.dual) >= soft.lower_bound * (1 - 1e-12)
    assert ((soft.dual >= 0) & (soft.dual <= C)).all()


def exact_margin(K: np.ndarray, y: np.ndarray, support: np.ndarray) -> float:
    """The largest margin in 60 digits, from the samples `support` that are claimed to attain it."""
    with mpmath.workdps(60):
        Q = mpmath.matrix(y[:, None] * K * y)
        inner = mpmath.matrix([[Q[i, j] for j in support] for i in support.tolist()])
        p = mpmath.lu_solve(inner, mpmath.ones(len(support), 1))
        outputs = [sum(Q[n, j] * p[i] for i, j in enumerate(support)) for n in range(len(y))]
        assert min(p) >= 0
        assert min(outputs) >= 1 - mpmath.mpf(10) ** -30
        return float(1 / mpmath.sqrt(sum(p)))


def check_hard(seed: int) -> None:
    """One random problem, or the proof that nothing separates it, beside the cone solver's."""
    K, y = random_problem(seed)
    hard = kernel_max_margin(K, y)
    p = propose_weights(y[:, None] * K * y, np.full(len(y), np.inf), np.inf)
    p /= p.sum()
    outputs = (y[:, None] * K * y).astype(np.longdouble) @ p
    least = float(np.sqrt(max(p @ outputs, 0.0)))
    scale = np.sqrt(np.diag(K).max())
    if hard.status is Status.NOT_SEPARABLE:
        assert hard.certified
        assert max(least, hard.upper_bound) <= 1e-4 * scale
        assert seed % 4 == 0 or seed % 3 == 2
    else:
        assert hard.certified
        if outputs.min() < (1 - 1e-3) * least**2:  # one of 112 is beyond the cone solver
            least = exact_margin(K, y, np.flatnonzero(hard.dual))
        assert hard.margin <= least * (1 + 1e-9)
        assert hard.margin == pytest.approx(least, rel=1e-6)
    # Margin and bound, recomputed with numpy alone.
    norm = np.sqrt(max(hard.coefficients @ K @ hard.coefficients, 0.0))
    assert (y * (K @ hard.coefficients)).min() >= hard.margin * norm - 1e-9 * scale
    bound = (y * hard.dual) @ K @ (y * hard.dual)
    assert hard.dual.sum() == pytest.approx(1)
    assert (hard.dual >= 0).all()
    assert bound <= hard.upper_bound**2 + 1e-12 * scale**2


def test_a_margin_of_the_size_of_rounding_is_judged_in_longer_floats():
    """Squared norms of 1e-11, of which float64 knows three digits: the cone solver loses them."""
    K, y = random_problem(85)
    K = (K + K.T) / 2  # asymmetric by rounding, of which the mean is judged
    hard = kernel_max_margin(K, y)
    exact = exact_margin(K, y, np.flatnonzero(hard.dual))
    assert hard.certified
    assert hard.margin <= exact <= hard.upper_bound
    with mpmath.workdps(60):  # of the function itself, whose coefficients are rounded
        f = mpmath.matrix(K) * mpmath.matrix(hard.coefficients)
        norm = mpmath.sqrt((mpmath.matrix(hard.coefficients).T * f)[0])
        least = min(float(s) * v for s, v in zip(y, f, strict=True)) / norm
    assert hard.margin <= least
    assert float(norm) == pytest.approx(1, abs=1e-6)


def test_products_in_longer_floats_are_as_exact_as_they_say():
    random = np.random.default_rng(0)
    Z = random.normal(size=(30, 40))
    v = random.normal(size=30) * 10.0 ** random.uniform(-8, 8, 30)
    K = Z @ Z.T
    product, errors = multiply_extended(K, v)
    with mpmath.workdps(60):
        exact = mpmath.matrix(K) * mpmath.matrix(v)
        high = product.astype(float)
        low = (product - high).astype(float)
        found = [
            abs(mpmath.mpf(h) + mpmath.mpf(e) - x) for h, e, x in zip(high, low, exact, strict=True)
        ]
    assert all(f <= float(e) for f, e in zip(found, errors, strict=True))
    assert (errors <= 1e-15 * np.abs(product) + 1e-24 * np.abs(v).max()).all()


def test_where_a_product_cancels_longer_floats_err_by_what_they_say():
    """Each sample is there twice with opposite weights, in another order: the product is 0."""
    random = np.random.default_rng(0)
    Z = random.normal(size=(60, 70))
    order = random.permutation(120)
    K = np.tile(Z @ Z.T, (2, 2))[np.ix_(order, order)]
    w = random.normal(size=60) * 10.0 ** random.uniform(-3, 3, 60)
    product, errors = multiply_extended(K, np.concatenate([w, -w])[order])
    assert np.abs(product).max() > 0
    assert (np.abs(product) <= errors).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_soft_objectives_equal_those_of_a_cone_program(seed, C, engine):
    check_soft(seed, C)


@pytest.mark.parametrize("seed", range(12))
def test_hard_margins_equal_those_of_a_cone_program(seed, engine):
    check_hard(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 112))
def test_a_hundred_problems_beside_a_cone_program(seed):
    """Hard and soft, a quarter of them with a contradiction."""
    check_soft(seed, float(10 ** np.random.default_rng(seed).uniform(-1, 3)))
    check_hard(seed)


def test_both_versions_take_the_same_steps():
    pytest.importorskip("numba")
    assert hasattr(steps.take_steps, "py_func")
    assert not hasattr(PLAIN.take_steps, "py_func")
    for hard, cap in ((False, 1.0), (True, np.inf)):
        found = []
        for version in (steps, PLAIN):
            a, g = np.zeros(200), np.ones(200)
            rest = (np.full(200, cap), np.diag(K).copy(), hard)
            assert version.take_steps(K, EVEN, a, g, *rest, 0.0, 70) == 70
            found.append((a, g, version.measure_gap(a, g, rest[0], hard)))
        for one, other in zip(*found, strict=True):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-12)


def test_samples_that_move_are_copied_once_and_rounded_where_that_is_enough(engine, monkeypatch):
    copies = []
    copy = descent._copy_part

    def recorded(K, chosen, part):
        copy(K, chosen, part)
        assert part == pytest.approx(K[np.ix_(chosen, chosen)], rel=1e-6 * (part.dtype != K.dtype))
        copies.append((len(chosen), part.dtype))

    monkeypatch.setattr(descent, "_copy_part", recorded)
    for tol, dtype in ((1e-3, np.float32), (1e-9, np.float64)):
        weights = np.zeros(200)
        assert descend(K, EVEN, np.full(200, 1.0), weights, tol=tol) <= tol
        assert copies[-1][1] == dtype
        assert max(n for n, _ in copies) < 0.7 * 200
        # Of which the judge knows nothing: the gap from scratch.
        outputs = EVEN * (K @ (EVEN * weights))
        value = 0.5 * weights @ outputs + np.maximum(1 - outputs, 0).sum()
        assert value - objective(K, EVEN, weights) <= 1.01 * tol * value + 1e-12
    assert len(copies) <= 4


def test_a_descent_of_one_step_at_a_time_keeps_its_slacks(engine):
    a, g = np.zeros(200), np.ones(200)
    for _ in range(50):
        engine.take_steps(K, EVEN, a, g, np.full(200, 0.3), np.diag(K).copy(), False, 0.0, 1)
    assert g == pytest.approx(1 - EVEN * (K @ (EVEN * a)), abs=1e-9)
    assert a.max() == pytest.approx(0.3)


def test_weights_to_begin_with_are_kept_and_caps_may_differ(engine):
    caps = np.where(np.arange(200) % 3, 0.5, 0.1)
    weights = np.zeros(200)
    assert descend(K, EVEN, caps, weights, tol=1e-9) <= 1e-9
    assert (weights <= caps).all()
    again = weights.copy()
    assert descend(K, EVEN, caps, again, tol=1e-6) <= 1e-9
    assert again == pytest.approx(weights, rel=1e-9)


def test_zero_features_cost_a_whole_hinge(engine):
    Z = np.zeros((3, 3))
    Z[:2, :2] = [[1.0, 0.2], [0.2, 1.0]]
    soft = kernel_soft_margin(Z, [1, -1, 1], C=0.5)
    assert soft.certified
    assert soft.dual[2] == 0.5
    assert kernel_max_margin(Z, [1, -1, 1]).status is Status.NOT_SEPARABLE


def test_several_problems_share_a_kernel_and_threads():
    labels = np.where(DIGIT[:200, None] == np.arange(4), 1.0, -1.0)
    matrix = KernelMatrix.of(K)
    soft = [SoftMargin(matrix, y, np.full(200, 1.0), 1e-6) for y in labels.T]
    hard = [HardMargin(matrix, y, 1e-6) for y in labels.T]
    alone, threads = (
        [
            *solve_kernel(soft, n_jobs=n_jobs, deadline=Deadline(None)),
            *solve_kernel(hard, n_jobs=n_jobs, deadline=Deadline(None)),
        ]
        for n_jobs in (1, 2)
    )
    for k, (one, other) in enumerate(zip(alone, threads, strict=True)):
        assert one.certified
        assert np.array_equal(one.coefficients, other.coefficients)
        single = (
            kernel_soft_margin(K, labels[:, k], C=1.0)
            if k < 4
            else kernel_max_margin(K, labels[:, k - 4])
        )
        assert np.allclose(one.dual, single.dual, rtol=1e-6, atol=1e-9)


def test_a_kernel_in_float32_is_judged_in_float64():
    rounded = KernelMatrix(K.astype(np.float32), compute=lambda V: K @ V)
    problem = SoftMargin(rounded, EVEN, np.full(200, 1.0), 1e-4)
    (soft,) = solve_kernel([problem], deadline=Deadline(None))
    (hard,) = solve_kernel([HardMargin(rounded, EVEN, 1e-4)], deadline=Deadline(None))
    assert soft.certified
    assert hard.certified
    q = EVEN * (K @ soft.coefficients)
    value = 0.5 * soft.coefficients @ K @ soft.coefficients + np.maximum(1 - q, 0).sum()
    assert value <= soft.objective * (1 + 1e-12)
    assert (EVEN * (K @ hard.coefficients)).min() >= hard.margin * (1 - 1e-12)


@pytest.mark.parametrize("C", [1e6, 1e9, 1e12, 1e15])
def test_a_huge_cost_does_not_hide_rounding(C):
    """Dual weights of C cancel in f, but not in the rounding of its outputs."""
    random = np.random.default_rng(0)
    X, y = np.tile(random.normal(size=(20, 3)), (2, 1)), np.repeat([1.0, -1.0], 20)
    y[[5, 33]] *= -1
    K = kernels.arc_cosine(X)
    soft = kernel_soft_margin(K, y, C=C)
    assert soft.certified == (soft.gap <= 1e-6)
    assert soft.certified or C > 1e10
    with mpmath.workdps(60):
        exact = mpmath.matrix(K)
        f = exact * mpmath.matrix(soft.coefficients)
        square = (mpmath.matrix(soft.coefficients).T * f)[0]
        hinges = sum(max(1 - float(s) * v, 0) for s, v in zip(y, f, strict=True))
        assert square / 2 + C * hinges <= soft.objective
        dual = mpmath.matrix(y * soft.dual)
        assert sum(map(mpmath.mpf, soft.dual)) - (dual.T * exact * dual)[0] / 2 >= soft.lower_bound


def test_brackets_count_each_sample_at_its_own_cost():
    X, y = make_moons(40, noise=0.5, random_state=0)
    K, weights = kernels.ntk(X), np.linspace(0.1, 3, 40)
    soft = kernel_soft_margin(K, y, C=0.5, sample_weight=weights)
    q = np.where(y, 1, -1) * (K @ soft.coefficients)
    square = soft.coefficients @ K @ soft.coefficients
    value = 0.5 * square + 0.5 * weights @ np.maximum(1 - q, 0)
    assert soft.certified
    assert soft.objective == pytest.approx(value, rel=1e-9)
    assert (soft.dual <= 0.5 * weights).all()


def test_weights_of_samples_are_copies():
    X, y = make_moons(40, noise=0.3, random_state=0)
    weights = np.arange(40) % 3
    copied = np.repeat(np.arange(40), weights)
    weighted = kernel_soft_margin(kernels.ntk(X), y, C=0.5, sample_weight=weights)
    repeated = kernel_soft_margin(kernels.ntk(X[copied]), y[copied], C=0.5)
    assert weighted.objective == pytest.approx(repeated.objective, rel=2e-6)
    assert not weighted.dual[::3].any()


@pytest.mark.parametrize("q", [1.0, -1.0, 1 - 1e-14, 0.0, 0.6, -0.99])
def test_two_samples_step_to_the_best_point_of_their_box(q):
    """Among them equal samples of equal slopes (q = 1, u = v), as of two opposite points."""
    random = np.random.default_rng(0)
    for draw in range(200):
        u, v = random.normal(size=2)
        v = q * u if draw % 3 == 0 else v
        s_high, t_high = random.choice([0.0, 0.3, 2.0], size=2)
        s_low, t_low = -random.choice([0.0, 0.3, 2.0], size=2)
        s = t = 0.0
        for _ in range(3000):  # one step at a time, each to the best point of its line
            before, s = s, min(max(u - q * t, s_low), s_high)
            t = min(max(v - q * s, t_low), t_high)
            if s == before:
                break
        found = steps.solve_two(q, u, v, (s_low, s_high, t_low, t_high))
        least, value = (
            (a * a + 2 * q * a * b + b * b) / 2 - u * a - v * b for a, b in ((s, t), found)
        )
        assert value <= least + 1e-9
        assert s_low <= found[0] <= s_high
        assert t_low <= found[1] <= t_high

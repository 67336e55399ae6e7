"""Several classes as one problem: the steps, and the answers beside a cone solver's."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from netmargin import kernels
from netmargin.core.deadline import Deadline
from netmargin.result import Status
from netmargin.solvers.class_descent import descent, passes
from netmargin.solvers.joint_hard import solve_joint_hard
from netmargin.solvers.joint_kernel import propose_classes, solve_joint
from netmargin.solvers.kernel_matrix import KernelMatrix


def plain(function):
    """The function as numpy runs it."""
    return getattr(function, "py_func", function)


@pytest.fixture(params=["numpy", "numba"])
def engine(request, monkeypatch):
    """Both ways to run the steps."""
    if request.param == "numba":
        pytest.importorskip("numba")
    else:
        steps = plain(passes.take_pass), plain(passes.project)
        monkeypatch.setattr(passes, "solve_sample", plain(passes.solve_sample))
        monkeypatch.setattr(descent, "load_steps", lambda: steps)
    return request.param


def random_problem(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A kernel matrix of some size and kind, scaled, with labels of some classes."""
    random = np.random.default_rng(seed)
    n, d, k = (int(random.integers(*ends)) for ends in ((8, 50), (1, 8), (3, 6)))
    X = random.normal(size=(n, d)) * 10 ** random.uniform(-1, 1, d)
    y = np.concatenate([np.arange(k), random.integers(0, k, n - k)])
    if seed % 4 == 0:  # a contradiction
        X[-1], y[-1] = X[0], (y[0] + 1) % k
    if seed % 4 == 1:  # nearly one
        X[-1], y[-1] = X[0] * (1 + 1e-7), (y[0] + 1) % k
    K = (kernels.ntk(X), kernels.arc_cosine(X), X @ X.T + 1)[seed % 3]
    return K / np.diag(K).mean(), y, k


def primal(K: np.ndarray, y: np.ndarray, caps: np.ndarray, coefficients: np.ndarray) -> float:
    """||f||^2 / 2 and the hinge losses, by a loop over samples."""
    scores = K @ coefficients
    losses = [
        cap * max(1 - row[label] + max(v for k, v in enumerate(row) if k != label), 0.0)
        for cap, row, label in zip(caps, scores, y, strict=True)
    ]
    return 0.5 * float(np.sum(coefficients * scores)) + sum(losses)


def dual(K: np.ndarray, y: np.ndarray, A: np.ndarray) -> float:
    """The dual objective of weights (n, k)."""
    return float(A[np.arange(len(y)), y].sum() - 0.5 * np.sum(A * (K @ A)))


def check_against_cone(seed: int, C: float) -> None:
    """One random problem: an independent check of the bracket, and the cone solver's objective."""
    K, y, k = random_problem(seed)
    caps = C * np.random.default_rng(seed).uniform(0.5, 2, len(y))
    found = solve_joint(KernelMatrix.of(K), y, caps, tol=1e-7, deadline=Deadline(None))
    assert found.certified
    assert found.gap <= 1e-7
    own = np.eye(k)[y] == 1
    assert (found.weights[own] <= caps * (1 + 1e-15)).all()
    assert (found.weights[~own] <= 0).all()
    assert np.abs(found.weights.sum(1)).max() <= 1e-12 * C
    assert primal(K, y, caps, found.coefficients) <= found.objective * (1 + 1e-12)
    assert dual(K, y, found.weights) >= found.lower_bound * (1 - 1e-12)
    cone = propose_classes(K, y, caps, k, math.inf).T
    assert found.objective == pytest.approx(dual(K, y, cone), rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_joint_objectives_equal_those_of_a_cone_program(seed, engine):
    check_against_cone(seed, 1.0 if engine == "numpy" else 30.0)


def check_hard_against_cone(seed: int) -> None:
    """One random problem without slacks: an independent check of margin and bound, and the cone
    solver's bound.
    """
    K, y, k = random_problem(seed)
    caps, own = np.full(len(y), np.inf), np.eye(k)[y] == 1
    found = solve_joint_hard(KernelMatrix.of(K), y, tol=1e-6, deadline=Deadline(None))
    A = propose_classes(K, y, caps, k, math.inf).T
    A /= A[own].sum()
    cone = math.sqrt(max(float(np.sum(A * (K @ A))), 0.0))
    assert found.weights[own].sum() == pytest.approx(1)
    assert (found.weights[~own] <= 0).all()
    assert np.abs(found.weights.sum(1)).max() <= 1e-12
    bound = math.sqrt(max(float(np.sum(found.weights * (K @ found.weights))), 0.0))
    assert bound <= found.upper_bound
    assert found.margin <= bound + 1e-12
    if found.status is Status.NOT_SEPARABLE:
        assert found.certified
        assert max(cone, found.upper_bound) <= 1e-5 * math.sqrt(np.diag(K).max())
        assert not found.coefficients.any()
        return
    scores = K @ found.coefficients
    margins = scores[own] - np.where(own, -np.inf, scores).max(1)
    assert np.sum(found.coefficients * scores) == pytest.approx(1, abs=1e-3)
    assert margins.min() >= found.margin * (1 - 1e-12) - 1e-12
    # What float64 knows of a squared margin of 1e-9 is less than a millionth.
    if found.margin > 1e-2:
        assert found.certified
        assert found.margin == pytest.approx(cone, rel=2e-6)


@pytest.mark.parametrize("seed", range(6))
def test_joint_hard_margins_equal_those_of_a_cone_program(seed, engine):
    check_hard_against_cone(seed)


def test_joint_hard_margins_of_huge_and_tiny_kernels_are_those_of_their_unit():
    K, y, _ = random_problem(3)
    found = [
        solve_joint_hard(KernelMatrix.of(K * unit), y, tol=1e-6, deadline=Deadline(None))
        for unit in (1.0, 4.0**150, 4.0**-150)
    ]
    assert all(f.certified for f in found)
    for f, root in zip(found, (1.0, 2.0**150, 2.0**-150), strict=True):
        assert f.margin == pytest.approx(found[0].margin * root, rel=2e-6)
        a = f.coefficients * root
        assert np.sum(a * (K @ a)) == pytest.approx(1)


def test_a_huge_cost_takes_no_longer_than_a_hard_margin():
    X, y = load_digits(return_X_y=True)
    K = kernels.ntk(X[:400] / 16)
    K /= np.diag(K).mean()
    for cap in (1e4, np.inf):
        weights = np.zeros((10, 400))
        assert descent.descend_classes(K, y[:400], np.full(400, cap), weights, tol=1e-6) <= 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_a_projection_is_the_nearest_of_what_is_allowed(seed):
    """Its condition: no allowed weights are on the side of what was projected."""
    random = np.random.default_rng(seed)
    k, label = int(random.integers(2, 6)), 1
    A, caps = random.normal(size=(k, 3)), random.uniform(0.2, 1, 3)
    given, labels = A.copy(), np.full(3, label)
    plain(passes.project)(labels, A, caps, np.arange(2))
    assert np.array_equal(A[:, 2], given[:, 2])
    for _ in range(50):
        others = -random.exponential(size=(k, 3)) * random.choice([0, 1], size=(k, 3))
        others[label] = 0
        others *= np.minimum(1, caps / np.maximum(-others.sum(0), 1e-12))
        others[label] = -others.sum(0)
        assert (np.sum((given - A) * (others - A), 0)[:2] <= 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 36))
def test_more_joint_hard_margins_equal_those_of_a_cone_program(seed):
    check_hard_against_cone(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 36))
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_more_joint_objectives_equal_those_of_a_cone_program(seed, C):
    check_against_cone(seed, C)


@pytest.mark.parametrize("seed", range(20))
def test_the_step_of_a_sample_is_the_best(seed):
    """Its conditions: classes that pay have one gradient, and others no larger one."""
    random = np.random.default_rng(seed)
    k, cap, curvature = int(random.integers(2, 7)), float(random.uniform(0.1, 2)), 1.7
    outputs, before, label = random.normal(size=k), np.zeros(k), int(random.integers(k))
    if seed % 2:
        before[(label + 1) % k], before[label] = -0.05, 0.05
    after = plain(passes.solve_sample)(outputs, before, label, curvature, cap)
    assert after.sum() == pytest.approx(0, abs=1e-12)
    assert np.delete(after, label).max() <= 0
    assert after[label] <= cap
    losses = outputs + curvature * (after - before) + (np.arange(k) != label)
    multipliers = cap * (np.arange(k) == label) - after
    assert losses[multipliers > 1e-12] == pytest.approx(losses.max(), abs=1e-9)
    compiled = passes.solve_sample(outputs, before, label, curvature, cap)
    assert compiled == pytest.approx(after, abs=1e-14)


def test_joint_weights_of_another_cost_are_made_feasible():
    K, y, k = random_problem(2)
    random = np.random.default_rng(0)
    caps = random.uniform(0.5, 1, len(y))
    start = random.normal(size=(len(y), k))
    late = Deadline(0.0)  # so that nothing but the start is judged
    found = solve_joint(KernelMatrix.of(K), y, caps, tol=1e-9, deadline=late, start=start)
    own = np.eye(k)[y] == 1
    assert (found.weights[own] <= caps).all()
    assert (found.weights[~own] <= 0).all()
    assert found.weights.any()
    assert np.abs(found.weights.sum(1)).max() <= 1e-12


def test_digits_in_one_problem():
    X, y = load_digits(return_X_y=True)
    K = kernels.ntk(X[:400] / 16)
    K /= np.diag(K).mean()
    for C in (1.0, 100.0):
        caps = np.full(400, C)
        found = solve_joint(KernelMatrix.of(K), y[:400], caps, tol=1e-6, deadline=Deadline(None))
        assert found.status is Status.OPTIMAL
        assert primal(K, y[:400], caps, found.coefficients) <= found.objective * (1 + 1e-12)
        assert dual(K, y[:400], found.weights) >= found.lower_bound * (1 - 1e-12)


def test_ctrl_c_leaves_a_bracket(monkeypatch):
    K, y, _ = random_problem(3)

    def interrupted(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(descent.ClassDescent, "step_in_span", interrupted)
    # The least float gap cannot be reached within one round.
    found = solve_joint(
        KernelMatrix.of(K), y, np.full(len(y), 100.0), tol=1e-9, deadline=Deadline(None)
    )
    assert found.status is Status.INTERRUPTED
    assert 0 <= found.lower_bound < found.objective


def test_a_feature_of_length_0_costs_a_whole_hinge():
    K = np.diag([1.0, 1.0, 1.0, 0.0])
    found = solve_joint(
        KernelMatrix.of(K),
        np.array([0, 1, 2, 0]),
        np.full(4, 10.0),
        tol=1e-9,
        deadline=Deadline(None),
    )
    assert found.certified
    # f_y = 2/3, the others -1/3 at each of the three: 3 * (4 + 1 + 1) / 9 / 2 = 1.
    assert found.objective == pytest.approx(1.0 + 10.0, rel=1e-9)

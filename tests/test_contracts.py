"""What every solver promises, in one table: how its value moves when the data are scaled, permuted,
duplicated, flipped, rotated or joined by one more sample, and how it ends when it is stopped.

A new solver is a row of `ROWS`.
"""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.special import entr

import netmargin as nm
from netmargin import solvers
from netmargin.papers.wei_2018 import narrow_max_margin
from netmargin.result import Status
from netmargin.solvers.regularized import f1_squared

X = np.array([[2.0, -2.5], [1.3, -1.7], [-0.5, -0.2], [-2.0, -0.3], [-0.9, 3.3]])
Y = np.array(
    [1, 1, -1, -1, 1]
)  # separable by a line through 0, with a margin that turns cannot hide
MORE, ITS_LABEL = np.array([[0.6, -0.3]]), np.array([1])
"""One more sample, so close to the others that it moves every solution, and still separable."""
TOL = 1e-6
AGREE = 5 * TOL
"""Two certified values of one number differ by at most both gaps, and then by rounding."""

ANGLES = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
NEURONS = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def relu_response(c: np.ndarray, X: np.ndarray, power: int = 1) -> float:
    """max |sum_n c_n relu(u . x_n)^power| over unit u, to some digits, from 20,000 of them."""
    return float(np.abs(c @ np.maximum(X @ NEURONS.T, 0.0) ** power).max())


def kernel_norm(c: np.ndarray, K: np.ndarray) -> float:
    """|sum_n c_n k(x_n, .)| in the space of a kernel."""
    return float(np.sqrt(max(c @ K @ c, 0.0)))


def arc_cosine(X: np.ndarray) -> np.ndarray:
    """The kernel that the soft row is solved with."""
    return nm.kernels.arc_cosine(X, bias=False)


def tangent(X: np.ndarray) -> np.ndarray:
    """The tangent kernel of a net without biases."""
    return nm.kernels.ntk(X, bias=False)


def linear(X: np.ndarray) -> np.ndarray:
    """The kernel that the hard row is solved with."""
    return X @ X.T


def with_kernel(kernel: Callable, X):
    """The kernel of the samples, in the kind of array that they are in."""
    if isinstance(X, torch.Tensor):
        return torch.from_numpy(kernel(X.detach().numpy())).requires_grad_(X.requires_grad)
    K = kernel(np.ascontiguousarray(X))
    return K.tolist() if isinstance(X, list) else np.array(K, order="F" if np.isfortran(X) else "C")


@dataclass(frozen=True)
class Row:
    """A solver, and what is known about its problem.

    solve : of (X, y, size, copies, options); its value is in units that neither of the two moves,
        where X was multiplied by `size`, and every sample is there `copies` times.
    degree : value(size X) = size^degree value(X).
    attained, proved : names of the two ends of the bracket.
    attains : of (solution, X, y, size), what the function found attains, recomputed here.
    proof : of (solution, X, y), the bound that the dual weights prove, recomputed here; None where
        they prove it for a part of the search only.
    contradicted : the value for two equal samples with opposite labels.
    status : how the search ends there.
    interrupted : functions within the solver in which Ctrl-C arrives.
    rotates : whether turned inputs have the same value.
    timed : whether there is a time limit.
    """

    solve: Callable
    interrupted: tuple[str, ...]
    attains: Callable
    proof: Callable | None
    degree: int = 1
    contradicted: float = 0.0
    attained: str = "margin"
    proved: str = "upper_bound"
    status: Status = Status.NOT_SEPARABLE
    rotates: bool = True
    timed: bool = True

    @property
    def maximizes(self) -> bool:
        return self.proved == "upper_bound"

    def value(self, solution) -> float:
        """What the solution attains."""
        return getattr(solution, self.attained)

    def bound(self, solution) -> float:
        """What is proved."""
        return getattr(solution, self.proved)

    def can_be_true(self, one, other) -> bool:
        """Whether what one solution attains lies on the right side of what the other proves."""
        excess = self.value(one) - self.bound(other)
        return (excess if self.maximizes else -excess) <= 1e-9 * abs(self.bound(other))


def hard(solver: Callable, **fixed) -> Callable:
    """Problems in which neither the size of the data nor copies need another parameter."""
    return lambda X, y, size=1.0, copies=1, **options: solver(X, y, **fixed, **options)


def logistic(X, y, size=1.0, copies=1, **options):
    """The sum of losses instead of the mean: lambda follows the number of samples."""
    weight = 0.05 * size * copies * len(Y) / len(y)
    return solvers.f1_logistic(X, y, regularization=weight, bias=False, **options)


@dataclass(frozen=True)
class SummedRow(Row):
    """Of a mean over samples, taken as a sum in units of the mean over the samples above."""

    def value(self, solution) -> float:
        return solution.objective * len(solution.dual) / len(Y)

    def bound(self, solution) -> float:
        return solution.lower_bound * len(solution.dual) / len(Y)


def least_margin(solution, X, y) -> float:
    """The least y_n f(x_n)."""
    return float((y * solution.decision_function(X)).min())


def of_unit_mass(solution, X, y, size) -> float:
    """The margin of a net with ||theta||^2 = 1."""
    assert solution.mass == pytest.approx(1)
    return least_margin(solution, X, y)


def of_unit_weights(order: float) -> Callable:
    """The margin of a linear function whose weights have norm 1."""

    def attains(solution, X, y, size) -> float:
        assert np.linalg.norm(solution.weights, order) == pytest.approx(1)
        return least_margin(solution, X, y)

    return attains


def of_unit_norm(kernel: Callable) -> Callable:
    """The margin of a function with norm 1 in the space of a kernel."""

    def attains(solution, X, y, size) -> float:
        assert kernel_norm(solution.coefficients, kernel(X)) == pytest.approx(1, rel=1e-5)
        return float((y * (kernel(X) @ solution.coefficients)).min())

    return attains


def hinge(outputs) -> float:
    """The sum of hinge losses."""
    return float(np.maximum(1 - outputs, 0.0).sum())


def soft_net(solution, X, y, size) -> float:
    """||theta||^2 / 2 + C sum of hinge losses, C = 1 / size."""
    return 0.5 * solution.mass + hinge(y * solution.decision_function(X)) / size


def soft_in_kernel(solution, X, y, size) -> float:
    """||f||^2 / 2 + C sum of hinge losses, C = 1 / size^2."""
    K, c = arc_cosine(X), solution.coefficients
    return 0.5 * kernel_norm(c, K) ** 2 + hinge(y * (K @ c)) / size**2


def regularized_loss(solution, X, y, size) -> float:
    """The mean logistic loss + lambda ||theta||^2."""
    losses = np.log1p(np.exp(-y * solution.decision_function(X)))
    return float(losses.mean()) + 0.05 * size * solution.mass


def through_the_points(norm: Callable) -> Callable:
    """The norm of a function, which takes the values y."""

    def attains(solution, X, y, size) -> float:
        assert solution.decision_function(X) == pytest.approx(y, rel=1e-6)
        return norm(solution, X)

    return attains


def squared(X, y, size=1.0, copies=1, **options):
    """The sum of squares instead of the mean, as above; the regressor calls it."""
    weight = 0.05 * size * copies * len(Y) / len(y)
    return f1_squared(X, y, regularization=weight, bias=False, **options)


def regularized_squares(solution, X, y, size) -> float:
    """The sum of squares and the price of the norm, in the units of `SummedRow`."""
    squares = ((solution.decision_function(X) - y) ** 2).sum() / 2
    return float(squares / len(Y) + 0.05 * size * solution.mass / 2)


def residuals_of(solution, X, y) -> float:
    """The dual objective at the residuals, which no unit neuron may answer by more than lambda."""
    assert relu_response(solution.dual, X) <= 0.05 * (1 + 1e-9)
    return float(solution.dual @ y - len(y) / 2 * (solution.dual**2).sum())


def entropy_of(solution, X, y) -> float:
    """The dual objective mean H(p), p such that no unit neuron answers by more than 2 lambda."""
    p = solution.dual * len(y)
    assert relu_response(y * solution.dual, X) <= 2 * 0.05 * (1 + 1e-9)
    return float((entr(p) + entr(1 - p)).mean())


def sum_of_duals(solution, X, y) -> float:
    """The dual objective of the l1 problems, divided by the largest response, 1."""
    return float(solution.dual.sum()) / relu_response(y * solution.dual, X)


def box_dual(solution, X, y) -> float:
    """The dual objective of a soft margin in the space of a kernel."""
    assert (solution.dual <= 1 + 1e-9).all()
    return float(solution.dual.sum()) - 0.5 * kernel_norm(y * solution.dual, arc_cosine(X)) ** 2


SHOWN = ("netmargin.core.progress.Progress.draw",)  # called once per round
PROGRAM = ("netmargin.solvers.kernel_engine.descend",)
REGULARIZED = {"attained": "objective", "proved": "lower_bound", "status": Status.OPTIMAL}
INTERPOLATION = {"attained": "norm", "proved": "lower_bound", "status": Status.NOT_ATTAINABLE}
INTERPOLATION |= {"degree": -1, "contradicted": np.inf}
ROWS = {
    "f1_max_margin": Row(
        hard(solvers.f1_max_margin, bias=False),
        interrupted=SHOWN,
        attains=of_unit_mass,
        proof=lambda s, X, y: 0.5 * relu_response(y * s.dual, X),
    ),
    "f1_max_margin, squared": Row(
        hard(solvers.f1_max_margin, bias=False, power=2),
        degree=2,
        interrupted=SHOWN,
        attains=of_unit_mass,
        proof=lambda s, X, y: relu_response(y * s.dual, X, 2),
    ),
    "f1_soft_margin": Row(
        lambda X, y, size=1.0, copies=1, **options: solvers.f1_soft_margin(
            X, y, C=1 / (size * copies), bias=False, **options
        ),
        degree=-1,
        contradicted=2.0,
        interrupted=SHOWN,
        attains=soft_net,
        proof=sum_of_duals,
        **REGULARIZED,
    ),
    "f1_logistic": SummedRow(
        logistic,
        degree=0,
        contradicted=2 / len(Y) * np.log(2),
        interrupted=SHOWN,
        attains=regularized_loss,
        proof=entropy_of,
        **REGULARIZED,
    ),
    "f1_squared": SummedRow(
        squared,
        degree=0,
        contradicted=2 / len(Y) / 2,
        interrupted=SHOWN,
        attains=regularized_squares,
        proof=residuals_of,
        **REGULARIZED,
    ),
    "f2_max_margin": Row(
        hard(solvers.f2_max_margin, bias=False),
        interrupted=("netmargin.solvers.kernel.arc_cosine", *PROGRAM),
        attains=of_unit_norm(arc_cosine),
        proof=lambda s, X, y: kernel_norm(y * s.dual, arc_cosine(X)),
    ),
    "ntk_max_margin": Row(
        hard(solvers.ntk_max_margin, bias=False),
        interrupted=("netmargin.solvers.kernel.ntk", *PROGRAM),
        attains=of_unit_norm(tangent),
        proof=lambda s, X, y: kernel_norm(y * s.dual, tangent(X)),
    ),
    "kernel_max_margin": Row(
        lambda X, y, size=1.0, copies=1, **options: solvers.kernel_max_margin(
            with_kernel(linear, X), y, **options
        ),
        interrupted=PROGRAM,
        attains=of_unit_norm(linear),
        proof=lambda s, X, y: kernel_norm(y * s.dual, linear(X)),
    ),
    "kernel_soft_margin": Row(
        lambda X, y, size=1.0, copies=1, **options: solvers.kernel_soft_margin(
            with_kernel(arc_cosine, X), y, C=1 / (size**2 * copies), **options
        ),
        degree=-2,
        contradicted=2.0,
        interrupted=("netmargin.solvers.kernel_engine.descend",),
        attains=soft_in_kernel,
        proof=box_dual,
        **REGULARIZED,
    ),
    "linear_max_margin, l1": Row(
        hard(solvers.linear_max_margin, norm="l1"),
        interrupted=("netmargin.solvers.simplex.Simplex.run",),
        attains=of_unit_weights(1),
        proof=lambda s, X, y: float(np.abs(y * s.dual @ X).max()),
        rotates=False,
    ),
    "linear_max_margin, l2": Row(
        hard(solvers.linear_max_margin, norm="l2"),
        interrupted=PROGRAM,
        attains=of_unit_weights(2),
        proof=lambda s, X, y: float(np.linalg.norm(y * s.dual @ X)),
    ),
    "narrow_max_margin": Row(
        hard(narrow_max_margin, width=2),
        interrupted=("netmargin.papers.wei_2018._narrow._solve_choice",),
        attains=of_unit_mass,
        proof=None,  # its dual weights are those of one choice of patterns
    ),
    "min_norm_interpolation, l1": Row(
        hard(solvers.min_norm_interpolation, norm="l1", bias=False),
        interrupted=SHOWN,
        attains=through_the_points(lambda s, X: 0.5 * s.mass),
        proof=lambda s, X, y: float(s.dual @ y) / relu_response(s.dual, X),
        **INTERPOLATION,
    ),
    "min_norm_interpolation, l2": Row(
        hard(solvers.min_norm_interpolation, norm="l2", bias=False),
        interrupted=("netmargin.solvers.interpolation.arc_cosine",),
        attains=through_the_points(lambda s, X: kernel_norm(s.coefficients, arc_cosine(X))),
        proof=lambda s, X, y: float(s.dual @ y) / kernel_norm(s.dual, arc_cosine(X)),
        timed=False,  # its limit concerns l1
        **INTERPOLATION,
    ),
}
every_row = pytest.mark.parametrize("name", ROWS)


@functools.cache
def solved(name: str):
    """The solution for the data above, certified."""
    solution = ROWS[name].solve(X, Y, tol=TOL)
    assert solution.certified, solution
    assert solution.status is Status.OPTIMAL
    return solution


def agree(name: str, other, factor: float = 1.0) -> bool:
    """Whether a solution of the same problem in other clothes is certified, up to `factor`."""
    row = ROWS[name]
    expected = factor * row.value(solved(name))
    return bool(other.certified) and row.value(other) == pytest.approx(expected, rel=AGREE)


def same_weights(name: str, dual: np.ndarray, order: np.ndarray) -> bool:
    """Whether the dual weights, unique here, are those of the samples in another order."""
    expected = solved(name).dual[order]
    return dual == pytest.approx(expected, abs=1e-3 * np.abs(expected).max())


@every_row
def test_every_solution_has_a_bracket_that_its_dual_weights_prove(name):
    row, solution = ROWS[name], solved(name)
    assert row.can_be_true(solution, solution)
    assert 0 <= solution.gap <= TOL
    assert solution.dual.shape == Y.shape
    assert row.attains(solution, X, Y, 1.0) == pytest.approx(row.value(solution), rel=1e-6)
    if row.proof is not None:
        assert row.proof(solution, X, Y) == pytest.approx(row.bound(solution), rel=1e-4)


@every_row
def test_scaled_inputs_scale_the_value(name):
    row = ROWS[name]
    for size in (1e-4, 0.7, 3e5):
        found = row.solve(size * X, Y, size=size, tol=TOL)
        assert agree(name, found, size**row.degree)
        assert row.attains(found, size * X, Y, size) == pytest.approx(row.value(found), rel=1e-6)


@every_row
def test_the_order_of_the_samples_does_not_matter(name):
    order = np.array([3, 0, 4, 2, 1])
    found = ROWS[name].solve(X[order], Y[order], tol=TOL)
    assert agree(name, found)
    assert same_weights(name, found.dual, order)


@every_row
def test_copies_of_the_samples_change_nothing(name):
    row = ROWS[name]
    twice = row.solve(np.vstack([X, X]), np.append(Y, Y), copies=2, tol=TOL)
    # A mean stays as it is: the value of a summed row counts the copies.
    factor = 2.0 if isinstance(row, SummedRow) else 1.0
    assert agree(name, twice, factor)


@every_row
def test_a_copy_of_one_sample_changes_no_hard_problem(name):
    row = ROWS[name]
    joined = row.solve(np.vstack([X, X[2:3]]), np.append(Y, Y[2]), tol=TOL)
    if row.status is Status.OPTIMAL:  # a loss is counted twice
        assert row.value(joined) > row.value(solved(name)) * (1 + 1e-3)
    else:
        assert agree(name, joined)


@every_row
def test_flipped_labels_have_the_same_value(name):
    found = ROWS[name].solve(X, -Y, tol=TOL)
    assert agree(name, found)
    of_values = "interpolation" in name or name == "f1_squared"  # y itself, not labels
    weights = -found.dual if of_values else found.dual
    assert same_weights(name, weights, np.arange(len(Y)))


@every_row
@pytest.mark.parametrize("reflect", [1.0, -1.0])
def test_turned_inputs_have_the_same_value_where_the_norm_is_round(name, reflect):
    cos, sin = np.cos(0.7), np.sin(0.7)
    turn = np.array([[cos, -sin], [reflect * sin, reflect * cos]])
    found = ROWS[name].solve(X @ turn, Y, tol=TOL)
    assert agree(name, found) == ROWS[name].rotates


@every_row
def test_tensors_lists_and_arrays_have_the_same_solution(name):
    expected = solved(name)
    for inputs, labels in (
        (torch.from_numpy(X), torch.from_numpy(Y)),
        (torch.from_numpy(X).requires_grad_(), Y.astype(float)),
        (X.tolist(), Y.tolist()),
        (np.asfortranarray(X), Y.astype(np.int8)),
    ):
        found = ROWS[name].solve(inputs, labels, tol=TOL)
        assert ROWS[name].value(found) == ROWS[name].value(expected)
        assert np.array_equal(found.dual, expected.dual)


@every_row
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_the_data_stay_as_they_are(name):
    inputs, labels = X.copy(), Y.astype(float)
    for array in (inputs, labels):
        array.flags.writeable = False
    assert agree(name, ROWS[name].solve(inputs, labels, tol=TOL))


@pytest.mark.slow_cases("f1_soft_margin", "f1_logistic", "f1_squared")
@every_row
def test_one_more_sample_never_makes_it_easier(name):
    row, before = ROWS[name], solved(name)
    after = row.solve(np.vstack([X, MORE]), np.append(Y, ITS_LABEL), tol=TOL)
    assert after.certified
    assert row.can_be_true(after, before)
    worse = row.value(before) - row.value(after)
    assert (worse if row.maximizes else -worse) > 1e-3 * row.value(before)
    for left_out in range(len(Y)):
        fewer = row.solve(np.delete(X, left_out, 0), np.delete(Y, left_out), tol=TOL)
        assert row.can_be_true(before, fewer)


class TickingClock:
    """A clock that moves a second whenever it is read: limits end at a reading, everywhere."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.timed])
def test_a_time_limit_leaves_a_valid_bracket(name, monkeypatch):
    row, whole = ROWS[name], solved(name)
    for limit in (0, 1, 4, 10, 30, 100):
        with monkeypatch.context() as patched:
            patched.setattr(time, "monotonic", TickingClock())
            found = row.solve(X, Y, tol=TOL, time_limit=limit)
        assert row.can_be_true(found, whole)
        assert row.can_be_true(whole, found)
        assert found.status is Status.TIME_LIMIT or (limit and found.status is Status.OPTIMAL)
        assert found.certified == (found.status is Status.OPTIMAL)
        assert (found.gap <= TOL) == found.certified


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row.timed])
def test_what_has_no_time_limit_is_not_given_one(name):
    if name.startswith("min_norm"):
        assert agree(name, ROWS[name].solve(X, Y, tol=TOL, time_limit=0))
    else:
        with pytest.raises(TypeError, match="time_limit"):
            ROWS[name].solve(X, Y, time_limit=0)


@pytest.mark.parametrize(
    ("name", "inside"), [(name, inside) for name, row in ROWS.items() for inside in row.interrupted]
)
@pytest.mark.parametrize("call", [1, 2, 3])
def test_ctrl_c_returns_the_best_bracket_so_far(name, inside, call, monkeypatch):
    row, whole, calls = ROWS[name], solved(name), []
    original = functools.reduce(getattr, inside.split(".")[1:], nm)

    def interrupted(*args, **options):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(*args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(inside, interrupted)
        found = row.solve(X, Y, tol=TOL)
    assert row.can_be_true(found, whole)
    assert row.can_be_true(whole, found)
    if row.value(found) in (0, np.inf):  # the function 0, which takes no values
        parts = ("weights", "coefficients")
        assert not any(np.any(getattr(found, part, 0.0)) for part in parts)
    else:
        assert row.attains(found, X, Y, 1.0) == pytest.approx(row.value(found), rel=1e-6)
    assert found.dual.shape == Y.shape
    if len(calls) >= call:
        assert found.status is Status.INTERRUPTED
        assert not found.certified
        found = row.solve(X, Y, tol=TOL)
    assert agree(name, found)


@every_row
def test_equal_samples_with_opposite_labels_are_named_or_paid_for(name):
    row = ROWS[name]
    found = row.solve(np.vstack([X[:1], X[:1]]), np.array([1, -1]), tol=TOL)
    assert found.status is row.status
    assert found.certified
    assert row.value(found) == pytest.approx(row.contradicted, rel=AGREE)


@pytest.mark.parametrize("name", [n for n, row in ROWS.items() if row.status is not Status.OPTIMAL])
@pytest.mark.parametrize("sample", [0, 2])
def test_a_contradiction_among_others_is_proved(name, sample):
    """The weights have no response at all, but the labels do: so no function is right on both."""
    row = ROWS[name]
    inputs, labels = np.vstack([X, X[sample : sample + 1]]), np.append(Y, -Y[sample])
    found = row.solve(inputs, labels, tol=TOL)
    assert (found.status, found.certified) == (row.status, True)
    assert row.value(found) == row.contradicted
    if "interpolation" in name:
        assert found.dual @ labels > 1e-3
        response = (
            relu_response(found.dual, inputs)
            if name.endswith("l1")
            else kernel_norm(found.dual, arc_cosine(inputs))
        )
        assert response <= 1e-7 * np.abs(found.dual).max()
        return
    assert f"{sample} and {len(Y)} are" in found.note or name.startswith("narrow")
    assert found.dual.min() >= 0
    assert found.dual.sum() == pytest.approx(1)
    assert 0 <= found.upper_bound <= 1e-4
    if row.proof is not None:
        assert row.proof(found, inputs, labels) <= 1e-7


def test_every_solver_has_a_row():
    named = {name.partition(",")[0] for name in ROWS}
    # Two are not public; that of test_two_layer_fit.py proves loose bounds only.
    assert named - {"f1_squared", "narrow_max_margin"} | {"fit_two_layer_net"} == {
        name for name in solvers.__all__ if callable(getattr(solvers, name))
    } - {name for name in solvers.__all__ if isinstance(getattr(solvers, name), type)}

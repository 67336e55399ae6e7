"""Several classes as one soft max-margin problem in a reproducing kernel space."""

import time
from dataclasses import dataclass, replace

import clarabel
import numpy as np
from scipy import sparse

from ..core.cone_program import minimize
from ..core.deadline import Deadline
from ..core.matrices import kernel_values, stack_blocks
from ..core.records import short_repr
from ..result import SoftSolution, Status, judge_bracket
from .class_descent import descend_classes
from .hinge_bracket import bracket_hinges
from .kernel_matrix import KernelMatrix

AIM = 0.9
"""Part of the tolerance that the search aims at: the judge counts roundings on top of it."""
AFFORDABLE = 1000
"""Weights, samples times classes, up to which an interior point method is tried where steps stall:
some seconds.
"""


@dataclass(frozen=True, kw_only=True)
class JointKernelSolution(SoftSolution):
    """Functions f_k = sum_n coefficients_nk k(x_n, .) of small norm and hinge loss, one per class.

    Attributes
    ----------
    coefficients : ndarray of shape (n, k), float64
        Of the functions; their rows sum to 0.
    weights : ndarray of shape (n, k), float64
        What proves the lower bound: rows that sum to 0, at most C in the column of the label, which
        is `dual`, and at most 0 in the others. `margin` is the least f_y(x) - f_k(x) for functions
        of norm 1 together; the other fields are those of `SoftSolution`.
    """

    coefficients: np.ndarray
    weights: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values (N, k) at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def solve_joint(
    matrix: KernelMatrix,
    labels: np.ndarray,
    caps: np.ndarray,
    *,
    tol: float,
    deadline: Deadline,
    start: np.ndarray | None = None,
) -> JointKernelSolution:
    """Minimize sum_k ||f_k||^2 / 2 + sum_n caps_n max(0, 1 - f_y(x_n) + max of the other f_k(x_n)).

    Its dual is max sum_n A_(y_n)n - sum_k A_k'K A_k / 2 over weights whose rows (k,) of a sample
    sum to 0, are at most 0 for the other classes and at most caps_n for its own.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel of the samples.
    labels : ndarray of int, shape (n,)
        Classes by number, from 0; all of them occur.
    caps : ndarray, shape (n,)
        Costs of a unit of hinge loss, > 0.
    tol : float
        Relative gap up to which the status is OPTIMAL.
    deadline : Deadline
        When it ends with the best so far, as it does at Ctrl-C.
    start : ndarray, shape (n, k), optional
        Weights to begin with; 0 by default.

    Returns
    -------
    JointKernelSolution
        Coefficients, the objective recomputed in float64 and its proved lower bound.

    Source: Crammer and Singer 2001, without an intercept. Beyond the papers.
    """
    began, classes = time.monotonic(), int(labels.max()) + 1
    caps = caps * matrix.scale
    weights = np.zeros((classes, len(labels)))
    if start is not None:
        weights[:] = make_feasible(start.T * matrix.scale, labels, caps)
    ended = Status.INTERRUPTED
    try:
        _search(matrix, labels, caps, weights, tol, deadline)
        ended = Status.TIME_LIMIT if deadline.passed else Status.STALLED
    except KeyboardInterrupt:
        pass
    found = _judge(matrix, labels, caps, weights)
    status, certified = judge_bracket(found.bracket, tol, ended=ended)
    seconds = time.monotonic() - began
    return replace(found, status=status, certified=certified, seconds=seconds)


def _search(
    matrix: KernelMatrix,
    labels: np.ndarray,
    caps: np.ndarray,
    weights: np.ndarray,
    tol: float,
    deadline: Deadline,
) -> None:
    """Find weights (k, n), in place, whose gap is `tol` or as small as it gets."""
    gap = descend_classes(matrix.values, labels, caps, weights, tol=AIM * tol, deadline=deadline.at)
    if gap <= tol or deadline.passed or weights.size > AFFORDABLE or matrix.compute is not None:
        return
    proposed = propose_classes(matrix.values, labels, caps, len(weights), deadline.at)
    # It knows who is at a bound, which is what steps do not find; they know the last digits.
    descend_classes(matrix.values, labels, caps, proposed, tol=AIM * tol, deadline=deadline.at)
    found = [_judge(matrix, labels, caps, some).gap for some in (weights, proposed)]
    if found[1] < found[0]:
        weights[:] = proposed


def propose_classes(
    K: np.ndarray, labels: np.ndarray, caps: np.ndarray, classes: int, deadline: float
) -> np.ndarray:
    """Weights (k, n) of the same problem by an interior point method, in units of the caps; where
    these are infinite, those of the hard margin, whose own weights sum to 1.
    """
    n, hard = len(labels), bool(np.isinf(caps.max()))
    unit = 1.0 if hard else float(caps.max())
    own = np.eye(classes)[labels].T.ravel()
    rows = [sparse.hstack([sparse.eye(n)] * classes)] + [sparse.csr_matrix(own)] * hard
    bounded = sparse.eye(n * classes, format="csr")
    limits = own * np.tile(np.where(hard, 0.0, caps / unit), classes)
    if hard:
        bounded, limits = bounded[own == 0], limits[own == 0]
    A = sparse.vstack([*rows, bounded])
    b = np.concatenate([np.zeros(n), np.ones(int(hard)), limits])
    cones = [clarabel.ZeroConeT(n + hard), clarabel.NonnegativeConeT(len(limits))]
    quadratic = unit * stack_blocks([K] * classes)
    cost = 0.0 * own if hard else -own
    x, _ = minimize(cost, A, b, cones, quadratic=quadratic, tol=1e-10, deadline=deadline)
    return make_feasible(unit * x.reshape(classes, n), labels, caps)


def make_feasible(A: np.ndarray, labels: np.ndarray, caps: np.ndarray) -> np.ndarray:
    """Weights (k, n) that are allowed, next to those of another solver, or of another C."""
    own = (labels, np.arange(len(labels)))
    A = np.minimum(A, 0.0)
    A[own] = 0.0
    sums = -A.sum(0)
    A *= np.minimum(1.0, np.divide(caps, sums, out=np.ones_like(sums), where=sums > 0))
    A[own] = np.minimum(-A.sum(0), caps)
    return A


def _judge(
    matrix: KernelMatrix, labels: np.ndarray, caps: np.ndarray, weights: np.ndarray
) -> JointKernelSolution:
    """The solution with these weights (k, n), its numbers recomputed in float64."""
    A = make_feasible(weights, labels, caps).T
    samples = np.arange(len(labels))
    eps = (A.size + 4) * float(np.finfo(float).eps)
    margins, square = measure_margins(matrix, labels, A)
    total = float(A[samples, labels].sum())
    found = bracket_hinges(caps, total, square, margins, eps)
    unit = matrix.scale
    return JointKernelSolution(
        objective=found.objective / unit,
        lower_bound=found.lower / unit,
        certified=False,
        status=Status.STALLED,
        dual=found.shrink * A[samples, labels] / unit,
        seconds=0.0,
        hinge=found.hinge,
        margin=float(margins.min()) * float(np.sqrt(unit / square)) if square > 0 else 0.0,
        coefficients=found.factor * A / unit,
        weights=found.shrink * A / unit,
    )


def measure_margins(
    matrix: KernelMatrix, labels: np.ndarray, A: np.ndarray
) -> tuple[np.ndarray, float]:
    """The least that f_y - max of the other f_k may be at each sample (n,), and the most that
    sum_k ||f_k||^2 may be, of functions with weights A (n, k), rounding counted.
    """
    samples = np.arange(len(labels))
    # Of the sum, and of the own weights, which are minus the sums of the others up to a rounding
    # for each class.
    eps = (A.size + 4) * float(np.finfo(float).eps)
    outputs = matrix.multiply(A)
    errors = matrix.bound_rounding(A)
    others = outputs + errors
    others[samples, labels] = -np.inf
    margins = (outputs - errors)[samples, labels] - others.max(1)
    square = max(float(np.sum(A * outputs)), 0.0)
    return margins, square + float(np.sum(np.abs(A) * (errors + eps * np.abs(outputs))))

"""Several classes as one hard max-margin problem in a reproducing kernel space."""

import time
from dataclasses import dataclass, replace

import numpy as np

from ..core.deadline import Deadline
from ..core.matrices import kernel_values
from ..core.records import short_repr
from ..result import Bracket, MarginSolution, Status, judge_bracket
from .class_descent import descend_classes
from .hard_kernel import ZERO_BOUND
from .joint_kernel import AFFORDABLE, AIM, make_feasible, measure_margins, propose_classes
from .kernel_matrix import KernelMatrix


@dataclass(frozen=True, kw_only=True)
class JointMarginSolution(MarginSolution):
    """Functions f_k = sum_n coefficients_nk k(x_n, .), one per class, of norm 1 together, with the
    largest min_n f_y(x_n) - max of the other f_k(x_n).

    Attributes
    ----------
    coefficients : ndarray of shape (n, k), float64
        weights / upper_bound; 0 where nothing separates the classes.
    weights : ndarray of shape (n, k), float64
        What proves the bound: rows that sum to 0, at least 0 in the column of the label, which is
        `dual`, and at most 0 in the others. The other fields are those of `MarginSolution`.
    """

    coefficients: np.ndarray
    weights: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values (N, k) at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def solve_joint_hard(
    matrix: KernelMatrix,
    labels: np.ndarray,
    *,
    tol: float,
    deadline: Deadline,
    contradiction: np.ndarray | None = None,
    start: np.ndarray | None = None,
) -> JointMarginSolution:
    """Maximize min_n f_y(x_n) - max of the other f_k(x_n) over sum_k ||f_k||^2 <= 1.

    Its dual is the least norm of sum_n A_n k(x_n, .) over weights whose rows (k,) of a sample sum
    to 0 and are at most 0 for the other classes, and whose own weights sum to 1.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel of the samples.
    labels : ndarray of int, shape (n,)
        Classes by number, from 0; all of them occur.
    tol : float
        Relative gap up to which the status is OPTIMAL.
    deadline : Deadline
        When it ends with the best so far, as it does at Ctrl-C.
    contradiction : ndarray, shape (n, k), optional
        Weights that prove that nothing separates the classes, where samples are known to contradict
        each other.
    start : ndarray, shape (n, k), optional
        Weights to begin with, in the scale of margins of 1; 0 by default.

    Returns
    -------
    JointMarginSolution
        Coefficients, the margin recomputed in float64 and its proved bound.

    Source: Crammer and Singer 2001, without an intercept and slacks. Beyond the papers.
    """
    began, classes = time.monotonic(), int(labels.max()) + 1
    weights = np.zeros((classes, len(labels)))
    caps = np.full(len(labels), np.inf)
    ended = Status.INTERRUPTED
    try:
        if contradiction is not None:
            weights[:] = contradiction.T
        else:
            if start is not None:
                weights[:] = make_feasible(start.T * matrix.scale, labels, caps)
            _search(matrix, labels, caps, weights, tol, deadline)
        ended = Status.TIME_LIMIT if deadline.passed else Status.STALLED
    except KeyboardInterrupt:
        pass
    found = _judge(matrix, labels, weights, tol, ended)
    return replace(found, seconds=time.monotonic() - began)


def find_proof(weights: np.ndarray, labels: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Weights (n, k) of the joint problem in which samples contradict each other by weights (n,) of
    two classes: those of the first of the `pairs` (m, 2), or of a sample on which all f are 0.
    """
    own = np.eye(labels.max() + 1)[labels]
    if np.count_nonzero(weights) == 1:
        others = (own - 1) / (own.shape[1] - 1)
        return weights[:, None] * (own + others)
    i, j = pairs[0]
    proof = np.zeros(own.shape)
    proof[i], proof[j] = weights[i] * (own[i] - own[j]), weights[j] * (own[j] - own[i])
    return proof


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
    candidates = [weights.copy(), proposed]
    bound = _judge(matrix, labels, proposed, tol, Status.STALLED)
    if bound.margin > 0:
        # It knows who has no weight, which steps do not find; they know the last digits.
        start = proposed / (bound.upper_bound**2 / matrix.scale)
        descend_classes(matrix.values, labels, caps, start, tol=AIM * tol, deadline=deadline.at)
        candidates.append(start)
    found = [_judge(matrix, labels, some, tol, Status.STALLED) for some in candidates]
    # Where nothing separates the classes, the least bound is the best proof.
    ranks = [(min(solution.gap, 1.0), solution.upper_bound) for solution in found]
    weights[:] = candidates[ranks.index(min(ranks))]


def _judge(
    matrix: KernelMatrix, labels: np.ndarray, weights: np.ndarray, tol: float, ended: Status
) -> JointMarginSolution:
    """The solution with these weights (k, n), its numbers recomputed in float64."""
    samples, caps = np.arange(len(labels)), np.full(len(labels), np.inf)
    A = make_feasible(weights, labels, caps)
    if not A.any():
        A = -np.ones(A.shape)
        A[labels, samples] = len(A) - 1
    A = (A / A[labels, samples].sum()).T
    margins, square = measure_margins(matrix, labels, A)
    sums = 1 + 4 * (A.size + 4) * float(np.finfo(float).eps)
    upper = float(np.sqrt(square * sums))
    margin = float(margins.min()) / (upper * sums) if upper > 0 else 0.0
    zero = ZERO_BOUND * float(np.sqrt(matrix.largest))
    status, certified = judge_bracket(Bracket(margin, upper), tol, ended=ended, zero=zero)
    nothing = status is Status.NOT_SEPARABLE or (status is Status.INTERRUPTED and margin <= 0)
    unit = float(np.sqrt(matrix.scale))
    return JointMarginSolution(
        margin=(max(margin, 0.0) if nothing else margin) * unit,
        upper_bound=upper * unit,
        certified=certified,
        status=status,
        dual=A[samples, labels],
        seconds=0.0,
        coefficients=np.zeros(A.shape) if nothing else A / (upper * unit),
        weights=A,
    )

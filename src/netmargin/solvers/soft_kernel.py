"""Soft max margin in a reproducing kernel space, without an intercept."""

import time
from dataclasses import dataclass, replace

import clarabel
import numpy as np
from scipy import sparse

from ..core.arguments import check_number
from ..core.cone_program import minimize
from ..core.deadline import Deadline
from ..core.matrices import kernel_values
from ..core.records import short_repr
from ..result import Bracket, SoftSolution, Status, judge_bracket
from .kernel_problem import DUST, label_kernel, minimize_norm, validate_kernel

_RELIABLE_OUTPUT = 1e-6
"""Factors 1 / output of f above 1e6 are not tried: outputs that are so small are rounding."""


@dataclass(frozen=True, kw_only=True)
class SoftKernelSolution(SoftSolution):
    """The function f = sum_n coefficients_n k(x_n, .) of small norm and hinge loss.

    Attributes
    ----------
    coefficients : ndarray of shape (n,), float64
        y * dual up to a common factor near 1. The other fields are those of `SoftSolution`.
    """

    coefficients: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values f (N,) at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def kernel_soft_margin(
    K, y, *, C: float = 1.0, tol: float = 1e-6, time_limit: float | None = None
) -> SoftKernelSolution:
    """The function in the space of a kernel that has the least squared norm plus hinge loss.

    It minimizes ||f||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)): a support vector machine without an
    intercept. Its dual, max sum p - p' (yy' * K) p / 2 over 0 <= p <= C, proves the lower bound.
    Ctrl-C returns the best bracket so far, with `Status.INTERRUPTED`; at worst that of f = 0.

    Parameters
    ----------
    K : array_like of shape (n, n)
        Symmetric positive semidefinite kernel matrix; computations are in float64.
    y : array_like of shape (n,)
        Labels {-1, +1} or {0, 1}.
    C : float, default 1.0
        Cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC` (which fits an intercept). 1 /
        mean K_nn lets a sample with full weight move its own output by 1.
    tol : float, default 1e-6
        Relative gap between the objective and its lower bound up to which the status is OPTIMAL.
    time_limit : float, optional
        Seconds after which the best bracket so far is returned, as in `kernel_max_margin`.

    Returns
    -------
    SoftKernelSolution
        Coefficients and dual weights (float64 of shape (n,)), the objective recomputed in float64,
        its proved lower bound, the hinge loss and the margin.

    Raises
    ------
    DataError
        For other shapes, NaN, or a kernel with a clearly negative eigenvalue.
    ArgumentError
        For C <= 0, and tol or time_limit out of range.

    Examples
    --------
    >>> from netmargin.solvers import kernel_soft_margin
    >>> K = [[1.0, 1.0], [1.0, 1.0]]
    >>> soft = kernel_soft_margin(K, [1, -1], C=2.0)  # equal samples, different labels: f = 0
    >>> round(soft.objective, 6), soft.certified
    (4.0, True)

    Beyond the papers.
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    C, tol = check_number("C", C, above=0), check_number("tol", tol, above=0, below=1)
    K, y = validate_kernel(K, y)
    Q, scale = label_kernel(K, y)
    # In units of K / scale and of p * scale the problem keeps its form, with C * scale and an
    # objective times scale.
    unit = scale or 1.0
    best = None
    try:
        # The first is the fastest by far; the others are for a C so large that it loses its digits.
        for solve_dual in (_box_program, _hard_multipliers, _factored_program):
            proposed = np.clip(solve_dual(Q, C * unit, deadline.at), 0.0, C * unit)
            found = _validate_weights(Q, proposed, y, C * unit, unit, tol)
            best = found if best is None or found.gap < best.gap else best
            if best.certified or deadline.passed:
                break
        assert best is not None
        ended = Status.TIME_LIMIT if deadline.passed else Status.STALLED
    except KeyboardInterrupt:
        ended = Status.INTERRUPTED
        best = best or _validate_weights(Q, np.zeros(len(y)), y, C * unit, unit, tol)
    status, certified = judge_bracket(best.bracket, tol, ended=ended)
    return replace(best, status=status, certified=certified, seconds=time.monotonic() - started)


def _validate_weights(
    Q: np.ndarray, proposed: np.ndarray, y: np.ndarray, cap: float, unit: float, tol: float
) -> SoftKernelSolution:
    """The solution with these dual weights, its numbers recomputed in float64, without the dust on
    most of them as long as the gap stays within a tenth of `tol`.
    """
    for threshold in DUST:
        dual = np.where(proposed > threshold * proposed.max(initial=0.0), proposed, 0.0)
        outputs = Q @ dual
        square = max(float(dual @ outputs), 0.0)
        shrink = min(1.0, float(dual.sum()) / square) if square > 0 else 1.0
        lower = shrink * float(dual.sum()) - 0.5 * shrink**2 * square
        # Where C is huge, the last of the hinge losses are cheaper to remove by scaling f. In its
        # scale, their sum is convex and bends at 1 / output.
        scales = np.concatenate([[0.0, 1.0], 1 / outputs[outputs > _RELIABLE_OUTPUT]])
        hinges = _hinges(scales, outputs)
        factor = float(scales[np.argmin(0.5 * scales**2 * square + cap * hinges)])
        hinge = float(np.maximum(1 - factor * outputs, 0.0).sum())
        objective = 0.5 * factor**2 * square + cap * hinge
        if objective - lower <= 0.1 * tol * objective:
            break
    status, certified = judge_bracket(Bracket(lower, objective), tol)
    return SoftKernelSolution(
        objective=objective / unit,
        lower_bound=lower / unit,
        certified=certified,
        status=status,
        dual=shrink * dual / unit,
        seconds=0.0,
        hinge=hinge,
        margin=float(outputs.min()) * float(np.sqrt(unit / square)) if square > 0 else 0.0,
        coefficients=factor * y * dual / unit,
    )


def _hinges(scales: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """The hinge losses sum_i max(0, 1 - scale outputs_i) at many scales, by one sort."""
    ascending = np.sort(outputs)
    sums = np.concatenate([[0.0], np.cumsum(ascending)])
    below = np.searchsorted(
        ascending, np.divide(1, scales, out=np.full_like(scales, np.inf), where=scales > 0)
    )
    return below - scales * sums[below]


def _box_program(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """Minimize p'Qp / 2 - sum p over 0 <= p <= cap by an interior point, in units of the cap."""
    n = len(Q)
    A = sparse.vstack([sparse.eye(n), -sparse.eye(n)])
    b = np.concatenate([np.ones(n), np.zeros(n)])
    x, _ = minimize(
        -np.ones(n),
        A,
        b,
        [clarabel.NonnegativeConeT(2 * n)],
        quadratic=cap * Q,
        tol=1e-10,
        deadline=deadline,
    )
    return cap * x


def _hard_multipliers(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """Solve the same problem by the hard margin, whose multipliers are below the cap where no hinge
    loss is worth its cost.
    """
    hard = minimize_norm(Q, deadline)
    return hard * hard.sum() / max(float(hard @ Q @ hard), 1e-300)


def _factored_program(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """Solve the same problem with p = cap q, Q = F F' and v = sqrt(cap) F'q: min |v|^2 / 2 - sum q
    over 0 <= q <= 1 keeps its scaling for every cap.

    Its equations are dense, so that it is some 30 times slower than `_box_program`.
    """
    n = len(Q)
    eigenvalues, vectors = np.linalg.eigh(Q)
    kept = eigenvalues > n * np.finfo(float).eps * eigenvalues[-1]
    F = vectors[:, kept] * np.sqrt(eigenvalues[kept])
    rank = F.shape[1]
    box = sparse.hstack(
        [sparse.csc_matrix((2 * n, rank)), sparse.vstack([sparse.eye(n), -sparse.eye(n)])]
    )
    A = sparse.vstack([np.hstack([-np.eye(rank), np.sqrt(cap) * F.T]), box])
    b = np.concatenate([np.zeros(rank), np.ones(n), np.zeros(n)])
    quadratic = sparse.diags(np.append(np.ones(rank), np.zeros(n)))
    cost = np.append(np.zeros(rank), -np.ones(n))
    cones = [clarabel.ZeroConeT(rank), clarabel.NonnegativeConeT(2 * n)]
    x, _ = minimize(cost, A, b, cones, quadratic=quadratic, tol=1e-10, deadline=deadline)
    return cap * x[rank:]

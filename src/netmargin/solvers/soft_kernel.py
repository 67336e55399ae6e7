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
from ..result import SoftSolution, Status
from .kernel import checked_kernel, labelled_kernel, least_norm


@dataclass(frozen=True, kw_only=True)
class SoftKernelSolution(SoftSolution):
    """f = sum_n coefficients_n k(x_n, .) of small norm and hinge loss; coefficients are y * dual up
    to a common factor near 1.
    """

    coefficients: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values of f at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def kernel_soft_margin(
    K, y, *, C: float = 1.0, tol: float = 1e-6, time_limit: float | None = None
) -> SoftKernelSolution:
    """min over f of ||f||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)) in the space of kernel K: a
    support vector machine without intercept.

    Its dual, max sum p - p' (yy' * K) p / 2 over 0 <= p <= C, proves the lower bound.

    Parameters
    ----------
    K, y, time_limit : as for `kernel_max_margin`, also the errors.
    C : cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC` (which fits an intercept). 1 /
        mean K_nn lets a sample with full weight move its own output by 1.
    tol : relative gap between the objective and its lower bound up to which the status is OPTIMAL.

    Examples
    --------
    >>> from netmargin.solvers import kernel_soft_margin
    >>> soft = kernel_soft_margin([[1.0, 1.0], [1.0, 1.0]], [1, -1], C=2.0)          # a contradiction: f = 0
    >>> round(soft.objective, 6), soft.certified
    (4.0, True)
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    C, tol = check_number("C", C, above=0), check_number("tol", tol, above=0, below=1)
    K, y = checked_kernel(K, y)
    Q, scale = labelled_kernel(K, y)
    # In units of K / scale and of p * scale the problem keeps its form, with C * scale and an
    # objective times scale.
    unit = scale or 1.0
    best = None
    # The first is the fastest by far; the others are for a C so large that it loses its digits.
    for propose in (_box_program, _hard_multipliers, _factored_program):
        found = _judged_soft(
            Q, np.clip(propose(Q, C * unit, deadline.at), 0.0, C * unit), y, C * unit, unit, tol
        )
        best = found if best is None or found.gap < best.gap else best
        if best.certified or deadline.passed:
            break
    assert best is not None
    late = Status.TIME_LIMIT if deadline.passed and not best.certified else best.status
    return replace(best, status=late, seconds=time.monotonic() - started)


def _judged_soft(
    Q: np.ndarray, proposed: np.ndarray, y: np.ndarray, cap: float, unit: float, tol: float
) -> SoftKernelSolution:
    """The solution with these dual weights, without the dust on most of them as long as the gap
    stays within a tenth of `tol`.
    """
    for threshold in (1e-4, 1e-6, 1e-8, 1e-10, 0.0):
        dual = np.where(proposed > threshold * proposed.max(initial=0.0), proposed, 0.0)
        outputs = Q @ dual
        square = max(float(dual @ outputs), 0.0)
        shrink = min(1.0, float(dual.sum()) / square) if square > 0 else 1.0
        lower = shrink * float(dual.sum()) - 0.5 * shrink**2 * square
        # Where C is huge, the last of the hinge losses are cheaper to remove by scaling f. In its
        # scale, their sum is convex and bends at 1 / output.
        scales = np.concatenate([[0.0, 1.0], 1 / outputs[outputs > 1e-6]])
        hinges = _hinges(scales, outputs)
        factor = float(scales[np.argmin(0.5 * scales**2 * square + cap * hinges)])
        hinge = float(np.maximum(1 - factor * outputs, 0.0).sum())
        objective = 0.5 * factor**2 * square + cap * hinge
        if objective - lower <= 0.1 * tol * objective:
            break
    certified = objective - lower <= tol * objective
    return SoftKernelSolution(
        objective=objective / unit,
        lower_bound=lower / unit,
        certified=certified,
        status=Status.OPTIMAL if certified else Status.STALLED,
        dual=shrink * dual / unit,
        seconds=0.0,
        hinge=hinge,
        margin=float(outputs.min()) * float(np.sqrt(unit / square)) if square > 0 else 0.0,
        coefficients=factor * y * dual / unit,
    )


def _hinges(scales: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """sum_i max(0, 1 - scale outputs_i) for many scales."""
    ascending = np.sort(outputs)
    sums = np.concatenate([[0.0], np.cumsum(ascending)])
    below = np.searchsorted(
        ascending, np.divide(1, scales, out=np.full_like(scales, np.inf), where=scales > 0)
    )
    return below - scales * sums[below]


def _box_program(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """Proposed minimizer of p'Qp / 2 - sum p over 0 <= p <= cap, in units of the cap."""
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
    """The same where no hinge loss is worth its cost: the multipliers of the hard margin are below
    the cap then.
    """
    hard = least_norm(Q, deadline)
    return hard * hard.sum() / max(float(hard @ Q @ hard), 1e-300)


def _factored_program(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """The same with p = cap q, Q = F F' and v = sqrt(cap) F'q: min |v|^2 / 2 - sum q over 0 <= q <=
    1 keeps its scaling for every cap.

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

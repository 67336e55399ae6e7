"""Hard and soft max margin in a reproducing kernel space, without an intercept."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import clarabel
import numpy as np
from scipy import sparse

from ..errors import DataError
from ..kernels import arc_cosine, ntk
from ..records import short_repr
from ..result import SoftSolution, Solution, Status
from .cone_program import minimize
from .data import SolverData, binary_data, warn_of_size

_ZERO = 1e-5
"""A bound below this, relative to the largest feature, is 0 to the precision of float64: its square is what is known to 1e-15 n."""
_NEGATIVE = 1e-9


@dataclass(frozen=True, kw_only=True)
class KernelSolution(Solution):
    """f = sum_n coefficients_n k(x_n, .), of norm 1, with the largest min_n y_n f(x_n); coefficients = y * dual / upper_bound."""

    coefficients: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values of f at points whose kernel with the training samples is K, shape (N, n)."""
        return np.asarray(K, dtype=np.float64) @ self.coefficients


@dataclass(frozen=True, kw_only=True)
class SoftKernelSolution(SoftSolution):
    """f = sum_n coefficients_n k(x_n, .) of small norm and hinge loss; coefficients are y * dual up to a common factor near 1."""

    coefficients: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values of f at points whose kernel with the training samples is K, shape (N, n)."""
        return np.asarray(K, dtype=np.float64) @ self.coefficients


def kernel_max_margin(K, y, *, tol: float = 1e-6) -> KernelSolution:
    """max over ||f|| <= 1 in the space of kernel K of min_n y_n f(x_n): a support vector machine without intercept.

    Its dual is the point of smallest norm in the hull of the labelled samples: min over probability weights p of sqrt(p' (yy' * K) p), which is
    also the proved upper bound. K : (n, n), symmetric positive semidefinite; y : (n,) labels {-1, +1} or {0, 1}.

    Raises DataError for other shapes, NaN, or a kernel with a clearly negative eigenvalue.

    >>> from netmargin.solvers import kernel_max_margin
    >>> round(kernel_max_margin([[1.0, 0.0], [0.0, 1.0]], [1, -1]).margin, 9)             # 1 / sqrt(2)
    0.707106781
    """
    started = time.monotonic()
    K, y = _checked(K, y)
    return _hard_margin(K, y, tol, started)


def kernel_soft_margin(K, y, *, C: float = 1.0, tol: float = 1e-6) -> SoftKernelSolution:
    """min over f of ||f||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)) in the space of kernel K: a support vector machine without intercept.

    Its dual, max sum p - p' (yy' * K) p / 2 over 0 <= p <= C, proves the lower bound. K, y and errors as for `kernel_max_margin`; C > 0 as in
    `sklearn.svm.SVC` (which fits an intercept); tol bounds the relative gap between the objective and its lower bound.

    >>> from netmargin.solvers import kernel_soft_margin
    >>> soft = kernel_soft_margin([[1.0, 1.0], [1.0, 1.0]], [1, -1], C=2.0)          # a contradiction: f = 0
    >>> round(soft.objective, 6), soft.certified
    (4.0, True)
    """
    if not C > 0 or not np.isfinite(C):
        raise DataError(f"C must be positive and finite; got {C}. For a hard margin use kernel_max_margin.")
    started = time.monotonic()
    K, y = _checked(K, y)
    Q, scale = _labelled(K, y)
    # In units of K / scale and of p * scale the problem keeps its form, with C * scale and an objective times scale.
    cap = C * (scale or 1.0)
    proposed = np.clip(_quadratic_program(Q, cap), 0.0, cap)
    for threshold in (1e-4, 1e-6, 1e-8, 1e-10, 0.0):
        dual = np.where(proposed > threshold * proposed.max(initial=0.0), proposed, 0.0)
        outputs = Q @ dual
        square = max(float(dual @ outputs), 0.0)
        shrink = min(1.0, float(dual.sum()) / square) if square > 0 else 1.0
        lower = shrink * float(dual.sum()) - 0.5 * shrink**2 * square
        # Where C is huge, the last of the hinge losses are cheaper to remove by scaling f. In its scale, their sum is convex and bends at 1 / output.
        scales = np.concatenate([[0.0, 1.0], 1 / outputs[outputs > 1e-6]])
        hinges = _hinges(scales, outputs)
        factor = float(scales[np.argmin(0.5 * scales**2 * square + cap * hinges)])
        hinge = float(np.maximum(1 - factor * outputs, 0.0).sum())
        objective = 0.5 * factor**2 * square + cap * hinge
        if objective - lower <= 0.1 * tol * objective:
            break
    certified = objective - lower <= tol * objective
    return SoftKernelSolution(
        objective=objective / (scale or 1.0),
        lower_bound=lower / (scale or 1.0),
        certified=certified,
        status=Status.OPTIMAL if certified else Status.STALLED,
        dual=shrink * dual / (scale or 1.0),
        seconds=time.monotonic() - started,
        hinge=hinge,
        margin=float(outputs.min()) * float(np.sqrt(scale / square)) if square > 0 else 0.0,
        coefficients=factor * y * dual / (scale or 1.0),
    )


def _hinges(scales: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """sum_i max(0, 1 - scale outputs_i) for many scales."""
    ascending = np.sort(outputs)
    sums = np.concatenate([[0.0], np.cumsum(ascending)])
    below = np.searchsorted(ascending, np.divide(1, scales, out=np.full_like(scales, np.inf), where=scales > 0))
    return below - scales * sums[below]


def f2_max_margin(X, y, *, bias: bool = True, tol: float = 1e-6) -> KernelSolution:
    """The largest margin in the unit ball of F_2, that of nets whose directions are fixed and uniform on the sphere.

    Chizat and Bach 2020, (5), with the closed-form kernel `kernels.arc_cosine`.
    """
    return _homogeneous(lambda Z: arc_cosine(Z, bias=False), binary_data(X, y, bias=bias), tol)


def ntk_max_margin(X, y, *, r_w: float = 1.0, r_u: float = 1.0, bias: bool = False, tol: float = 1e-6) -> KernelSolution:
    """The largest margin in the unit ball of the tangent kernel space `kernels.ntk` (Wei et al. 2019, Section 2)."""
    return _homogeneous(lambda Z: ntk(Z, r_w=r_w, r_u=r_u), binary_data(X, y, bias=bias), tol)


def _homogeneous(kernel: Callable[[np.ndarray], np.ndarray], data: SolverData, tol: float) -> KernelSolution:
    """For kernels with k(a x, b x') = a b k(x, x'), positive by their form: solved at unit size, because squares of huge inputs overflow."""
    started, size = time.monotonic(), data.size
    warn_of_size(len(data), "A kernel problem")
    at_unit_size = _hard_margin(kernel(data.Z / size), data.y, tol, started)
    return replace(
        at_unit_size,
        margin=at_unit_size.margin * size,
        upper_bound=at_unit_size.upper_bound * size,
        coefficients=at_unit_size.coefficients / size,
    )


def _checked(K, y) -> tuple[np.ndarray, np.ndarray]:
    """Kernel and labels, or DataError."""
    data = binary_data(K, y, bias=False)
    K, n = data.Z, len(data)
    warn_of_size(n, "A kernel problem")
    if K.shape != (n, n) or not np.allclose(K, K.T, rtol=1e-9, atol=1e-12 * np.abs(K).max()):
        raise DataError(f"K must be a symmetric matrix of shape ({n}, {n}); got shape {K.shape}")
    scale = float(np.abs(K).max()) or 1.0
    smallest = float(np.linalg.eigvalsh(K / scale)[0])
    if smallest < -_NEGATIVE * n:
        raise DataError(
            f"K is not positive semidefinite (smallest eigenvalue {smallest * scale:.3g}). Compute it in float64, or add that to its diagonal."
        )
    return K, data.y


def _labelled(K: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """yy' * K / scale, and scale, the largest entry of K."""
    scale = float(np.abs(K).max())
    return y[:, None] * (K / (scale or 1.0)) * y[None, :], scale


def _hard_margin(K: np.ndarray, y: np.ndarray, tol: float, started: float) -> KernelSolution:
    Q, scale = _labelled(K, y)
    if scale == 0:
        return _solution(0.0, 0.0, Status.NOT_SEPARABLE, np.full(len(y), 1 / len(y)), y, started)
    margin, upper, dual = _judged(Q, _least_norm(Q), tol)
    if margin > 0:
        status = Status.OPTIMAL if upper - margin <= tol * upper else Status.STALLED
    else:
        status = Status.NOT_SEPARABLE if upper <= _ZERO else Status.STALLED
    unit = float(np.sqrt(scale))
    return _solution(max(margin, 0.0) * unit, upper * unit, status, dual, y, started)


def _quadratic_program(Q: np.ndarray, cap: float) -> np.ndarray:
    """Proposed minimizer of p'Qp / 2 - sum p over 0 <= p <= cap."""
    n = len(Q)
    hard = _least_norm(Q)
    hard = hard * hard.sum() / max(float(hard @ Q @ hard), 1e-300)
    if hard.max() <= cap:
        return hard  # the multipliers of the hard margin: no hinge loss is worth its cost
    # With p = cap q, Q = F F' and v = sqrt(cap) F'q: min |v|^2 / 2 - sum q over 0 <= q <= 1 keeps its scaling for every cap.
    eigenvalues, vectors = np.linalg.eigh(Q)
    kept = eigenvalues > n * np.finfo(float).eps * eigenvalues[-1]
    F = vectors[:, kept] * np.sqrt(eigenvalues[kept])
    rank = F.shape[1]
    box = sparse.hstack([sparse.csc_matrix((2 * n, rank)), sparse.vstack([sparse.eye(n), -sparse.eye(n)])])
    A = sparse.vstack([np.hstack([-np.eye(rank), np.sqrt(cap) * F.T]), box])
    b = np.concatenate([np.zeros(rank), np.ones(n), np.zeros(n)])
    quadratic = sparse.diags(np.append(np.ones(rank), np.zeros(n)))
    cost = np.append(np.zeros(rank), -np.ones(n))
    cones = [clarabel.ZeroConeT(rank), clarabel.NonnegativeConeT(2 * n)]
    x, _ = minimize(cost, A, b, cones, quadratic=quadratic, tol=1e-10)
    return cap * x[rank:]


def _least_norm(Q: np.ndarray) -> np.ndarray:
    """Proposed minimizer of p'Qp over probability weights."""
    n = len(Q)
    A = sparse.vstack([np.ones((1, n)), -sparse.eye(n)], format="csc")
    b = np.append(1.0, np.zeros(n))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    x, _ = minimize(np.zeros(n), A, b, cones, quadratic=Q, tol=1e-12)
    p = np.maximum(x, 0.0)
    return p if p.sum() > 0 else np.full(n, 1 / n)


def _judged(Q: np.ndarray, proposed: np.ndarray, tol: float) -> tuple[float, float, np.ndarray]:
    """Margin, upper bound, and the dual weights without the dust that an interior point leaves on every sample.

    Weights below a threshold are dropped, the largest threshold first, as long as the gap stays within a tenth of `tol`. Squares of
    norms are known to a few n machine precisions; margin and bound are taken on the safe sides of that.
    """
    rounding = 4 * (len(Q) + 4) * float(np.finfo(float).eps)
    for threshold in (1e-4, 1e-6, 1e-8, 1e-10, 0.0):
        dual = np.where(proposed > threshold * proposed.max(), proposed, 0.0)
        dual = dual / dual.sum()
        outputs = Q @ dual
        upper = float(np.sqrt(max(dual @ outputs, 0.0) + rounding))
        margin = (float(outputs.min()) - rounding) / upper
        if upper - margin <= 0.1 * tol * upper:
            break
    return margin, upper, dual


def _solution(margin, upper, status, dual, y, started) -> KernelSolution:
    coefficients = y * dual / upper if status is not Status.NOT_SEPARABLE else np.zeros(len(y))
    certified = status in (Status.OPTIMAL, Status.NOT_SEPARABLE)
    return KernelSolution(
        margin=margin,
        upper_bound=upper,
        certified=certified,
        status=status,
        dual=dual,
        seconds=time.monotonic() - started,
        coefficients=coefficients,
    )

"""Hard and soft max margin in a reproducing kernel space, without an intercept."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import clarabel
import numpy as np
from scipy import sparse

from ..arguments import check_flag, check_number
from ..deadline import Deadline
from ..errors import DataError
from ..kernels import arc_cosine, ntk
from ..result import SoftSolution, Solution, Status
from .cone_program import minimize
from .contradictions import Contradictions, recommended_cost
from .data import binary_data, warn_of_size

_ZERO = 1e-5
"""A bound below this, relative to the largest feature, is 0 to the precision of float64: its square is what is known to 1e-15 n."""
_NEGATIVE = 1e-9
_AVERAGED = 1000
"""So many samples tell the scale of a kernel to a digit."""


@dataclass(frozen=True, kw_only=True)
class KernelSolution(Solution):
    """f = sum_n coefficients_n k(x_n, .), of norm 1, with the largest min_n y_n f(x_n); coefficients = y * dual / upper_bound."""

    coefficients: np.ndarray

    def decision_function(self, K) -> np.ndarray:
        """Values of f at points whose kernel with the training samples is K, shape (N, n)."""
        return np.asarray(K, dtype=np.float64) @ self.coefficients


@dataclass(frozen=True, kw_only=True)
class SoftKernelSolution(SoftSolution):
    """f = sum_n coefficients_n k(x_n, .) of small norm and hinge loss; coefficients are y * dual up to a common factor near 1."""

    coefficients: np.ndarray

    def decision_function(self, K) -> np.ndarray:
        """Values of f at points whose kernel with the training samples is K, shape (N, n)."""
        return np.asarray(K, dtype=np.float64) @ self.coefficients


def kernel_max_margin(K, y, *, tol: float = 1e-6, time_limit: float | None = None) -> KernelSolution:
    """max over ||f|| <= 1 in the space of kernel K of min_n y_n f(x_n): a support vector machine without intercept.

    Its dual is the point of smallest norm in the hull of the labelled samples: min over probability weights p of sqrt(p' (yy' * K) p), which is
    also the proved upper bound.

    Parameters
    ----------
    K : (n, n), symmetric positive semidefinite.
    y : (n,) labels {-1, +1} or {0, 1}.
    tol : relative gap between margin and upper bound up to which the status is OPTIMAL.
    time_limit : seconds, after which the best bracket so far is returned; the step that has begun is finished, about a second for 1,500 samples.

    Returns
    -------
    A `KernelSolution`. Where nothing separates the samples, its `note` names those that contradict each other.

    Raises
    ------
    DataError : other shapes, NaN, or a kernel with a clearly negative eigenvalue. ArgumentError : the other arguments.

    >>> from netmargin.solvers import kernel_max_margin
    >>> round(kernel_max_margin([[1.0, 0.0], [0.0, 1.0]], [1, -1]).margin, 9)             # 1 / sqrt(2)
    0.707106781
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    tol = check_number("tol", tol, above=0, below=1)
    K, y = _checked(K, y)
    contradictions = Contradictions.in_kernel(K, y)
    found = _hard_margin(K, y, tol, started, deadline, contradictions.weights)
    if found.margin > 0:
        return found
    C = recommended_cost(float(np.diag(K).mean()))
    return _explained(found, contradictions, f"kernel_soft_margin(K, y, C={C:g})")


def kernel_soft_margin(K, y, *, C: float = 1.0, tol: float = 1e-6, time_limit: float | None = None) -> SoftKernelSolution:
    """min over f of ||f||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)) in the space of kernel K: a support vector machine without intercept.

    Its dual, max sum p - p' (yy' * K) p / 2 over 0 <= p <= C, proves the lower bound.

    Parameters
    ----------
    K, y, time_limit : as for `kernel_max_margin`, also the errors.
    C : cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC` (which fits an intercept). 1 / mean K_nn lets a sample with full weight move its own output by 1.
    tol : relative gap between the objective and its lower bound up to which the status is OPTIMAL.

    >>> from netmargin.solvers import kernel_soft_margin
    >>> soft = kernel_soft_margin([[1.0, 1.0], [1.0, 1.0]], [1, -1], C=2.0)          # a contradiction: f = 0
    >>> round(soft.objective, 6), soft.certified
    (4.0, True)
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    C, tol = check_number("C", C, above=0), check_number("tol", tol, above=0, below=1)
    K, y = _checked(K, y)
    Q, scale = _labelled(K, y)
    # In units of K / scale and of p * scale the problem keeps its form, with C * scale and an objective times scale.
    unit = scale or 1.0
    best = None
    # The first is the fastest by far; the others are for a C so large that it loses its digits.
    for propose in (_box_program, _hard_multipliers, _factored_program):
        found = _judged_soft(Q, np.clip(propose(Q, C * unit, deadline.at), 0.0, C * unit), y, C * unit, unit, tol)
        best = found if best is None or found.gap < best.gap else best
        if best.certified or deadline.passed:
            break
    assert best is not None
    late = Status.TIME_LIMIT if deadline.passed and not best.certified else best.status
    return replace(best, status=late, seconds=time.monotonic() - started)


def _judged_soft(Q: np.ndarray, proposed: np.ndarray, y: np.ndarray, cap: float, unit: float, tol: float) -> SoftKernelSolution:
    """The solution with these dual weights, without the dust on most of them as long as the gap stays within a tenth of `tol`."""
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
    below = np.searchsorted(ascending, np.divide(1, scales, out=np.full_like(scales, np.inf), where=scales > 0))
    return below - scales * sums[below]


def f2_max_margin(X, y, *, bias: bool = True, tol: float = 1e-6, time_limit: float | None = None) -> KernelSolution:
    """The largest margin in the unit ball of F_2, that of nets whose directions are fixed and uniform on the sphere.

    X : (n, d); bias : whether the nets have one; the other arguments, the `note` and the errors as for `kernel_max_margin`.

    Source: Chizat and Bach 2020, (5), with the closed-form kernel `kernels.arc_cosine`.
    """
    bias = check_flag("bias", bias)
    formula = f"kernel_soft_margin(kernels.arc_cosine(X, bias={bias}), y, C={{C:g}})"
    return _homogeneous(lambda Z: arc_cosine(Z, bias=False), X, y, bias, formula, tol, time_limit)


def ntk_max_margin(
    X, y, *, r_w: float = 1.0, r_u: float = 1.0, bias: bool = False, tol: float = 1e-6, time_limit: float | None = None
) -> KernelSolution:
    """The largest margin in the unit ball of the tangent kernel space `kernels.ntk` (Wei et al. 2019, Section 2).

    r_w, r_u : initial scales of the second and the first layer, finite; the other arguments, the `note` and the errors as for `f2_max_margin`.
    """
    bias, r_w, r_u = check_flag("bias", bias), check_number("r_w", r_w), check_number("r_u", r_u)
    formula = f"kernel_soft_margin(kernels.ntk(X, r_w={r_w:g}, r_u={r_u:g}, bias={bias}), y, C={{C:g}})"
    return _homogeneous(lambda Z: ntk(Z, r_w=r_w, r_u=r_u), X, y, bias, formula, tol, time_limit)


def _homogeneous(
    kernel: Callable[[np.ndarray], np.ndarray], X, y, bias: bool, formula: str, tol: float, time_limit: float | None
) -> KernelSolution:
    """For kernels with k(a x, b x') = a b k(x, x'), positive by their form: solved at unit size, because squares of huge inputs overflow.

    formula : of a soft margin with a cost C, for samples that are not separated.
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    tol = check_number("tol", tol, above=0, below=1)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "A kernel problem")
    contradictions = Contradictions.among(data, bias=bias)
    if contradictions.exact and contradictions.weights is not None:  # a proof at once, where a kernel of many samples takes minutes
        found = _solution(0.0, 0.0, Status.NOT_SEPARABLE, contradictions.weights, data.y, started)
    else:
        found = _hard_margin(kernel(data.Z / data.size), data.y, tol, started, deadline, contradictions.weights)
    found = replace(
        found,
        margin=found.margin * data.size,
        upper_bound=found.upper_bound * data.size,
        coefficients=found.coefficients / data.size,
    )
    if found.margin > 0:
        return found
    # k(x, x) is a multiple of |x|^2. It is taken sample by sample, because the whole kernel may not be there.
    sizes = [float(kernel(z[None])[0, 0]) for z in data.Z[:_AVERAGED] / data.size]
    C = recommended_cost(float(np.mean(sizes)) * data.size * data.size)
    return _explained(found, contradictions, formula.format(C=C))


def _explained(found: KernelSolution, contradictions: Contradictions, soft: str) -> KernelSolution:
    """With a note for a person; of a search that was stopped only where samples contradict each other."""
    proof = found.dual * (found.status is Status.NOT_SEPARABLE)
    return replace(found, note=contradictions.note(proof, f"For a soft margin: {soft}."))


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


def _hard_margin(
    K: np.ndarray, y: np.ndarray, tol: float, started: float, deadline: Deadline, contradiction: np.ndarray | None
) -> KernelSolution:
    """contradiction : weights of samples that are known to contradict each other; better than what an interior point comes to."""
    Q, scale = _labelled(K, y)
    if scale == 0:
        return _solution(0.0, 0.0, Status.NOT_SEPARABLE, np.full(len(y), 1 / len(y)), y, started)
    margin, upper, dual = _judged(Q, _least_norm(Q, deadline.at) if contradiction is None else contradiction, tol)
    if margin > 0 and upper - margin <= tol * upper:
        status = Status.OPTIMAL
    elif margin <= 0 and upper <= _ZERO:
        status, margin = Status.NOT_SEPARABLE, 0.0
    else:
        status = Status.TIME_LIMIT if deadline.passed else Status.STALLED
    unit = float(np.sqrt(scale))
    return _solution(margin * unit, upper * unit, status, dual, y, started)


def _box_program(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """Proposed minimizer of p'Qp / 2 - sum p over 0 <= p <= cap, in units of the cap."""
    n = len(Q)
    A = sparse.vstack([sparse.eye(n), -sparse.eye(n)])
    b = np.concatenate([np.ones(n), np.zeros(n)])
    x, _ = minimize(-np.ones(n), A, b, [clarabel.NonnegativeConeT(2 * n)], quadratic=cap * Q, tol=1e-10, deadline=deadline)
    return cap * x


def _hard_multipliers(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """The same where no hinge loss is worth its cost: the multipliers of the hard margin are below the cap then."""
    hard = _least_norm(Q, deadline)
    return hard * hard.sum() / max(float(hard @ Q @ hard), 1e-300)


def _factored_program(Q: np.ndarray, cap: float, deadline: float) -> np.ndarray:
    """The same with p = cap q, Q = F F' and v = sqrt(cap) F'q: min |v|^2 / 2 - sum q over 0 <= q <= 1 keeps its scaling for every cap.

    Its equations are dense, so that it is some 30 times slower than `_box_program`.
    """
    n = len(Q)
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
    x, _ = minimize(cost, A, b, cones, quadratic=quadratic, tol=1e-10, deadline=deadline)
    return cap * x[rank:]


def _least_norm(Q: np.ndarray, deadline: float) -> np.ndarray:
    """Proposed minimizer of p'Qp over probability weights."""
    n = len(Q)
    A = sparse.vstack([np.ones((1, n)), -sparse.eye(n)], format="csc")
    b = np.append(1.0, np.zeros(n))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    x, _ = minimize(np.zeros(n), A, b, cones, quadratic=Q, tol=1e-12, deadline=deadline)
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

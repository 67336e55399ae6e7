"""Hard max margin in a reproducing kernel space, without an intercept."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import clarabel
import numpy as np
from scipy import sparse

from ..core.arguments import check_flag, check_number
from ..core.cone_program import minimize
from ..core.deadline import Deadline
from ..core.matrices import binary_data, kernel_values, warn_of_size
from ..core.records import short_repr
from ..errors import DataError
from ..kernels import arc_cosine, ntk
from ..result import Solution, Status
from .contradictions import Contradictions, recommended_cost

_ZERO = 1e-5
"""A bound below this, relative to the largest feature, is 0 to the precision of float64: its square
is what is known to 1e-15 n.
"""
_NEGATIVE = 1e-9
_AVERAGED = 1000
"""So many samples tell the scale of a kernel to a digit."""


@dataclass(frozen=True, kw_only=True)
class KernelSolution(Solution):
    """f = sum_n coefficients_n k(x_n, .), of norm 1, with the largest min_n y_n f(x_n);
    coefficients = y * dual / upper_bound.
    """

    coefficients: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values of f at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def kernel_max_margin(
    K, y, *, tol: float = 1e-6, time_limit: float | None = None
) -> KernelSolution:
    """max over ||f|| <= 1 in the space of kernel K of min_n y_n f(x_n): a support vector machine
    without intercept.

    Its dual is the point of smallest norm in the hull of the labelled samples: min over probability
    weights p of sqrt(p' (yy' * K) p), which is also the proved upper bound.

    Parameters
    ----------
    K : (n, n), symmetric positive semidefinite.
    y : (n,) labels {-1, +1} or {0, 1}.
    tol : relative gap between margin and upper bound up to which the status is OPTIMAL.
    time_limit : seconds, after which the best bracket so far is returned; the step that has begun
        is finished, about a second for 1,500 samples.

    Returns
    -------
    A `KernelSolution`. Where nothing separates the samples, its `note` names those that contradict
    each other.

    Raises
    ------
    DataError : other shapes, NaN, or a kernel with a clearly negative eigenvalue.
    ArgumentError : the other arguments.

    Examples
    --------
    >>> from netmargin.solvers import kernel_max_margin
    >>> round(kernel_max_margin([[1.0, 0.0], [0.0, 1.0]], [1, -1]).margin, 9)             # 1 / sqrt(2)
    0.707106781
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    tol = check_number("tol", tol, above=0, below=1)
    K, y = checked_kernel(K, y)
    contradictions = Contradictions.in_kernel(K, y)
    found = _hard_margin(K, y, tol, started, deadline, contradictions.weights)
    if found.margin > 0:
        return found
    C = recommended_cost(float(np.diag(K).mean()))
    return _explained(found, contradictions, f"kernel_soft_margin(K, y, C={C:g})")


def f2_max_margin(
    X, y, *, bias: bool = True, tol: float = 1e-6, time_limit: float | None = None
) -> KernelSolution:
    """The largest margin in the unit ball of F_2, that of nets whose directions are fixed and
    uniform on the sphere.

    X : (n, d).
    bias : whether the nets have one; the other arguments, the `note` and the errors as for
        `kernel_max_margin`.

    Source: Chizat and Bach 2020, (5), with the closed-form kernel `kernels.arc_cosine`.
    """
    bias = check_flag("bias", bias)
    formula = f"kernel_soft_margin(kernels.arc_cosine(X, bias={bias}), y, C={{C:g}})"
    return _homogeneous(lambda Z: arc_cosine(Z, bias=False), X, y, bias, formula, tol, time_limit)


def ntk_max_margin(
    X,
    y,
    *,
    r_w: float = 1.0,
    r_u: float = 1.0,
    bias: bool = False,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> KernelSolution:
    """The largest margin in the unit ball of the tangent kernel space `kernels.ntk` (Wei et al.
    2019, Section 2).

    r_w, r_u : initial scales of the second and the first layer, finite; the other arguments, the
        `note` and the errors as for `f2_max_margin`.
    """
    bias, r_w, r_u = check_flag("bias", bias), check_number("r_w", r_w), check_number("r_u", r_u)
    formula = (
        f"kernel_soft_margin(kernels.ntk(X, r_w={r_w:g}, r_u={r_u:g}, bias={bias}), y, C={{C:g}})"
    )
    return _homogeneous(lambda Z: ntk(Z, r_w=r_w, r_u=r_u), X, y, bias, formula, tol, time_limit)


def _homogeneous(
    kernel: Callable[[np.ndarray], np.ndarray],
    X,
    y,
    bias: bool,
    formula: str,
    tol: float,
    time_limit: float | None,
) -> KernelSolution:
    """For kernels with k(a x, b x') = a b k(x, x'), positive by their form: solved at unit size,
    because squares of huge inputs overflow.

    formula : of a soft margin with a cost C, for samples that are not separated.
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    tol = check_number("tol", tol, above=0, below=1)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "A kernel problem")
    contradictions = Contradictions.among(data, bias=bias)
    if (
        contradictions.exact and contradictions.weights is not None
    ):  # a proof at once, where a kernel of many samples takes minutes
        found = _solution(0.0, 0.0, Status.NOT_SEPARABLE, contradictions.weights, data.y, started)
    else:
        found = _hard_margin(
            kernel(data.Z / data.size), data.y, tol, started, deadline, contradictions.weights
        )
    found = replace(
        found,
        margin=found.margin * data.size,
        upper_bound=found.upper_bound * data.size,
        coefficients=found.coefficients / data.size,
    )
    if found.margin > 0:
        return found
    # k(x, x) is a multiple of |x|^2. It is taken sample by sample, because the whole kernel may not
    # be there.
    sizes = [float(kernel(z[None])[0, 0]) for z in data.Z[:_AVERAGED] / data.size]
    C = recommended_cost(float(np.mean(sizes)) * data.size * data.size)
    return _explained(found, contradictions, formula.format(C=C))


def _explained(found: KernelSolution, contradictions: Contradictions, soft: str) -> KernelSolution:
    """With a note for a person; of a search that was stopped only where samples contradict each
    other.
    """
    proof = found.dual * (found.status is Status.NOT_SEPARABLE)
    return replace(found, note=contradictions.note(proof, f"For a soft margin: {soft}."))


def checked_kernel(K, y) -> tuple[np.ndarray, np.ndarray]:
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
            f"K is not positive semidefinite (smallest eigenvalue {smallest * scale:.3g}). Compute"
            " it in float64, or add that to its diagonal."
        )
    return K, data.y


def labelled_kernel(K: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """yy' * K / scale, and scale, the largest entry of K."""
    scale = float(np.abs(K).max())
    return y[:, None] * (K / (scale or 1.0)) * y[None, :], scale


def _hard_margin(
    K: np.ndarray,
    y: np.ndarray,
    tol: float,
    started: float,
    deadline: Deadline,
    contradiction: np.ndarray | None,
) -> KernelSolution:
    """contradiction : weights of samples that are known to contradict each other; better than what
    an interior point comes to.
    """
    Q, scale = labelled_kernel(K, y)
    if scale == 0:
        return _solution(0.0, 0.0, Status.NOT_SEPARABLE, np.full(len(y), 1 / len(y)), y, started)
    margin, upper, dual = _judged(
        Q, least_norm(Q, deadline.at) if contradiction is None else contradiction, tol
    )
    if margin > 0 and upper - margin <= tol * upper:
        status = Status.OPTIMAL
    elif margin <= 0 and upper <= _ZERO:
        status, margin = Status.NOT_SEPARABLE, 0.0
    else:
        status = Status.TIME_LIMIT if deadline.passed else Status.STALLED
    unit = float(np.sqrt(scale))
    return _solution(margin * unit, upper * unit, status, dual, y, started)


def least_norm(Q: np.ndarray, deadline: float) -> np.ndarray:
    """Proposed minimizer of p'Qp over probability weights."""
    n = len(Q)
    A = sparse.vstack([np.ones((1, n)), -sparse.eye(n)], format="csc")
    b = np.append(1.0, np.zeros(n))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    x, _ = minimize(np.zeros(n), A, b, cones, quadratic=Q, tol=1e-12, deadline=deadline)
    p = np.maximum(x, 0.0)
    return p if p.sum() > 0 else np.full(n, 1 / n)


def _judged(Q: np.ndarray, proposed: np.ndarray, tol: float) -> tuple[float, float, np.ndarray]:
    """Margin, upper bound, and the dual weights without the dust that an interior point leaves on
    every sample.

    Weights below a threshold are dropped, the largest threshold first, as long as the gap stays
    within a tenth of `tol`. Squares of norms are known to a few n machine precisions; margin and
    bound are taken on the safe sides of that.
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

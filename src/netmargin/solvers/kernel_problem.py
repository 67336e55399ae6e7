"""The kernel matrix of hard and soft margin problems, checked, the least norm in its space, and
what weights of the samples prove.
"""

from collections.abc import Callable

import clarabel
import numpy as np
from scipy import sparse

from ..core.cone_program import minimize
from ..core.matrices import binary_data, warn_of_size
from ..errors import DataError

_NEGATIVE_EIGENVALUE = 1e-9
"""Negative eigenvalues up to this, per sample and relative to the largest entry, pass as rounding:
float64 leaves some 1e-15, while the errors of float32, some 1e-7, are to be refused.
"""
_SYMMETRY = 1e-9
"""Relative differences of K and its transpose up to this pass as rounding, for the same reason."""
_ABSOLUTE_SYMMETRY = 1e-12
"""The same for entries near 0, relative to the largest entry."""
DUST = (1e-4, 1e-6, 1e-8, 1e-10, 0.0)
"""Dual weights below these parts of the largest are dropped if the gap allows it, the largest part
first: an interior point leaves dust on every sample, and a support vector should be one.
"""


def validate_kernel(K, y) -> tuple[np.ndarray, np.ndarray]:
    """Check that K is a kernel matrix (n, n) with labels y (n,); both as float64, y in {-1, +1}.

    Raises
    ------
    DataError
        For other shapes, NaN, an asymmetric matrix or a clearly negative eigenvalue.
    """
    data = binary_data(K, y, bias=False)
    K, n = data.Z, len(data)
    warn_of_size(n, "A kernel problem")
    if K.shape != (n, n) or not np.allclose(
        K, K.T, rtol=_SYMMETRY, atol=_ABSOLUTE_SYMMETRY * np.abs(K).max()
    ):
        raise DataError(f"K must be a symmetric matrix of shape ({n}, {n}); got shape {K.shape}")
    scale = float(np.abs(K).max()) or 1.0
    smallest = float(np.linalg.eigvalsh(K / scale)[0])
    if smallest < -_NEGATIVE_EIGENVALUE * n:
        raise DataError(
            f"K is not positive semidefinite (smallest eigenvalue {smallest * scale:.3g}). Compute"
            " it in float64, or add that to its diagonal."
        )
    return K, data.y


def label_kernel(K: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """The labelled kernel yy' * K / scale, and scale, the largest entry of K in size."""
    scale = float(np.abs(K).max())
    return y[:, None] * (K / (scale or 1.0)) * y[None, :], scale


def minimize_norm(Q: np.ndarray, deadline: float) -> np.ndarray:
    """The weights p, >= 0 with sum 1, that minimize p'Qp, to the accuracy of an interior point."""
    n = len(Q)
    A = sparse.vstack([np.ones((1, n)), -sparse.eye(n)], format="csc")
    b = np.append(1.0, np.zeros(n))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    x, _ = minimize(np.zeros(n), A, b, cones, quadratic=Q, tol=1e-12, deadline=deadline)
    p = np.maximum(x, 0.0)
    return p if p.sum() > 0 else np.full(n, 1 / n)


def bracket_margin(
    Q: np.ndarray, proposed: np.ndarray, tol: float
) -> tuple[float, float, np.ndarray]:
    """Recompute margin and upper bound of dual weights in float64, without the dust that an
    interior point leaves on every sample.

    Weights below a threshold are dropped, the largest threshold first, as long as the gap stays
    within a tenth of `tol`. Squares of norms are known to a few n machine precisions; margin and
    bound are taken on the safe sides of that.
    """
    rounding = 4 * (len(Q) + 4) * float(np.finfo(float).eps)
    for threshold in DUST:
        dual = np.where(proposed > threshold * proposed.max(), proposed, 0.0)
        dual = dual / dual.sum()
        outputs = Q @ dual
        upper = float(np.sqrt(max(dual @ outputs, 0.0) + rounding))
        margin = (float(outputs.min()) - rounding) / upper
        if upper - margin <= 0.1 * tol * upper:
            break
    return margin, upper, dual


def bound_by_shortest(
    kernel: Callable[[np.ndarray], np.ndarray], Z: np.ndarray
) -> tuple[float, np.ndarray]:
    """Bound every margin by the shortest of the samples Z (n, D) alone, without their kernel.

    |f(x)| <= sqrt(k(x, x)) where ||f|| <= 1, and k(x, x) is a multiple of |x|^2. Returns the bound
    and the weights (n,) that prove it, all on that sample.
    """
    shortest = int(np.argmin((Z**2).sum(1)))
    square = float(kernel(Z[shortest][None])[0, 0])
    # On the safe side of a few roundings, as in `bracket_margin`.
    upper = float(np.sqrt(square * (1 + 20 * np.finfo(float).eps)))
    return upper, np.eye(1, len(Z), shortest)[0]

"""Newton's method on the samples between their bounds, where steps of two are slow."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

_SAMPLES = 3000
"""Samples up to which it is tried: a Cholesky factorization of 0.3 s, 70 MB."""
_RIDGE = 1e-13
"""Added to the diagonal, relative to it, as kernels may be singular; the next step mends it."""


def take_newton_step(
    K: np.ndarray, y: np.ndarray, a: np.ndarray, g: np.ndarray, caps: np.ndarray
) -> bool:
    """Solve y_n f(x_n) = 1 for the samples with 0 < a < caps, and go there or to the first bound.

    K (m, m) is the kernel of the samples; `a` (m,) and `g` (m,), the weights and 1 - y_n f(x_n),
    are changed in place. Returns whether a step was taken.
    """
    free = np.flatnonzero((a > 0) & (a < caps))
    if not 0 < len(free) <= _SAMPLES:
        return False
    inner = K[np.ix_(free, free)] * np.outer(y[free], y[free])
    inner[np.diag_indices_from(inner)] *= 1 + _RIDGE
    try:
        factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    step = cho_solve(factor, g[free], check_finite=False)
    bounds = np.where(step < 0, 0.0, caps[free])
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step == 0, np.inf, (bounds - a[free]) / step)
    first = int(np.argmin(room))
    before = a[free].copy()
    a[free] = np.clip(before + min(1.0, room[first]) * step, 0.0, caps[free])
    if room[first] <= 1:  # to the last digit, so that the sample counts as one at its bound
        a[free[first]] = bounds[first]
    g -= y * (K[:, free] @ (y[free] * (a[free] - before)).astype(K.dtype))
    return True

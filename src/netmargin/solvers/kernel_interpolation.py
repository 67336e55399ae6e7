"""The function of least norm in F_2 through given points, and what it proves."""

from collections.abc import Iterator

import numpy as np

from ..core.matrices import EPS, split_lengths
from ..core.memory import require_memory
from ..kernels import arc_cosine

GOOD, _CORRECTIONS = 1e-9, 3
"""Residuals, relative to the largest |y|, that are not corrected, and steps that gain digits."""
_EXTENDED = 500
"""Samples up to which a kernel function is judged in the longest floats: .6 s in 10 dimensions."""

_REMEDY = "Take fewer samples, or sklearn.linear_model.Ridge on kernels.random_features(X, 1000)."


def fit_in_kernel(
    Z: np.ndarray, y: np.ndarray
) -> Iterator[tuple[np.ndarray, float, float, float, float]]:
    """Coefficients (n,), ever better ones, with their norm, proved bounds of the least norm through
    the points from below and above, and the largest residual.

    What is missed, r, is made up for by a function of norm sqrt(r'K^-1 r), so that the least norm
    is at most the norm plus |r| over the root of the smallest eigenvalue.
    """
    n, D = Z.shape
    # A kernel, the eigenvectors, and a copy and two buffers of that size for LAPACK.
    require_memory(5 * 8 * n * n, f"The decomposition of a kernel of {n:,} samples", _REMEDY)
    eigenvalues, vectors = np.linalg.eigh(arc_cosine(Z, bias=False))
    # The entries are off as `judge_in_kernel` says, and eigenvalues by less than n ulps.
    rounding = EPS * (n * eigenvalues[-1] + (3 * D + 24) / D * np.square(Z).sum())
    smallest = max(float(eigenvalues[0] - rounding), 0.0)
    # By the eigenvalues that are above rounding, then by all that may be.
    for part in n * EPS, EPS / 8:
        kept = eigenvalues > part * eigenvalues[-1]
        coefficients, missed = np.zeros(n), y
        for _ in range(_CORRECTIONS):
            step = vectors[:, kept] @ (vectors[:, kept].T @ missed / eigenvalues[kept])
            coefficients = coefficients + step
            norm, lower, missed, hidden = judge_in_kernel(Z, y, coefficients)
            lost = float(np.linalg.norm(np.abs(missed) + hidden))
            upper = norm + lost / smallest**0.5 if smallest > 0 else np.inf
            yield (
                coefficients,
                norm,
                lower,
                upper * (1 + 4 * EPS),
                float((np.abs(missed) + hidden).max()),
            )


def judge_in_kernel(
    Z: np.ndarray, y: np.ndarray, coefficients: np.ndarray
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """The norm of sum_n coefficients_n k(z_n, .), rounded up, a proved lower bound of the least
    norm through the points, what the function misses there, and by how much that may be off.

    For all weights c, the least norm is at least c . y / sqrt(c'K c). With |K_ij| <= a_i a_j /
    (2 D), a_i = |z_i|, and S = sum a_j |c_j|, the sums for c'K c are off by at most (n + 4) eps
    S^2 / D. An entry itself is off by at most (3 D + 24) eps a_i a_j / D: unit vectors are off by
    D / 2 + 2 ulps, so cosines by 2 D + 4, and the angle from |u - v| and |u + v| by 6 D + 24; the
    entry is a_i a_j h / (2 pi D), where h = sin t + (pi - t) cos t has slopes of at most 1.82 in
    the angle and pi in the cosine, and some 30 ulps are lost in its parts.
    """
    n, D = Z.shape
    dtype = np.longdouble if n <= _EXTENDED else np.float64
    targets: np.ndarray = y.astype(dtype)
    c: np.ndarray = coefficients.astype(dtype)
    lengths, units = split_lengths(Z.astype(dtype))
    if n <= _EXTENDED:
        weights = lengths * c
        outputs = np.array([_measure_entries(units, unit) @ weights for unit in units])
        outputs *= lengths / D
    else:
        rows = np.arange(0, n, _EXTENDED)
        outputs = np.concatenate(
            [arc_cosine(Z[i : i + _EXTENDED], Z, bias=False) @ c for i in rows]
        )
    eps, square, total = np.finfo(dtype).eps, c.dot(outputs), lengths @ np.abs(c)
    most = square + (n + 3 * D + 32) * eps * total**2 / D
    value = c @ targets - (n + 4) * eps * (np.abs(c) @ np.abs(targets))
    lower = float(value / np.sqrt(most)) * (1 - 4 * EPS) if value > 0 else 0.0
    hidden = (n + 3 * D + 32) * eps * lengths * total / D + EPS * np.abs(y)
    norm = float(np.sqrt(max(most, 0.0))) * (1 + 4 * EPS)
    return norm, lower, (targets - outputs).astype(float), hidden.astype(float)


def _measure_entries(units: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """(sin t + (pi - t) cos t) / (2 pi), t the angles of unit rows and a unit vector."""
    apart = [np.sqrt(np.square(units + sign * unit).sum(1)) for sign in (-1, 1)]
    angle, pi = 2 * np.arctan2(*apart), 4 * np.arctan(unit.dtype.type(1))
    return (np.sin(angle) + (pi - angle) * np.cos(angle)) / (2 * pi)

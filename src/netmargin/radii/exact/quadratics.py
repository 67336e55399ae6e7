"""Proved bounds of matrices and quadratics: every factor that LAPACK returns is only a proposal.

That a sum of n products, in any order and with or without fused multiplication, is off by at most
`share(n)` of the sum of the absolute products is all that is used of floating point here: factors
are multiplied out again, and what is left is bounded.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...core.matrices import Floats
from ..products import share

_SHIFTS = (1e-8, 1e-10, 1e-12)
"""Shares of a unit diagonal that are tried as lower bounds of the eigenvalues, the largest first:
rounding hides 1e-10 in some 500 rows, and 1e-12 in some 50.
"""


def bound_lengths(rows: Floats) -> Floats:
    """Upper bounds of the Euclidean norms over the last axis."""
    # Rescaled first, as squares of 1e-200 would vanish.
    largest: Floats = np.abs(rows).max(-1, initial=0.0)
    squares: Floats = np.square(rows / np.where(largest > 0, largest, 1.0)[..., None]).sum(-1)
    return np.sqrt(squares) * largest * (1 + share(rows.shape[-1]))


def bound_length(vector: np.ndarray) -> float:
    """An upper bound of the Euclidean norm of all entries."""
    return float(bound_lengths(vector.reshape(-1)))


@dataclass(frozen=True)
class Eigenbasis:
    """A symmetric matrix A as V diag(values) V' + E, with V'V = I + O."""

    vectors: np.ndarray  # V, (n, n)
    values: np.ndarray  # (n,), in ascending order
    residual: float  # an upper bound of the norm of E
    defect: float  # an upper bound of the norm of O


def diagonalize(matrix: np.ndarray) -> Eigenbasis:
    """Diagonalize a symmetric matrix, and bound how far the factors are from doing so."""
    n = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    scaled = vectors * values
    size = bound_length(vectors)
    residual = bound_length(matrix - scaled @ vectors.T) * (1 + share(1))
    residual += share(n) * (bound_length(scaled) * size + bound_length(matrix))
    defect = bound_length(vectors.T @ vectors - np.eye(n)) * (1 + share(1)) + share(n) * size**2
    return Eigenbasis(vectors, values, residual, defect)


def bound_norm(matrix: np.ndarray) -> float:
    """An upper bound of the largest singular value."""
    largest = float(np.abs(matrix).max(initial=0.0))
    if largest == 0:
        return 0.0
    unit = matrix / largest
    unit = unit if len(unit) <= unit.shape[1] else unit.T
    basis = diagonalize(unit @ unit.T)
    square = max(float(basis.values[-1]), 0.0) * (1 + basis.defect) + basis.residual
    square += share(unit.shape[1]) * bound_length(unit) ** 2
    return largest * math.sqrt(square) * (1 + share(1))


def bound_least_eigenvalue(matrix: np.ndarray) -> float:
    """A lower bound of the least eigenvalue, or 0; the diagonal should be near 1."""
    n = len(matrix)
    for shift in _SHIFTS:
        shifted = matrix.copy()
        shifted[np.diag_indices(n)] -= shift
        try:
            factor = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            continue
        # matrix = shift I + R R' + rest, whatever R is.
        rest = matrix - factor @ factor.T
        rest[np.diag_indices(n)] -= shift
        lost = bound_length(rest) * (1 + share(1))
        lost += share(n) * (bound_length(factor) ** 2 + bound_length(matrix))
        if shift > 2 * lost:
            return shift - lost
    return 0.0


def bound_minimum(matrix: np.ndarray, linear: np.ndarray) -> float:
    """A lower bound of the minimum of v'Sv/2 + q.v; -infinity where S > 0 is not proved."""
    diagonal = np.diag(matrix)
    if not (np.isfinite(matrix).all() and np.isfinite(linear).all() and (diagonal > 0).all()):
        return -math.inf
    # Powers of two, which scale without rounding.
    scales = 2.0 ** np.round(-0.5 * np.log2(diagonal))
    matrix, linear = matrix * scales * scales[:, None], linear * scales
    least = bound_least_eigenvalue(matrix)
    if least == 0:
        return -math.inf
    factor = cho_factor(matrix, lower=True, check_finite=False)
    v = -cho_solve(factor, linear, check_finite=False)
    v -= cho_solve(factor, matrix @ v + linear, check_finite=False)  # refined once
    # The value at v is q.v/2 + r.v/2 with r = Sv + q; the minimum is less by r.r/(2 least) at most.
    slack = share(len(v) + 1) * (np.abs(matrix) @ np.abs(v) + np.abs(linear))
    rest = np.abs(matrix @ v + linear) * (1 + share(1)) + 2 * slack
    length = bound_length(rest)  # whose square may overflow, which must not raise
    lost = rest @ np.abs(v) / 2 + length * length / (2 * least)
    lost += share(len(v)) * (np.abs(linear) @ np.abs(v))
    lower = float(linear @ v) / 2 - float(lost) * (1 + share(len(v)))
    return lower if math.isfinite(lower) else -math.inf

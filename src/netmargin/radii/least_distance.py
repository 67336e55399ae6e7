"""The nearest point of half-spaces, by nonnegative least squares."""

import numpy as np
from scipy.optimize import nnls

_EMPTY = 1e-10
"""Residual below which half-spaces count as without a common point: it is (1 + distance^2)^-.5."""


def find_nearest_point(rows: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Find the multipliers m >= 0, and the nearest point u = m . rows of rows . u >= least.

    Without such a point, None, m . rows is about 0, and m . least positive; where the method did
    not converge m is 0. Distances should be of order 1.

    Source: Lawson and Hanson 1974, Section 23.4.
    """
    # Rows of length 1 all count alike.
    lengths = np.linalg.norm(rows, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    stacked = np.vstack([rows.T, least]) / lengths
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    # Powers of two, which scale without rounding.
    sizes = np.exp2(np.floor(np.log2(np.maximum(np.linalg.norm(stacked, axis=0), 1e-300))))
    try:
        dual = nnls(stacked / sizes, target, maxiter=10 * len(least))[0] / sizes
    except RuntimeError:
        return np.zeros(len(least)), None
    rest = stacked @ dual - target
    if not (np.linalg.norm(rest) > _EMPTY and rest[-1] < 0):
        return dual / lengths, None
    return dual / lengths / -rest[-1], rest[:-1] / -rest[-1]

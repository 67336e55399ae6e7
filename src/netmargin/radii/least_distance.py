"""The nearest point of half-spaces, by nonnegative least squares."""

import numpy as np
from scipy.optimize import nnls


def solve_least_distance(rows: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve the dual of the least distance with rows u >= least: its solution, and the residual r.

    Rows have length 1. The nearest point is r[:-1] / -r[-1]; r vanishes where there is none, and is
    0 where the method did not converge, with a solution of 0.

    Source: Lawson and Hanson 1974, Section 23.4.
    """
    stacked = np.vstack([rows.T, least])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    # Powers of two, which scale without rounding.
    sizes = np.exp2(np.floor(np.log2(np.maximum(np.linalg.norm(stacked, axis=0), 1e-300))))
    try:
        dual = nnls(stacked / sizes, target, maxiter=10 * len(least))[0] / sizes
    except RuntimeError:
        return np.zeros(len(least)), np.zeros(len(target))
    return dual, stacked @ dual - target

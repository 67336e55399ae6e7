"""Convex quadratic programs over cones, by Clarabel. Its answers are candidates: callers recompute
what they prove in float64.
"""

import math
import time

import clarabel
import numpy as np
from scipy import sparse


def minimize(
    cost: np.ndarray,
    A,
    b: np.ndarray,
    cones: list,
    *,
    quadratic=None,
    tol: float,
    deadline: float = math.inf,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimize x' quadratic x / 2 + cost . x subject to b - A x in a product of cones.

    Parameters
    ----------
    cost : ndarray, shape (n,)
        The linear part of the objective.
    A : ndarray or sparse matrix, shape (m, n)
        The matrix of the constraints.
    b : ndarray, shape (m,)
        Their right-hand side.
    cones : list
        Clarabel's cones, in the order of the rows of A.
    quadratic : ndarray or sparse matrix, shape (n, n), or None, default None
        The symmetric matrix of the quadratic part; none by default.
    tol : float
        Tolerance of the gap, absolute and relative, and of feasibility.
    deadline : float, default infinity
        A moment of `time.monotonic`; the iterates there are returned, an iteration late at most.

    Returns
    -------
    tuple of two ndarrays, float64
        The point x, shape (n,), and the multipliers z, shape (m,); 0 where the solver has none.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    if deadline < math.inf:
        settings.time_limit = max(deadline - time.monotonic(), 0.0)
    size = len(cost)
    P = (
        sparse.csc_matrix((size, size))
        if quadratic is None
        # Given a sparse array, as scipy 1.18 warns of matrices here.
        else sparse.csc_matrix(sparse.triu(sparse.csc_array(quadratic)))
    )
    found = clarabel.DefaultSolver(P, cost, sparse.csc_matrix(A), b, cones, settings).solve()
    # A solver that failed may answer NaN, which 0 replaces: callers validate every candidate.
    return np.nan_to_num(np.array(found.x)), np.nan_to_num(np.array(found.z))

"""Convex quadratic programs over cones, by Clarabel. Its answers are proposals: callers judge them
in float64.
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
    """x and multipliers z of min x' quadratic x / 2 + cost . x subject to b - A x in the product of
    the cones.

    deadline : of `time.monotonic`; the iterates there are returned, an iteration late at most.
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
        else sparse.triu(quadratic, format="csc")
    )
    found = clarabel.DefaultSolver(P, cost, sparse.csc_matrix(A), b, cones, settings).solve()
    return np.nan_to_num(np.array(found.x)), np.nan_to_num(np.array(found.z))

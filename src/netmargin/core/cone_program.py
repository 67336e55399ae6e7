"""Convex quadratic programs over cones, by Clarabel: candidates, which callers prove in float64."""

import math
import threading
import time
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from .interrupts import run_apart


def minimize(
    cost: np.ndarray,
    A: Any,
    b: np.ndarray,
    cones: list[Any],
    *,
    quadratic: Any = None,
    tol: float,
    deadline: float = math.inf,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimize x' quadratic x / 2 + cost . x subject to b - A x in a product of Clarabel's cones.

    Returns x (n,) and the multipliers (m,), 0 where there are none; at the `deadline` the iterates.
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
    solver = clarabel.DefaultSolver(P, cost, sparse.csc_matrix(A), b, cones, settings)
    stopped = threading.Event()
    if hasattr(solver, "set_termination_callback"):  # from Clarabel 0.11 on
        solver.set_termination_callback(lambda info: stopped.is_set())
    found = run_apart(solver.solve, stopped.set)
    # A solver that failed may answer NaN, which 0 replaces: callers validate every candidate.
    return np.nan_to_num(np.array(found.x)), np.nan_to_num(np.array(found.z))

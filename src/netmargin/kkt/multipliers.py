"""Nonnegative multipliers: min p'Gp / 2 - c'p over 0 <= p <= upper, G a Gram matrix.

An interior-point solver finds a candidate, to about 1e-6; an active-set method (Lawson and Hanson
1974, with blocks of entering variables) goes on from there to the minimizer up to rounding, and
never makes it worse.
"""

from typing import Any

import clarabel
import numpy as np
from scipy import linalg, sparse

from ..core.cone_program import minimize

_MOST_STEPS = 1000
"""Steps of the active-set method; from a good candidate a few dozen do, and every step is a valid
point, so that this only bounds the time of degenerate cases.
"""
_BOUND_TOLERANCE = 1e-7
"""Multipliers of the candidate nearer to a bound than this, relatively, start at it: the cone
solver leaves them inside by about its accuracy.
"""
_GAIN_TOLERANCE = 1e-13
"""Slopes below this, for vectors of length 1 and slopes of order 1, are rounding: none enters."""
_SINGULAR_PIVOT = 1e-13
"""A squared pivot of Cholesky below this is rounding, for vectors of length 1: the matrix is
singular then, and the smallest ridge that helps is added.
"""
_REFINEMENTS = 5
"""Steps of iterative refinement that take the ridge out again; each gains several digits."""
_TIE = 1e-9
"""Multipliers that reach a bound within this relative distance of the first one stay at theirs."""


def multipliers(
    G: np.ndarray, c: np.ndarray, upper: np.ndarray | None = None, *, exact: bool = True
) -> np.ndarray:
    """Minimize p'Gp / 2 - c'p over 0 <= p <= upper, G (K, K) singular or not; a minimizer, (K,).

    With G the inner products of vectors h_k and c_k = <b, h_k>, sum p_k h_k is the point of their
    cone nearest to b. `exact` goes on from about 1e-6 to the accuracy of float64.
    """
    limit = upper = np.full(len(c), np.inf) if upper is None else upper
    size = np.sqrt(np.maximum(np.diag(G), 0.0))
    used = np.flatnonzero((size > 0) & (upper > 0))
    p = np.zeros(len(c))
    if not len(used):
        return p
    # Vectors of length 1 and a largest slope of 1: the tolerances are about rounding then.
    size = size[used]
    G, c, upper = G[np.ix_(used, used)] / np.outer(size, size), c[used] / size, upper[used] * size
    scale = np.abs(c).max()
    if (c <= 0).all():
        return p
    c, upper = c / scale, upper / scale
    found = np.clip(_solve_cone_program(G, c, upper), 0.0, upper)
    p[used] = (_improve(G, c, upper, found) if exact else found) * scale / size
    return p.clip(max=limit)


def _solve_cone_program(G: np.ndarray, c: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Find a candidate by an interior-point method, with multipliers near a bound put at it."""
    n, bounded = len(c), np.flatnonzero(np.isfinite(upper))
    A = sparse.vstack([-sparse.eye(n), sparse.eye(n, format="csr")[bounded]])
    b = np.append(np.zeros(n), upper[bounded])
    p, _ = minimize(-c, A, b, [clarabel.NonnegativeConeT(len(b))], quadratic=G, tol=1e-10)
    raised = np.where(p > upper * (1 - _BOUND_TOLERANCE), upper, p)
    return np.where(p > _BOUND_TOLERANCE * p.max(initial=0.0), raised, 0.0)


def _improve(G: np.ndarray, c: np.ndarray, upper: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Go on from p to the minimizer by an active-set method."""
    free = (p > 0) & (p < upper)
    # A single multiplier at a time would take as many steps as there are constraints.
    block = len(c)
    for _ in range(_MOST_STEPS):
        p, free = _minimize_free(G, c, upper, p, free)
        slope = c - G @ p
        gain = np.where(free, 0.0, np.where(p <= 0, slope, -slope))
        waiting = np.flatnonzero(gain > _GAIN_TOLERANCE)
        if not len(waiting):
            break
        entering = waiting[np.argsort(-gain[waiting], kind="stable")[:block]]
        # A step that does not raise the objective is rounding, or went to a bound at once.
        before = c @ p - 0.5 * p @ (G @ p)
        tried, tried_free = _minimize_free(
            G, c, upper, p, free | np.isin(np.arange(len(c)), entering)
        )
        if c @ tried - 0.5 * tried @ (G @ tried) > before:
            p, free = tried, tried_free
        elif block == 1:
            break
        else:
            block = 1  # of many that enter together some can block all; a single one can move
            continue
        block = min(2 * block, len(c))
    return p


def _minimize_free(G: Any, c: Any, upper: Any, p: Any, free: Any) -> Any:
    """Minimize over the free multipliers; those that reach a bound on the way stay at it."""
    while free.any():
        fixed = ~free
        target = _solve(G[np.ix_(free, free)], c[free] - G[np.ix_(free, fixed)] @ p[fixed])
        now, limit = p[free], upper[free]
        # Where the minimizer over the free ones is out of bounds, go towards it as far as all
        # bounds allow: those reached first are no longer free, and the objective has fallen.
        low, high = target < 0, target > limit
        if not (low.any() or high.any()):
            p = p.copy()
            p[free] = target
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(
                low, now / (now - target), np.where(high, (limit - now) / (target - now), 1.0)
            )
        step = max(float(np.nan_to_num(steps, nan=0.0).min()), 0.0)
        reached = (low | high) & (np.nan_to_num(steps, nan=0.0) <= step * (1 + _TIE))
        p, index = p.copy(), np.flatnonzero(free)
        p[index] = np.clip(now + step * (target - now), 0.0, limit)
        p[index[reached & low]], p[index[reached & high]] = 0.0, limit[reached & high]
        free = free.copy()
        free[index[reached]] = False
    return p, free


def _solve(G: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Solve G p = c; where G is singular, for one solution, by a ridge and its refinement."""
    ridge = 0.0
    while True:
        try:
            factor = linalg.cho_factor(G + ridge * np.eye(len(c)))
            if np.diag(factor[0]).min() ** 2 > _SINGULAR_PIVOT:
                break
        except linalg.LinAlgError:
            pass
        ridge = max(10 * ridge, _SINGULAR_PIVOT)
    # Without a ridge one step of refinement takes off the rounding of the factorization.
    p: np.ndarray = linalg.cho_solve(factor, c)
    for _ in range(1 if ridge == 0 else _REFINEMENTS):
        p = p + linalg.cho_solve(factor, c - G @ p)
    return p

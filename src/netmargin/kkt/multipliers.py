"""Nonnegative multipliers: min p'Gp / 2 - c'p over 0 <= p <= upper, G a Gram matrix.

A cone solver proposes; an active-set method (Lawson and Hanson 1974, with blocks of entering
variables) goes on from there to the minimizer, and never makes it worse.
"""

import clarabel
import numpy as np
from scipy import linalg, sparse

from ..core.cone_program import minimize

_ROUNDS = 1000
_AT_BOUND = 1e-7
_SLACK = 1e-13
_SINGULAR = 1e-13
_REFINEMENTS = 5


def multipliers(
    G: np.ndarray, c: np.ndarray, upper: np.ndarray | None = None, *, exact: bool = True
) -> np.ndarray:
    """The minimizer, shape (K,), as exact as float64 allows; any of them where G is singular.

    With G the inner products of vectors h_k and c_k = <b, h_k> this is the point of their cone
    nearest to b.
    upper : (K,), may be infinite.
    exact : False leaves it at what the cone solver proposes, to about 1e-6.
    """
    limit = upper = np.full(len(c), np.inf) if upper is None else upper
    size = np.sqrt(np.maximum(np.diag(G), 0.0))
    used = np.flatnonzero((size > 0) & (upper > 0))
    p = np.zeros(len(c))
    if not len(used):
        return p
    size = size[used]
    G, c, upper = G[np.ix_(used, used)] / np.outer(size, size), c[used] / size, upper[used] * size
    scale = np.abs(c).max()
    if (c <= 0).all():
        return p
    c, upper = c / scale, upper / scale
    found = np.clip(_proposed(G, c, upper), 0.0, upper)
    p[used] = (_active_set(G, c, upper, found) if exact else found) * scale / size
    return np.minimum(p, limit)


def _proposed(G: np.ndarray, c: np.ndarray, upper: np.ndarray) -> np.ndarray:
    n, bounded = len(c), np.flatnonzero(np.isfinite(upper))
    A = sparse.vstack([-sparse.eye(n), sparse.eye(n, format="csr")[bounded]])
    b = np.append(np.zeros(n), upper[bounded])
    p, _ = minimize(-c, A, b, [clarabel.NonnegativeConeT(len(b))], quadratic=G, tol=1e-10)
    return np.where(
        p > _AT_BOUND * p.max(initial=0.0), np.where(p > upper * (1 - _AT_BOUND), upper, p), 0.0
    )


def _active_set(G: np.ndarray, c: np.ndarray, upper: np.ndarray, p: np.ndarray) -> np.ndarray:
    free = (p > 0) & (p < upper)
    block = len(c)
    for _ in range(_ROUNDS):
        p, free = _minimized(G, c, upper, p, free)
        slope = c - G @ p
        gain = np.where(free, 0.0, np.where(p <= 0, slope, -slope))
        waiting = np.flatnonzero(gain > _SLACK)
        if not len(waiting):
            break
        entering = waiting[np.argsort(-gain[waiting], kind="stable")[:block]]
        before = c @ p - 0.5 * p @ (G @ p)
        tried, tried_free = _minimized(G, c, upper, p, free | np.isin(np.arange(len(c)), entering))
        if c @ tried - 0.5 * tried @ (G @ tried) > before:
            p, free = tried, tried_free
        elif block == 1:
            break
        else:
            block = 1  # of many that enter together, some can block all: one alone can move
            continue
        block = min(2 * block, len(c))
    return p


def _minimized(G, c, upper, p, free):
    """The minimizer over the free multipliers, the others kept; those that reach a bound on the way
    there stay at it.
    """
    while free.any():
        fixed = ~free
        target = _solve(G[np.ix_(free, free)], c[free] - G[np.ix_(free, fixed)] @ p[fixed])
        now, limit = p[free], upper[free]
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
        reached = (low | high) & (np.nan_to_num(steps, nan=0.0) <= step * (1 + 1e-9))
        p, index = p.copy(), np.flatnonzero(free)
        p[index] = np.clip(now + step * (target - now), 0.0, limit)
        p[index[reached & low]], p[index[reached & high]] = 0.0, limit[reached & high]
        free = free.copy()
        free[index[reached]] = False
    return p, free


def _solve(G: np.ndarray, c: np.ndarray) -> np.ndarray:
    """G^-1 c; where G is singular, one of the solutions, by a ridge and iterative refinement."""
    ridge = 0.0
    while True:
        try:
            factor = linalg.cho_factor(G + ridge * np.eye(len(c)))
            if np.diag(factor[0]).min() ** 2 > _SINGULAR:
                break
        except linalg.LinAlgError:
            pass
        ridge = max(10 * ridge, _SINGULAR)
    p = linalg.cho_solve(factor, c)
    for _ in range(1 if ridge == 0 else _REFINEMENTS):
        p = p + linalg.cho_solve(factor, c - G @ p)
    return p

"""l1 problems over finitely many neurons: one linear program for many random instances."""

import numpy as np
from scipy.optimize import linprog

from ...core.matrices import stack_blocks

_SHARP = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""The least that the solver takes: by default optima may be off by 1e-7, small ones by more."""


def least_norms(signed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least |alpha|_1 (B,) with signed alpha >= 1, and alpha (Wei et al. 2018, (B.1))."""
    B, n, k = signed.shape
    # One program for all instances, block by block: a solver's start costs more than its work.
    A = stack_blocks(-np.concatenate([signed, -signed], 2))
    found = linprog(np.ones(2 * k * B), A, -np.ones(B * n), method="highs-ds", options=_SHARP)
    parts = found.x.reshape(B, 2, k)
    return parts.sum((1, 2)), parts[:, 0] - parts[:, 1]


def dual_norms(signed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest sum lambda (B,), lambda >= 0, |lambda signed| <= 1, and lambda (Claim B.3)."""
    B, n, k = signed.shape
    rows = signed.transpose(0, 2, 1)
    A = stack_blocks(np.concatenate([rows, -rows], 1))
    found = linprog(-np.ones(B * n), A, np.ones(2 * k * B), method="highs-ds", options=_SHARP)
    parts = found.x.reshape(B, n)
    return parts.sum(1), parts


def best_margins(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest t (B,) with features w >= t, and w (B, p) of sum 1 at most, w >= 0."""
    B, n, p = features.shape
    rows = np.ones((B, n + 1, p + 1))
    rows[:, :n, :p], rows[:, -1, -1] = -features, 0.0  # t is not among the weights of sum 1
    cost, most = (np.tile(np.append(np.zeros(k), end), B) for k, end in ((p, -1.0), (n, 1.0)))
    found = linprog(cost, stack_blocks(rows), most, method="highs-ds", options=_SHARP)
    parts = found.x.reshape(B, p + 1)
    return parts[:, -1], parts[:, :-1]


def matrix_game(z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The a in the simplex with the largest min_n z_n . a, z (n, m); that value; an upper bound."""
    n, m = z.shape
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-z, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(m), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )
    # The point of the solver may be off the simplex by its tolerance; bounds hold for points on it.
    weights, dual = np.maximum(found.x[:m], 0.0), np.maximum(-found.ineqlin.marginals, 0.0)
    weights /= weights.sum()
    return weights, float((z @ weights).min()), float((dual / dual.sum() @ z).max())

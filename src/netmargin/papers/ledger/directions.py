"""l1 problems over finitely many neurons: one linear program for many random instances."""

import numpy as np
from scipy.optimize import linprog

from ...core.matrices import stack_blocks
from .trial import Trial

BLOCKS = 100
"""The number of instances of a trial: 105 trials examine more than 10,000."""
NEURONS = 24
"""The number of random directions: several times the at most 5 samples, so that few instances lack
full rank and have to be left out.
"""


def draw_signed(trial: Trial) -> np.ndarray:
    """Draw y_n relu(u_j . x_n), (B, n, k), of rank n; n from 1 to 5, in 2 to 4 dimensions."""
    random, n, d = trial.random, 1 + trial.number % 5, 2 + trial.number // 5 % 3
    X, U = random.normal(size=(BLOCKS, n, d)), random.normal(size=(BLOCKS, NEURONS, d))
    U /= np.linalg.norm(U, axis=2, keepdims=True)
    y = random.choice([-1.0, 1.0], (BLOCKS, n, 1))
    signed = y * np.maximum(X @ U.transpose(0, 2, 1), 0)
    # Nearly dependent rows would make the linear programs ill conditioned.
    return signed[np.linalg.svd(signed, compute_uv=False)[:, -1] > 0.05]


def least_norms(signed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least |alpha|_1 (B,) with signed alpha >= 1, and alpha (Wei et al. 2018, (B.1))."""
    B, n, k = signed.shape
    # One program for all instances, block by block: a solver's start costs more than its work.
    A = stack_blocks(-np.concatenate([signed, -signed], 2))
    found = linprog(np.ones(2 * k * B), A_ub=A, b_ub=-np.ones(B * n), method="highs-ds")
    parts = found.x.reshape(B, 2, k)
    return parts.sum((1, 2)), parts[:, 0] - parts[:, 1]


def dual_norms(signed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest sum lambda (B,), lambda >= 0, |lambda signed| <= 1, and lambda (Claim B.3)."""
    B, n, k = signed.shape
    rows = signed.transpose(0, 2, 1)
    A = stack_blocks(np.concatenate([rows, -rows], 1))
    found = linprog(-np.ones(B * n), A_ub=A, b_ub=np.ones(2 * k * B), method="highs-ds")
    parts = found.x.reshape(B, n)
    return parts.sum(1), parts


def best_margins(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest t (B,) with features w >= t, and w (B, p) of sum 1 at most, w >= 0."""
    B, n, p = features.shape
    rows = np.ones((B, n + 1, p + 1))
    rows[:, :n, :p], rows[:, -1, -1] = -features, 0.0  # t is not among the weights of sum 1
    cost, most = (np.tile(np.append(np.zeros(k), end), B) for k, end in ((p, -1.0), (n, 1.0)))
    found = linprog(cost, A_ub=stack_blocks(rows), b_ub=most, method="highs-ds")
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

"""Moves neurons to the exact optimum over given cells of the arrangement, by a cone program."""

import math

import clarabel
import numpy as np
from scipy import sparse

from ...core.cone_program import minimize
from ...core.matrices import stack_blocks
from .master import Constraints

_TOLERANCE = 1e-10
"""As sharp as an interior point gets: the nearer to the optimum, the fewer rounds follow."""


def polish_neurons(
    Z: np.ndarray,
    rows: Constraints,
    active: np.ndarray,
    signs: np.ndarray,
    slope: float = 0.0,
    *,
    walls: np.ndarray | None = None,
    deadline: float = math.inf,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the best neurons in given cells of the arrangement, by a second-order cone program.

    It is max t subject to the rows with f(x_i) = sum_j s_j d_ij <z_i, v_j>, d_ij = 1 on S_j and
    `slope` elsewhere, sum ||v_j|| + slack_cost sum slack <= 1, and v_j in cell j: <z_i, v_j> >= 0
    on S_j and <= 0 elsewhere. On a cell, phi is linear, so this is convex; over all cells it is the
    whole problem.

    `active` (k, n) holds the sets S_j, `signs` (k,) the s_j, `walls` (k, m) the samples whose walls
    are kept, by default all: without some, neurons may leave their cells. Returns candidates for
    the v_j (k, D) and the multipliers of the samples (n,) and of the walls (k m,).
    """
    k, (n, dimension) = len(active), Z.shape
    slacks = n if np.isfinite(rows.slack_cost) else 0
    # Variables: t, then r_1 .. r_k with r_j >= ||v_j||, then the slacks, then v_1 .. v_k.
    first = 1 + k + slacks
    # The labelled outputs as functions of the v_j, shape (n, k, D).
    bent = signs[:, None] * np.where(active, 1.0, slope)
    weighted = (bent * rows.signs[None, :]).T[:, :, None] * Z[:, None, :]
    margins = sparse.hstack([
        rows.target[:, None],
        sparse.csc_matrix((n, k)),
        -sparse.eye(n, slacks),
        -weighted.reshape(n, k * dimension),
    ])  # fmt: skip
    mass = np.zeros((1, first + k * dimension))
    mass[0, 1 : 1 + k] = 1.0
    if slacks:
        mass[0, 1 + k : first] = rows.slack_cost
    nonnegative = -sparse.eye(slacks, first + k * dimension, k=1 + k)
    walls = np.tile(np.arange(n), (k, 1)) if walls is None else walls
    inside = stack_blocks(
        [-np.where(a[w], 1.0, -1.0)[:, None] * Z[w] for a, w in zip(active, walls, strict=True)]
    )
    inside = sparse.hstack([sparse.csc_matrix((walls.size, first)), inside])
    order = [
        index
        for j in range(k)
        for index in (1 + j, *range(first + j * dimension, first + (j + 1) * dimension))
    ]
    norms = -sparse.eye(first + k * dimension, format="csr")[order]
    A = sparse.vstack([margins, mass, nonnegative, inside, norms], format="csc")
    b = np.zeros(A.shape[0])
    b[n] = 1.0
    cost = np.zeros(A.shape[1])
    cost[0] = -1.0
    cones = [
        clarabel.ZeroConeT(n) if rows.equal else clarabel.NonnegativeConeT(n),
        clarabel.NonnegativeConeT(1 + slacks + walls.size),
        *[clarabel.SecondOrderConeT(1 + dimension)] * k,
    ]
    x, multipliers = minimize(cost, A, b, cones, tol=_TOLERANCE, deadline=deadline)
    sides = multipliers[n + 1 + slacks :][: walls.size]
    return x[first:].reshape(k, dimension), multipliers[:n], sides

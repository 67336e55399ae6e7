"""Multipliers of a region where all signs are fixed, from its nearest misclassified point."""

import numpy as np

from ..least_distance import find_nearest_point
from .ball import Ball
from .inequality import LINEAR, Multipliers, Region
from .region_relaxation import write_functionals

_LEAST_MU = 1e-8
"""Least mu, as a share of what makes the ball's term as large as the gap: it costs that share."""
_BEHIND = 1e-10
"""How far behind the boundary points are placed, as a share of what the gap can be in the ball: a
hundred times what nonnegative least squares may be off by.
"""


def solve_leaf(
    ball: Ball, functional: np.ndarray, region: Region
) -> tuple[Multipliers, np.ndarray | None]:
    """Find the multipliers of a region without free units, where the score gap F is affine.

    Let u* be the nearest point of the region's half-spaces H u >= h with F <= 0. Its multipliers
    m >= 0 of the half-spaces and l >= 0 of F <= 0 make |u|^2/2 - m.(H u - h) + l F at least
    |u*|^2/2 for all u. If u* is outside the ball, F >= (|u*|^2 - radius^2)/(2 l) > 0 follows in the
    region. Where no such point is, combinations of the half-spaces without a common point do the
    same. All are proposals: the judge decides.

    Returns them, and u*, (m,), or in the ball a point a little behind it, where F < 0, if there is
    one; None where there is no point with F <= 0.
    """
    # The inputs of all units, and F, as functionals of (1, u / radius).
    inputs, outputs = write_functionals(ball, region)
    units, gap = np.vstack([outputs[:0], *inputs]), functional @ ball.weights[-1] @ outputs
    units[:, 0] += np.concatenate([np.zeros(0), *ball.anchors])
    gap[0] += functional @ ball.scores
    # The half-spaces of units that cannot change in the ball hold in all of it.
    stable = [ball.fix_stable(k) == signs for k, signs in enumerate(region.signs)]
    signs = np.concatenate([np.zeros(0), *region.signs])
    open_ = ~np.concatenate([np.zeros(0, bool), *stable])
    sides = np.vstack([(signs[:, None] * units)[open_], -gap])
    dual, point = find_nearest_point(sides[:, 1:], -sides[:, 0])
    # As large as F can be in the ball.
    reach = float(np.linalg.norm(gap[1:])) + abs(gap[0])
    if point is not None:
        # Half of what is to spare pays for a share of F, which needs some.
        spare = max(float(point @ point) - 1, 0.0) / 8
        scale = max(dual[-1], min(spare, np.sqrt(spare)) / reach)
        dual = dual / scale if scale > 0 else 0 * dual
        if np.linalg.norm(point) <= 1:
            # Where the boundary is touched on a kink no step outwards leads behind it.
            sides[-1, 0] -= _BEHIND * reach
            behind = find_nearest_point(sides[:, 1:], -sides[:, 0])[1]
            point = point if behind is None else behind
        point = point * ball.radius
    else:
        dual = dual * min(4 * reach, 1 / dual[-1] if dual[-1] > 0 else np.inf)
    signed = np.zeros(len(signs))
    signed[open_] = signs[open_] * dual[:-1]
    left = float(np.linalg.norm(gap[1:] - signed @ units[:, 1:]))
    theta = tuple(np.zeros((5, len(z))) for z in ball.anchors)
    ends = np.cumsum([len(z) for z in ball.anchors], dtype=int)
    # What follows the last end is empty, and all there is for a net without hidden layers.
    for values, own in zip(theta, np.split(signed, ends)[:-1], strict=True):
        values[LINEAR] = -own
    return Multipliers(theta, max(left, _LEAST_MU * reach) / ball.radius**2), point

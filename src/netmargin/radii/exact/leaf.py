"""Multipliers of a region where all signs are fixed, from its nearest misclassified point."""

import numpy as np

from ..least_distance import solve_least_distance
from .ball import Ball
from .inequality import LINEAR, Multipliers, Region
from .units import negative_branch, positive_branch

_EMPTY = 1e-10
"""Residual below which half-spaces count as without a common point. It is (1 + distance^2)^-.5 for
the nearest point, in radii.
"""
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
    normals, starts, slope, gap = _list_half_spaces(ball, functional, region)
    # The half-spaces of units that cannot change in the ball hold in all of it.
    stable = [ball.fix_stable(k) == signs for k, signs in enumerate(region.signs)]
    signs = np.concatenate([np.zeros(0), *region.signs])
    open_ = ~np.concatenate([np.zeros(0, bool), *stable])
    rows = np.vstack([(signs[:, None] * normals)[open_], -slope])
    least = np.append((-signs * starts)[open_], gap)
    dual, rest = _find_nearest(rows, least, ball.radius)
    # As large as F can be in the ball.
    reach = float(np.linalg.norm(slope)) * ball.radius + abs(gap)
    point = _read_point(rest, ball.radius)
    if point is not None:
        # Half of what is to spare pays for a share of F, which needs some.
        spare = max(float(point @ point) / ball.radius**2 - 1, 0.0) / 8
        scale = max(dual[-1] / -rest[-1], min(spare, np.sqrt(spare)) / reach)
        dual = dual / -rest[-1] / scale if scale > 0 else 0 * dual
        if np.linalg.norm(point) <= ball.radius:
            # Where the boundary is touched on a kink no step outwards leads behind it.
            least[-1] += _BEHIND * reach
            behind = _read_point(_find_nearest(rows, least, ball.radius)[1], ball.radius)
            point = point if behind is None else behind
    else:
        dual = dual * min(4 * reach, 1 / dual[-1] if dual[-1] > 0 else np.inf)
    signed = np.zeros(len(signs))
    signed[open_] = signs[open_] * dual[:-1]
    return _make_multipliers(ball, signed, normals, slope, reach), point


def _find_nearest(
    rows: np.ndarray, least: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the dual of the least distance with rows u >= least: its solution, and the residual."""
    # In radii, with rows of length 1, which all count alike.
    lengths = np.linalg.norm(rows, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    dual, rest = solve_least_distance(rows / lengths[:, None], least / lengths / radius)
    return dual / lengths / radius, rest


def _read_point(rest: np.ndarray, radius: float) -> np.ndarray | None:
    """The nearest point that the residual of the dual tells; None where there is none."""
    if not (np.linalg.norm(rest) > _EMPTY and rest[-1] < 0):
        return None
    return rest[:-1] / -rest[-1] * radius


def _make_multipliers(
    ball: Ball, signed: np.ndarray, normals: np.ndarray, slope: np.ndarray, reach: float
) -> Multipliers:
    """Multipliers of half-spaces, with the mu that is best for them."""
    left = float(np.linalg.norm(slope - signed @ normals)) / ball.radius
    mu = max(left, _LEAST_MU * reach / ball.radius**2)
    theta = tuple(np.zeros((5, len(z))) for z in ball.anchors)
    ends = np.cumsum([len(z) for z in ball.anchors], dtype=int)
    # What follows the last end is empty, and all there is for a net without hidden layers.
    for values, own in zip(theta, np.split(signed, ends)[:-1], strict=True):
        values[LINEAR] = -own
    return Multipliers(theta, mu)


def _list_half_spaces(
    ball: Ball, functional: np.ndarray, region: Region
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The affine functions z = normals u + starts of all units, and F = slope . u + gap."""
    linear = np.eye(ball.weights[0].shape[1])
    constant, normals, starts = np.zeros(len(linear)), [linear[:0]], [np.zeros(0)]
    for k, (z, signs) in enumerate(zip(ball.anchors, region.signs, strict=True)):
        linear, constant = ball.weights[k] @ linear, ball.weights[k] @ constant
        normals.append(linear)
        starts.append(z + constant)
        parts = [
            make(z, ball.slopes[k], ball.low[k], ball.high[k])
            for make in (positive_branch, negative_branch)
        ]
        slopes = np.where(signs > 0, parts[0].slope, parts[1].slope)
        constant = slopes * constant + np.where(signs > 0, parts[0].offset, parts[1].offset)
        linear = slopes[:, None] * linear
    last = functional @ ball.weights[-1]
    gap = float(functional @ ball.scores + last @ constant)
    return np.concatenate(normals), np.concatenate(starts), last @ linear, gap

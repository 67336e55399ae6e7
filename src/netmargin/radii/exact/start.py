"""Multipliers to start from: slopes of the backward pass, and one curvature per layer."""

import numpy as np

from .inequality import LINEAR, OUTPUT, OUTPUT_SQUARE, PRODUCT, SQUARE
from .region_relaxation import Relaxation

_LEAST_CURVATURE = 0.05
"""Curvature of every unit at the start, as a share of 1 over the number of units, in scaled units:
the barrier needs an interior."""
_ROOM = 1.5
"""Factor above the least curvature p that keeps the quadratic of t positive definite."""


def start_multipliers(relaxation: Relaxation) -> tuple[np.ndarray, float]:
    """Choose multipliers with a positive definite quadratic: theta, (U, 5), and mu; scaled.

    The slopes g are those of the backward pass (of the tangent where the gap is convex in a unit's
    output, of the middle of the sector elsewhere), e = -(W' g) cancels the linear terms of t.
    Behind layer k stands the quadratic t'P t / 2; p bounds it on the free units, and each unit pays
    for the error of t = m y by p (t - m y)^2 - lam y^2 with lam = p (half width of its sector)^2.
    """
    question, region = relaxation.question, relaxation.region
    ball, count = question.ball, relaxation.count
    theta = np.zeros((count, 5))
    coefficient = question.weight
    behind: np.ndarray | None = None  # the matrix of the quadratic of t
    for k in range(len(ball.anchors) - 1, -1, -1):
        reach = np.ones(len(ball.anchors[k]))
        here = np.flatnonzero(relaxation.layers == k)
        units = relaxation.units[here]
        reach[units] = relaxation.reach[here]
        fixed_sign = np.where(region.signs[k] == 0, np.sign(ball.anchors[k]), region.signs[k])
        slope = np.where(fixed_sign >= 0, 1.0, ball.slopes[k])
        least, most = _sectors(relaxation, here)
        middle, half = (least + most) / 2, (most - least) / 2
        is_free = region.signs[k][units] == 0
        convex = coefficient[units] * (1 - ball.slopes[k][units]) > 0
        used = np.where(is_free & ~convex, middle, slope[units])
        slope[units] = used
        g = coefficient * slope
        lam = np.full(len(units), _LEAST_CURVATURE / max(count, 1))
        full = here < relaxation.full
        if behind is None:
            lam += np.where(is_free, np.abs(coefficient[units] * reach[units]) * half, 0.0)
            quadratic = np.zeros((len(slope),) * 2)
        else:
            m = slope.copy()
            m[units[is_free]] = middle[is_free]
            kept = units[is_free]
            inner = behind[np.ix_(kept, kept)] * reach[kept] * reach[kept][:, None]
            p = 2 * _ROOM * max(np.linalg.eigvalsh(inner)[-1], 1e-12) if len(kept) else 1.0
            lam += np.where(is_free, p * half**2, 0.0)
            theta[here[full], OUTPUT] = -(coefficient * reach)[units[full]]
            theta[here[full], OUTPUT_SQUARE] = p
            theta[here[full], PRODUCT] = -p * middle[full]
            theta[here[full], SQUARE] = p * middle[full] ** 2
            quadratic = 2 * behind * m * m[:, None]
        theta[here, LINEAR] = np.where(is_free, (g * reach)[units], 0.0)
        theta[here, SQUARE] -= lam
        quadratic[units, units] += lam / reach[units] ** 2
        weights = ball.weights[k]
        behind, coefficient = weights.T @ quadratic @ weights, weights.T @ g
    assert behind is not None
    largest = np.linalg.eigvalsh(behind)[-1] * ball.radius**2
    mu = _ROOM * largest + np.linalg.norm(coefficient) * ball.radius
    return theta, float(mu)


def _sectors(relaxation: Relaxation, here: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and largest t / y of units over their intervals, at their ends."""
    y = np.stack([relaxation.high[here, 0], relaxation.low[here, 1]], 1)
    t = relaxation.slope[here] * y + relaxation.offset[here]
    ratio = t / np.where(np.abs(y) > 1e-12, y, 1.0)
    ratio = np.where(np.abs(y) > 1e-12, ratio, relaxation.slope[here])
    return ratio.min(1), ratio.max(1)

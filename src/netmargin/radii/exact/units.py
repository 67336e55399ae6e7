"""The graph of a hidden unit, and the minimum of a quadratic on it."""

from typing import Any, NamedTuple

import numpy as np

from ..products import share

_ROUNDINGS = 24
"""Roundings counted for the minimum of a quadratic on a branch: more than there are."""


class Branch(NamedTuple):
    """A unit's change t = slope y + offset on [low, high], empty where low is above high."""

    slope: np.ndarray | float
    offset: np.ndarray
    low: np.ndarray
    high: np.ndarray


def positive_branch(anchor: np.ndarray, slope: np.ndarray, low: Any, high: Any) -> Branch:
    """The graphs of units where their inputs are at least 0: y in [low, high], kinks at -anchor."""
    offset = np.where(anchor >= 0, 0.0, (1 - slope) * anchor)
    return Branch(1.0, offset, np.maximum(low, -anchor), high)


def negative_branch(anchor: np.ndarray, slope: np.ndarray, low: Any, high: Any) -> Branch:
    """The graphs where inputs are at most 0, which have these slopes."""
    offset = np.where(anchor >= 0, (slope - 1) * anchor, 0.0)
    return Branch(slope, offset, low, np.minimum(high, -anchor))


def bound_reach(branch: Branch) -> tuple[np.ndarray, np.ndarray]:
    """The largest |y| and |t| on a branch; 0 where it is empty."""
    y = np.where(
        branch.low <= branch.high, np.maximum(np.abs(branch.low), np.abs(branch.high)), 0.0
    )
    t = (np.abs(branch.slope) * y + np.abs(branch.offset)) * (1 + share(4))
    return y, np.where(branch.low <= branch.high, t, 0.0)


def minimize_on_branch(theta: Any, branch: Branch) -> np.ndarray:
    """A lower bound of the minimum of -psi, theta = (g, e, al, be, de), infinite if it is empty."""
    g, e, al, be, de = theta
    s, o, low, high = branch
    curvature = -(al + 2 * be * s + de * s * s)
    gradient = -(g + e * s + be * o + de * s * o)
    constant = -(e * o + de * o * o / 2)

    def evaluate(y: Any) -> Any:
        return constant + gradient * y + curvature * y * y / 2

    convex = curvature > 0
    # An overflow of the quotient is clipped to an end.
    with np.errstate(over="ignore"):
        vertex = np.where(convex, -gradient / np.where(convex, curvature, 1.0), low)
    least = np.minimum(np.minimum(evaluate(low), evaluate(high)), evaluate(vertex.clip(low, high)))
    y, t = bound_reach(branch)
    size = np.abs(g) * y + np.abs(e) * t + np.abs(al) * y * y + np.abs(de) * t * t
    size = size + 2 * np.abs(be) * y * t
    return np.where(low <= high, least - share(_ROUNDINGS) * size, np.inf)

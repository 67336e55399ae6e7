"""What must be proved of a ball: which gaps are positive, on regions that together cover it."""

import numpy as np

from .ball import Ball
from .inequality import Region


def list_functionals(label: int, outputs: int) -> list[np.ndarray]:
    """The functionals that must be positive: label minus rival each, or the sign of one output."""
    if outputs == 1:
        return [np.array([float(np.sign(label))])]
    identity = np.eye(outputs)
    return [identity[label] - identity[rival] for rival in range(outputs) if rival != label]


def covers_ball(ball: Ball, regions: list[Region]) -> bool:
    """Whether every point of a ball lies in one of the regions.

    Signs that cannot change in the ball count as given. The others must branch both ways: where all
    regions fix a unit, those with + must cover the half with +, and those with - the other.
    """
    fixed = np.concatenate([np.zeros(0), *(ball.fix_stable(k) for k in range(len(ball.slopes)))])
    if not regions or any(
        len(r.signs) != len(ball.slopes)
        or any(len(s) != len(z) for s, z in zip(r.signs, ball.anchors, strict=True))
        for r in regions
    ):
        return False
    signs = np.stack([np.concatenate([np.zeros(0), *r.signs]) for r in regions])
    return _covers(fixed, signs)


def _covers(fixed: np.ndarray, signs: np.ndarray) -> bool:
    """Whether regions, one row of signs each, cover all points with the fixed signs."""
    while len(signs):
        # Regions that contradict the fixed signs hold no such point but on kinks.
        signs = signs[~((signs * fixed < 0).any(1))]
        open_ = np.where(fixed == 0, signs, 0)
        if (open_ == 0).all(1).any():
            return True
        units = np.flatnonzero((open_ != 0).all(0))
        if not len(units):
            return False
        half = fixed.copy()
        half[units[0]] = 1
        if not _covers(half, signs):
            return False
        fixed = fixed.copy()
        fixed[units[0]] = -1
    return False

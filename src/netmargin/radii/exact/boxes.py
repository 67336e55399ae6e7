"""Proved intervals of all pre-activations of a chain in a ball of inputs."""

from typing import NamedTuple

import numpy as np

from ...core.matrices import Floats
from ..products import share
from .first_layer_quadratic import bound_functionals
from .quadratics import bound_length, bound_lengths, bound_norm
from .units import negative_branch, positive_branch


class Box(NamedTuple):
    """Intervals for the units of a layer, such as low <= y = z - z^ <= high, which contain 0."""

    low: Floats
    high: Floats

    @property
    def reach(self) -> Floats:
        """The largest absolute values."""
        return np.maximum(-self.low, self.high)


class Sector(NamedTuple):
    """t = m y + r with |r| <= spread |y| and r in the rest, for the units of a layer."""

    m: np.ndarray
    spread: np.ndarray
    rest: Box


def find_sectors(anchor: np.ndarray, slope: np.ndarray, box: Box) -> Sector:
    """Bound the secants t/y of units between the anchor and any point of their box.

    A secant is a mean of the slopes 1 and s along its way. It moves from the slope of the anchor's
    side towards the other one by the share of the way that is behind the kink, which is largest at
    the end of the box.
    """
    positive = anchor >= 0
    behind = np.where(positive, -(anchor + box.low), anchor + box.high).clip(min=0.0)
    way = np.where(positive, -box.low, box.high)
    crossed = np.where(behind > 0, behind / np.where(way > 0, way, 1.0), 0.0).clip(max=1.0)
    own, other = np.where(positive, 1.0, slope), np.where(positive, slope, 1.0)
    m = own + (other - own) * crossed / 2
    # Rounding of m and of the share is made up for by a sector that is a little wider.
    rounding = np.where(crossed > 0, share(8) * (1 + np.abs(slope)), 0.0)
    spread = np.abs(other - own) * crossed / 2 + rounding
    # r is linear on both sides of the kink, so extreme at the ends and there.
    ends = []
    for make in (positive_branch, negative_branch):
        branch = make(anchor, slope, box.low, box.high)
        for y in (branch.low, branch.high):
            r = branch.offset + (branch.slope - m) * y
            ends.append(np.where((branch.low <= branch.high) & (crossed > 0), r, 0.0))
    slack = rounding * (box.reach + np.abs(anchor))
    return Sector(m, spread, Box(np.minimum.reduce(ends) - slack, np.maximum.reduce(ends) + slack))


class BoxBuilder:
    """Boxes of the layers of a chain, one after the other, for y_1 = first u with |u| <= radius.

    With t_j = m_j y_j + r_j in all layers but the first, y_k is a linear map of t_1 plus one of
    each r_j, 1 < j < k. The map of t_1 is bounded by a quadratic, or, with t_1 = m_1 y_1 + r_1, by
    the norms of rows for y_1 = L u, and as the others are for r_1. These are bounded in two ways:
    by the intervals of r_j, and, as |r_j| <= spread_j |y_j|, by the norms of the rows times
    sqrt(spread_j), times a bound of |sqrt(spread_j) y_j| in the ball. The best of all counts.
    """

    def __init__(self, first: np.ndarray, radius: float) -> None:
        self.first, self.radius = first, radius
        self.direct = first
        self.through: list[np.ndarray] = []
        self.sectors: list[Sector] = []
        self.norms: list[float] = []
        self.width = first.shape[1]
        # Sums of the absolute values of all that is added up, for the rounding errors.
        self.sizes = bound_lengths(first) * radius
        self.errors = np.zeros(len(first))
        self.box = Box(-self.sizes * (1 + share(1)), self.sizes * (1 + share(1)))

    def pass_layer(self, anchor: np.ndarray, slope: np.ndarray, weight: np.ndarray) -> Box:
        """The box of the next layer, given the present one's values at the anchor and slope."""
        sector = find_sectors(anchor, slope, self.box)
        if not self.sectors:
            self.bottom = (self.first, anchor, slope, self.box, sector, self.radius)
        self._bound_weighted_norm(sector.spread)
        self.sectors.append(sector)
        self.direct = weight @ (sector.m[:, None] * self.direct)
        self.through = [weight @ (sector.m[:, None] * part) for part in self.through] + [weight]
        self.sizes = np.abs(weight) @ (np.abs(sector.m) * self.sizes + sector.rest.reach)
        self.width = max(self.width, weight.shape[1])  # the longest sum of all layers so far
        self.errors = 2 * len(self.sectors) * share(self.width + 4) * self.sizes
        bottom, *others = [
            _bound_residuals(*parts)
            for parts in zip(self.through, self.sectors, self.norms, strict=True)
        ]
        straight = bound_lengths(self.direct) * self.radius
        # Row by row, the map of t_1 and its negative.
        both = np.concatenate([self.through[0], -self.through[0]])
        lower, upper = np.split(bound_functionals(both, *self.bottom), 2)
        low = np.maximum(bottom.low - straight, lower) + sum(other.low for other in others)
        high = np.minimum(bottom.high + straight, -upper) + sum(other.high for other in others)
        slack = self.errors + share(len(self.sectors) + 2) * self.sizes
        self.box = Box(np.minimum(low - slack, 0.0), np.maximum(high + slack, 0.0))
        return self.box

    def _bound_weighted_norm(self, spread: np.ndarray) -> None:
        """Bound |sqrt(spread) y| of the present layer in the ball."""
        root = np.sqrt(spread)
        by_box = bound_length(root * self.box.reach)
        by_norms = bound_norm(root[:, None] * self.direct) * self.radius
        for part, behind, size in zip(self.through, self.sectors, self.norms, strict=True):
            by_norms += bound_norm(root[:, None] * part * np.sqrt(behind.spread)) * size
        by_norms += bound_length(root * (self.errors + share(4) * self.sizes))
        self.norms.append(min(by_box, by_norms) * (1 + share(len(self.norms) + 4)))


def _bound_residuals(part: np.ndarray, behind: Sector, size: float) -> Box:
    """Bound the rows of a map times r, for |sqrt(spread) y| <= size."""
    positive, negative = part.clip(min=0), part.clip(max=0)
    rows = bound_lengths(part * np.sqrt(behind.spread)) * size
    low = np.maximum(positive @ behind.rest.low + negative @ behind.rest.high, -rows)
    return Box(low, np.minimum(positive @ behind.rest.high + negative @ behind.rest.low, rows))

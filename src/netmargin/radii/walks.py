"""Our own attack: walks towards the nearest rivals, on a sphere that shrinks and grows."""

import math

import torch
from torch import Tensor, nn

from ..core.progress import Progress
from ..nets.input_slopes import differentiate
from ..nets.model import scores
from .boundary import (
    Attacked,
    compute_gap_and_slope,
    judge_points,
    measure_distance,
    one_each,
    polish_points,
)
from .exact.chain import Chain
from .region_descent import descend_through_regions, has_small_layers

_CANDIDATES = 9
"""Classes of largest score that are walked to at first, as many as DeepFool looks at. To first
order the nearest point was not behind the three nearest of them in 3 of 200 images of a 64-32-32-10
net, where it was up to 8% nearer.
"""
_RIVALS = 3
"""Classes that the first walk found nearest, which the others go to."""
_STARTS = 2
"""Walks to each rival, from the sample and from aside, where linear regions can be searched: with
the hops they ended as near as the three attacks of foolbox in all of 400 images.
"""
_STARTS_WITHOUT_REGIONS = 6
"""The same for other nets: on the max-pool CNN 2, 4 and 6 starts are farther than those attacks in
6, 3 and 1 or 2 of 100 images.
"""
_HOPS = 8
"""Walks from beside the nearest point so far. On 784-256-256-10 the first one leaves it for a
nearer one in 5 of 100 images, the eighth in 1 or none.
"""
_HOP = 0.5
"""How far aside a hop begins, as a share of the radius: .3 to 1 found the same radii."""
_LAST_STRIDE = 0.01
"""Last step of every walk, as a share of the radius, as in DDN."""
_RATE = 0.05
"""Share by which a sphere shrinks behind the boundary and grows before it, as in DDN."""
_LAST_RATE = 0.002
"""The same share at the end of a walk, about what polishing gains after it."""
_WORTH_A_LOOK = 1.1
"""Points this many times as far as the nearest one are not moved further: descents through regions
and along the boundary gain some per cent.
"""
_DOUBLINGS = 60
"""Doublings of a step that did not reach the boundary; they end at the widest radius."""
_LONG = (40, 1.0)
"""Steps of walks from the sample, and the first one as a share of the radius. Of 30, 40, 60 and 100
steps, more than 40 gained less than another start did; the stride is that of DDN.
"""
_SHORT = (30, 0.3)
"""The same of hops, which begin near their end: with a stride of 1 they would begin anywhere."""


def walk_to_boundary(samples: Attacked, widest: float, chain: Chain | None) -> Tensor:
    """Find near misclassified points by walks towards the nearest rivals, and hops from there.

    docs/attacked-radii.md has the steps. A sample without such a point gets one that is classified
    correctly.

    widest : the largest radius that is tried. Regions know no box, and take long for large layers:
    the chain is not used then.

    Source: Rony, Hafemann, Oliveira, Ben Ayed, Sabourin and Granger 2019 (DDN), for the sphere;
    Tashiro, Song and Ermon 2020, for points aside; the rest beyond the papers.
    """
    regions = chain if samples.box is None and chain and has_small_layers(chain) else None
    search = _Search(samples, widest, regions)
    rivals, reach = _list_rivals(samples, widest)
    starts = _STARTS_WITHOUT_REGIONS if regions is None else _STARTS
    # As many walks in all where there are fewer rivals: of two classes, a face detector's, 6 starts
    # ended up to 10% farther than 18.
    starts = starts * _RIVALS // min(_RIVALS, rivals.shape[1])
    display, total = Progress(), starts + _HOPS
    for start in range(starts):
        display.draw(start, total - start, f"walk {start + 1} of {total}")
        found, points = search.walk_to_rivals(rivals, reach, aside=start > 0)
        search.keep(points)
        if start == 0:
            nearest = found.argsort(dim=1, stable=True)[:, :_RIVALS]
            rivals, reach = rivals.gather(1, nearest), reach.gather(1, nearest)
        # To first order the boundary may be several times too near, so that a walk ends before it.
        known = search.best[:, None]
        reach = torch.where(known.isfinite(), known, 2 * reach)
    for hop in range(starts, total):
        display.draw(hop, total - hop, f"walk {hop + 1} of {total}")
        search.keep(search.hop())
    if regions is not None:
        return search.nearest
    return polish_points(samples, search.nearest)[1]


class _Search:
    """Walks of a batch, and the nearest misclassified points so far."""

    def __init__(self, samples: Attacked, widest: float, regions: Chain | None) -> None:
        self.samples, self.widest, self.regions = samples, widest, regions
        x = samples.x
        self.random = torch.Generator(x.device).manual_seed(0)
        self.best, self.nearest = x.new_full((len(x),), torch.inf), x.clone()

    def keep(self, points: Tensor) -> None:
        """Judge points, follow them through regions, and keep those that are nearer."""
        distance, points = judge_points(self.samples, points)
        worth = distance < _WORTH_A_LOOK * self.best
        if self.regions is not None and worth.any():
            part = self.samples.part(worth)
            found = descend_through_regions(part, self.regions, points[worth])
            distance[worth], points[worth] = judge_points(part, found)
        self.nearest = torch.where(one_each(distance < self.best, points), points, self.nearest)
        self.best = torch.minimum(self.best, distance)

    def walk_to_rivals(
        self, rivals: Tensor, reach: Tensor, *, aside: bool
    ) -> tuple[Tensor, Tensor]:
        """Walk to rivals (N, R): distances at which each wins, infinite for none; the nearest."""
        n, many = rivals.shape
        own = torch.arange(n, device=rivals.device)
        each = self.samples.part(own.repeat_interleave(many))
        begin = _step_aside(each.net, each.x, reach.flatten(), self.random) if aside else each.x
        distance, points, last = _walk(each, rivals.flatten(), begin, reach.flatten(), _LONG)
        lost = distance.isinf()
        if lost.any():
            part = each.part(lost)
            points[lost] = self._scale_outwards(part, last[lost])
            distance[lost] = judge_points(part, points[lost])[0]
        distances = distance.reshape(n, many)
        return distances, points[distances.argmin(1) + many * own]

    def hop(self) -> Tensor:
        """Walk from beside the nearest points, where there are any, to the class that they have."""
        points, found = self.samples.x.clone(), self.best.isfinite()
        if found.any():
            part, nearest, reach = self.samples.part(found), self.nearest[found], self.best[found]
            with torch.no_grad():
                others = scores(part.net, nearest).scatter(1, part.y[:, None], -torch.inf)
            begin = _step_aside(part.net, nearest, _HOP * reach, self.random)
            points[found] = _walk(part, others.argmax(1), begin, reach, _SHORT)[1]
        return points

    def _scale_outwards(self, samples: Attacked, points: Tensor) -> Tensor:
        """Double the steps from x to points until they are misclassified, or the widest."""
        x = samples.x
        found, step = points, points - x
        lost = torch.ones(len(x), dtype=torch.bool, device=x.device)
        for _ in range(_DOUBLINGS):
            if not (lost & (step.flatten(1).norm(dim=1) < self.widest)).any():
                break
            step = 2 * step
            distance, tried = judge_points(samples, x + step)
            hit = lost & distance.isfinite()
            found, lost = torch.where(one_each(hit, x), tried, found), lost & ~hit
        return found


def _list_rivals(samples: Attacked, widest: float) -> tuple[Tensor, Tensor]:
    """The classes of largest score, (N, R), and their distances to first order."""
    net, x, y, _ = samples
    with torch.no_grad():
        others = scores(net, x).scatter(1, y[:, None], -torch.inf)
    candidates = others.topk(min(_CANDIDATES, others.shape[1] - 1)).indices
    distances = []
    for rivals in candidates.T:
        gap, slope = compute_gap_and_slope(net, x, y, rivals)
        distances.append(gap / slope.flatten(1).norm(dim=1).clamp(min=1e-300))
    return candidates, torch.stack(distances, 1).nan_to_num(nan=widest).clamp(max=widest)


def _step_aside(net: nn.Module, x: Tensor, lengths: Tensor, random: torch.Generator) -> Tensor:
    """Step away from x in directions that change the scores by random weights, or random ones."""
    with torch.enable_grad():
        z = x.detach().requires_grad_()
        found = scores(net, z)
        if found.shape[1] == 2:
            drawn = torch.randn(x.shape, generator=random, dtype=x.dtype, device=x.device)
            return x + _rescale(drawn, lengths)
        weights = torch.rand(found.shape, generator=random, dtype=x.dtype, device=x.device) * 2 - 1
        slope = differentiate((weights * found).sum(), z)
    return x + _rescale(slope.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0), lengths)


def _rescale(steps: Tensor, lengths: Tensor) -> Tensor:
    """Give steps these lengths; those of length 0 stay."""
    return steps * one_each(lengths / steps.flatten(1).norm(dim=1).clamp(min=1e-300), steps)


def _walk(
    samples: Attacked, rivals: Tensor, begin: Tensor, reach: Tensor, pace: tuple[int, float]
) -> tuple[Tensor, Tensor, Tensor]:
    """Walk down the gap on a sphere: distances of the nearest hits, these, and the ends."""
    net, x, y, _ = samples
    best, nearest, z = torch.full_like(reach, torch.inf), x.clone(), begin
    steps, stride = pace
    for step in range(steps):
        gap, slope = compute_gap_and_slope(net, z, y, rivals)
        distance = measure_distance(x, z)
        hit = (gap <= 0) & (distance < best)
        best = torch.where(hit, distance, best)
        nearest = torch.where(one_each(hit, x), z, nearest)
        cosine = (1 + math.cos(math.pi * step / steps)) / 2
        rate = _LAST_RATE + (_RATE - _LAST_RATE) * cosine
        # Behind the boundary nothing beyond the best is of interest.
        reach = torch.where(gap <= 0, torch.minimum(reach, best) * (1 - rate), reach * (1 + rate))
        length = reach * (_LAST_STRIDE + (stride - _LAST_STRIDE) * cosine)
        z = z - _rescale(slope, length)
        z = samples.clip(x + _rescale(z - x, reach))
    return best, nearest, z

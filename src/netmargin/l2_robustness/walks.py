"""Our own attack: walks towards the nearest rivals, on a sphere that shrinks and grows."""

import math

import torch
from torch import Tensor, nn

from ..core.nets import scores
from .boundary import (
    compute_gap_and_slope,
    judge_points,
    measure_distance,
    one_each,
    polish_points,
)
from .exact.chain import Chain
from .region_search import descend_through_regions

_CANDIDATES = 9
"""Classes of largest score among which rivals are sought, as in DeepFool: with more classes the
gradients of all would cost more than the walks.
"""
_RIVALS = 3
"""Nearest classes, to first order, that are walked to. On the CNN of `benchmarks.attacks` the
nearest point was found behind the first, second and third in 28, 10 and 2 of 40 images, and 9
rivals found none nearer.
"""
_STARTS = 2
"""Walks to each rival, from the sample and from aside, where linear regions can be searched: with
the hops they ended as near as the three attacks of foolbox in all of 400 images.
"""
_STARTS_WITHOUT_REGIONS = 6
"""The same for other nets: on the max-pool CNN 2, 4 and 6 starts are farther than those attacks in
6, 3 and 1 of 100 images.
"""
_STEPS = 40
"""Steps of these walks: of 30, 40, 60 and 100, more than 40 gained less than another start."""
_HOPS = 8
"""Walks from beside the nearest point so far. On 784-256-256-10 the first one leaves it for a nearer
one in 5 of 100 images, the eighth in 1 or none.
"""
_HOP_STEPS = 30
"""Steps of these walks, which begin near their end."""
_HOP = 0.5
"""How far aside a hop begins, as a share of the radius: .3 to 1 found the same radii."""
_HOP_STRIDE = 0.3
"""First step of a hop as a share of the radius: at 1 the hop would begin anywhere."""
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


def walk_to_boundary(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: tuple[float, float] | None,
    widest: float,
    chain: Chain | None,
) -> Tensor:
    """Find near misclassified points by walks towards the nearest rivals, and hops from there.

    Every walk goes down the gap between the scores of the sample's class and of one rival, and is
    brought back to a sphere around the sample, which shrinks while the rival wins and grows while
    it does not, as in DDN. Several walks to each of several rivals begin at the sample and at
    points aside; then some begin beside the nearest point found. For chains of linear layers and
    kinks each nearest point is followed through linear regions to one that is nearest in its own
    and in those beyond its kinks; otherwise the last one is polished by Newton steps along the
    boundary.

    Parameters
    ----------
    net : torch.nn.Module
        A float64 net with scores (N, C), C > 1, of order 1.
    x : tensor, (N, ...)
        Samples that it classifies correctly.
    y : tensor, (N,)
        Class indices.
    box : (float, float) or None
        Smallest and largest value of an input, or None for all of R^d.
    widest : float
        The largest radius that is tried.
    chain : Chain or None
        The same net as dense layers and kinks, up to a factor on its scores, if it is one. Regions
        know no box; with one it is not used.

    Returns
    -------
    tensor, (N, ...)
        The points; a sample without one has a point that is classified correctly.

    Source: Rony, Hafemann, Oliveira, Ben Ayed, Sabourin and Granger 2019 (DDN), for the sphere;
    Tashiro, Song and Ermon 2020, for points aside; the rest beyond the papers.
    """
    random = torch.Generator(x.device).manual_seed(0)
    best, nearest = x.new_full((len(x),), torch.inf), x.clone()
    use_regions = chain is not None and box is None

    def keep(points: Tensor) -> None:
        nonlocal best, nearest
        distance, points = judge_points(net, x, y, points, box)
        worth = distance < _WORTH_A_LOOK * best
        if use_regions and worth.any():
            found = descend_through_regions(net, chain, x[worth], y[worth], points[worth])
            distance[worth], points[worth] = judge_points(net, x[worth], y[worth], found, box)
        nearest = torch.where(one_each(distance < best, x), points, nearest)
        best = torch.minimum(best, distance)

    rivals, first_order = _choose_rivals(net, x, y, widest)
    for start in range(_STARTS if use_regions else _STARTS_WITHOUT_REGIONS):
        keep(_walk_to_rivals(net, x, y, rivals, first_order, box, widest, start and random))
    for _ in range(_HOPS):
        found = best.isfinite()
        if not found.any():
            break
        points = nearest.clone()
        points[found] = _hop(net, x[found], y[found], nearest[found], box, random)
        keep(points)
    return nearest if use_regions else polish_points(net, x, y, nearest, box)[1]


def _choose_rivals(net: nn.Module, x: Tensor, y: Tensor, widest: float) -> tuple[Tensor, Tensor]:
    """Choose the nearest classes to first order, (N, R), and these distances, the nearest first."""
    with torch.no_grad():
        others = scores(net, x).scatter(1, y[:, None], -torch.inf)
    candidates = others.topk(min(_CANDIDATES, others.shape[1] - 1)).indices
    distances = []
    for rivals in candidates.T:
        gap, slope = compute_gap_and_slope(net, x, y, rivals)
        distances.append(gap / slope.flatten(1).norm(dim=1).clamp(min=1e-300))
    # Gaps that are no numbers come last.
    ordered = torch.stack(distances, 1).nan_to_num(nan=widest).clamp(max=widest).sort(1)
    return (
        candidates.gather(1, ordered.indices)[:, :_RIVALS],
        ordered.values[:, :_RIVALS],
    )


def _walk_to_rivals(net, x, y, rivals, first_order, box, widest, random) -> Tensor:
    """Walk to every rival, from the sample or, with a generator, from aside; the nearest points."""
    n, many = rivals.shape
    anchors, classes = x.repeat_interleave(many, 0), y.repeat_interleave(many, 0)
    towards, reach = rivals.flatten(), first_order.flatten()
    begin = _step_aside(net, anchors, reach, random) if random else anchors
    distance, points, last = _walk(net, anchors, classes, towards, begin, reach, box, _STEPS, 1.0)
    lost = distance.isinf()
    if lost.any():
        points[lost] = _scale_outwards(
            net, anchors[lost], classes[lost], last[lost], box, widest=widest
        )
        distance[lost] = judge_points(net, anchors[lost], classes[lost], points[lost], box)[0]
    chosen = distance.reshape(n, many).argmin(1) + many * torch.arange(n, device=x.device)
    return points[chosen]


def _hop(net, x, y, nearest, box, random) -> Tensor:
    """Walk from beside the nearest points to the class that they have; the points found."""
    with torch.no_grad():
        rivals = scores(net, nearest).scatter(1, y[:, None], -torch.inf).argmax(1)
    reach = measure_distance(x, nearest)
    begin = _step_aside(net, nearest, _HOP * reach, random)
    found = _walk(net, x, y, rivals, begin, reach, box, _HOP_STEPS, _HOP_STRIDE)
    return found[1]


def _step_aside(net: nn.Module, x: Tensor, lengths: Tensor, random: torch.Generator) -> Tensor:
    """Step away from x in directions that change the scores, each by random weights."""
    with torch.enable_grad():
        z = x.detach().requires_grad_()
        found = scores(net, z)
        weights = torch.rand(found.shape, generator=random, dtype=x.dtype, device=x.device) * 2 - 1
        (slope,) = torch.autograd.grad((weights * found).sum(), z)
    return x + _rescale(slope.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0), lengths)


def _rescale(steps: Tensor, lengths: Tensor) -> Tensor:
    """Give steps these lengths; those of length 0 stay."""
    return steps * one_each(lengths / steps.flatten(1).norm(dim=1).clamp(min=1e-300), steps)


def _walk(
    net, x, y, rivals, begin, reach, box, steps: int, stride: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Walk down the gap to a rival, brought back to a sphere around x after every step.

    Returns the distances of the nearest points on the way where the rival wins, infinite for none;
    these points; and the last ones of all.
    """
    best, nearest, z = torch.full_like(reach, torch.inf), x.clone(), begin
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
        z = x + _rescale(z - x, reach)
        z = z.clamp(*box) if box else z
    return best, nearest, z


def _scale_outwards(
    net, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None, *, widest: float
) -> Tensor:
    """Double the steps from x to points until they are misclassified, or as long as may be."""
    found, step = points, points - x
    lost = torch.ones(len(x), dtype=torch.bool, device=x.device)
    for _ in range(_DOUBLINGS):
        if not lost.any() or not (step.flatten(1).norm(dim=1)[lost] < widest).any():
            break
        step = 2 * step
        distance, tried = judge_points(net, x, y, x + step, box)
        hit = lost & distance.isfinite()
        found, lost = torch.where(one_each(hit, x), tried, found), lost & ~hit
    return found

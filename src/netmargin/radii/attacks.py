"""The nearest misclassified inputs that our attack finds, each validated in float64."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..nets.model import scores
from .boundary import (
    Attacked,
    compute_margin,
    judge_points,
    measure_distance,
    one_each,
    polish_points,
)
from .exact.chain import Chain
from .flips import BoundedScores
from .input_box import InputBox, choose_bounds
from .walks import walk_to_boundary

ATTACKS = ("walk", "random search")
"""The names under which points of the walk and of the random search are reported."""
_SCALED_MEDIAN_MARGIN = 10.0
"""Median margin of the scores that are attacked, so that a slope is neither tiny nor huge."""
_RANDOM_POINTS = 2048
"""Random points per sample and round, over the dimension: balls of many cannot be searched, ..."""
_LEAST_RANDOM_POINTS = 16
"""... but so many points are tried in any case, as they cost little beside an attack."""
_AT_ONCE = 2**14
"""Numbers in the random points of one forward pass: for a few numbers it would be all overhead."""
_PATIENCE = 4
"""Rounds of random points without progress, after which the search ends, since one round can miss
by chance. On small nets in 4 dimensions and on digits, 1 to 16 found the same radii.
"""
_LEAST_PROGRESS = 1e-3
"""A round that brings no sample nearer by this share counts as one without progress: attacked radii
are compared to about a per cent, and smaller gains would keep the search going.
"""


class ScaledScores(nn.Module):
    """A net with scores divided by a number; two classes (-f / 2, f / 2) for one output f."""

    def __init__(self, net: nn.Module, scale: float, judge: BoundedScores | None = None) -> None:
        super().__init__()
        self.net, self.scale, self.judge = net, scale, judge

    def forward(self, x: Tensor) -> Tensor:
        """Compute the scores, (N, C), of inputs (N, ...)."""
        z = scores(self.net, x) / self.scale
        return torch.cat([-z, z], 1) / 2 if z.shape[1] == 1 else z


class Found(NamedTuple):
    """The nearest misclassified points of a batch."""

    distances: Tensor  # (N,), infinite where there is none
    points: Tensor  # (N, ...), NaN where there is none
    found_by: Tensor  # (N,): the index in ATTACKS, -1 for none


def nearest_misclassified(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    box: InputBox,
    scale: float,
    chain: Chain | None,
    judge: BoundedScores | None = None,
) -> Found:
    """Find the nearest misclassified points that walks and a random search can find.

    Each is judged by the net: it is misclassified, or a tie, and in the box; with a judge in exact
    arithmetic too. The samples x, (N, ...), are classified correctly; y are signs for a net with
    one output, or class indices. Scores are divided by a tenth of `scale`.
    """
    # From here on scores are of order 1: no square of a slope underflows.
    net = ScaledScores(net, scale / _SCALED_MEDIAN_MARGIN, judge).eval()
    samples = Attacked(net, x, (y > 0).long() if y.is_floating_point() else y, box)
    bounds = choose_bounds(x) if box is None else box
    widest = (bounds[1] - bounds[0]) * x[0].numel() ** 0.5
    walked, points = judge_points(samples, walk_to_boundary(samples, widest, chain))
    best, points = _search_ball(samples, walked, points, widest)
    known = best.isfinite()
    found_by = torch.where(best < walked, 1, torch.where(known, 0, -1))
    return Found(best, torch.where(one_each(known, x), points, torch.nan), found_by)


def _search_ball(
    samples: Attacked, best: Tensor, points: Tensor, widest: float
) -> tuple[Tensor, Tensor]:
    """Search the ball around each sample, out to the distance known or the widest, by random
    points: in few dimensions attacks miss the nearest piece of the boundary.
    """
    random = torch.Generator(samples.x.device).manual_seed(0)
    rounds_without = 0
    while rounds_without < _PATIENCE:
        start = _draw_nearest(samples, best, widest, random)
        distance, tried = polish_points(samples, start)
        progress = distance < best * (1 - _LEAST_PROGRESS)
        points = torch.where(one_each(distance < best, points), tried, points)
        best = torch.minimum(best, distance)
        rounds_without = 0 if progress.any() else rounds_without + 1
    return best, points


def _draw_nearest(samples: Attacked, best: Tensor, widest: float, random: Any) -> Tensor:
    """The nearest misclassified of points drawn uniformly in balls of radius `best`, or x."""
    net, x, y, _ = samples
    nearest, start = best.clone(), x.clone()
    left, at_once = max(_RANDOM_POINTS // x[0].numel(), _LEAST_RANDOM_POINTS), _AT_ONCE // x.numel()
    options = {"generator": random, "dtype": x.dtype, "device": x.device}
    while left > 0:
        count = min(left, max(at_once, 1))
        left -= count
        direction = torch.randn(count, *x.shape, **options).flatten(2)
        # Uniform in the ball: the radius is a uniform number to the power 1 / dimension.
        share = torch.rand(count, len(x), **options) ** (1 / x[0].numel())
        radius = best.clamp(max=widest) * share
        steps = direction * (radius / direction.norm(dim=2))[..., None]
        points = samples.clip(x + steps.reshape(count, *x.shape))
        tried = points.flatten(0, 1)
        distance = measure_distance(x.repeat(count, *[1] * (x.ndim - 1)), tried).view(count, -1)
        with torch.no_grad():
            margin = compute_margin(net, tried, y.repeat(count)).view(count, -1)
        distance, first = torch.where(margin <= 0, distance, torch.inf).min(dim=0)
        hit = distance < nearest
        nearest = torch.where(hit, distance, nearest)
        start = torch.where(
            one_each(hit, x), points[first, torch.arange(len(x), device=x.device)], start
        )
    return start

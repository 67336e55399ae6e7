"""Points on the boundary between right and wrong: judged, and moved to where it is nearest."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..margins import score_gaps
from ..nets.input_slopes import differentiate
from ..nets.model import scores
from .flips import BoundedScores, bound_margins
from .input_box import InputBox
from .lipschitz import norm
from .products import share

_BOUNDARY_STEPS = 12
"""Newton steps along the boundary at most: quadratic on each smooth piece, most end early."""
_COARSE_BISECTIONS = 16
"""Bisections of a crossing segment while points move: 2^-16 of it is less than the next step."""
_FINE_BISECTIONS = 48
"""Bisections at the end: to 4e-15 of a segment, about the rounding of its ends."""
_STEPS_BEHIND = 16
"""Steps behind the boundary that are tried, each four times as long: the first is twice what the
slope asks for, and nearly always enough.
"""
_FLAT_STEP = 2.0**-50
"""First of these steps where there is no slope, as on a kink: some units in the last place."""
_ROUNDING = 2.0**-44
"""Relative rounding of scores that is taken for usual, 256 units in the last place: scores of an
LSTM of three layers differed by two between batches of 1 and of 50 samples.
"""
_TANGENT_OVERSHOOT = 1e-6
"""Relative step beyond the tangent: the boundary is misclassified, and rounding may miss it."""


class Attacked(NamedTuple):
    """Samples under attack."""

    net: nn.Module  # scores (N, C), C > 1, of order 1; what bounds their rounding is its `judge`
    x: Tensor  # (N, ...)
    y: Tensor  # (N,), class indices
    box: InputBox = None

    def part(self, places: Tensor) -> "Attacked":
        """Some of the samples."""
        return self._replace(x=self.x[places], y=self.y[places])

    def clip(self, points: Tensor) -> Tensor:
        """Move points to where they are nearest in the box."""
        return points.clamp(*self.box) if self.box else points


def compute_margin(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Compute the smallest score gaps, (N,); y are class indices, or signs for one output."""
    return score_gaps(scores(net, x), y).amin(1)


def compute_margin_and_slope(net: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the smallest score gaps, (N,), and their gradients in the inputs, (N, ...)."""
    return _differentiate(lambda x: compute_margin(net, x, y), x)


def compute_gap_and_slope(
    net: nn.Module, x: Tensor, y: Tensor, rivals: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute gaps of y to one rival each, (N,), and their gradients, 0 where they are none."""

    def compute_gap(x: Tensor) -> Tensor:
        found = scores(net, x)
        return (found.gather(1, y[:, None]) - found.gather(1, rivals[:, None]))[:, 0]

    gap, slope = _differentiate(compute_gap, x)
    return gap, slope.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def _differentiate(values: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """One number of each sample, (N,), and its gradient in the sample, (N, ...)."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        found = values(x)
        slope = differentiate(found.sum(), x)
    return found.detach(), slope


def measure_distance(x: Tensor, points: Tensor) -> Tensor:
    """Compute the Euclidean distances between samples and points, (N,), rounded up."""
    return norm((points - x).flatten(1)) * (1 + share(x[0].numel()))


def one_each(values: Tensor, x: Tensor) -> Tensor:
    """Give values (N,) the dimensions of samples x, (N, 1, ...), so that they multiply them."""
    return values.reshape(-1, *[1] * (x.ndim - 1))


def judge_points(samples: Attacked, points: Tensor) -> tuple[Tensor, Tensor]:
    """Clip points to the box and ask the net whether they are misclassified; ties are.

    Points move a little behind the boundary: for a net that has a `judge`, which bounds the
    rounding of its scores, to where they are misclassified in exact arithmetic too; for others,
    where that is possible, to where batches of another size, which are rounded otherwise, agree.
    Distances from x, (N,), are infinite where a point is not known to be misclassified.
    """
    points = samples.clip(points.nan_to_num())
    with torch.no_grad():
        wrong = compute_margin(samples.net, points, samples.y) <= 0
    if wrong.any():
        points[wrong], behind = _step_behind(samples.part(wrong), points[wrong])
        if getattr(samples.net, "judge", None) is not None:
            wrong[wrong.clone()] = behind
    return measure_distance(samples.x, points).masked_fill(~wrong, torch.inf), points


def _step_behind(samples: Attacked, points: Tensor) -> tuple[Tensor, Tensor]:
    """Step down the margin, or without a slope away from x, until points are misclassified by more
    than rounding. Returns them, and which are.
    """
    net, x, y, _ = samples
    judge: BoundedScores | None = getattr(net, "judge", None)
    scale: float = getattr(net, "scale", 1.0) if judge else 1.0
    judge = judge or partial(_estimate_rounding, net)
    lacking = bound_margins(judge, points, y) / scale
    behind = lacking <= 0
    left = torch.nonzero(~behind)[:, 0]
    if not len(left):
        return points, behind
    _, slope = compute_margin_and_slope(net, points[left], y[left])
    steepness, away = norm(slope.flatten(1)), points[left] - x[left]
    flat = steepness == 0
    down = torch.where(one_each(flat, away), away, -slope)
    down = (down / one_each(norm(down.flatten(1)), down)).nan_to_num()
    length = 2 * lacking[left] / steepness
    length = torch.where(flat, _FLAT_STEP * norm(points[left].flatten(1)), length)
    for _ in range(_STEPS_BEHIND):
        moved = samples.clip((points[left] + one_each(length, down) * down).nan_to_num())
        with torch.no_grad():
            there = compute_margin(net, moved, y[left]) <= 0
        there &= bound_margins(judge, moved, y[left]) <= 0
        behind[left[there]] = True
        # What has not arrived steps on from where it began.
        points[left[there]] = moved[there]
        left, down, length = left[~there], down[~there], 4 * length[~there]
        if not len(left):
            break
    return points, behind


def _estimate_rounding(net: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The scores of a net without a judge, and what their rounding usually is below."""
    z = scores(net, x)
    return z, (_ROUNDING * z.abs().amax(1, keepdim=True)).expand_as(z)


def polish_points(samples: Attacked, points: Tensor) -> tuple[Tensor, Tensor]:
    """Judge points, and move misclassified ones along the boundary to where it is nearest."""
    distances, points = judge_points(samples, points)
    wrong = distances.isfinite()
    if not wrong.any():
        return distances, points
    moved = points.clone()
    with torch.no_grad():
        moved[wrong] = _descend_along_boundary(samples.part(wrong), points[wrong])
    nearest, moved = judge_points(samples, moved)
    # Where rounding decides about x itself, the boundary may lead to what no longer counts.
    nearer = one_each(nearest <= distances, moved)
    return torch.minimum(nearest, distances), torch.where(nearer, moved, points)


def _descend_along_boundary(samples: Attacked, points: Tensor) -> Tensor:
    """The nearest misclassified points that Newton steps along the boundary's tangent lead to."""
    net, x, y, _ = samples
    points = _find_first_crossing(samples, points, _FINE_BISECTIONS)
    best, nearest = measure_distance(x, points), points
    for _ in range(_BOUNDARY_STEPS):
        margin, slope = compute_margin_and_slope(net, points, y)
        aim = _project_onto_tangent(samples, points, margin, slope)
        wrong = compute_margin(net, aim, y) <= 0
        # An aim that is classified correctly is moved back towards the point that is not.
        back = _find_first_crossing(samples._replace(x=aim), points, _COARSE_BISECTIONS)
        candidate = torch.where(one_each(wrong, x), aim, back)
        points = _find_first_crossing(samples, candidate, _COARSE_BISECTIONS)
        distance = measure_distance(x, points)
        if not (distance < best * (1 - 1e-9)).any():
            break
        nearest = torch.where(one_each(distance < best, x), points, nearest)
        best = torch.minimum(best, distance)
    return _find_first_crossing(samples, nearest, _FINE_BISECTIONS)


def _project_onto_tangent(
    samples: Attacked, points: Tensor, margin: Tensor, slope: Tensor
) -> Tensor:
    """Find the z of the box nearest to x with margin + slope . (z - points) <= 0.

    It is x - t slope, clipped, for the smallest such t >= 0; the points show that there is one.
    """
    x, box = samples.x, samples.box
    start, slope, offset = x.flatten(1), slope.flatten(1), (points - x).flatten(1)
    # The value that slope . (z - x) must not exceed.
    needed = (slope * offset).sum(1, keepdim=True) - margin[:, None]
    squares = slope.square().sum(1, keepdim=True).clamp(min=1e-300)
    high = (-needed / squares).clamp(min=0)
    if box is None:
        return (start - (1 + _TANGENT_OVERSHOOT) * high * slope).reshape_as(x)

    def lacks(t: Tensor) -> Tensor:
        return (slope * ((start - t * slope).clamp(*box) - start)).sum(1, keepdim=True) > needed * (
            1 - 1e-12
        )

    # Clipping leaves t undetermined: double it until it suffices, then bisect.
    low = torch.zeros_like(high)
    for _ in range(_COARSE_BISECTIONS + _FINE_BISECTIONS):
        low, high = torch.where(lacks(high), high, low), torch.where(lacks(high), 4 * high, high)
    for _ in range(_FINE_BISECTIONS):
        middle = (low + high) / 2
        lacking = lacks(middle)
        low, high = torch.where(lacking, middle, low), torch.where(lacking, high, middle)
    return (start - (1 + _TANGENT_OVERSHOOT) * high * slope).clamp(*box).reshape_as(x)


def _find_first_crossing(samples: Attacked, points: Tensor, bisections: int) -> Tensor:
    """Bisect the segment from x to a misclassified point; the misclassified end of the bracket."""
    net, x, y, _ = samples
    low, high = x.new_zeros(len(x)), x.new_ones(len(x))
    for _ in range(bisections):
        middle = (low + high) / 2
        wrong = compute_margin(net, x + one_each(middle, x) * (points - x), y) <= 0
        low, high = torch.where(wrong, low, middle), torch.where(wrong, middle, high)
    found = x + one_each(high, x) * (points - x)
    # x + (points - x) may be rounded to another point, which need not be misclassified.
    return torch.where(one_each(high == 1, x), points, found)

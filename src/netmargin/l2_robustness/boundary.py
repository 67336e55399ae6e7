"""Points on the boundary between right and wrong: judged, and moved to where it is nearest."""

import torch
from torch import Tensor, nn

from ..core.nets import scores
from .certified import score_margins

_BOUNDARY_STEPS = 12
"""Newton steps along the boundary at most; they converge quadratically on each smooth piece of it,
and usually stop earlier.
"""
_COARSE_BISECTIONS = 16
"""Bisections of a segment that crosses the boundary, while points move: 2^-16 of its length is less
than the next step changes.
"""
_FINE_BISECTIONS = 48
"""Bisections at the end: to 4e-15 of a segment, about the rounding of its ends."""
_TANGENT_OVERSHOOT = 1e-6
"""Relative distance by which a step goes beyond the tangent: the boundary itself is misclassified,
and rounding may miss it.
"""


def compute_margin(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Compute the smallest score gap of each sample, (N,)."""
    return score_margins(net, x, y).amin(1)


def compute_margin_and_slope(net: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the smallest score gaps, (N,), and their gradients in the inputs, (N, ...)."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        margin = compute_margin(net, x, y)
        (slope,) = torch.autograd.grad(margin.sum(), x)
    return margin.detach(), slope


def compute_gap_and_slope(
    net: nn.Module, x: Tensor, y: Tensor, rivals: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the gaps between the scores of y and of one rival each, (N,), and their gradients.

    Gradients that are no numbers are 0.
    """
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        found = scores(net, x)
        gap = (found.gather(1, y[:, None]) - found.gather(1, rivals[:, None]))[:, 0]
        (slope,) = torch.autograd.grad(gap.sum(), x)
    return gap.detach(), slope.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def measure_distance(x: Tensor, points: Tensor) -> Tensor:
    """Compute the Euclidean distances between samples and points, (N,)."""
    return (points - x).flatten(1).norm(dim=1)


def one_each(values: Tensor, x: Tensor) -> Tensor:
    """Give values (N,) the dimensions of samples x, (N, 1, ...), so that they multiply them."""
    return values.reshape(-1, *[1] * (x.ndim - 1))


def judge_points(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None
) -> tuple[Tensor, Tensor]:
    """Clip points to the box and ask the net whether they are misclassified; ties are.

    Returns
    -------
    distances : tensor, (N,)
        Their distances from x, infinite where a point is classified correctly.
    points : tensor, (N, ...)
        The clipped points.
    """
    points = points.nan_to_num()
    points = points.clamp(*box) if box else points
    with torch.no_grad():
        wrong = compute_margin(net, points, y) <= 0
    return measure_distance(x, points).masked_fill(~wrong, torch.inf), points


def polish_points(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None
) -> tuple[Tensor, Tensor]:
    """Judge points, and move misclassified ones along the boundary to where it is nearest.

    Returns
    -------
    distances : tensor, (N,)
        The distances of the points, infinite where a point is classified correctly.
    points : tensor, (N, ...)
        The points, misclassified and in the box where the distance is finite.
    """
    distances, points = judge_points(net, x, y, points, box)
    wrong = distances.isfinite()
    if wrong.any():
        with torch.no_grad():
            points[wrong] = _descend_along_boundary(net, x[wrong], y[wrong], points[wrong], box)
    return judge_points(net, x, y, points, box)


def _descend_along_boundary(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None
) -> Tensor:
    """Move misclassified points along the boundary towards x, by Newton steps on its tangent.

    Returns the nearest misclassified points on the way.
    """
    points = find_first_crossing(net, x, y, points, _FINE_BISECTIONS)
    best, nearest = measure_distance(x, points), points
    for _ in range(_BOUNDARY_STEPS):
        margin, slope = compute_margin_and_slope(net, points, y)
        aim = _project_onto_tangent(x, points, margin, slope, box)
        wrong = compute_margin(net, aim, y) <= 0
        # An aim that is classified correctly is moved back towards the point that is not.
        candidate = torch.where(
            one_each(wrong, x), aim, find_first_crossing(net, aim, y, points, _COARSE_BISECTIONS)
        )
        points = find_first_crossing(net, x, y, candidate, _COARSE_BISECTIONS)
        distance = measure_distance(x, points)
        if not (distance < best * (1 - 1e-9)).any():
            break
        nearest = torch.where(one_each(distance < best, x), points, nearest)
        best = torch.minimum(best, distance)
    return find_first_crossing(net, x, y, nearest, _FINE_BISECTIONS)


def _project_onto_tangent(
    x: Tensor, points: Tensor, margin: Tensor, slope: Tensor, box: tuple[float, float] | None
) -> Tensor:
    """Find the z of the box nearest to x with margin + slope . (z - points) <= 0.

    It is x - t slope, clipped, for the smallest such t >= 0; the points show that there is one.
    """
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


def find_first_crossing(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, bisections: int
) -> Tensor:
    """Bisect the segment from x to a misclassified point for where it crosses the boundary.

    Returns the end of the bracket that is misclassified.
    """
    low, high = x.new_zeros(len(x)), x.new_ones(len(x))
    for _ in range(bisections):
        middle = (low + high) / 2
        wrong = compute_margin(net, x + one_each(middle, x) * (points - x), y) <= 0
        low, high = torch.where(wrong, low, middle), torch.where(wrong, middle, high)
    found = x + one_each(high, x) * (points - x)
    # x + (points - x) may be rounded to another point, which need not be misclassified.
    return torch.where(one_each(high == 1, x), points, found)

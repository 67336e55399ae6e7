"""The nearest misclassified inputs that attacks find, each validated in float64."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..core.nets import scores
from ..errors import MissingLibraryError
from .certified import score_margins

ATTACKS = ("deepfool", "ddn", "carlini-wagner")
"""The names of the attacks, in the order in which they run."""
SEARCH = "random search"
"""The name under which points of the random search are reported."""
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
_SCALED_MEDIAN_MARGIN = 10.0
"""Median margin of the scores that attacks see. At 1 the gradient of the cross-entropy is not yet
that of the nearest class, and DDN finds radii 5% larger on digits.
"""
_TANGENT_OVERSHOOT = 1e-6
"""Relative distance by which a step goes beyond the tangent: the boundary itself is misclassified,
and rounding may miss it.
"""
_RANDOM_POINTS = 2048
"""Random points per sample and round, divided by the dimension: a ball of many dimensions cannot be
searched, ...
"""
_LEAST_RANDOM_POINTS = 16
"""... but so many points are tried in any case, as they cost little beside an attack."""
_PATIENCE = 4
"""Rounds of random points without progress, after which the search ends, since one round can miss
by chance. On small nets in 4 dimensions and on digits, 1 to 16 found the same radii.
"""
_LEAST_PROGRESS = 1e-3
"""A round that brings no sample nearer by this share counts as one without progress: attacked radii
are compared to about a per cent, and smaller gains would keep the search going.
"""


class ScaledScores(nn.Module):
    """A net with scores divided by a number, and two classes (-f / 2, f / 2) for one output f."""

    def __init__(self, net: nn.Module, scale: float):
        super().__init__()
        self.net, self.scale = net, scale

    def forward(self, x: Tensor) -> Tensor:
        """Compute the scores, (N, C), of inputs (N, ...)."""
        z = scores(self.net, x) / self.scale
        return torch.cat([-z, z], 1) / 2 if z.shape[1] == 1 else z


def nearest_misclassified(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    attacks: Sequence[str],
    bounds: tuple[float, float],
    clipped: bool,
    scale: float,
    steps: int,
) -> tuple[Tensor, Tensor]:
    """Find the nearest misclassified points that attacks and a random search can find.

    Parameters
    ----------
    net : torch.nn.Module
        A float64 net.
    x : tensor, (N, ...)
        Samples that it classifies correctly.
    y : tensor, (N,)
        Signs for a net with one output, or class indices.
    attacks : sequence of str
        Names from `ATTACKS`.
    bounds : (float, float)
        Smallest and largest value of the inputs that attacks may try.
    clipped : bool
        Whether the bounds are a box that results must respect.
    scale : float
        The median margin. Scores are divided by it, so that attacks, whose steps are made for
        scores of order 1, see the same net whatever the size of its parameters.
    steps : int
        Steps of Carlini-Wagner in each of its binary search steps.

    Returns
    -------
    distances : tensor, (N,)
        Distances to the points found, infinite where there is none.
    found_by : int64 tensor, (N,)
        The index of the attack, len(attacks) for the random search, -1 for none.
    """
    foolbox = _import_foolbox()
    box = bounds if clipped else None
    # From here on scores are of order 1: no square of a slope underflows.
    net = ScaledScores(net, scale / _SCALED_MEDIAN_MARGIN).eval()
    classes = (y > 0).long() if y.is_floating_point() else y
    with torch.no_grad():
        first_order = _measure_median_linear_distance(net, x, classes)
    made = {  # only those that are asked for are made
        "deepfool": lambda: foolbox.attacks.L2DeepFoolAttack(),
        "ddn": lambda: foolbox.attacks.DDNAttack(init_epsilon=first_order),
        "carlini-wagner": lambda: foolbox.attacks.L2CarliniWagnerAttack(
            binary_search_steps=6, steps=steps, initial_const=0.1
        ),
    }
    attacked = foolbox.PyTorchModel(net, bounds=bounds, device=x.device)
    best, found_by = x.new_full((len(x),), torch.inf), torch.full((len(x),), -1, device=x.device)
    for index, name in enumerate(attacks):
        # Attacks start within their bounds, also where rounding put a sample a bit outside.
        with torch.random.fork_rng():
            torch.manual_seed(0)
            points = made[name]()(attacked, x.clamp(*bounds), classes, epsilons=None)[0].detach()
        distance = _validate_points(net, x, classes, points, box)
        nearer = distance < best
        best, found_by = torch.where(nearer, distance, best), torch.where(nearer, index, found_by)
    distance = _search_ball(
        net, x, classes, best, box, widest=(bounds[1] - bounds[0]) * x[0].numel() ** 0.5
    )
    return distance, torch.where(distance < best, len(attacks), found_by)


def _search_ball(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    best: Tensor,
    box: tuple[float, float] | None,
    *,
    widest: float,
) -> Tensor:
    """Search the ball around each sample, out to the distance known, by random points.

    The ball is as wide as the inputs may be where no distance is known. In few dimensions attacks
    on their own miss the nearest piece of the boundary. Returns the distances, (N,).
    """
    random = torch.Generator(x.device).manual_seed(0)
    rounds_without = 0
    while rounds_without < _PATIENCE:
        nearest, start = best.clone(), x.clone()
        for _ in range(max(_RANDOM_POINTS // x[0].numel(), _LEAST_RANDOM_POINTS)):
            direction = torch.randn(
                x.shape, generator=random, dtype=x.dtype, device=x.device
            ).flatten(1)
            # Uniform in the ball: the radius is a uniform number to the power 1 / dimension.
            share = torch.rand(len(x), generator=random, dtype=x.dtype, device=x.device) ** (
                1 / direction.shape[1]
            )
            radius = best.clamp(max=widest) * share
            points = x + (direction * (radius / direction.norm(dim=1))[:, None]).reshape_as(x)
            points = points.clamp(*box) if box else points
            distance = (points - x).flatten(1).norm(dim=1)
            with torch.no_grad():
                hit = (_compute_margin(net, points, y) <= 0) & (distance < nearest)
            nearest = torch.where(hit, distance, nearest)
            start = torch.where(hit.reshape(-1, *[1] * (x.ndim - 1)), points, start)
        hit = nearest < best
        if hit.any():
            nearest[hit] = _validate_points(net, x[hit], y[hit], start[hit], box)
        rounds_without = 0 if (nearest < best * (1 - _LEAST_PROGRESS)).any() else rounds_without + 1
        best = torch.minimum(best, nearest)
    return best


def _import_foolbox():
    """Import foolbox, or say how to install it."""
    try:
        import foolbox
    except ImportError as error:
        raise MissingLibraryError(
            "Attacks need the library foolbox: pip install 'netmargin[attacks]'. Or pass attacks=()"
            " for certified radii alone."
        ) from error
    return foolbox


def _measure_median_linear_distance(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """Compute the median distance to the boundary, as if the net were linear."""
    margin, slope = _compute_margin_and_slope(net, x, y)
    distances = margin / slope.flatten(1).norm(dim=1).clamp(min=1e-300)
    return float(distances.median().clamp(1e-6, 1e6))


def _compute_margin(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Compute the smallest score gap of each sample, (N,)."""
    return score_margins(net, x, y).amin(1)


def _compute_margin_and_slope(net: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the smallest score gaps, (N,), and their gradients in the inputs, (N, ...)."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        margin = _compute_margin(net, x, y)
        (slope,) = torch.autograd.grad(margin.sum(), x)
    return margin.detach(), slope


def _validate_points(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None
) -> Tensor:
    """Compute the distances of points that are misclassified, after clipping them to the box.

    Points are moved along the boundary to where it is nearest. The distance is infinite where a
    point is classified correctly.
    """
    points = points.nan_to_num().clamp(*box) if box else points.nan_to_num()
    with torch.no_grad():
        wrong = _compute_margin(net, points, y) <= 0
        distance = x.new_full((len(x),), torch.inf)
        if wrong.any():
            distance[wrong] = _polish(net, x[wrong], y[wrong], points[wrong], box)
        return distance


def _polish(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None
) -> Tensor:
    """Move misclassified points along the boundary towards x, by Newton steps on its tangent.

    Returns the distances, (N,), of the nearest misclassified points on the way.
    """
    points = _find_first_crossing(net, x, y, points, _FINE_BISECTIONS)
    best, nearest = (points - x).flatten(1).norm(dim=1), points
    shape = (-1, *[1] * (x.ndim - 1))
    for _ in range(_BOUNDARY_STEPS):
        margin, slope = _compute_margin_and_slope(net, points, y)
        aim = _project_onto_tangent(x, points, margin, slope, box)
        wrong = _compute_margin(net, aim, y) <= 0
        # An aim that is classified correctly is moved back towards the point that is not.
        candidate = torch.where(
            wrong.reshape(shape), aim, _find_first_crossing(net, aim, y, points, _COARSE_BISECTIONS)
        )
        points = _find_first_crossing(net, x, y, candidate, _COARSE_BISECTIONS)
        distance = (points - x).flatten(1).norm(dim=1)
        if not (distance < best * (1 - 1e-9)).any():
            break
        nearest = torch.where((distance < best).reshape(shape), points, nearest)
        best = torch.minimum(best, distance)
    return (_find_first_crossing(net, x, y, nearest, _FINE_BISECTIONS) - x).flatten(1).norm(dim=1)


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


def _find_first_crossing(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, bisections: int
) -> Tensor:
    """Bisect the segment from x to a misclassified point for where it crosses the boundary.

    Returns the end of the bracket that is misclassified.
    """
    shape = (-1, *[1] * (x.ndim - 1))
    low, high = x.new_zeros(len(x)), x.new_ones(len(x))
    for _ in range(bisections):
        middle = (low + high) / 2
        wrong = _compute_margin(net, x + middle.reshape(shape) * (points - x), y) <= 0
        low, high = torch.where(wrong, low, middle), torch.where(wrong, middle, high)
    found = x + high.reshape(shape) * (points - x)
    # x + (points - x) may be rounded to another point, which need not be misclassified.
    return torch.where((high == 1).reshape(shape), points, found)

"""The nearest misclassified inputs that attacks find, each judged again in float64."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..errors import MissingLibraryError
from .certified import score_margins

ATTACKS = ("deepfool", "ddn", "carlini-wagner")
SEARCH = "random search"
_POLISHINGS, _COARSE, _FINE = 12, 16, 48
"""Steps along the boundary, and bisections of a way to it: while moving, and at the end."""
_MEDIAN_MARGIN = 10.0
"""Of the scores that attacks see. At 1 the gradient of the cross-entropy is not yet that of the
nearest class, and DDN finds radii 5% larger on digits.
"""
_BEYOND = 1e-6
"""How far a step goes beyond the tangent, relative: the boundary itself counts, rounding may miss
it.
"""
_TRIES, _LEAST_TRIES, _IN_VAIN = 2048, 16, 4
"""Random points per sample and round, divided by the dimension (a ball of many dimensions cannot be
searched), and rounds without success after which the search ends.
"""


class ScaledScores(nn.Module):
    """Scores divided by a number, always one per class: of f, (-f / 2, f / 2)."""

    def __init__(self, net: nn.Module, scale: float):
        super().__init__()
        self.net, self.scale = net, scale

    def forward(self, x: Tensor) -> Tensor:
        z = self.net(x).reshape(len(x), -1) / self.scale
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
    """Distances (N,) from correctly classified samples to the nearest misclassified points found,
    infinite where there is none, and which attack found them (N,), -1 for none.

    bounds : of all inputs that attacks may try.
    clipped : whether they are a box that results must respect.
    scale : the median margin, by which the scores are divided, so that attacks, whose steps are
        made for logits of order 1, see the same net whatever the size of its parameters.
    """
    foolbox = _foolbox()
    box = bounds if clipped else None
    # From here on scores are of order 1: no square of a slope underflows.
    net = ScaledScores(net, scale / _MEDIAN_MARGIN).eval()
    classes = (y > 0).long() if y.is_floating_point() else y
    with torch.no_grad():
        first_order = _first_order(net, x, classes)
    made = {
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
        distance = _judged(net, x, classes, points, box)
        nearer = distance < best
        best, found_by = torch.where(nearer, distance, best), torch.where(nearer, index, found_by)
    distance = _searched(
        net, x, classes, best, box, widest=(bounds[1] - bounds[0]) * x[0].numel() ** 0.5
    )
    return distance, torch.where(distance < best, len(attacks), found_by)


def _searched(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    best: Tensor,
    box: tuple[float, float] | None,
    *,
    widest: float,
) -> Tensor:
    """Distances after random points in the ball around each sample that is known to reach the
    boundary, or as wide as the inputs may be; in few dimensions attacks alone miss the nearest
    piece of it.
    """
    random = torch.Generator(x.device).manual_seed(0)
    in_vain = 0
    while in_vain < _IN_VAIN:
        nearest, start = best.clone(), x.clone()
        for _ in range(max(_TRIES // x[0].numel(), _LEAST_TRIES)):
            direction = torch.randn(
                x.shape, generator=random, dtype=x.dtype, device=x.device
            ).flatten(1)
            share = torch.rand(len(x), generator=random, dtype=x.dtype, device=x.device) ** (
                1 / direction.shape[1]
            )
            radius = best.clamp(max=widest) * share
            points = x + (direction * (radius / direction.norm(dim=1))[:, None]).reshape_as(x)
            points = points.clamp(*box) if box else points
            distance = (points - x).flatten(1).norm(dim=1)
            with torch.no_grad():
                hit = (_margin(net, points, y) <= 0) & (distance < nearest)
            nearest = torch.where(hit, distance, nearest)
            start = torch.where(hit.reshape(-1, *[1] * (x.ndim - 1)), points, start)
        hit = nearest < best
        if hit.any():
            nearest[hit] = _judged(net, x[hit], y[hit], start[hit], box)
        in_vain = 0 if (nearest < best * (1 - 1e-3)).any() else in_vain + 1
        best = torch.minimum(best, nearest)
    return best


def _foolbox():
    try:
        import foolbox
    except ImportError as error:
        raise MissingLibraryError(
            "Attacks need the library foolbox: pip install 'netmargin[attacks]'. Or pass attacks=()"
            " for certified radii alone."
        ) from error
    return foolbox


def _first_order(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """The median distance to the boundary if the net were linear."""
    margin, slope = _margin_and_slope(net, x, y)
    distances = margin / slope.flatten(1).norm(dim=1).clamp(min=1e-300)
    return float(distances.median().clamp(1e-6, 1e6))


def _margin(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return score_margins(net, x, y).amin(1)


def _margin_and_slope(net: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        margin = _margin(net, x, y)
        (slope,) = torch.autograd.grad(margin.sum(), x)
    return margin.detach(), slope


def _judged(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None
) -> Tensor:
    """Distances of the points that are misclassified and in the box, moved along the boundary to
    where it is nearest; infinite for the others.
    """
    points = points.nan_to_num().clamp(*box) if box else points.nan_to_num()
    with torch.no_grad():
        wrong = _margin(net, points, y) <= 0
        distance = x.new_full((len(x),), torch.inf)
        if wrong.any():
            distance[wrong] = _polished(net, x[wrong], y[wrong], points[wrong], box)
        return distance


def _polished(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, box: tuple[float, float] | None
) -> Tensor:
    """Newton steps along the boundary towards x, by its tangent; what counts is the nearest
    misclassified point on the way.
    """
    points = _first_crossing(net, x, y, points, _FINE)
    best, nearest = (points - x).flatten(1).norm(dim=1), points
    shape = (-1, *[1] * (x.ndim - 1))
    for _ in range(_POLISHINGS):
        margin, slope = _margin_and_slope(net, points, y)
        aim = _nearest_on_tangent(x, points, margin, slope, box)
        wrong = _margin(net, aim, y) <= 0
        # From an aim that is classified correctly back towards the point that is not.
        candidate = torch.where(
            wrong.reshape(shape), aim, _first_crossing(net, aim, y, points, _COARSE)
        )
        points = _first_crossing(net, x, y, candidate, _COARSE)
        distance = (points - x).flatten(1).norm(dim=1)
        if not (distance < best * (1 - 1e-9)).any():
            break
        nearest = torch.where((distance < best).reshape(shape), points, nearest)
        best = torch.minimum(best, distance)
    return (_first_crossing(net, x, y, nearest, _FINE) - x).flatten(1).norm(dim=1)


def _nearest_on_tangent(
    x: Tensor, points: Tensor, margin: Tensor, slope: Tensor, box: tuple[float, float] | None
) -> Tensor:
    """The z of the box nearest to x with margin + slope . (z - points) <= 0: x - t slope, clipped,
    for the smallest such t >= 0; the points show that there is one.
    """
    start, slope, offset = x.flatten(1), slope.flatten(1), (points - x).flatten(1)
    needed = (slope * offset).sum(1, keepdim=True) - margin[
        :, None
    ]  # of slope . (z - x), at least as low
    squares = slope.square().sum(1, keepdim=True).clamp(min=1e-300)
    high = (-needed / squares).clamp(min=0)
    if box is None:
        return (start - (1 + _BEYOND) * high * slope).reshape_as(x)

    def lacks(t: Tensor) -> Tensor:
        return (slope * ((start - t * slope).clamp(*box) - start)).sum(1, keepdim=True) > needed * (
            1 - 1e-12
        )

    low = torch.zeros_like(high)
    for _ in range(_COARSE + _FINE):
        low, high = torch.where(lacks(high), high, low), torch.where(lacks(high), 4 * high, high)
    for _ in range(_FINE):
        middle = (low + high) / 2
        lacking = lacks(middle)
        low, high = torch.where(lacking, middle, low), torch.where(lacking, high, middle)
    return (start - (1 + _BEYOND) * high * slope).clamp(*box).reshape_as(x)


def _first_crossing(
    net: nn.Module, x: Tensor, y: Tensor, points: Tensor, bisections: int
) -> Tensor:
    """Where the way from x to a misclassified point becomes so, by bisection; that end of the
    bracket which is misclassified.
    """
    shape = (-1, *[1] * (x.ndim - 1))
    low, high = x.new_zeros(len(x)), x.new_ones(len(x))
    for _ in range(bisections):
        middle = (low + high) / 2
        wrong = _margin(net, x + middle.reshape(shape) * (points - x), y) <= 0
        low, high = torch.where(wrong, low, middle), torch.where(wrong, middle, high)
    found = x + high.reshape(shape) * (points - x)
    # Rounding may make the same point another one, if high is 1.
    return torch.where((high == 1).reshape(shape), points, found)

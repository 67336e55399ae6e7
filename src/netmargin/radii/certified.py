"""Certified radii: no input nearer than these is misclassified."""

import torch
from torch import Tensor, nn

from ..margins import score_gaps
from ..nets.gradients import differentiate_each
from .layer_rules import KINKS
from .lipschitz import is_linear, kink_constant, multiply_norms, norm, run_layers, stretches_of
from .products import SMALLEST_NORMAL, multiply_absolute
from .rounding import rounding_errors

_SLOPES_PER_SAMPLE = 2_000_000
"""Slopes of all units in all inputs up to which the linear region of a sample is looked at: 16 MB
in float64 each, so that small nets on images pass, and convolutional ones do not.
"""
_SLOPES_AT_ONCE = 20_000_000
"""Slopes of a batch that are held at once: 160 MB in float64."""
_LARGEST = torch.finfo(torch.float64).max
"""The largest float64 number, which stands for radii beyond it."""

CERTIFICATES = ("", "misclassified", "Lipschitz constant", "relaxation", "tree of regions")
"""What a certified radius rests on. A sample that is misclassified by more than rounding has radius
0; "" stands for a radius of which nothing is known but that it is not negative.
"""
NOTHING, MISCLASSIFIED, LIPSCHITZ, RELAXATION, BRANCHES = range(len(CERTIFICATES))


def certified_radii(
    net: list[nn.Module], x: Tensor, y: Tensor, norms: list[float], last: Tensor
) -> Tensor:
    """Compute radii within which all score gaps of y provably stay positive; 0 for wrong samples.

    It is the smallest gap, less what rounding may have added, over its Lipschitz constant. Where
    the slopes of all ReLUs of a piecewise linear net can be afforded, also: gaps are linear as far
    as no unit changes sign, and have at most their Lipschitz constant as slope from there on.

    net : its layers. norms, last : from `lipschitz.chain_norms`; their product is the Lipschitz
    constant of each gap.
    """
    # Piecewise linear by its ReLUs only, and small enough for slopes of its own region.
    local = all(is_linear(layer) or isinstance(layer, KINKS) for layer in net)
    local = local and _count_slopes(net, x) <= _SLOPES_PER_SAMPLE
    with torch.no_grad():
        errors = rounding_errors(net, x, norms, units=local)
        unit_errors, errors = errors.split([errors.shape[1] - len(last), len(last)], 1)
        own = errors.gather(1, y[:, None]) if errors.shape[1] > 1 else 0.0
        gaps = score_gaps(run_layers(net, x).reshape(len(x), -1), y) - (own + errors)
    lipschitz = multiply_norms(norms, last.to(x.device))
    constants = lipschitz[y] if lipschitz.shape[1] > 1 else lipschitz.expand(len(x), 1)
    radii = _divide_gaps(gaps, constants)
    if local:
        size = max(1, _SLOPES_AT_ONCE // _count_slopes(net, x))
        of_samples = (x, y, gaps, constants, unit_errors)
        parts = zip(*(values.split(size) for values in of_samples), strict=True)
        slope_errors = _bound_slope_errors(net, x[:1], norms)
        found = [_compute_local_radii(net, slope_errors, *part) for part in parts]
        radii = torch.maximum(radii, torch.cat(found))
    return torch.where(gaps.amin(1) > 0, radii.amin(1), 0.0)


def _divide_gaps(gaps: Tensor, slopes: Tensor) -> Tensor:
    """Divide gaps by slopes; infinite where a positive gap does not change, and there alone."""
    flat = slopes == 0
    least = (gaps / torch.where(flat, 1.0, slopes)).clamp(max=_LARGEST)
    return torch.where(flat, torch.where(gaps > 0, torch.inf, 0.0), least).nan_to_num(
        nan=0.0, posinf=torch.inf
    )


def _evaluate_units(net: list[nn.Module], x: Tensor) -> tuple[list[Tensor], Tensor]:
    """Compute the inputs of all ReLUs, (N, units) each, and the scores, (N, C)."""
    entering = []
    for layer in net:
        if isinstance(layer, KINKS):
            entering.append(x.flatten(1))
        x = layer(x)
    return entering, x.reshape(len(x), -1)


def _count_slopes(net: list[nn.Module], x: Tensor) -> int:
    """Count the derivatives of all units and scores in all inputs, for one sample."""
    with torch.no_grad():
        entering, scores = _evaluate_units(net, x[:1])
    return x[0].numel() * (sum(part.numel() for part in entering) + scores.numel())


def _bound_slope_errors(
    net: list[nn.Module], x: Tensor, norms: list[float]
) -> tuple[Tensor, Tensor]:
    """Bound the lengths of the rounding errors in the slopes of all ReLUs' inputs, (units,), and of
    the scores, (C,), in any linear region.

    x : one sample, (1, ...).
    """
    # Of the slopes of a stretch's outputs: bounds of their norm, of the norm of their errors, and
    # of what vanishes on the way back to the inputs.
    size, error, lost = 1.0, 0.0, 0.0
    units, outputs = [x.new_zeros(0)], torch.zeros_like(x).flatten()
    with torch.no_grad():
        for index, (linear, part) in enumerate(stretches_of(net)):
            if linear:
                product = multiply_absolute(part, x)
                grown = norms[index] if index < len(norms) else product.norm
                lengths = product.rows.clamp(max=product.norm)
                lost += product.vanished.sum().item() * size
                outputs = lengths * (product.share * size + error) + lost
                outputs = torch.where(product.vanished > 0, outputs, 0.0)
                error = grown * error + product.share * product.norm * size
                size = max(grown * size, SMALLEST_NORMAL)
            for layer in part:
                if not linear:  # a ReLU, LeakyReLU or PReLU
                    units.append(outputs)
                    grown = kink_constant(layer, x)
                    size, error, outputs = grown * size, grown * error, grown * outputs
                x = layer(x)
    return torch.cat(units).nan_to_num(torch.inf), outputs.nan_to_num(torch.inf)


def _compute_local_radii(
    net: list[nn.Module],
    slope_errors: tuple[Tensor, Tensor],
    x: Tensor,
    y: Tensor,
    gaps: Tensor,
    constants: Tensor,
    value_errors: Tensor,
) -> Tensor:
    """Compute the radius of each gap, (N, C), with the slopes of the sample's own linear region.

    slope_errors : from `_bound_slope_errors`. value_errors : how far the inputs of all ReLUs are
    at most from the exact ones, (N, units).
    """
    x, (unit_errors, score_errors) = x.detach().requires_grad_(), slope_errors
    with torch.enable_grad():
        entering, scores = _evaluate_units(net, x)
        outputs = torch.cat([*entering, scores], 1)
    units = outputs.shape[1] - scores.shape[1]
    # One backward pass for all units and scores: (their number, N, *inputs). `torch.func.jacrev`
    # would do the same, but imports torch's compiler, which takes longer than many radii.
    each = torch.eye(outputs.shape[1], dtype=x.dtype, device=x.device)[:, None]
    (slopes,) = differentiate_each(outputs, [x], each.expand(-1, len(x), -1))
    slopes, score_slopes = slopes.movedim(0, 1).split([units, scores.shape[1]], 1)
    with torch.no_grad():
        at = outputs[:, :units].abs()
        # What is left of it for certain, so that no unit changes sign in exact arithmetic either:
        # a gap allows for the rounding of units at x alone, where dead ones have none.
        at = torch.where(value_errors < at, at - value_errors, 0.0)
        # Slopes that cancel or vanish are no zeros.
        steep = norm(slopes.flatten(2)) + unit_errors if at.shape[1] else at
        # Units that do not change here, such as those behind dead ones, never change sign.
        reach = torch.where(steep > 0, at / torch.where(steep > 0, steep, 1.0), torch.inf)
        region = torch.cat([reach, x.new_full((len(x), 1), torch.inf)], 1).amin(1, keepdim=True)
        score_slopes = score_slopes.flatten(2)
        rounded = score_errors
        if score_slopes.shape[1] > 1:
            own = score_slopes.gather(1, y[:, None, None].expand(-1, 1, score_slopes.shape[2]))
            score_slopes = own - score_slopes
            rounded = score_errors[y][:, None] + score_errors
        # Where slopes nearly cancel, rounding may be all that is left of their difference. The
        # bound counts twice the n roundings of a sum (`share`) and 16 more of all that is
        # multiplied: enough for those of this norm and of what is computed from it, too.
        steepness = norm(score_slopes) + rounded
        within = _divide_gaps(gaps, steepness)
        after = region + _divide_gaps((gaps - region * steepness).clamp(min=0), constants)
        return torch.where(within <= region, within, after)

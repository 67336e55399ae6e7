"""Bounds of the rounding errors in the float64 scores of a chain of layers."""

import torch
from torch import Tensor, nn

from .layer_rules import KINKS
from .layers import Branches, Moved, Scaled
from .lipschitz import is_linear, kink_constant, norm, run_layers, stretches_of
from .products import SMALLEST_NORMAL, absolute_layer, share


def rounding_errors(
    net: list[nn.Module], x: Tensor, norms: list[float], *, units: bool = False
) -> Tensor:
    """Bound |computed - exact| of the scores of samples, (N, C).

    An error grows by absolute weights within a stretch of layers, and by no more than its norm from
    its start to its end: the smaller of both is taken, as in deep nets the first alone would soon
    exceed the values.

    norms : the norms of the stretches, without a last linear one, from `lipschitz.chain_norms`.
    units : whether to bound the inputs of all ReLUs before them as well, (N, units + C).
    """
    errors, entering = torch.zeros_like(x), []
    with torch.no_grad():
        for index, (_, part) in enumerate(stretches_of(net)):
            before = norm(errors.flatten(1))
            fresh = torch.zeros_like(x) if index else errors  # of the samples there are none
            for layer in part:
                if units and isinstance(layer, KINKS):
                    entering.append(errors.flatten(1))
                grown = propagate_errors(layer, x, errors)
                fresh = propagate_errors(layer, x, fresh) if index else grown
                errors, x = grown, layer(x)
            if index < len(norms):
                most = norms[index] * before + norm(fresh.flatten(1))
                # A norm that is no float64 number says nothing.
                errors = torch.fmin(errors, most.reshape(-1, *[1] * (errors.ndim - 1)))
    return torch.cat([*entering, errors.reshape(len(x), -1)], 1)


def propagate_errors(layer: nn.Module, x: Tensor, errors: Tensor) -> Tensor:
    """Bound the errors in the outputs of a layer whose inputs x are off by `errors`."""
    if isinstance(layer, (nn.MaxPool1d, nn.MaxPool2d, Moved, nn.Identity)):
        # No maximum is off by more than its parts.
        return run_layers([layer], errors)
    part = share(1 if isinstance(layer, Scaled) else x[0].numel())
    if isinstance(layer, Branches):
        ends: list[Tensor] = []
        off: list[Tensor] = []
        for chain in layer.parts:
            h, error = x, errors
            for inner in chain:
                h, error = inner(h), propagate_errors(inner, h, error)
            ends, off = [*ends, h.abs()], [*off, error]
        return (1 + part) * layer.join(off) + part * layer.join(ends)
    active = x.flatten(1).any(1) | errors.flatten(1).any(1)
    vanished = SMALLEST_NORMAL * active.double().reshape(-1, *[1] * (layer(x[:1]).ndim - 1))
    if isinstance(layer, nn.ReLU):  # exact, and 0 where it is 0 for certain
        return torch.where(x + errors > 0, errors, 0.0)
    if not is_linear(layer):
        return torch.add(kink_constant(layer, x) * errors, part * layer(x).abs()) + vanished
    # Rounding adds a share to everything.
    return torch.add(part * absolute_layer(layer)(errors / part + x.abs()), vanished)

"""Bounds of the rounding errors in the float64 scores of a chain of layers."""

import copy

import torch
from torch import Tensor, nn

from .lipschitz import is_linear, kink_constant, norm, stretches_of

_UNIT_ROUNDOFF = 2.0**-52
"""Twice the unit roundoff of float64: a sum of n products is off by at most n of these, times the
sum of the absolute values (Higham 2002, Section 3.1), and what is left covers second-order
terms.
"""
_ROUNDINGS_PER_FUNCTION = 16
"""Roundings counted for a function of one number, such as tanh or a normalization: more than any of
them is off by.
"""


def rounding_errors(net: nn.Module, x: Tensor, norms: list[float]) -> Tensor:
    """Bound |computed - exact| of the scores of samples, (N, C).

    An error grows by absolute weights within a stretch of layers, and by no more than its norm from
    its start to its end: the smaller of both is taken, as in deep nets the first alone would soon
    exceed the values.

    norms : the norms of the stretches, without a last linear one, from `lipschitz.chain_norms`.
    """
    errors = torch.zeros_like(x)
    with torch.no_grad():
        for index, (_, part) in enumerate(stretches_of(net)):
            before, fresh = norm(errors.flatten(1)), torch.zeros_like(x)
            for layer in part:
                errors, fresh, x = (
                    propagate_errors(layer, x, errors),
                    propagate_errors(layer, x, fresh),
                    layer(x),
                )
            if index < len(norms):
                most = norms[index] * before + norm(fresh.flatten(1))
                errors = torch.minimum(errors, most.reshape(-1, *[1] * (errors.ndim - 1)))
    return errors.reshape(len(x), -1)


def propagate_errors(layer: nn.Module, x: Tensor, errors: Tensor) -> Tensor:
    """Bound the errors in the outputs of a layer whose inputs x are off by `errors`."""
    if isinstance(layer, (nn.MaxPool1d, nn.MaxPool2d)):  # no maximum is off by more than its parts
        return layer(errors)
    share = _UNIT_ROUNDOFF * (x[0].numel() + _ROUNDINGS_PER_FUNCTION)
    if not is_linear(layer):
        return kink_constant(layer) * errors + share * layer(x).abs()
    # The layer with absolute weights, whose biases are multiplied by the share that rounding adds
    # to everything.
    absolute = copy.deepcopy(layer)
    for name, values in [*absolute.named_parameters(), *absolute.named_buffers()]:
        if name == "weight":
            values.abs_()
        elif name == "bias":
            values.abs_().mul_(share)
        elif name == "running_mean":  # it is subtracted
            values.abs_().mul_(-share)
    return absolute(errors + share * x.abs())

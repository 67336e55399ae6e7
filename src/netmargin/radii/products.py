"""What rounding may change in the product of linear layers: a share of that of absolute ones."""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .layers import Scaled

_UNIT_ROUNDOFF = 2.0**-52
"""Twice the unit roundoff of float64: a sum of n products is off by at most n of these, times the
sum of the absolute values (Higham 2002, Section 3.1), and what is left covers second-order
terms.
"""
SMALLEST_NORMAL = 2.0**-1022
"""The smallest number with all digits, in place of products of norms below it. Sums of up to 2^50
products lose no more to underflow; nothing is lost of zeros.
"""
_ROUNDINGS_PER_FUNCTION = 16
"""Roundings counted for a function of one number, as tanh or a scaling: more than any is off by."""
LARGEST_MATRIX = 60_000_000
"""Entries up to which a linear map is written out: half a GB in float64."""


def share(n: int) -> float:
    """The share of its absolute terms by which a sum of n products is off at most."""
    return _UNIT_ROUNDOFF * (n + _ROUNDINGS_PER_FUNCTION)


class AbsoluteProduct(NamedTuple):
    """The product of the absolute matrices of linear layers, by which rounding is bounded."""

    rows: Tensor  # (outputs,): the sums of its rows, which bound their lengths
    norm: float  # a bound of its largest singular value
    share: float  # the share of it by which the product of the layers may be off, entry by entry
    # (outputs,): what underflow takes from rows besides; 0 for those that are 0 for certain
    vanished: Tensor

    @property
    def row_errors(self) -> Tensor:
        """Bounds of the lengths of the errors in rows, (outputs,)."""
        return self.share * self.rows + self.vanished

    @property
    def error(self) -> float:
        """A bound of the norm of the error of the whole product."""
        return self.share * self.norm + self.vanished.sum().item()


def absolute_layer(layer: nn.Module) -> nn.Module:
    """A linear layer with absolute weights and biases."""
    absolute = _changed(layer, weight=torch.abs, bias=torch.abs)
    if isinstance(absolute, Scaled):
        # Weights are computed, and those that have lost digits are raised to numbers with all.
        weight = absolute.weight
        weight.copy_(torch.where(weight > 0, weight.clamp(min=2 * SMALLEST_NORMAL), 0.0))
    return absolute


def without_biases(layer: nn.Module) -> nn.Module:
    """The linear part of a layer."""
    return _changed(layer, bias=torch.zeros_like)


def _changed(layer: nn.Module, **changes: Callable[[Tensor], Tensor]) -> nn.Module:
    """A layer with some of its parameters and buffers changed, which shares the others with it."""
    changed = copy.copy(layer)  # a deep copy takes ten times as long
    with torch.no_grad():
        for held in ("_parameters", "_buffers"):
            tensors = dict(getattr(layer, held))
            for name in tensors.keys() & changes.keys():
                if (values := tensors[name]) is not None:
                    new = changes[name](values)
                    is_parameter = isinstance(values, nn.Parameter)
                    tensors[name] = nn.Parameter(new, values.requires_grad) if is_parameter else new
            setattr(changed, held, tensors)
    return changed


def multiply_absolute(layers: list[nn.Module], x: Tensor) -> AbsoluteProduct:
    """Bound what rounding changes where linear layers are multiplied out, on inputs like x."""
    with torch.enable_grad():
        start = torch.ones_like(x, requires_grad=True)
        sizes, reached, lost = start, torch.ones_like(x), torch.zeros_like(x)
        total, lost_share = torch.zeros((), dtype=x.dtype, device=x.device), 0.0
        for layer in layers:
            absolute = absolute_layer(without_biases(layer))
            n, total = sizes.numel(), total + sizes.sum()
            sizes, lost = absolute(sizes), absolute(lost) + SMALLEST_NORMAL
            reached = absolute(reached).sign()  # ones times weights do not vanish
            lost_share += share(max(n, sizes.numel()))
        (columns,) = torch.autograd.grad(sizes.sum(), start)
    with torch.no_grad():
        # From the outputs on, what vanishes in a layer is multiplied by the sizes before it.
        vanished = lost + SMALLEST_NORMAL * (total + sizes.sum())
        rows = sizes.flatten().nan_to_num(nan=torch.inf, posinf=torch.inf)
        vanished = torch.where(reached > 0, vanished, 0.0).flatten()
        # The norm is at most the root of the largest sum of a row times that of a column.
        largest = rows.max().sqrt() * columns.max().sqrt()
        norm = (1 + lost_share) * largest.nan_to_num(nan=torch.inf, posinf=torch.inf).item()
        norm += SMALLEST_NORMAL * bool(reached.any())
        return AbsoluteProduct(rows, norm, lost_share, vanished.nan_to_num(torch.inf, torch.inf))

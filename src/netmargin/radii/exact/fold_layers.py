"""Layers folded into dense ones: affine maps written out, with rounding, and kinks between them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import ModelError
from ..layer_rules import KINKS, LINEAR, refuse
from ..layers import Branches, Moved, NamedLayer
from ..products import LARGEST_MATRIX, without_biases
from ..rounding import propagate_errors


@dataclass(frozen=True)
class Affine:
    """Values as an affine map of the n inputs of a stretch, and bounds of their rounding errors."""

    columns: Tensor  # (n, ...): the linear part of each unit vector
    offset: Tensor  # (1, ...): the values at input 0
    column_errors: Tensor  # how far columns are at most from the exact ones
    offset_errors: Tensor  # the same for the offset
    fresh: bool = False  # the identity, to which nothing has been applied

    def write_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The matrix (outputs, n), the values at input 0, (outputs,), and the errors of both."""
        n = len(self.columns)
        return (
            np.ascontiguousarray(self.columns.reshape(n, -1).T.cpu().numpy()),
            self.offset.flatten().cpu().numpy(),
            np.ascontiguousarray(self.column_errors.reshape(n, -1).T.cpu().numpy()),
            self.offset_errors.flatten().cpu().numpy(),
        )


def fold_layers(layers: list[NamedLayer], x: Tensor) -> tuple[list[Affine], list[np.ndarray]]:
    """Fold layers on x, (N, ...): K + 1 affine stretches, and slopes of K kinks, or ModelError."""
    done, slopes, state = [], [], _start_stretch(x[:1])
    for said, layer in layers:
        if isinstance(layer, KINKS):
            done.append(state)
            slopes.append(_spread_slopes(layer, state.offset.shape[1:]))
            state = _start_stretch(state.offset)
        elif isinstance(layer, Branches):
            raise ModelError(
                f"The model is no chain of layers: {said} does not take the values of the layer"
                " before it alone. Exact radii know no skip connections."
            )
        elif isinstance(layer, Moved):
            columns, offset = layer(state.columns), layer(state.offset)
            errors = layer(state.column_errors), layer(state.offset_errors)
            state = Affine(columns, offset, *errors, state.fresh and layer.index is None)
        elif not isinstance(layer, LINEAR):
            raise refuse(said, "rule for exact radii")
        elif not isinstance(layer, nn.Identity):
            state = _apply_linear(layer, state)
    return [*done, state], slopes


def _spread_slopes(layer: nn.Module, shape: torch.Size) -> np.ndarray:
    """The slope of each unit of a sample of this shape, flat: one for all, or one per channel."""
    if isinstance(layer, nn.PReLU):
        slopes = layer.weight.detach().reshape(-1, *[1] * (len(shape) - 1))
        slopes = slopes if shape else slopes.reshape(())
    else:
        slope = getattr(layer, "negative_slope", 0.0)
        slopes = torch.tensor(slope, dtype=torch.float64, device="cpu")
    return slopes.expand(shape).flatten().cpu().numpy()


def _start_stretch(like: Tensor) -> Affine:
    """The identity on values shaped like one sample (1, ...)."""
    n = like[0].numel()
    _require_small(n, n)
    columns = torch.eye(n, dtype=torch.float64, device=like.device).reshape(n, *like.shape[1:])
    offset = torch.zeros(1, *like.shape[1:], dtype=torch.float64, device=like.device)
    return Affine(columns, offset, torch.zeros_like(columns), torch.zeros_like(offset), True)


def _apply_linear(layer: nn.Module, state: Affine) -> Affine:
    """Apply a linear layer to an affine map."""
    outputs = layer(state.offset)
    _require_small(len(state.columns), outputs.numel())
    errors = propagate_errors(layer, state.offset, state.offset_errors)
    if state.fresh and isinstance(layer, nn.Linear) and state.columns.ndim == 2:
        # Nothing is rounded: the layer is what stands in the chain.
        columns = layer.weight.T.clone()
        given: Any = layer.bias
        bias = torch.zeros_like(outputs) if given is None else given[None].clone()
        return Affine(columns, bias, torch.zeros_like(columns), torch.zeros_like(outputs))
    linear = without_biases(layer)
    column_errors = propagate_errors(linear, state.columns, state.column_errors)
    return Affine(linear(state.columns), outputs, column_errors, errors)


def _require_small(inputs: int, outputs: int) -> None:
    """Refuse layers that are too large for a matrix."""
    if inputs * outputs > LARGEST_MATRIX:
        raise ModelError(
            f"A layer from {inputs} to {outputs} values is too large to be written out as a matrix"
            f" (at most {LARGEST_MATRIX:,} entries), so that radii are those of Lipschitz"
            " constants. Smaller images or layers would have larger ones."
        )

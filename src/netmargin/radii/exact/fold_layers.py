"""Layers folded into dense ones: affine stretches, and the kinks between them."""

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import ModelError
from ..layer_rules import KINKS, LINEAR, refuse
from ..layers import Branches, Moved, NamedLayer
from .affine import Affine, apply_linear, move, start_stretch


def fold_layers(layers: list[NamedLayer], x: Tensor) -> tuple[list[Affine], list[np.ndarray]]:
    """Fold layers on x, (N, ...): K + 1 affine stretches, and slopes of K kinks, or ModelError."""
    done, slopes, state = [], [], start_stretch(x[:1])
    for said, layer in layers:
        if isinstance(layer, KINKS):
            done.append(state)
            slopes.append(_spread_slopes(layer, state.offset.shape[1:]))
            state = start_stretch(state.offset)
        elif isinstance(layer, Branches):
            raise ModelError(
                f"The model is no chain of layers: {said} does not take the values of the layer"
                " before it alone. Exact radii know no skip connections."
            )
        elif isinstance(layer, Moved):
            state = move(layer, state)
        elif not isinstance(layer, LINEAR):
            raise refuse(said, "rule for exact radii")
        elif not isinstance(layer, nn.Identity):
            state = apply_linear(layer, state)
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

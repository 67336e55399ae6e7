"""Which inputs are images."""

import math
from typing import Any

import torch
from torch import Tensor

_LEAST_SIDE = 4
"""Pixels of the side of an image: vectors of length 4 and 9 are more often points."""
_MOST_CHANNELS = 16
"""Channels of an image: first dimensions that are larger are those of sequences or features."""


def as_images(X: Any) -> Tensor | None:
    """Inputs as float32 images (n, height, width) or (n, height, width, 3) on the CPU, or None."""
    # With channels, of two the first and of more the first three; or squares, or vectors of square
    # length, without a negative value: standardized columns have such.
    found: Tensor = torch.as_tensor(X, device="cpu").detach().cpu()
    if found.ndim == 4 and found.shape[1] <= _MOST_CHANNELS and min(found.shape[2:]) > 1:
        return (found[:, 0] if found.shape[1] < 3 else found[:, :3].movedim(1, -1)).float()
    if bool((found < 0).any()):
        return None
    if found.ndim == 3 and min(found.shape[1:]) >= _LEAST_SIDE:
        return found.float()
    side = math.isqrt(found.shape[1]) if found.ndim == 2 else 0
    if side >= _LEAST_SIDE and side**2 == found.shape[1] and found.is_floating_point():
        return found.reshape(-1, side, side).float()
    return None

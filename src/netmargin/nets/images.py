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
    X = torch.as_tensor(X, device="cpu").detach().cpu()
    if X.ndim == 4 and X.shape[1] <= _MOST_CHANNELS and min(X.shape[2:]) > 1:
        return (X[:, 0] if X.shape[1] < 3 else X[:, :3].movedim(1, -1)).float()
    if bool((X < 0).any()):
        return None
    if X.ndim == 3 and min(X.shape[1:]) >= _LEAST_SIDE:
        return X.float()
    side = math.isqrt(X.shape[1]) if X.ndim == 2 else 0
    if side >= _LEAST_SIDE and side**2 == X.shape[1] and X.is_floating_point():
        return X.reshape(-1, side, side).float()
    return None

"""Images as small as their patches need: time and memory grow with the sixth power of the side."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..core.matrices import floor_to_powers
from ..nets.images import as_images

_PIXELS = 32 * 32
"""Pixels of an image that are looked at; with 12 x 12 fewer wrong labels were found on CIFAR-10,
with 16 x 16 to 32 x 32, and with 64 x 64 of enlarged ones, as many.
"""
LEAST_SIDE = 6
"""Pixels that a shorter side keeps, however long the other one is: a grid of patches needs them."""
_AT_ONCE = 64
"""Images per step: of 3 x 224 x 224 pixels 39 MB."""


def shrink_images(X: Tensor) -> Tensor:
    """Samples of a size near 1, so that their squares are in float32; images of at most 1,024
    pixels.
    """
    flat = X.ndim == 2 or as_images(X[:1] if X.ndim == 4 else X) is None
    unit = float(floor_to_powers(max(X.max().item(), -X.min().item())))  # rounds nothing
    return X / unit if flat else _shrink(X, unit)


def open_images(X: Tensor) -> Tensor | None:
    """Shrunk samples, or vectors of square length, as small images, as of `as_images`."""
    images = as_images(X)
    return _shrink(images, 1.0) if images is not None and X.ndim == 2 else images


def take(X: Tensor, index: np.ndarray) -> Tensor:
    """Some of the samples; without a copy where it is all of them."""
    return X if len(index) == len(X) else X[torch.from_numpy(index)]


def flatten_rows(X: Tensor) -> np.ndarray:
    """The numbers of each sample in a row; float32 where they are no float64."""
    flat = X.detach().cpu().reshape(len(X), -1)
    return (flat if flat.dtype == torch.float64 else flat.float()).numpy()


def scale_samples(change: Callable[[np.ndarray], np.ndarray], X: Tensor) -> np.ndarray:
    """The numbers of each sample in a row, float32, of largest size 1, and changed in place."""
    rows = flatten_rows(X).astype(np.float64)
    # Squares of 1e200 would be infinite.
    return change((rows / (np.abs(rows).max() or 1.0)).astype(np.float32))


def _shrink(images: Tensor, unit: float) -> Tensor:
    """Images, (..., height, width), over `unit`, of at most about 1,024 pixels."""
    sides = images.shape[-2:]
    scale = math.sqrt(_PIXELS / math.prod(sides))
    if scale >= 1:
        return images / unit
    height, width = (max(round(scale * side), min(side, LEAST_SIDE)) for side in sides)
    parts = ((part / unit).float() for part in images.detach().cpu().split(_AT_ONCE))
    return torch.cat([F.adaptive_avg_pool2d(part, (height, width)) for part in parts])

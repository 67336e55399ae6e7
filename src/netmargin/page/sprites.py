"""Images of samples as sprites: grids of 40 columns, each one picture in a data URI."""

import base64
import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .payload import Images

COLUMNS = 40
"""Images of one row of a sprite."""
_LARGEST_SIDE = 8000
"""Pixels of a side of a sprite: browsers refuse larger bitmaps."""
LARGEST_IMAGE = 64
"""Pixels of the longer side of an image in a sprite; it is shown at 56 and at 168."""
_CURVE_HEIGHT, _CURVE_POINTS = 40, 16
"""Pixels of the height of a curve, and points of its line in each column: without gaps where it
falls by the whole height in three columns.
"""
_LEVELS = 16
"""Levels of grey: 1,000 images of 28x28 take 135 kB, and 217 kB with 256 levels; no eye that was
asked told them apart at 56 pixels.
"""
_QUALITY = 80
"""Of WebP for colour: 1,000 images of 32x32 take 416 kB, and 2,262 kB without loss."""


def make_sprites(parts: Sequence[Tensor], low: float, high: float) -> Images:
    """Draw images (n, height, width) or (n, height, width, 3) into sprites, low values dark."""
    cells = np.concatenate([_to_bytes(part, low, high) for part in parts])
    height, width = cells.shape[1:3]
    rows = max(1, _LARGEST_SIDE // height)
    uris = [
        _draw_sprite(cells[start : start + rows * COLUMNS])
        for start in range(0, len(cells), rows * COLUMNS)
    ]
    return Images(tuple(uris), rows * COLUMNS, width, height, COLUMNS)


def draw_curves(X: Tensor) -> Tensor:
    """Signals (n, L) or (n, channels, L) as images (n, height, width) of curves, 1 on 0."""
    rows = X.float().reshape(len(X), -1, X.shape[-1])
    low, high = rows.amin((1, 2), keepdim=True), rows.amax((1, 2), keepdim=True)
    level = (_CURVE_HEIGHT - 1) * (rows - low) / (high - low).clamp(min=torch.finfo().tiny)
    # Lines between samples, of which every column of pixels has some; of long signals the samples.
    between = max(_CURVE_POINTS * LARGEST_IMAGE, X.shape[-1])
    level = torch.nn.functional.interpolate(level, between, mode="linear", align_corners=True)
    pool = partial(torch.nn.functional.adaptive_max_pool1d, output_size=LARGEST_IMAGE)
    top, bottom = pool(level).round()[:, :, None], -pool(-level).round()[:, :, None]
    height = torch.arange(_CURVE_HEIGHT - 1, -1, -1, device="cpu")[:, None]
    return ((height <= top) & (height >= bottom)).any(1).float()


def draw_picture(image: Tensor, low: float, high: float) -> str:
    """Draw one image as PNG of all levels: with 16 of them small changes are not seen."""
    from PIL import Image  # late; it comes with matplotlib

    picture = Image.fromarray(_to_bytes(image[None], low, high)[0])
    return _write_uri(picture, "png", optimize=True)


def _to_bytes(images: Tensor, low: float, high: float) -> np.ndarray:
    """Images as bytes, at most 64 pixels high and wide."""
    scale = 255 / (high - low) if high > low else 0.0
    values = (images.float() - low) * scale
    longest = max(values.shape[1:3])
    if longest > LARGEST_IMAGE:
        share = LARGEST_IMAGE / longest
        size = [max(1, round(side * share)) for side in values.shape[1:3]]
        channels = values[:, None] if values.ndim == 3 else values.movedim(-1, 1)
        channels = torch.nn.functional.interpolate(channels, size=size, mode="area")
        values = channels[:, 0] if values.ndim == 3 else channels.movedim(1, -1)
    return values.round().clamp(0, 255).byte().numpy()


def _draw_sprite(cells: np.ndarray) -> str:
    """The cells of one sprite as one image, empty cells black, and that as a data URI."""
    from PIL import Image  # late, as above

    height, width = cells.shape[1:3]
    rows = -(-len(cells) // COLUMNS)
    grid = np.zeros((rows * COLUMNS, *cells.shape[1:]), dtype=np.uint8)
    grid[: len(cells)] = cells
    grid = grid.reshape(rows, COLUMNS, height, width, -1).transpose(0, 2, 1, 3, 4)
    pixels = grid.reshape(rows * height, COLUMNS * width, *cells.shape[3:])
    if pixels.ndim == 3:
        return _write_uri(Image.fromarray(pixels), "webp", quality=_QUALITY, method=6)
    levels = np.round(pixels.astype(np.float32) * (_LEVELS - 1) / 255).astype(np.uint8)
    picture = Image.fromarray(levels, mode="P")
    picture.putpalette([round(i * 255 / (_LEVELS - 1)) for i in range(_LEVELS) for _ in "rgb"])
    return _write_uri(picture, "png", optimize=True, bits=4)


def _write_uri(picture: Any, kind: str, **options: Any) -> str:
    """A picture as a data URI."""
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"

"""Features of images that need no training: how strongly random patches of them respond."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

_FILTERS = 128
"""Patches that serve as filters. On MNIST and CIFAR-10 64 do nearly as well, 256 no better."""
_PARTS_OF_A_SIDE = 4
"""A patch has a quarter of the shorter side: 7 pixels of 28, 8 of 32."""
_LEAST_PATCH = 3
"""Pixels of the side of the smallest patch, the one of images of 8 x 8."""
_POSITIONS_OF_A_SIDE = 16
"""Steps between patches are chosen so that about so many fit along a side: finer ones cost time."""
_CELLS = 3
"""Responses are averaged over the cells of a 3 x 3 grid: 2 cells lose the place, 5 blur nothing."""
_DEAD_ZONE = 0.5
"""Responses below this size count as none; at 0 and at 1 slightly fewer wrong labels are found."""
_CONTRAST_FLOOR, _WHITENING_FLOOR = 0.01, 0.1
"""What is added to variances, as shares of their mean, so that flat patches do not become noise."""
_SAMPLED_PATCHES = 20_000
"""Patches from which means and covariances are estimated: 100 for each of their 192 numbers."""
_IMAGES_AT_ONCE = 200
"""Images per step: their 200 x 13^2 patches of 192 numbers take 26 MB."""


def have_patches(images: Tensor) -> bool:
    """Whether images (n, height, width, ...) are large enough for a grid of patches."""
    return min(images.shape[1:3]) >= _LEAST_PATCH + _CELLS


def patch_features(images: Tensor, *, seed: int = 0) -> np.ndarray:
    """Averaged responses of images to random patches of themselves, whitened.

    Patches are brought to mean 0 and variance 1 and whitened; some of them, of norm 1, serve as
    filters. Both signs of a response count, less a dead zone, and are averaged over a 3 x 3 grid.
    At last columns are standardized, and rows scaled to norm 1.

    Parameters
    ----------
    images : Tensor, shape (n, height, width) or (n, height, width, channels)
        The images, in any range.
    seed : int, default 0
        Seed of the choice of patches.

    Returns
    -------
    ndarray, shape (n, 2304), float32
        One row for each image.

    Source: Coates and Ng 2011, The importance of encoding versus training with sparse coding and
    vector quantization; here with averages in place of sums.
    """
    pixels = images[:, None] if images.ndim == 3 else images.movedim(-1, 1)
    pixels = pixels.float()
    side = max(_LEAST_PATCH, min(pixels.shape[2:]) // _PARTS_OF_A_SIDE)
    step = max(1, min(pixels.shape[2:]) // _POSITIONS_OF_A_SIDE)
    rng = np.random.default_rng(seed)
    mean, filters, floor = _choose_filters(pixels, side, rng)
    found = np.empty((len(pixels), 2 * filters.shape[1] * _CELLS**2), dtype=np.float32)
    rows, columns = ((extent - side) // step + 1 for extent in pixels.shape[2:])
    for start in range(0, len(pixels), _IMAGES_AT_ONCE):
        batch = pixels[start : start + _IMAGES_AT_ONCE]
        patches = F.unfold(batch, side, stride=step).transpose(1, 2)
        response = (_normalize_contrast(patches, floor) - mean) @ filters
        both = torch.cat([F.relu(response - _DEAD_ZONE), F.relu(-response - _DEAD_ZONE)], 2)
        grid = both.transpose(1, 2).reshape(len(batch), -1, rows, columns)
        averaged = F.adaptive_avg_pool2d(grid, _CELLS).flatten(1)
        found[start : start + len(batch)] = averaged.numpy()
    standardize(found)
    scale_rows(found)
    return found


def standardize(features: np.ndarray) -> None:
    """Bring each column to mean 0 and standard deviation 1, in place; constant ones to 0."""
    features -= features.mean(axis=0)
    deviation = features.std(axis=0)
    # What is left of a constant column is rounding.
    constant = deviation <= 1e-6 * deviation.max(initial=0)
    deviation[constant] = np.inf
    features /= deviation


def scale_rows(features: np.ndarray) -> None:
    """Scale each row to norm 1, in place; rows of zeros stay."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    norms[norms == 0] = 1
    features /= norms


def _choose_filters(
    pixels: Tensor, side: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor, float]:
    """The mean of normalized patches, whitened filters as columns, and the floor of contrast."""
    height, width = pixels.shape[2] - side + 1, pixels.shape[3] - side + 1
    drawn = (rng.integers(extent, size=_SAMPLED_PATCHES) for extent in (len(pixels), height, width))
    image, top, left = (torch.from_numpy(index) for index in drawn)
    down, across = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    # Advanced indices around the slice of channels put the channels last.
    rows = top[:, None, None] + down, left[:, None, None] + across
    patches = pixels[image[:, None, None], :, rows[0], rows[1]].movedim(-1, 1).flatten(1)
    floor = _CONTRAST_FLOOR * patches.var().item()
    patches = _normalize_contrast(patches, floor).double()
    mean = patches.mean(0)
    values, vectors = torch.linalg.eigh(torch.cov(patches.T))
    spread = values.clamp(min=0) + _WHITENING_FLOOR * values.clamp(min=0).mean()
    # Images without any contrast have no spread at all.
    whiten = (vectors / spread.clamp(min=torch.finfo(spread.dtype).tiny).sqrt()) @ vectors.T
    chosen = torch.from_numpy(rng.choice(len(patches), _FILTERS, replace=False))
    filters = F.normalize((patches[chosen] - mean) @ whiten, dim=1)
    return mean.float(), (whiten @ filters.T).float(), floor


def _normalize_contrast(patches: Tensor, floor: float) -> Tensor:
    """Patches of mean 0 and variance 1; `floor` is added to the variances."""
    centred = patches - patches.mean(-1, keepdim=True)
    # A tiny number besides, for images that are all of one colour.
    return centred / (centred.square().mean(-1, keepdim=True) + floor + 1e-30).sqrt()

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
_IMAGES_AT_ONCE = 32
"""Images per step: the responses to 128 filters at 22 x 22 places take 8 MB, about a cache."""


def patch_features(images: Tensor, *, mirrored: bool = False, seed: int = 0) -> np.ndarray:
    """Responses, (n, 2304), of images (n, height, width) or with channels last to patches of them.

    Patches are normalized and whitened, and some serve as filters; both signs of a response count,
    averaged over a 3 x 3 grid. `mirrored` images count too. Source: Coates and Ng 2011.
    """
    pixels = (images[:, None] if images.ndim == 3 else images.movedim(-1, 1)).float()
    if mirrored:
        pixels = torch.cat([pixels, pixels.flip(-1)])
    side = max(_LEAST_PATCH, min(pixels.shape[2:]) // _PARTS_OF_A_SIDE)
    step = max(1, min(pixels.shape[2:]) // _POSITIONS_OF_A_SIDE)
    rng = np.random.default_rng(seed)
    # Neither contrast nor whitening sees the mean, and variances need few digits without it.
    pixels = pixels - pixels.mean()
    mean, filters, floor = _choose_filters(pixels, side, rng)
    found = np.empty((len(pixels), 2 * len(filters) * _CELLS**2), dtype=np.float32)
    for start in range(0, len(pixels), _IMAGES_AT_ONCE):
        batch = pixels[start : start + _IMAGES_AT_ONCE]
        response = _respond(batch, filters, mean, floor, step)
        signed = F.relu(torch.cat([response, -response], 1) - _DEAD_ZONE)
        grids = F.adaptive_avg_pool2d(signed, _CELLS).flatten(1)
        found[start : start + len(batch)] = grids.numpy()
    if mirrored:
        # The sum in place of the mean, as columns are standardized below.
        found[: len(images)] += found[len(images) :]
        found = found[: len(images)]
    return scale_rows(standardize(found))


def standardize(features: np.ndarray) -> np.ndarray:
    """Bring each column to mean 0 and standard deviation 1, in place; constant ones to 0."""
    features -= features.mean(axis=0)
    deviation = features.std(axis=0)
    # What is left of a constant column is rounding.
    constant = deviation <= 1e-6 * deviation.max(initial=0)
    deviation[constant] = np.inf
    features /= deviation
    return features


def scale_rows(features: np.ndarray) -> np.ndarray:
    """Scale each row to norm 1, in place; rows of zeros stay."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    norms[norms == 0] = 1
    features /= norms
    return features


def _respond(pixels: Tensor, filters: Tensor, mean: Tensor, floor: float, step: int) -> Tensor:
    """Products of normalized patches, less their mean, with filters: one image per filter.

    Normalizing is affine for each patch, so one convolution of the images themselves will do: with
    m and v the mean and variance of a patch p, filter . ((p - m) / sqrt(v + floor) - mean).
    """
    side = filters.shape[-1]
    means = F.avg_pool2d(pixels.mean(1, keepdim=True), side, step)
    squares = F.avg_pool2d(pixels.square().mean(1, keepdim=True), side, step)
    variances = (squares - means.square()).clamp(min=0)
    # A tiny number besides, for images that are all of one colour.
    contrast = (variances + floor + 1e-30).sqrt()
    sums = filters.sum((1, 2, 3))[:, None, None]
    offset = (filters * mean).sum((1, 2, 3))[:, None, None]
    return (F.conv2d(pixels, filters, stride=step) - means * sums) / contrast - offset


def _choose_filters(
    pixels: Tensor, side: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor, float]:
    """The mean of normalized patches, whitened filters (128, C, side, side), and the floor."""
    places = pixels.movedim(1, 3).unfold(1, side, 1).unfold(2, side, 1)
    drawn = (rng.integers(extent, size=_SAMPLED_PATCHES) for extent in places.shape[:3])
    patches = places[tuple(torch.from_numpy(index) for index in drawn)].flatten(1)
    floor = _CONTRAST_FLOOR * patches.var().item()
    centred = patches - patches.mean(1, keepdim=True)
    # A tiny number besides, for images that are all of one colour.
    contrast = (centred.square().mean(1, keepdim=True) + floor + 1e-30).sqrt()
    patches = (centred / contrast).double()
    mean = patches.mean(0)
    values, vectors = torch.linalg.eigh(torch.cov(patches.T))
    spread = values.clamp(min=0) + _WHITENING_FLOOR * values.clamp(min=0).mean()
    # Images without any contrast have no spread at all.
    whiten = (vectors / spread.clamp(min=torch.finfo(spread.dtype).tiny).sqrt()) @ vectors.T
    chosen = torch.from_numpy(rng.choice(len(patches), _FILTERS, replace=False))
    filters = F.normalize((patches[chosen] - mean) @ whiten, dim=1)
    shape = (-1, pixels.shape[1], side, side)
    return mean.float().reshape(shape[1:]), (filters @ whiten).float().reshape(shape), floor

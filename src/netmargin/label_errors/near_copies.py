"""Samples that are nearly equal: nearer to each other than honest neighbours ever are.

Around a sample in m dimensions, points that lie evenly have ratios (d_1 / d_k)^m of distances that
are the least of k - 1 uniform numbers, d_k that to the k-th neighbour; so a distance d is as small
by chance with probability p = 1 - (1 - (d / d_k)^m)^(k-1). m is one number for a data set, from the
median of d_2k / d_k, and copies of samples, which halve all places alike, leave it as it is. The
procedure of Benjamini and Hochberg bounds the share of honest rows among those that are merged.
"""

import math

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from .images import open_images, scale_samples, take
from .patches import scale_rows, standardize

_NEIGHBOURS = 10
"""k: groups of up to nine near copies are seen, as the tenth neighbour must be an honest one."""
_FALSE_SHARE = 0.1
"""Share of honest rows among those merged, at most. With .2 and .3 more copies with noise were
found (of 284 of breast cancer 26 and 55 in place of 12), and up to 120 pairs of honest embeddings.
"""
_SURE = 0.01
"""The same of those that are sure, and how rarely any is found where there is none."""
_LARGEST_P = 0.05
"""Where nearly all rows have copies the procedure allows any p; beyond this, groups join."""
_DIRECTIONS, _DIRECTIONS_FROM = 64, 500
"""Principal directions in which distances are measured, and the rows that give them: noise of
copies lies in all directions, what tells honest rows apart in few.
"""


def join_near_copies(X: Tensor, equal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Groups of samples that are equal or nearly so, (n,), and of those that are so for sure."""
    first = np.unique(equal, return_index=True)[1]
    found = [pair_near_copies(outline) for outline in _outline_samples(take(X, first))]
    pairs, sure = (np.concatenate(part) for part in zip(*found, strict=True))
    groups = []
    for some in (pairs, pairs[sure]):
        graph = coo_array((np.ones(len(some)), tuple(some.T)), shape=(len(first), len(first)))
        # Components come in order of their first rows, as do equal samples.
        groups.append(connected_components(graph, directed=False)[1][equal])
    return groups[0], groups[1]


def _outline_samples(X: Tensor) -> list[np.ndarray]:
    """Rows in which copies are sought, float32."""
    images = open_images(X)
    if images is None:
        return [scale_samples(change, X) for change in (scale_rows, standardize)]
    # Of images the even and odd parts of rows of pixels, the latter without sign, are the same when
    # they are mirrored; and the roots of the amplitudes of their waves when they are moved.
    grey = images if images.ndim == 3 else images.mean(3)
    waves = torch.fft.rfft2(grey - grey.mean((1, 2), keepdim=True)).abs().sqrt()
    # A wave of a mirror image rises to the other side.
    sides = (images, images.flip(2)), (waves, waves.flip(1).roll(1, 1))
    parts = (((a + b).flatten(1), (a - b).abs().flatten(1)) for a, b in sides)
    return [scale_rows(torch.cat(part, dim=1).numpy()) for part in parts]


def pair_near_copies(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows that are nearer than by chance, (pairs, 2), and which are so for sure."""
    from sklearn.neighbors import NearestNeighbors

    n, k = len(features), _NEIGHBOURS
    none = np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=bool)
    if n <= 2 * k:
        return none
    some = features[np.linspace(0, n - 1, min(n, _DIRECTIONS_FROM)).astype(int)]
    directions = np.linalg.svd(some - some.mean(axis=0), full_matrices=False)[2][:_DIRECTIONS]
    rows = features @ directions.T
    search = NearestNeighbors(n_neighbors=2 * k, algorithm="brute").fit(rows - rows.mean(axis=0))
    distances, neighbours = search.kneighbors()
    own = distances[:, k - 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.log(np.nanmedian(distances[:, -1] / own))
        if not 0 < ratio < np.inf:  # distances of few values say nothing
            return none
        closeness = distances[:, :k] / np.minimum(own[:, None], own[neighbours[:, :k]])
        closeness = np.minimum(np.nan_to_num(closeness, nan=1), 1) ** (math.log(2) / ratio)
        p = -np.expm1((k - 1) * np.log1p(-closeness))
    least = np.sort(p.min(axis=1))
    false_shares = least * n / np.arange(1, n + 1)
    if false_shares.min() > _SURE:
        return none
    sure, most = (
        min(least[np.flatnonzero(false_shares <= share)[-1]], _LARGEST_P)
        for share in (_SURE, _FALSE_SHARE)
    )
    row, place = np.nonzero(p <= most)
    return np.stack([row, neighbours[row, place]], axis=1), p[row, place] <= sure

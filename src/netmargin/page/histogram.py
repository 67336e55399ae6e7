"""The histogram of section 1: how far the samples lie from the boundary, and where they pile up."""

import math

import numpy as np

from .measured import Measured
from .payload import Columns

_MOST_BINS, _BINS_PER_ROOT = 64, 1.7
"""Bars of the histogram: 1.7 sqrt(n), since 64 bars of 138 samples are noise."""
_RANGE = (0.001, 0.997)
"""Quantiles at which the axis ends: one outlier would flatten all else."""


def choose_edges(
    splits: tuple[Measured, ...],
) -> tuple[np.ndarray, tuple[float, float], tuple[bool, bool]]:
    """Edges of bars of a round width, one of them 0, the ends, and whether samples lie beyond."""
    distances = np.concatenate([split.distances.numpy() for split in splits])
    values = distances[np.isfinite(distances)]
    if not len(values):
        values = np.array([0.0, 1.0])
    low, high = np.quantile(values, _RANGE)
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0
    bins = min(_MOST_BINS, max(4, int(_BINS_PER_ROOT * math.sqrt(splits[0].n))))
    width = _round_up((high - low) / bins)
    first, last = math.floor(low / width + 1e-9), math.ceil(high / width - 1e-9)
    if any(bool(split.wrong.any()) for split in splits):
        first = min(first, -1)  # what is wrong by nothing lies left of 0 too
    if any(not bool(split.wrong.all()) for split in splits):
        last = max(last, 1)
    edges = np.array([float(f"{step * width:.12g}") for step in range(first, last + 1)])
    beyond = bool((distances < edges[0]).any()), bool((distances > edges[-1]).any())
    return edges, (float(edges[0]), float(edges[-1])), beyond


def _round_up(width: float) -> float:
    """The next larger of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9))


def count_bars(split: Measured, edges: np.ndarray) -> Columns:
    """How many samples lie in each bar; those beyond the ends are in the bars there."""
    middle = int(np.argmin(np.abs(edges)))
    bins = np.clip(np.searchsorted(edges, split.distances.numpy(), side="right") - 1, 0, None)
    wrong = split.wrong.numpy()
    # On the boundary itself the side decides, not the sign of a zero.
    bins = np.where(wrong, np.minimum(bins, middle - 1), np.maximum(bins, middle))
    counts = np.bincount(np.clip(bins, 0, len(edges) - 2), minlength=len(edges) - 1)
    return {
        "from": edges[:-1].tolist(),
        "to": edges[1:].tolist(),
        "count": counts.tolist(),
        "share": (100 * counts / split.n).tolist(),
    }

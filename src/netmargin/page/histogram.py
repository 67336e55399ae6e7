"""The histogram of section 1: how far the samples lie from the boundary, and where they pile up."""

import math

import numpy as np

from .facts import Facts
from .measured import Measured
from .numbers import count, distance, percent
from .payload import Columns

_MOST_BINS, _BINS_PER_ROOT = 64, 1.7
"""Bars of the histogram: 1.7 sqrt(n), since 64 bars of 138 samples are noise."""
_RANGE = (0.001, 0.997)
"""Quantiles at which the axis ends: one outlier would flatten all else."""
_EQUAL = (0.1, 0.25)
"""Margins up to so much larger than the smallest count as equal to it: the longer it lasts, the
more equal training makes them.
"""


def write_caption(facts: Facts, split: Measured, noun: str) -> tuple[str, str]:
    """What stands above the histogram: its heading, and what to do with it."""
    what = f"How far {count(split.n)} {facts.phrase(split)} lie from the boundary."
    if not facts.has_distances:
        what = f"How large the score margins of {count(split.n)} {facts.phrase(split)} are."
    how = f"Drag, or pick a bar, to see its {noun}s."
    other = next((each for each in facts.splits if each.key != split.key), None)
    if other is not None:
        how += f" Dotted outline: the same of the {count(other.n)} {facts.phrase(other)}."
    return what, how


def choose_edges(
    splits: tuple[Measured, ...],
) -> tuple[np.ndarray, tuple[float, float], tuple[bool, bool]]:
    """Edges of bars of a round width, one of them 0, the ends, and whether samples lie beyond."""
    parts = [split.distances.numpy() for split in splits]
    values = np.concatenate([part[np.isfinite(part)] for part in parts])
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
    edges = np.round(np.arange(first, last + 1) * width, 12)
    beyond = (
        any(bool((part < edges[0]).any()) for part in parts),
        any(bool((part > edges[-1]).any()) for part in parts),
    )
    return edges, (float(edges[0]), float(edges[-1])), beyond


def explain_peak(facts: Facts, histograms: dict[str, Columns]) -> str:
    """Why training samples pile up in one bar, where equal margins are the cause; else ""."""
    training = facts.training
    if training is None or not facts.has_distances or bool(training.wrong.any()):
        return ""
    bars = histograms["training"]
    peak = max(range(len(bars["count"])), key=bars["count"].__getitem__)
    low, high = bars["from"][peak], bars["to"][peak]
    inside = (training.distances >= low) & (training.distances < high)
    ratios = training.report.q / training.report.q.min() - 1
    for near in _EQUAL:
        equal = ratios <= near
        inside_equal = int(equal[inside].sum())
        # Most of those in the bar are equal, and of all others few are.
        if inside_equal >= max(inside.sum() / 2, 2 * equal.float().mean() * inside.sum()):
            return (
                f"The training {facts.noun}s pile up at {distance(low)} to {distance(high)}:"
                f" {count(inside_equal)} of {count(int(inside.sum()))} there have score margins"
                f" within {percent(near)} of the smallest. Training presses the smallest score"
                " margins up until many are equal, and equal ones lie at like distances."
            )
    return ""


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

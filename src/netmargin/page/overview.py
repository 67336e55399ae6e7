"""Section 1 of a page, at a glance: the lead, the tiles, and the histogram of distances."""

import math

import numpy as np
import torch

from .change import describe_box, middle_of
from .facts import Facts
from .measured import Measured
from .numbers import count, distance, percent, percent_number, significant
from .payload import Axis, Certainty, Columns, Overview, Tile

_MOST_BINS, _BINS_PER_ROOT = 64, 1.7
"""Bars of the histogram: 1.7 sqrt(n), since 64 bars of 138 samples are noise."""
_RANGE = (0.001, 0.997)
"""Quantiles at which the axis ends: one outlier would flatten all else."""
_NEIGHBOURS = 500
"""Samples whose nearest neighbour of another class is looked for: the median of so many is known to
a few percent, and 100,000 training images then take seconds.
"""
_CHUNK = 20_000
"""Training samples that distances are computed to at once, about 80 MB for those above."""


def write_overview(facts: Facts) -> Overview:
    """Write section 1."""
    noun = facts.noun
    if facts.has_distances:
        assert facts.inputs is not None  # where there are splits
        axis = Axis(
            "estimated distance to the decision boundary", facts.inputs.unit, Certainty.ESTIMATED
        )
    else:
        axis = Axis("score margin", "in the net's own scores", Certainty.MEASURED)
    advice = ""
    if facts.heldout is None:
        advice = "Give held-out data to learn how often it errs: heldout=(X, y)."
    edges, ends, folded = _choose_edges(facts.splits)
    finite = any(bool(split.distances.isfinite().any()) for split in facts.splits)
    return Overview(
        lead=write_lead(facts),
        advice=advice,
        tiles=_make_tiles(facts),
        captions={split.key: _caption(facts, split, noun) for split in facts.splits},
        axis=axis,
        histograms={s.key: _count_bars(s, edges) for s in facts.splits} if finite else {},
        range=ends,
        folded=folded,
    )


def write_lead(facts: Facts) -> str:
    """The sentence at the top: how often right, and how close a call."""
    split = facts.splits[0]
    right = split.n - int(split.wrong.sum())
    samples = facts.phrase(split)
    if right == split.n:
        whole = f"all {count(split.n)}"
    else:
        whole = f"{count(right) if right else 'none'} of {count(split.n)}"
    if split.key == "heldout":
        start = f"Right on {whole} {samples}."
    else:
        start = f"On its own {samples} it is right on {whole}."
    if not right:
        return start
    who = "A typical one" if right == split.n else "Where it is right, a typical one"
    return f"{start} {who} {_typical(facts, split)}"


def _typical(facts: Facts, split: Measured) -> str:
    """How far a typical sample lies from the boundary, in the rest of a sentence."""
    median = split.median
    if not facts.has_distances:
        return f"scores its own class {significant(median)} above the next one."
    if math.isinf(median):
        return (
            "lies at no finite distance from the boundary, to first order: the scores do not change"
            " with the input there."
        )
    about = f"lies about {distance(median)} from the boundary where the answer changes"
    other = median_to_other_class(facts)
    if other is None or not other > 0:
        return about + "."
    if median > other:
        far = f"farther, to first order, than the nearest training {facts.noun} of another class"
        return f"{about}: {far} ({distance(other)})."
    share = percent(median / other)
    return (
        f"{about}: {share} of the way to the nearest training {facts.noun} of another class"
        "; a boundary in the middle between them would be at 50%."
    )


def median_to_other_class(facts: Facts) -> float | None:
    """The median L2 distance of right samples to the nearest training sample of another class.

    None where there is one class only, or distances are not measured in the inputs.
    """
    split, training = facts.splits[0], facts.training
    if training is None or not split.X.is_floating_point():
        return None
    rows = torch.nonzero(~split.wrong)[:, 0]
    if len(rows) > _NEIGHBOURS:  # evenly over the split, so that all its classes take part
        rows = rows[torch.linspace(0, len(rows) - 1, _NEIGHBOURS).long()]
    points = split.X[rows].float().reshape(len(rows), -1)
    labels = split.labels[rows]
    nearest = torch.full((len(rows),), math.inf)
    for start in range(0, training.n, _CHUNK):
        others = training.X[start : start + _CHUNK].float().reshape(-1, points.shape[1])
        apart = torch.cdist(points, others)
        apart[labels[:, None] == training.labels[None, start : start + _CHUNK]] = math.inf
        nearest = torch.minimum(nearest, apart.amin(1))
    found = nearest.median().item()
    return found if math.isfinite(found) else None


def _make_tiles(facts: Facts) -> tuple[Tile, ...]:
    """The tiles that there are numbers for."""
    tiles = [_error_tile(facts), _second_tile(facts), _quarter_tile(facts)]
    return tuple(tile for tile in tiles if tile is not None)


def _error_tile(facts: Facts) -> Tile | None:
    """The error on held-out samples, with its interval."""
    held = facts.heldout
    if held is None:
        return None
    low, high = held.report.error_interval
    return Tile(
        "Held-out error",
        Certainty.MEASURED,
        percent_number(held.report.error, 1),
        f"{count(int(held.wrong.sum()))} of {count(held.n)} wrong; the true rate lies between"
        f" {percent(low, 1)} and {percent(high, 1)} (95%).",
        after="%",
    )


def _second_tile(facts: Facts) -> Tile | None:
    """Of several nets z, which ranks them; of one net what has a scale of its own."""
    held = facts.heldout
    if facts.comparison is not None and held is not None and held.report.z is not None:
        z_interval = facts.comparison.z_intervals[0] if facts.comparison.heldout else None
        between = ""
        if z_interval is not None:
            between = f" ({distance(z_interval[0])} to {distance(z_interval[1])})"
        return Tile(
            "Margin score z",
            Certainty.MEASURED,
            distance(held.report.z),
            f"Average score margin over its spread, on held-out {facts.noun}s{between}. Larger is"
            f" better, between nets on the same {facts.noun}s; it is not an error rate.",
        )
    own = next((linked.report for linked in facts.radii if linked.name == facts.title), None)
    if own is not None and not own.no_lower:
        examined = own.examined
        middle = middle_of(own.lower[:examined]) if examined else 0.0
        if math.isinf(middle):
            safe = int(np.isinf(own.lower[:examined]).sum())
            return Tile(
                "Proved for any change",
                Certainty.PROVED,
                count(safe),
                f"of {count(examined)} examined {facts.noun}s keep their answer under any change,"
                f" however large{describe_box(own)}: there is no exception.",
            )
        if middle > 0:
            flip = middle_of(own.upper[:examined])
            found = (
                f" The smallest flips found have a median of {distance(flip)}."
                if math.isfinite(flip)
                else ""
            )
            return Tile(
                "Proved radius, median",
                Certainty.PROVED,
                distance(middle, down=True),
                f"For half of the {count(examined)} examined {facts.noun}s every smaller change"
                f" (in L2) is proved to leave the answer as it is.{found} Larger is better.",
            )
    if held is None or held.report.margin_weighted_error is None:
        return None
    return Tile(
        "Margin-weighted error",
        Certainty.MEASURED,
        percent_number(held.report.margin_weighted_error, 1),
        f"The size of the wrong margins, as a share of all margins, on held-out {facts.noun}s. A"
        " close miss counts little, a confident one much. Smaller is better.",
        after="%",
    )


def _quarter_tile(facts: Facts) -> Tile | None:
    """The distance within which the nearest quarter of the training samples lies."""
    training = facts.training
    if training is None or not facts.has_distances or facts.inputs is None:
        return None
    quarter = _first_quartile(training)
    if math.isinf(quarter) and quarter > 0:  # there is no distance to speak of
        return None
    title = "Nearest quarter, training"
    if quarter <= 0:
        return Tile(
            "Training error",
            Certainty.MEASURED,
            percent_number(training.report.error, 1),
            f"{count(int(training.wrong.sum()))} of {count(training.n)} training {facts.noun}s are"
            " wrong: the nearest quarter lies on the wrong side of the boundary.",
            after="%",
        )
    text = "of the boundary"
    if facts.heldout is not None:
        text += f" (held-out: {distance(_first_quartile(facts.heldout))})"
    text += "; larger is farther from a flip."
    if change := facts.inputs.describe_change(quarter):
        text += f" {change[0].upper()}{change[1:]}."
    return Tile(title, Certainty.ESTIMATED, distance(quarter), text, before="lies within")


def _first_quartile(split: Measured) -> float:
    """The 25% quantile of the distances."""
    found = split.report.margins["input"].quantiles((0.25,))
    assert found is not None  # the tile is made only where there are distances
    return found[0]


def _caption(facts: Facts, split: Measured, noun: str) -> tuple[str, str]:
    """What stands above the histogram: its heading, and what to do with it."""
    what = f"How far {count(split.n)} {facts.phrase(split)} lie from the boundary."
    if not facts.has_distances:
        what = f"How large the score margins of {count(split.n)} {facts.phrase(split)} are."
    how = f"Drag, or pick a bar, to see its {noun}s."
    other = next((each for each in facts.splits if each.key != split.key), None)
    if other is not None:
        how += f" Dashed: {facts.phrase(other)}."
    return what, how


def _choose_edges(
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


def _round_up(width: float) -> float:
    """The next larger of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9))


def _count_bars(split: Measured, edges: np.ndarray) -> Columns:
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

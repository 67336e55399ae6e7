"""Section 1 of a page, at a glance: the lead, the tiles, and what the histogram is about."""

import math

import numpy as np
import torch

from .change import describe_box, middle_of
from .facts import Facts
from .histogram import choose_edges, count_bars, explain_peak, write_caption
from .measured import Measured
from .numbers import count, distance, percent, percent_number, significant
from .payload import Axis, Certainty, Overview, Tile

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
        given = "--heldout FILE" if facts.command else "heldout=(X, y)"
        advice = f"Give held-out data to learn how often it errs: {given}."
    edges, ends, folded = choose_edges(facts.splits)
    histograms = {split.key: count_bars(split, edges) for split in facts.splits}
    finite = any(bool(split.distances.isfinite().any()) for split in facts.splits)
    other = median_to_other_class(facts) if facts.has_distances else None
    return Overview(
        lead=_write_lead(facts, other),
        advice=advice,
        reading=_explain_distance(facts, other),
        tiles=_make_tiles(facts),
        captions={split.key: write_caption(facts, split, noun) for split in facts.splits},
        axis=axis,
        histograms=histograms if finite else {},
        peak=explain_peak(facts, histograms) if finite else "",
        range=ends,
        folded=folded,
    )


def _write_lead(facts: Facts, other: float | None) -> str:
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
    return f"{start} {who} {_typical(facts, split, other)}"


def _typical(facts: Facts, split: Measured, other: float | None) -> str:
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
    if other is None or not other > 0:
        return about + "."
    if median > other:
        far = f"farther, to first order, than the nearest training {facts.noun} of another class"
        return f"{about}: {far} ({distance(other)})."
    share = percent(median / other)
    return f"{about}: {share} of the way to the nearest training {facts.noun} of another class."


def _explain_distance(facts: Facts, other: float | None) -> str:
    """What the typical distance is in the inputs, and what bounds it: no number is enough."""
    split = facts.splits[0]
    if not facts.has_distances or not math.isfinite(split.median) or facts.inputs is None:
        return ""
    sentences = []
    if change := facts.inputs.describe_change(split.median):
        sentences.append(f"As a change, {distance(split.median)} is {change}.")
    if other:
        # The open balls of both around them hold no point of two answers, so they do not meet.
        sentences.append(
            f"Of two {facts.noun}s of different classes that are both right, only one can lie"
            " farther than half the way to the other (50%)."
        )
    sentences.append(
        f"No number says from where on it is enough: compare nets on the same {facts.noun}s."
    )
    return " ".join(["Is that far?", *sentences])


def median_to_other_class(facts: Facts) -> float | None:
    """The median L2 distance of right samples to the nearest training sample of another class.

    None where there is one class only, or distances are not measured in the inputs.
    """
    split, training = facts.splits[0], facts.training
    if training is None or not split.X.is_floating_point() or bool(split.wrong.all()):
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
    if math.isfinite(training.median):
        text += f", half of them within {distance(training.median)}"
    text += "; larger is farther from a flip."
    if change := facts.inputs.describe_change(quarter):
        text += f" As a change {distance(quarter)} is {change}."
    return Tile(title, Certainty.ESTIMATED, distance(quarter), text, before="lies within")


def _first_quartile(split: Measured) -> float:
    """The 25% quantile of the distances."""
    found = split.report.margins["input"].quantiles((0.25,))
    assert found is not None  # the tile is made only where there are distances
    return found[0]

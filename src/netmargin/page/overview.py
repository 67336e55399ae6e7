"""Section 1 of a page, at a glance: the lead, the tiles, and what the histogram is about."""

import math

import numpy as np
import torch

from ..radii import RobustnessReport
from .change import describe_box, middle_of
from .facts import Facts
from .histogram import choose_edges, count_bars, explain_peak, write_caption
from .measured import Measured
from .numbers import count, distance, percent, percent_number, plural, significant
from .payload import Axis, Certainty, Overview, Tile
from .sampling import is_spread

_LOOSE = 2
"""A flip that is so many times as far as what is proved leaves the larger part open."""
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
        reading=_explain_distance(facts),
        certainty=_label_lead(facts),
        scale=_describe_scale(facts),
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


def find_median_flip(facts: Facts) -> tuple[float, str]:
    """The median flip found on right samples that stand for the first split, NaN without such; and
    which these are, in words.
    """
    split = facts.splits[0]
    own = next((linked for linked in facts.radii if linked.split == split.key), None)
    if own is None or not own.report.attacks or not own.report.examined:
        return math.nan, ""
    examined = own.report.examined
    if own.rows is None or not is_spread(split.distances, own.rows[:examined]):
        return math.nan, ""
    flips = own.report.upper[:examined][own.report.q[:examined] > 0]
    found = middle_of(flips) if len(flips) else math.nan
    these = plural(examined, f"examined {facts.noun}")
    if len(flips) < examined:
        these = f"the {count(len(flips))} that are right of {these}"
    return found if math.isfinite(found) else math.nan, these


def _typical(facts: Facts, split: Measured, other: float | None) -> str:
    """How far a typical sample lies from the boundary, in the rest of a sentence."""
    median, (flip, these) = split.median, find_median_flip(facts)
    if not facts.has_distances:
        return f"scores its own class {significant(median)} above the next one."
    if math.isfinite(flip):
        median, about = flip, f"can be flipped by a change of {distance(flip)}"
        about += f" (the median of {these})"
    elif math.isinf(median):
        return (
            "lies at no finite distance from the boundary, to first order: the scores do not change"
            " with the input there."
        )
    else:
        about = f"lies about {distance(median)} from the boundary where the answer changes"
    if other is None or not other > 0:
        return about + "."
    if median > other:
        far = f"farther, to first order, than the nearest training {facts.noun} of another class"
        return f"{about}: {far} ({distance(other)})."
    share = percent(median / other)
    return f"{about}: {share} of the way to the nearest training {facts.noun} of another class."


def _explain_distance(facts: Facts) -> str:
    """What the typical distance is in the inputs, and when a larger one is better."""
    flip, _ = find_median_flip(facts)
    typical = flip if math.isfinite(flip) else facts.splits[0].median
    if not facts.has_distances or not math.isfinite(typical) or facts.inputs is None:
        return ""
    sentences = ["Is that far?"]
    if change := facts.inputs.describe_change(typical):
        sentences.append(
            f"{distance(typical)} is as long as {change}; this tells its size, and what flips an"
            " answer is the worst change of that size, not any."
        )
    sentences.append(
        f"No number is enough by itself: of two nets with about the same errors on the same"
        f" {facts.noun}s, the one with larger distances is harder to flip."
    )
    return " ".join(sentences)


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


def _describe_scale(facts: Facts) -> str:
    """The median score margin of right samples: the size of scores is the net's own."""
    split = facts.splits[0]
    q = split.report.q[~split.wrong]
    if not len(q):
        return ""
    return (
        "Score margins have the net's own scale: their median, where"
        f" {facts.phrase(split)} are right, is {significant(q.median().item())}."
    )


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
        return _radius_tile(facts, own)
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


def _radius_tile(facts: Facts, report: RobustnessReport) -> Tile | None:
    """The median radius that is proved, beside the median flip that was found."""
    examined, noun = report.examined, facts.noun
    middle = middle_of(report.lower[:examined]) if examined else 0.0
    title = f"Radius, {plural(examined, f'examined {noun}')}"
    if math.isinf(middle):
        safe = int(np.isinf(report.lower[:examined]).sum())
        return Tile(
            "Proved for any change",
            Certainty.PROVED,
            count(safe),
            f"of {count(examined)} examined {noun}s: no change, however"
            f" large{describe_box(report)}, flips the answer.",
        )
    if not middle > 0:
        return None
    flip = middle_of(report.upper[:examined])
    text = "For half of them every smaller change (in L2) is proved to leave the answer as it is."
    after = ""
    if report.attacks and math.isfinite(flip):
        after = f" / flip found {distance(flip)}"
        wrong = ", wrong ones as 0" if bool((report.q[:examined] <= 0).any()) else ""
        text = (
            f"Medians{wrong}: for half of them every change (in L2) below"
            f" {distance(middle, down=True)} is proved to leave the answer as it is, and half are"
            f" flipped by a change of {distance(flip)} or less that was found. The truth lies"
            " between"
        )
        loose = middle < flip / _LOOSE
        text += ": this proof is loose." if loose else "."
    return Tile(
        title, Certainty.PROVED, distance(middle, down=True), text, before="proved", after=after
    )


def _quarter_tile(facts: Facts) -> Tile | None:
    """The distance within which the nearest quarter of the samples lies."""
    if not facts.has_distances or facts.inputs is None or not facts.splits:
        return None
    split = facts.splits[0]
    quarter = _first_quartile(split)
    if math.isinf(quarter) and quarter > 0:  # there is no distance to speak of
        return None
    if quarter <= 0:
        return _training_error_tile(facts)
    text = "of the boundary; larger is farther from a flip."
    if change := facts.inputs.describe_change(quarter):
        text += f" That is as long as {change}."
    title = f"Nearest quarter, {split.title.lower()}"
    return Tile(title, Certainty.ESTIMATED, distance(quarter), text, before="lies within")


def _training_error_tile(facts: Facts) -> Tile | None:
    """How many training samples are wrong, where the nearest quarter is on the wrong side."""
    training = facts.training
    if training is None:
        return None
    wrong = int(training.wrong.sum())
    quarter = " wrong: the nearest quarter lies on the wrong side of the boundary."
    return Tile(
        "Training error",
        Certainty.MEASURED,
        percent_number(training.report.error, 1),
        f"{count(wrong)} of {count(training.n)} training {facts.noun}s are"
        + (quarter if _first_quartile(training) <= 0 else " wrong."),
        after="%",
    )


def _label_lead(facts: Facts) -> Certainty | None:
    """What the distance of the lead is worth; None where it says none."""
    if not facts.has_distances or bool(facts.splits[0].wrong.all()):
        return None
    if math.isfinite(find_median_flip(facts)[0]):
        return Certainty.MEASURED
    return Certainty.ESTIMATED if math.isfinite(facts.splits[0].median) else None


def _first_quartile(split: Measured) -> float:
    """The 25% quantile of the distances."""
    found = split.report.margins["input"].quantiles((0.25,))
    assert found is not None  # the tile is made only where there are distances
    return found[0]

"""The first section of a page: the lead, the tiles, and what the histogram is about."""

import math

import torch

from ..margins.mistakes import doubt_data, doubt_split, find_mistake, rank_classes
from .change import middle_of
from .facts import Facts
from .histogram import choose_edges, count_bars
from .measured import Measured
from .numbers import distance, percent, percent_number, plural, quoted, significant
from .payload import Axis, Certainty, Overview, Tile

_NEIGHBOURS = 500
"""Samples whose nearest neighbour of another class is looked for: the median of so many is known to
a few percent, and 100,000 training images then take seconds.
"""
_CHUNK = 20_000
"""Training samples that distances are computed to at once, about 80 MB for those above."""

_OTHER_SCALE = 3
"""How many times larger both quartiles of inputs of another scale are: images of MNIST are 5 times
as large when standardized as with pixels from 0 to 1. Heavy tails move no quartiles.
"""


def write_overview(facts: Facts) -> Overview:
    """Write section 1."""
    split = facts.splits[0]
    unit = "in probabilities" if split.report.saturated else "in the net's own scores"
    axis = Axis("score margin", unit, Certainty.MEASURED)
    what, certainty = "How large the score margins of {} are", None
    if facts.has_distances:
        assert facts.inputs is not None  # where there are splits
        axis = Axis(
            "estimated distance to the decision boundary", facts.inputs.unit, Certainty.ESTIMATED
        )
        what = "How far {} lie from the boundary"
        certainty = Certainty.ESTIMATED if math.isfinite(split.median) else None
    edges, ends, folded = choose_edges(facts.splits)
    finite = any(bool(part.distances.isfinite().any()) for part in facts.splits)
    right = split.report.q[~split.wrong]
    scale = ""
    if len(right):
        scale = (
            "Score margins have the net's own scale: their median, where"
            f" {facts.phrase(split)} are right, is {significant(right.median().item())}."
        )
    tiles = [_error_tile(facts, split), _mistake_tile(facts, split)]
    tiles += [_radius_tile(facts), _quarter_tile(facts, split)]
    return Overview(
        lead=_write_lead(facts, split),
        certainty=certainty,
        reading=_explain_distance(facts, split),
        next_step=_choose_next_step(facts, split),
        scale=scale,
        tiles=tuple(tile for tile in tiles if tile is not None),
        captions={
            part.key: what.format(f"{part.n:,} {facts.phrase(part)}") + "." for part in facts.splits
        },
        axis=axis,
        histograms={part.key: count_bars(part, edges) for part in facts.splits} if finite else {},
        range=ends,
        folded=folded,
    )


def _write_lead(facts: Facts, split: Measured) -> str:
    """The sentence at the top: how often right, and how close a call."""
    right = split.n - int(split.wrong.sum())
    whole = f"{right:,} of {split.n:,}"
    if right in (0, split.n):
        whole = f"{'all' if right else 'none of'} {split.n:,}"
    start = f"Right on {whole} {facts.phrase(split)}."
    if split.title == "Training":
        start = f"On its own {facts.phrase(split)} it is right on {whole}."
    if split.report.near_accuracy is not None:
        start += f" Right or nearly right on {percent(split.report.near_accuracy)}."
    if not right:
        return start
    who = "A typical one" if right == split.n else "Where it is right, a typical one"
    if not facts.has_distances:
        return f"{start} {who} scores its own class {significant(split.median)} above the next one."
    if math.isinf(split.median):
        return f"{start} {who} lies at no finite distance from the boundary, to first order."
    about = f"lies about {distance(split.median)} from the boundary where the answer changes"
    other = _median_to_other_class(facts, split)
    if other > 0:
        share = percent(split.median / other)
        assert facts.training is not None  # to which distances were computed
        whose = f"{facts.training.title.lower()} {facts.noun}".strip()
        about += f": {share} of the way to the nearest {whose} of another class"
    return f"{start} {who} {about}."


def _explain_distance(facts: Facts, split: Measured) -> str:
    """What the typical distance is in the inputs, or why there is none."""
    if split.no_distance:
        said_above = split.no_distance in facts.warning
        return "" if said_above else f"There are no distances: {split.no_distance}"
    if not math.isfinite(split.median) or facts.inputs is None:
        return ""
    size = ""
    if change := facts.inputs.describe_change(split.median):
        size = f" {distance(split.median)} is as long as {change}."
    return (
        f"Is that far?{size} It is the length of a change chosen against the net: others of this"
        " length need not flip an answer. Of two nets with about the same errors, the one with"
        " larger distances is harder to flip."
    )


def _choose_next_step(facts: Facts, split: Measured) -> tuple[str, str]:
    """What to do after the first screen, and what leads there: "labels", "wrong" or ""."""
    wrong = int(split.wrong.sum())
    if facts.label_errors is not None and facts.label_errors.count:
        return "look at the labels that are probably wrong.", "labels"
    if scaled := _doubt_scale(facts.splits):
        return scaled, ""
    if doubt := doubt_data(split.labels, split.answers, facts.names.of):
        return f"{doubt}.", ""
    if len(facts.splits) == 2 and (swapped := doubt_split(facts.splits[1].wrong, split.wrong)):
        return swapped, "wrong" * bool(wrong)
    if wrong:
        these = f"the {plural(wrong, f'wrong {facts.noun}')}, most wrong first"
        return f"look at {these}: mislabelled ones are often among them.", "wrong"
    if facts.heldout is None:
        return "give held-out data too: nm.page(model, data, heldout).", ""
    return "compare nets: nm.page({'one': model, 'other': other}, data, heldout).", ""


def _doubt_scale(splits: tuple[Measured, ...]) -> str:
    """A sentence where held-out inputs have another scale than training inputs, or ""."""
    if len(splits) == 1 or not splits[0].X.is_floating_point():
        return ""
    levels = torch.tensor([0.25, 0.5, 0.75], device="cpu")
    new, seen = (split.X.float().abs().flatten(1).mean(1).quantile(levels) for split in splits)
    if not bool((new > _OTHER_SCALE * seen)[::2].all() or (seen > _OTHER_SCALE * new)[::2].all()):
        return ""
    held, trained = (significant(middle[1].item()) for middle in (new, seen))
    return f"scale inputs alike: entries are {held} large in held-out ones, {trained} in training."


def _median_to_other_class(facts: Facts, split: Measured) -> float:
    """The median L2 distance of right samples to training samples of other classes, or 0."""
    training = facts.training
    if training is None or not split.X.is_floating_point():
        return 0.0
    rows = torch.nonzero(~split.wrong)[:, 0]
    if len(rows) > _NEIGHBOURS:  # evenly over the split, so that all its classes take part
        rows = rows[torch.linspace(0, len(rows) - 1, _NEIGHBOURS, device="cpu").long()]
    points, labels = split.X[rows].double().flatten(1), split.labels[rows]
    nearest = torch.full((len(rows),), math.inf, device="cpu")
    for X, y in zip(training.X.split(_CHUNK), training.labels.split(_CHUNK), strict=True):
        apart = torch.cdist(points, X.double().flatten(1))
        apart[labels[:, None] == y] = math.inf
        nearest = torch.minimum(nearest, apart.amin(1))
    found = nearest.median().item()
    return found if math.isfinite(found) else 0.0


def _error_tile(facts: Facts, split: Measured) -> Tile:
    """The error, of held-out samples with its interval and the training error beside it."""
    text = f"{int(split.wrong.sum()):,} of {split.n:,} wrong"
    if split.title != "Training":
        low, high = (percent(end, 1) for end in split.report.error_interval)
        text += f"; the true rate lies between {low} and {high} (95%)"
        text += "" if split.title else ", if the net was not trained on them"
    text += "."
    if facts.training is not None and facts.training is not split:
        seen = facts.training
        text += f" Training: {int(seen.wrong.sum()):,} of {seen.n:,} wrong."
    error = percent_number(split.report.error, 1)
    title = f"{split.title} error".strip().capitalize()
    return Tile(title, Certainty.MEASURED, error, text, after="%")


def _mistake_tile(facts: Facts, split: Measured) -> Tile | None:
    """The class with the largest share of errors, and the most frequent mistake."""
    worst, name = rank_classes(split.labels, split.wrong), facts.names.of
    mistake = find_mistake(split.labels, split.answers)
    if not worst or mistake is None:
        return None
    weakest, wrong, number = worst[0]
    label, answer, often, as_often = mistake
    ties = sum(few * number == wrong * many for _, few, many in worst[1:])
    same = f", as large a share as in {plural(ties, 'other')}" * bool(ties)
    text = (
        f"{wrong:,} of {plural(number, facts.noun)} wrong{same}. The most frequent mistake:"
        f" {quoted(name(label))} taken for {quoted(name(answer))},"
        f" {plural(often, 'time')}{as_often}."
    )
    after = f" {percent(wrong / number)} wrong"
    return Tile("Weakest class", Certainty.MEASURED, quoted(name(weakest)), text, after=after)


def _radius_tile(facts: Facts) -> Tile | None:
    """The median radius that is proved, beside the median flip that was found."""
    report = next((linked.report for linked in facts.radii if linked.name == facts.title), None)
    if report is None or report.no_lower or not report.examined:
        return None
    examined = report.examined
    middle, flip = (middle_of(ends[:examined]) for ends in (report.lower, report.upper))
    if not 0 < middle < math.inf:
        return None
    wrong = ", wrong ones as 0" if bool((report.q[:examined] <= 0).any()) else ""
    text = f"Median{wrong}: for half of them no smaller change (in L2) flips the answer."
    after = ""
    if report.attacks and math.isfinite(flip):
        after = f" / flip found {distance(flip)}"
        text += " The truth lies between."
    title = f"Radius, {plural(examined, f'examined {facts.noun}')}"
    shown = distance(middle, down=True)
    return Tile(title, Certainty.PROVED, shown, text, before="proved", after=after)


def _quarter_tile(facts: Facts, split: Measured) -> Tile | None:
    """The distance within which the nearest quarter of the samples lies."""
    found = split.report.margins["input"].quantiles((0.25,)) if facts.has_distances else None
    if found is None or not 0 < found[0] < math.inf or facts.inputs is None:
        return None
    side = ", or on its wrong side" * bool(split.wrong.any())
    text = f"of the boundary{side}; larger is farther from a flip."
    if change := facts.inputs.describe_change(found[0]):
        text += f" That is as long as {change}."
    return Tile(
        "Nearest quarter", Certainty.ESTIMATED, distance(found[0]), text, before="lies within"
    )

"""A section of a page: which classes are close to each other."""

import math
from typing import Any

import torch
from torch import Tensor

from ..margins.mistakes import find_mistake
from ..margins.quantiles import quantiles
from .facts import Facts
from .measured import Measured
from .numbers import distance, quoted, significant
from .payload import Certainty, Classes, Columns, Tag

_MATRIX = 20
"""Classes of a matrix that can be read; more are listed by their pairs."""
_LISTED = 20
"""Pairs of that list."""
_LEVELS = (0.10, 0.25, 0.50, 0.75, 0.90)
"""Quantiles of a row: the line, the bar for the middle half, and the tick of the median."""


def write_classes(facts: Facts) -> Classes:
    """Write section 3."""
    number = 1 + max(int(torch.cat([s.labels, s.answers, s.rivals]).max()) for s in facts.splits)
    if facts.names.names is not None:
        number = len(facts.names.names)
    rows = {split.key: _measure_classes(split) for split in facts.splits}
    hidden = {key: _find_infinite(own) for key, own in rows.items()}
    tag = Tag(Certainty.MEASURED, "score margins")
    if facts.has_distances:
        tag = Tag(Certainty.ESTIMATED, "distances")
    return Classes(
        takeaway={split.key: _describe_classes(facts, split) for split in facts.splits},
        not_mistakes={split.key: _describe_right(split) for split in facts.splits},
        tags=(tag, Tag(Certainty.MEASURED, "counts")),
        names=tuple(map(facts.names.of, range(number))),
        pairs={split.key: _count_pairs(split, number) for split in facts.splits},
        rows=rows,
        not_drawn={
            key: f"Not drawn, since one in ten of their distances or more is infinite: {names}."
            if (names := ", ".join(map(facts.names.of, labels)))
            else ""
            for key, labels in hidden.items()
        },
        drawn=any(len(hidden[key]) < len(own["label"]) for key, own in rows.items()),
    )


def _describe_right(split: Measured) -> str:
    """How many samples are right: their rivals are no mistakes."""
    right = split.n - int(split.wrong.sum())
    if not right:
        return "All are wrong: the rival is often the class that was answered."
    return f"These are not mistakes: {right:,} of {split.n:,} are answered correctly."


def _describe_classes(facts: Facts, split: Measured) -> str:
    """The class nearest to the boundary, the most common neighbours and mistake."""
    present, name = torch.unique(split.labels).tolist(), facts.names.of
    if len(present) == 1:
        only = quoted(name(present[0]))
        return f"All {facts.phrase(split)} are of class {only}: there is nothing to compare."
    medians = {
        label: quantiles(split.distances[split.labels == label], (0.5,))[0] for label in present
    }
    closest = min(medians, key=medians.__getitem__)
    if not math.isfinite(medians[closest]):
        start = "No class lies at a finite distance from the boundary, in the median."
    else:
        show = distance if facts.has_distances else significant
        where = "farthest on the wrong side" if medians[closest] < 0 else "closest to the boundary"
        nearest, middle = quoted(name(closest)), show(medians[closest])
        start = f"By the median, class {nearest} lies {where} ({middle})."
    said = []
    if len(present) > 2:
        neighbours = find_mistake(split.labels, split.rivals)
        assert neighbours is not None  # no rival is the class of its sample
        label, rival, n, same = neighbours
        said.append(
            f"Most common neighbours: {quoted(name(label))} next to {quoted(name(rival))}"
            f" ({n:,} {facts.noun}s{same})."
            if n > 1
            else "No two classes are neighbours twice."
        )
    if (found := find_mistake(split.labels, split.answers)) is None:
        return " ".join([start, *said, "There is no mistake."])
    label, answer, n, same = found
    mistake = f"Most common mistake: {quoted(name(label))} taken for {quoted(name(answer))}"
    said.append(f"{mistake} ({n:,} times{same})." if n > 1 else "No mistake occurs twice.")
    return " ".join([start, *said])


def _count_pairs(split: Measured, number: int) -> dict[str, Any]:
    """How often each class is next to, and taken for, each other one."""
    if number <= 2:
        return {}
    wrong = split.wrong
    found = {
        "rival": (split.labels, split.rivals),
        "mistake": (split.labels[wrong], split.answers[wrong]),
    }
    return {name: _list_pairs(*pair, number) for name, pair in found.items()}


def _list_pairs(labels: Tensor, others: Tensor, number: int) -> list[list[int]] | Columns:
    """The counts by label (rows) and other class, or of many classes the most common pairs."""
    if number <= _MATRIX:
        flat = torch.bincount(labels * number + others, minlength=number * number)
        return flat.reshape(number, number).tolist()
    pairs, counts = torch.unique(torch.stack([labels, others]), dim=1, return_counts=True)
    order = torch.argsort(counts, descending=True, stable=True)[:_LISTED]
    (first, second), counts = pairs[:, order].tolist(), counts[order].tolist()
    return {"label": first, "other": second, "count": counts}


def _measure_classes(split: Measured) -> Columns:
    """The quantiles of the distances, a row for each class that occurs."""
    rows = []
    for label in torch.unique(split.labels).tolist():
        own = split.distances[split.labels == label]
        rows.append((label, len(own), *quantiles(own, _LEVELS)))
    if len(rows) > _MATRIX:
        rows.sort(key=lambda row: row[4])
    names = ("label", "n", "low", "first", "median", "third", "high")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _find_infinite(rows: Columns) -> list[int]:
    """The classes whose line from 10% to 90% has no end."""
    ends = zip(rows["label"], rows["low"], rows["high"], strict=True)
    return [label for label, low, high in ends if not (math.isfinite(low) and math.isfinite(high))]

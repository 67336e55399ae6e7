"""Section 3 of a page, which classes are close to each other."""

import math

import torch
from torch import Tensor

from ..margins.quantiles import quantiles
from .facts import Facts
from .measured import Measured
from .numbers import count, distance, quoted, significant
from .payload import Certainty, Classes, Columns, Tag

_MATRIX = 20
"""Classes of a matrix that can be read; more are listed by their pairs."""
_LISTED = 20
"""Pairs of that list."""
_LEVELS = (0.10, 0.25, 0.50, 0.75, 0.90)
"""Quantiles of a row: the line, the bar for the middle half, and the tick of the median."""


def write_classes(facts: Facts) -> Classes:
    """Write section 3."""
    number = max(
        int(torch.cat([split.labels, split.answers, split.rivals]).max()) + 1
        for split in facts.splits
    )
    if facts.names.names is not None:
        number = len(facts.names.names)
    rows = {split.key: _measure_classes(split) for split in facts.splits}
    hidden = {key: _find_infinite(own) for key, own in rows.items()}
    certainty = Certainty.ESTIMATED if facts.has_distances else Certainty.MEASURED
    return Classes(
        takeaway={split.key: _describe_classes(facts, split) for split in facts.splits},
        not_mistakes={split.key: _describe_right(split) for split in facts.splits},
        tags=(
            Tag(certainty, "distances" if facts.has_distances else "score margins"),
            Tag(Certainty.MEASURED, "counts"),
        ),
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
    return f"These are not mistakes: {count(right)} of {count(split.n)} are answered correctly."


def _describe_classes(facts: Facts, split: Measured) -> str:
    """The class nearest to the boundary, its neighbours, and the most common mistake."""
    present = torch.unique(split.labels)
    if len(present) == 1:
        name = quoted(facts.names.of(present.item()))
        return f"All {facts.phrase(split)} are of class {name}: there is nothing to compare."
    start = _describe_closest(facts, split, present)
    pair = None if len(present) == 2 else _largest_pair(split.labels, split.rivals)
    mistakes = _largest_pair(split.labels[split.wrong], split.answers[split.wrong])
    said = _describe_mistakes(facts, mistakes, int(split.wrong.sum()))
    if pair is None:
        return f"{start} {said[0].upper()}{said[1:]}."
    label, rival, n = pair
    if n == 1:
        return f"{start} No two classes are neighbours twice; {said}."
    noun = f"{facts.noun}s"
    return (
        f"{start} The most common neighbours: {quoted(facts.names.of(label))} next to"
        f" {quoted(facts.names.of(rival))} ({count(n)} {noun}); {said}."
    )


def _describe_closest(facts: Facts, split: Measured, present: Tensor) -> str:
    """The class that lies closest by its median, and the one whose nearest tenth does."""

    def show(value: float) -> str:
        return distance(value) if facts.has_distances else significant(value)

    rows = [quantiles(split.distances[split.labels == label], (0.1, 0.5)) for label in present]
    tenths, medians = zip(*rows, strict=True)
    closest = min(range(len(medians)), key=medians.__getitem__)
    name, median = quoted(facts.names.of(present[closest].item())), medians[closest]
    if median < 0:
        known = f" (median {show(median)})" if math.isfinite(median) else ""
        return f"More than half of class {name} lie on the wrong side{known}."
    if not math.isfinite(median):
        return "No class lies at a finite distance from the boundary, in the median."
    start = f"By the median, class {name} lies closest to the boundary ({show(median)})"
    weakest = min(range(len(tenths)), key=tenths.__getitem__)
    if not math.isfinite(tenths[weakest]):
        return f"{start}."
    other = quoted(facts.names.of(present[weakest].item()))
    who = "It also" if weakest == closest else f"Class {other}"
    if tenths[weakest] < 0:
        return f"{start}. {who} has the weakest tenth: all of it on the wrong side."
    return f"{start}. {who} has the weakest tenth, {show(tenths[weakest])} or nearer."


def _describe_mistakes(facts: Facts, pair: tuple[int, int, int] | None, wrong: int) -> str:
    """The most common mistake, without a full stop."""
    if pair is None:
        return "there is no mistake"
    label, answer, n = pair
    if n == 1:
        return "there is one mistake" if wrong == 1 else "no mistake occurs twice"
    return (
        f"the most common mistake: {quoted(facts.names.of(label))} taken for"
        f" {quoted(facts.names.of(answer))} ({count(n)} times)"
    )


def _largest_pair(labels: Tensor, others: Tensor) -> tuple[int, int, int] | None:
    """The most common pair of a label and another class, and how often; None without any."""
    if not len(labels):
        return None
    pairs, counts = torch.unique(torch.stack([labels, others]), dim=1, return_counts=True)
    largest = int(counts.argmax())
    return int(pairs[0, largest]), int(pairs[1, largest]), int(counts[largest])


def _count_pairs(split: Measured, number: int) -> dict:
    """How often each class is next to, and taken for, each other one."""
    if number <= 2:
        return {}
    wrong = split.wrong
    found = {
        "rival": (split.labels, split.rivals),
        "mistake": (split.labels[wrong], split.answers[wrong]),
    }
    make = _make_matrix if number <= _MATRIX else _list_pairs
    return {name: make(labels, others, number) for name, (labels, others) in found.items()}


def _make_matrix(labels: Tensor, others: Tensor, number: int) -> list[list[int]]:
    """The counts by label (rows) and other class (columns)."""
    flat = torch.bincount(labels * number + others, minlength=number * number)
    return flat.reshape(number, number).tolist()


def _list_pairs(labels: Tensor, others: Tensor, number: int) -> Columns:
    """The most common pairs, the largest counts first."""
    if not len(labels):
        return {"label": [], "other": [], "count": []}
    pairs, counts = torch.unique(torch.stack([labels, others]), dim=1, return_counts=True)
    order = torch.argsort(counts, descending=True, stable=True)[:_LISTED]
    return {
        "label": pairs[0, order].tolist(),
        "other": pairs[1, order].tolist(),
        "count": counts[order].tolist(),
    }


def _measure_classes(split: Measured) -> Columns:
    """The quantiles of the distances, a row for each class that occurs."""
    rows = [
        (int(label), *summarize(split.distances[split.labels == label]))
        for label in torch.unique(split.labels)
    ]
    if len(rows) > _MATRIX:
        rows.sort(key=lambda row: row[4])
    names = ("label", "n", *ROW)
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _find_infinite(rows: Columns) -> list[int]:
    """The classes whose line from 10% to 90% has no end."""
    ends = zip(rows["label"], rows["low"], rows["high"], strict=True)
    return [label for label, low, high in ends if not (math.isfinite(low) and math.isfinite(high))]


ROW = ("low", "first", "median", "third", "high")
"""The names of the quantiles of a row."""


def summarize(distances: Tensor) -> tuple:
    """The number of distances, and their quantiles from 10% to 90%, which may be infinite."""
    return (len(distances), *quantiles(distances, _LEVELS))

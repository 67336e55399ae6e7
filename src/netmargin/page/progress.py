"""A section of a page: how far training has come: the history of a run."""

import math
from typing import Any

from ..training.history import describe_heldout
from .facts import Facts
from .numbers import plain, plural, power_of_ten, significant
from .payload import Certainty, Columns, Tag, Training

_POINTS = 600
"""Epochs of a curve: about one for each pixel."""
_MARGIN = "normalized_margin"
"""What is drawn of a history: of nets that have no such margin, such as transformers, nothing."""


def write_training(facts: Facts) -> Training | None:
    """Write section 6; None without a history."""
    if facts.history is None or not facts.history.rows:
        return None
    rows, separated = facts.history.rows, facts.history.separated
    # Before all samples are right the smallest margin is negative, and says nothing.
    later = [row for row in rows if separated is not None and row["epoch"] >= separated]
    margins = [row[_MARGIN] for row in later if row.get(_MARGIN) is not None]
    has_margin = len(margins) > 1  # one is no curve
    watched, said = _name_watched(facts, rows), "epoch by epoch"
    if separated is None:
        takeaway = _describe_wrong(facts, rows[-1], watched)
    else:
        epoch = f"{int(separated):,}" if separated == int(separated) else plain(separated)
        takeaway = f"All {watched} have been right since epoch {epoch}."
        said += f"; dashed: from there on all {facts.noun}s are right"
    if has_margin:
        first, last = significant(margins[0]), significant(margins[-1])
        takeaway += f" Since then the normalized margin has gone from {first} to {last}."
    return Training(
        takeaway=takeaway,
        data=f"the {watched}",
        tags=(Tag(Certainty.MEASURED, said),),
        loss=power_of_ten(rows[-1]["log10_mean_loss"]),
        has_margin=has_margin,
        notes=(
            "The normalized margin is a score, divided by the size of the weights: it is no"
            " distance, and does not compare nets of other width or depth. "
            * has_margin
            + (
                describe_heldout(rows)
                or "Whether held-out errors would still fall is not seen here."
            ),
        ),
        rows=_select_rows(rows, separated),
        separated=separated,
    )


def _describe_wrong(facts: Facts, last: dict[str, Any], watched: str) -> str:
    """How many samples are still wrong."""
    n = _count_samples(last)
    if n is None and facts.training is not None:
        n = facts.training.n
    if n is None:
        return f"{100 * (1 - last['accuracy']):.1f}% of the {watched} are still wrong."
    these = watched if watched[0].isdigit() else f"{n:,} {watched}"
    return f"Still wrong: {round((1 - last['accuracy']) * n):,} of the {these}."


def _name_watched(facts: Facts, rows: list[dict[str, Any]]) -> str:
    """The samples of the history: all training samples, or those that a watch was given."""
    n, training = _count_samples(rows[-1]), facts.training
    if n is None or training is None or n == training.n:
        return f"training {facts.noun}s"
    return f"{plural(n, facts.noun)} of the watch"


def _count_samples(row: dict[str, Any]) -> int | None:
    """How many samples a row is about: the sum of their losses over the mean; None if unknown."""
    log_sum, log10_mean = row.get("log_loss"), row.get("log10_mean_loss")
    if log_sum is None or log10_mean is None or not math.isfinite(log_sum):
        return None
    return round(math.exp(log_sum - math.log(10) * log10_mean))


def _select_rows(rows: list[dict[str, Any]], separated: float | None) -> Columns:
    """Epochs evenly over the run, the first and the last and that of separation among them."""
    step = max(1, math.ceil(len(rows) / _POINTS))
    kept = [
        row
        for index, row in enumerate(rows)
        if index % step == 0 or index == len(rows) - 1 or row["epoch"] == separated
    ]
    return {
        "epoch": [row["epoch"] for row in kept],
        "log10_loss": [row["log10_mean_loss"] for row in kept],
        "margin": [row.get(_MARGIN) for row in kept],
        "right": [100 * row["accuracy"] for row in kept],
        "heldout": [
            None if (held := row.get("heldout_accuracy")) is None else 100 * held for row in kept
        ],
    }

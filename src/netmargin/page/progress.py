"""A section of a page: how far training has come: the history of a run."""

import math

import numpy as np

from .facts import Facts
from .numbers import count, percent, plain, plural, power_of_ten, significant
from .payload import Certainty, Columns, Tag, Training

_POINTS = 600
"""Epochs of a curve: about one for each pixel."""
_LAST, _LAST_SHARE = 10, 0.1
"""Epochs whose average is held against that of as many before: ten, and of long runs a tenth, since
margins grow with the logarithm of time.
"""
_RISES = 0.005
"""Relative growth that counts as rising at least: less is not seen in the picture."""
_FAR = 0.05
"""Relative epsilon of a net that is not close to a point of largest margin."""
_MARGIN = "normalized_margin"
"""What is drawn of a history: of nets that have no such margin, such as transformers, nothing."""
_TRENDS = {
    1: "it still rises",
    -1: "it falls",
    0: "whether it still rises cannot be told from its ups and downs",
}


def write_training(facts: Facts) -> Training | None:
    """Write section 6; None without a history."""
    if facts.history is None or not facts.history.rows:
        return None
    rows, separated = facts.history.rows, facts.history.separated
    has_margin = any(row.get(_MARGIN) is not None for row in rows)
    watched = _name_watched(facts, rows)
    if separated is None:
        has_margin = False  # the smallest margin is negative, and says nothing
        takeaway, said = _describe_wrong(facts, rows[-1], watched), "epoch by epoch"
    else:
        takeaway = _describe_separated(facts, rows, separated, watched)
        said = f"epoch by epoch; dashed: from there on all {facts.noun}s are right"
        if sum(row["epoch"] >= separated for row in rows) < 2:
            has_margin = False  # one margin is no curve
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
            + _describe_heldout(facts, rows),
        ),
        rows=_select_rows(rows, separated),
        separated=separated,
    )


def _describe_separated(facts: Facts, rows: list[dict], separated: float, watched: str) -> str:
    """Since when all samples are right, how the margin has gone on, and what to do for more."""
    epoch = count(int(separated)) if separated == int(separated) else plain(separated)
    since = f"All {watched} have been right since epoch {epoch}."
    last = [row.get(_MARGIN) for row in rows if row["epoch"] >= separated]
    margins = [margin for margin in last if margin is not None]
    if len(margins) < 2:
        return f"{since} The loss is down to {power_of_ten(rows[-1]['log10_mean_loss'])}."
    went = (
        f"{since} Since then the normalized margin has gone from {significant(margins[0])} to"
        f" {significant(margins[-1])}"
    )
    trend = measure_trend(margins)
    if trend is None:
        return f"{went}."
    more = ""
    if trend > 0:
        more = " For a larger margin go on."
    elif facts.certificate is not None and facts.certificate.relative_epsilon > _FAR:
        gap = significant(facts.certificate.relative_epsilon)
        more = f" The largest one is far (gap {gap}, above)"
        more += ": maximize_margin goes there directly." if facts.ascends else "."
    return f"{went}; {_TRENDS[trend]}.{more}"


def measure_trend(margins: list[float]) -> int | None:
    """Whether margins rise (1), fall (-1) or neither (0) at last; None for fewer than four."""
    half = min(len(margins) // 2, max(_LAST, round(_LAST_SHARE * len(margins))))
    if half < 2:
        return None
    parts = np.array(margins[-2 * half : -half]), np.array(margins[-half:])
    first, last = (float(part.mean()) for part in parts)
    # What a straight line leaves of each half is its noise.
    steps = np.arange(half)
    noise = [part - np.polyval(np.polyfit(steps, part, 1), steps) for part in parts]
    deviation = math.sqrt(sum(float((part**2).mean()) for part in noise) / half)
    doubt = max(2 * deviation, _RISES * first)
    return int(last - first > doubt) - int(first - last > doubt)


def _describe_heldout(facts: Facts, rows: list[dict]) -> str:
    """Where held-out samples were best, and whether that is past."""
    seen = [row for row in rows if row.get("heldout_log10_mean_loss") is not None]
    if not seen:
        return "Whether held-out errors would still fall is not seen here."
    best, last = min(seen, key=lambda row: row["heldout_log10_mean_loss"]), seen[-1]
    said = (
        f"Of the held-out {facts.noun}s {percent(last['heldout_accuracy'], 1)} are right at the"
        f" end; their loss was smallest at epoch {plain(best['epoch'])}, with"
        f" {percent(best['heldout_accuracy'], 1)} right"
    )
    return f"{said}." if best is last else f"{said}: a checkpoint from there may serve better."


def _describe_wrong(facts: Facts, last: dict, watched: str) -> str:
    """How many samples are still wrong."""
    n = _count_samples(last)
    if n is None and facts.training is not None:
        n = facts.training.n
    if n is None:
        return f"{100 * (1 - last['accuracy']):.1f}% of the {watched} are still wrong."
    these = watched if watched[0].isdigit() else f"{count(n)} {watched}"
    return f"Still wrong: {count(round((1 - last['accuracy']) * n))} of the {these}."


def _name_watched(facts: Facts, rows: list[dict]) -> str:
    """The samples of the history: all training samples, or those that a watch was given."""
    n, training = _count_samples(rows[-1]), facts.training
    if n is None or training is None or n == training.n:
        return f"training {facts.noun}s"
    return f"{plural(n, facts.noun)} of the watch"


def _count_samples(row: dict) -> int | None:
    """How many samples a row is about: the sum of their losses over the mean; None if unknown."""
    log_sum, log10_mean = row.get("log_loss"), row.get("log10_mean_loss")
    if log_sum is None or log10_mean is None or not math.isfinite(log_sum):
        return None
    return round(math.exp(log_sum - math.log(10) * log10_mean))


def _select_rows(rows: list[dict], separated: float | None) -> Columns:
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

"""Section 6 of a page, how far training has come: the history of a run."""

import math

from .facts import Facts
from .numbers import count, plain, plural, power_of_ten, sign, significant
from .payload import Certainty, Columns, Tag, Training

_POINTS = 600
"""Epochs of a curve: about one for each pixel."""
_LAST, _LAST_SHARE = 10, 0.1
"""Epochs over which a margin still rises or does not: ten, and of long runs a tenth, since margins
grow with the logarithm of time.
"""
_RISES = 0.005
"""Relative growth over these epochs that counts as rising: less is not seen in the picture."""
_FALLS = 0.02
"""Fall of log10 of the loss over these epochs that counts as falling: by 5%."""
_MARGINS = {
    "normalized_margin": "smallest margin, the size of the weights divided out",
    "partial_normalized_margin": "smallest margin, the size of the part that scales divided out",
    "quasi_normalized_margin": "smallest margin, the size of weights and biases divided out",
}
"""Margins of a history, the best known first, and what they are in words."""


def write_training(facts: Facts) -> Training | None:
    """Write section 6; None without a history."""
    if facts.history is None or not facts.history.rows:
        return None
    rows = facts.history.rows
    name = next((key for key in _MARGINS if any(r.get(key) is not None for r in rows)), "")
    separated = find_separation(rows)
    takeaway = _describe(facts, rows, name, separated)
    if separated is None:  # the smallest margin is negative, and says nothing
        name = ""
    return Training(
        takeaway=takeaway,
        data=f"the {name_watched(facts, rows)}",
        tags=(
            Tag(
                Certainty.MEASURED,
                f"epoch by epoch; dashed: from there on all {facts.noun}s are right"
                if separated is not None
                else "epoch by epoch",
            ),
        ),
        rows=_select_rows(rows, name, separated),
        separated=separated,
        margin_name=_MARGINS.get(name, ""),
        verdict=_advise(facts, rows, name, separated),
        note=_explain_margin(facts, rows, name),
    )


def _explain_margin(facts: Facts, rows: list[dict], name: str) -> str:
    """What the normalized margin is no measure of."""
    note = (
        "This says how far training has come. It does not compare nets: wider or deeper ones have"
        " other scales."
    )
    last = rows[-1].get(name) if name else None
    if last is None:
        return note
    return (
        f"The normalized margin ({significant(last)}) is a score, divided by the size of the"
        f" weights. It is no distance, so it is not to be held against those of the {facts.noun}s"
        f" above. {note}"
    )


def _advise(facts: Facts, rows: list[dict], name: str, separated: int | None) -> str:
    """Whether training should stop or go on, as far as its history tells."""
    span = min(max(_LAST, round(_LAST_SHARE * len(rows))), len(rows) - 1)
    if not span:
        return ""
    fell = rows[-1 - span]["log10_mean_loss"] - rows[-1]["log10_mean_loss"]
    if separated is None:
        if fell > _FALLS:
            return f"Go on: the loss still falls, and some {facts.noun}s are wrong."
        return (
            "Going on like this changes little: the loss no longer falls. Try another rate or a"
            " larger net, and look at the labels of those that are wrong."
        )
    nothing = f"no training {facts.noun} is left to get right"
    known = [row for row in rows if row["epoch"] >= separated and row.get(name) is not None]
    after = [row[name] for row in known]
    if len(after) > 1:
        span = min(span, len(after) - 1)
        if after[-1] > after[-1 - span] * (1 + _RISES) and after[-1] >= max(after) * (1 - _RISES):
            return (
                f"Stop or go on? For right answers you can stop: {nothing}, and whether held-out"
                " errors would still fall is not seen here. For a larger margin go on: it still"
                " grows."
            )
        return f"Stop: {nothing}, and the margin no longer grows."
    return f"Stop: {nothing}, and this net has no normalized margin that could still grow."


def find_separation(rows: list[dict]) -> int | None:
    """The first epoch from which on all samples are right, or None."""
    last_wrong = max((index for index, row in enumerate(rows) if not _right(row)), default=-1)
    return None if last_wrong == len(rows) - 1 else rows[last_wrong + 1]["epoch"]


def name_watched(facts: Facts, rows: list[dict]) -> str:
    """The samples of the history: all training samples, or those that a watch was given."""
    n, training = _count_samples(rows[-1]), facts.training
    if n is None or training is None or n == training.n:
        return f"training {facts.noun}s"
    return f"{plural(n, facts.noun)} that {'was' if n == 1 else 'were'} watched"


def _count_samples(row: dict) -> int | None:
    """How many samples a row is about: the sum of their losses over the mean; None if unknown."""
    log_sum, log10_mean = row.get("log_loss"), row.get("log10_mean_loss")
    if log_sum is None or log10_mean is None or not math.isfinite(log_sum):
        return None
    return round(math.exp(log_sum - math.log(10) * log10_mean))


def describe_loss(facts: Facts) -> str:
    """The last loss, for the navigation."""
    assert facts.history is not None
    return f"loss {power_of_ten(facts.history.rows[-1]['log10_mean_loss'])}"


def _right(row: dict) -> bool:
    """Whether all samples are right after an epoch."""
    return row["accuracy"] == 1


def _describe(facts: Facts, rows: list[dict], name: str, separated: int | None) -> str:
    """Since when all samples are right, and how the margin has gone on."""
    last, watched = rows[-1], name_watched(facts, rows)
    if separated is None:
        n = _count_samples(last)
        if n is None and facts.training is not None:
            n = facts.training.n
        if n is None:
            wrong = f"{100 * (1 - last['accuracy']):.1f}% of the {watched} are"
        else:
            k = round((1 - last["accuracy"]) * n)
            these = watched if watched[0].isdigit() else f"{count(n)} {watched}"
            wrong = f"{count(k)} of the {these} {'is' if k == 1 else 'are'}"
        counts = "; the normalized margin counts once there are none" if name else ""
        return f"{wrong} still wrong{counts}."
    since = f"All {watched} have been right since epoch {count(separated)}."
    if not name:
        loss = power_of_ten(last["log10_mean_loss"])
        return f"{since} The loss is down to {loss}; this net has no normalized margin."
    known = [row for row in rows if row["epoch"] >= separated and row[name] is not None]
    after = [row[name] for row in known]
    if len(after) < 2:
        return f"{since} The normalized margin is {significant(after[-1])}." if after else since
    span = min(max(_LAST, round(_LAST_SHARE * len(after))), len(after) - 1)
    before = after[-1 - span]
    # Near the first epoch without errors the margin is near 0, and a ratio means nothing.
    whole = span == len(after) - 1
    growth = after[-1] / before - 1 if before > 0 else math.inf
    peak = max(range(len(after)), key=after.__getitem__)
    epochs = known[-1]["epoch"] - known[-1 - span]["epoch"]  # of a watch not one for each row
    over = "since the last epoch" if epochs == 1 else f"over the last {plain(epochs)} epochs"
    change = sign(growth, f"{abs(100 * growth):.0f}%")
    plus = "+" if growth > 0 and abs(100 * growth) >= 0.5 else ""
    if after[-1] < after[peak] * (1 - _RISES) and growth > _RISES:
        # It ends above where these epochs began, and yet below what it reached: that is no rise.
        trend = f"it goes up and down, and was largest in epoch {count(known[peak]['epoch'])}"
    elif growth == math.inf or (whole and growth > _RISES):
        trend = "it still rises"
    elif growth > _RISES:
        trend = f"it still rises ({plus}{change} {over})"
    else:
        trend = f"{over} it no longer rose ({plus}{change})"
    return (
        f"{since} Since then the normalized margin has gone from {significant(after[0])} to"
        f" {significant(after[-1])}; {trend}."
    )


def _select_rows(rows: list[dict], name: str, separated: int | None) -> Columns:
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
        "margin": [row.get(name) if name else None for row in kept],
        "right": [100 * row["accuracy"] for row in kept],
    }

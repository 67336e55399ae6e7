"""Section 6 of a page, how far training has come: the history of a run."""

import math
from dataclasses import dataclass

import numpy as np

from .facts import Facts
from .numbers import count, plain, plural, power_of_ten, sign, significant
from .payload import Certainty, Columns, Tag, Training

_POINTS = 600
"""Epochs of a curve: about one for each pixel."""
_LAST, _LAST_SHARE = 10, 0.1
"""Epochs whose average is held against that of as many before: ten, and of long runs a tenth, since
margins grow with the logarithm of time.
"""
_RISES = 0.005
"""Relative growth that counts as rising at least: less is not seen in the picture."""
_UNSURE = "whether it still rises cannot be told from its ups and downs"
_FAR = 0.05
"""Relative epsilon of a net that is not close to a point of largest margin."""
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
    separated = facts.history.separated
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
    theorem = " Theory lets its smoothed form never fall along gradient flow; in SGD it may."
    if name == "quasi_normalized_margin":  # about which there is no theorem
        theorem = ""
    last = rows[-1].get(name) if name else None
    if last is None:
        return note
    return (
        f"The normalized margin ({significant(last)}) is a score, divided by the size of the"
        " weights. It is no distance: do not hold it against the distances of other sections."
        f"{theorem} {note}"
    )


def _advise(facts: Facts, rows: list[dict], name: str, separated: float | None) -> str:
    """Whether training should stop or go on, as far as its history tells."""
    span = min(max(_LAST, round(_LAST_SHARE * len(rows))), len(rows) - 1)
    if not span:
        return ""
    if separated is None:
        fell = rows[-1 - span]["log10_mean_loss"] - rows[-1]["log10_mean_loss"]
        if fell > _FALLS:
            return f"Go on: the loss still falls, and some {facts.noun}s are wrong."
        return (
            "Going on like this changes little: the loss no longer falls. Try another rate or a"
            " larger net, and look at the labels of those that are wrong."
        )
    stop = (
        f"Stop or go on? For right answers you can stop: no training {facts.noun} is left to get"
        " right, and whether held-out errors would still fall is not seen here."
    )
    trend = measure_trend(_list_margins(rows, name, separated))
    if trend is None:
        return stop
    if trend.rises:
        return f"{stop} For a larger margin go on: it still rises."
    far = ""
    if facts.certificate is not None and facts.certificate.relative_epsilon > _FAR:
        gap = significant(facts.certificate.relative_epsilon)
        far = f" The largest one is far (gap {gap}, above)"
        far += ": maximize_margin goes there directly." if facts.ascends else "."
    if trend.falls:
        return f"{stop} Going on like this makes the margin smaller.{far}"
    return f"{stop} Whether the margin still rises cannot be told from its ups and downs.{far}"


def _list_margins(rows: list[dict], name: str, separated: float) -> list[tuple[float, float]]:
    """Epochs and normalized margins since the first one without errors."""
    return [
        (row["epoch"], row[name])
        for row in rows
        if row["epoch"] >= separated and row.get(name) is not None
    ]


@dataclass(frozen=True)
class Trend:
    """The average margin of some last epochs, against that of as many before them.

    Attributes
    ----------
    growth : float
        The relative difference of both averages.
    doubt : float
        Two standard deviations of it.
    before, after : tuple of float
        The first and the last epoch of each.
    """

    growth: float
    doubt: float
    before: tuple[float, float]
    after: tuple[float, float]

    @property
    def rises(self) -> bool:
        """Whether it is larger by more than chance."""
        return self.growth > self.doubt

    @property
    def falls(self) -> bool:
        """Whether it is smaller by more than chance."""
        return self.growth < -self.doubt


def measure_trend(margins: list[tuple[float, float]]) -> Trend | None:
    """Whether margins still rise over the last of their epochs; None for fewer than four.

    Examples
    --------
    >>> measure_trend([(epoch, 1 + 0.01 * epoch) for epoch in range(40)]).rises
    True
    >>> noisy = measure_trend([(epoch, 1 + (-1) ** epoch * 0.1) for epoch in range(40)])
    >>> noisy.rises, noisy.falls
    (False, False)
    """
    half = min(len(margins) // 2, max(_LAST, round(_LAST_SHARE * len(margins))))
    if half < 2:
        return None
    parts = margins[-2 * half : -half], margins[-half:]
    values = [np.array([margin for _, margin in part]) for part in parts]
    first, last = (part.mean() for part in values)
    # What a straight line leaves of each half is its noise.
    steps = np.arange(half)
    noise = [part - np.polyval(np.polyfit(steps, part, 1), steps) for part in values]
    deviation = math.sqrt(sum(float((part**2).mean()) for part in noise) / half)
    return Trend(
        growth=float(last / first - 1),
        doubt=max(2 * deviation / float(first), _RISES),
        before=(parts[0][0][0], parts[0][-1][0]),
        after=(parts[1][0][0], parts[1][-1][0]),
    )


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


def _describe(facts: Facts, rows: list[dict], name: str, separated: float | None) -> str:
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
    since = f"All {watched} have been right since epoch {_name_epoch(separated)}."
    if not name:
        loss = power_of_ten(last["log10_mean_loss"])
        return f"{since} The loss is down to {loss}; this net has no normalized margin."
    known = _list_margins(rows, name, separated)
    after = [margin for _, margin in known]
    if len(after) < 2:
        return f"{since} The normalized margin is {significant(after[-1])}." if after else since
    went = (
        f"{since} Since then the normalized margin has gone from {significant(after[0])} to"
        f" {significant(after[-1])}"
    )
    trend = measure_trend(known)
    if trend is None:
        return f"{went}."
    # Near the first epoch without errors the margin is near 0, and a ratio means nothing.
    change = sign(trend.growth, f"{abs(100 * trend.growth):.0f}%")
    plus = "+" if trend.growth > 0 and abs(100 * trend.growth) >= 0.5 else ""
    before, after_it = (
        f"epochs {_name_epoch(first)} to {_name_epoch(last)}"
        for first, last in (trend.before, trend.after)
    )
    how = f" (average of {after_it} against that of {before}: {plus}{change})"
    if trend.growth > 1:  # from nearly nothing
        how = ""
    said = "it still rises" if trend.rises else "it falls" if trend.falls else _UNSURE
    return f"{went}; {said}{how}."


def _name_epoch(epoch: float) -> str:
    """The number of an epoch, which of a watch may be no whole one."""
    return count(int(epoch)) if epoch == int(epoch) else plain(epoch)


def _select_rows(rows: list[dict], name: str, separated: float | None) -> Columns:
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

"""A report in plain words: how far optimization has come, and how sure the net is of its data."""

import textwrap
from collections.abc import Mapping

from torch import Tensor

from ..homogeneity import Homogeneity
from .blockers import group_blockers
from .heldout import error_interval, margin_weighted_error, z_score
from .table import Margin

_WIDTH = 100
"""Characters of a line: what terminals and notebooks show without wrapping."""
_SHOWN_LAYERS = 4
"""Layers whose names a line shows."""

_NAMES = {
    "global": "over the norm of all weights",
    "layers": "over the product of the layers' norms",
    "partial": "over the norm of a part of the weights",
    "quasi": "the same with every bias counted",
}
"""The normalized margins of a summary, in the words of one who has not read the papers."""


def describe_optimization(
    q_min: float, rows: Mapping[str, Margin], homogeneity: Homogeneity
) -> list[str]:
    """Lines on the normalized margins of a net, and on what keeps others from being defined."""
    lines = [
        "HOW FAR OPTIMIZATION HAS COME  (to follow one net while it trains; it does not compare"
        " nets)",
        f"  {'smallest score margin, q_min':40} {q_min:.6g}",
    ]
    lines += _wrapped(
        "The score margin is the score of the right class minus the best other score. Training"
        " raises it without end by growing the weights, so it is divided by what their size"
        " explains:"
    )
    for name, words in _NAMES.items():
        row = rows[name]
        # Where all weights scale, the part that does is all.
        if name == "partial" and rows["global"].applies:
            continue
        if row.value is None or row.smoothed is None:
            why = "what blocks it is below" if name in ("global", "layers") else row.note
            lines.append(f"  {words:40} none: {why}")
        else:
            lines.append(f"  {words:40} {row.value:.6g}   (smoothed {row.smoothed:.4g})")
    if q_min <= 0:
        lines += _wrapped("Some samples are wrong: these margins tell little until all are right.")
    if any(rows[name].applies for name in _NAMES):
        lines += _wrapped(
            "The smoothed margin counts all samples, the nearest ones most: it is below the smallest"
            " margin, rises steadily in training once all samples are right, and meets it late."
        )
    lines.append(f"  {_order_sentence(rows, homogeneity)}")
    lines += [f"  homogeneity: {line}" for line in homogeneity.accuracy_lines()[:1]]
    # In one piece, as `analyse` says them: they are searched for and pasted.
    lines += [f"  note: {note}" for note in homogeneity.notes]
    if rows["global"].value is None:
        for text in group_blockers(homogeneity.blockers):
            lines += _wrapped(f"blocked by {text}")
    return lines


def describe_certainty(rows: Mapping[str, Margin], error: float, log10_loss: float) -> list[str]:
    """Lines on the input margins of a net on the samples of a report."""
    lines = [
        "HOW SURE THE NET IS OF THESE SAMPLES  (compare only nets of one architecture that both"
        " fit them)"
    ]
    row = rows["input"]
    quantiles = row.quantiles()
    if quantiles is None:
        lines.append("  distance to the decision boundary        not measured: input_margins=True")
    else:
        low, quarter, median = quantiles
        lines.append(
            f"  {'distance to the decision boundary, 25%':40} {quarter:.4g}   (10% {low:.4g}, median"
            f" {median:.4g})"
        )
        lines += _wrapped(
            "For a quarter of the samples a change of the input of this Euclidean length or less turns"
            " the class (to first order; negative: it is wrong already), in the units of the inputs."
        )
    lines.append(
        f"  {'beside it: error, log10 of the mean loss':40} {100 * error:.2f}%, {log10_loss:.3f}"
    )
    return lines


def describe_heldout(q: Tensor | None) -> list[str]:
    """Lines on margins of held-out samples, or on why they should be given."""
    lines = ["ON HELD-OUT SAMPLES  (this is what compares nets)"]
    if q is None:
        return lines + _wrapped(
            "Not given. Measure labelled samples that the net was not trained on, 200 or more, and"
            " give report.summary(heldout=nm.measure(model, heldout)) to compare this net with"
            " others."
        )
    wrong = int((q <= 0).sum())
    low, high = error_interval(wrong, len(q))
    z, weighted = z_score(q), margin_weighted_error(q)
    lines += [
        f"  {'error':40} {100 * wrong / len(q):.2f}% of {len(q)}, 95% interval {100 * low:.2f} to"
        f" {100 * high:.2f}%",
        f"  {'z = mean margin / standard deviation':40} {'none' if z is None else f'{z:.4g}'}",
    ]
    lines += _wrapped(
        "Larger is better. z ranks nets as well as the error on one and a half to four times as many"
        " labels; it ranks, it does not estimate the error."
    )
    shown = "none" if weighted is None else f"{100 * weighted:.2f}%"
    lines.append(f"  {'margin-weighted error':40} {shown}")
    return lines + _wrapped(
        "Wrong margins as a share of all margins. Smaller is better; it ranks nets of different"
        " kinds too."
    )


def _order_sentence(rows: Mapping[str, Margin], homogeneity: Homogeneity) -> str:
    """What happens to the scores when the weights are doubled, in one sentence."""
    order = homogeneity.order
    if order is None:
        return "order of homogeneity: none (no power of the weights' size explains the scores)"
    scaling = [name for name, exponent in homogeneity.groups.items() if exponent > 0]
    shown = ", ".join(scaling[:_SHOWN_LAYERS]) + ", ..." * (len(scaling) > _SHOWN_LAYERS)
    which = "all weights" if rows["global"].applies else f"the part, {shown},"
    return f"order of homogeneity: {order} (doubling {which} multiplies the scores by 2^{order})"


def _wrapped(text: str) -> list[str]:
    """A sentence as indented lines."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )

"""A report in plain words: a verdict on one screen, and all that is known."""

import math
from typing import Any

from ..core.records import Cell, Certainty, Row, number, plural
from ..homogeneity.sentences import group_blockers
from ..nets.labels import ClassNames
from .mistakes import doubt_data, find_mistake, rank_classes
from .quantiles import LEVEL_NAMES

_SHOWN_CLASSES = 3
"""Classes that a line about the largest errors names."""
_SHOWN_LAYERS = 4
"""Layers whose names a line shows."""
_PLAIN_EXPONENT = 300
"""Losses between 10 to this power, and to minus it, are shown as numbers: float64 holds them."""

FITS = 0.01
"""Training error up to which the study of docs/comparing.md counts a net as one that fits: among
others, larger input margins go with larger gaps between test and training error.
"""
_EQUAL = 1e-9
"""Relative difference below which two normalized margins are shown once."""


def list_verdict(report: Any) -> list[Row]:
    """What most readers need of a `MarginReport`: one screen."""
    return [
        *_describe_errors(report),
        *_describe_distance(report),
        ("next", _advise(report)),
        ("more", "summary(full=True): every margin, what normalizes it, notes"),
    ]


def list_rows(report: Any) -> list[Row]:
    """All that is known of a `MarginReport`."""
    loss = f"{_show_loss(report.log10_mean_loss)}, log10 {report.log10_mean_loss:.3f}"
    return [
        *_describe_errors(report),
        (f"mean {report.loss.name} loss", _measured(loss)),
        "The margin of a sample is the score of its class, before any softmax, minus the best other"
        " score (with one output: the score times the label, 1 or -1); negative where it is wrong.",
        *_describe_distances(report),
        *_describe_rank(report),
        *_describe_optimization(report),
    ]


def _describe_errors(report: Any) -> list[Row]:
    """Rows on the wrong samples: how many, of which classes, taken for which."""
    wrong, share = int((report.q <= 0).sum()), report.near_accuracy
    found: list[Row] = [
        ("wrong", _measured(f"{wrong:,} of {report.n:,}, {100 * report.error:.2f}%"))
    ]
    if share is not None:
        found.append(("right or nearly right", _measured(f"{100 * share:.2f}%")))
    if report.heldout is not False:
        low, high = report.error_interval
        unless = "" if report.heldout else ", if the net was not trained on these samples"
        found.append(("error of new data", f"{low:.2%} to {high:.2%} (95%){unless}"))
    worst, names = rank_classes(report.labels, report.q <= 0), ClassNames(report.class_names)
    if not worst:
        return found
    shown = (f"{names.of(c)}: {wrong} of {count}" for c, wrong, count in worst[:_SHOWN_CLASSES])
    found.append(("classes with most errors", ", ".join(shown)))
    if mistake := find_mistake(report.labels, report.answers):
        label, answer, often, same = mistake
        count = int((report.labels == label).sum())
        told = f"{names.of(label)} taken for {names.of(answer)}: {often} of {count}{same}"
        found.append(("most frequent mistake", told))
    return found


def _describe_distance(report: Any) -> list[Row]:
    """A row on how far the typical right sample is from the boundary."""
    if report.saturated:
        return []
    found = report.input_margins
    if found is None:
        return [("distance to the boundary", "not measured: input_margins=True")]
    right = found.distances[report.q > 0]
    if not len(right):
        return []
    typical = f"{number(right.median().item())} for a typical right sample"
    typical += f", in the output of {found.layer!r}" * bool(found.layer)
    return [("distance to the boundary", (typical, Certainty.ESTIMATED)), *found.nearest]


def _advise(report: Any) -> str:
    """What to look at next."""
    wrong = int((report.q <= 0).sum())
    if doubt := doubt_data(report.labels, report.answers, ClassNames(report.class_names).of):
        return doubt
    if report.saturated:
        return "measure the net without its softmax, as the warning says"
    if report.heldout is False:
        if wrong:
            return (
                "the wrong samples, nm.page(model, data), and whether their labels are right,"
                " nm.label_errors(data)"
            )
        return "new data: nm.measure(model, heldout, heldout=True)"
    if wrong:
        data = "heldout=data" if report.heldout else "data"
        return f"the wrong samples: nm.page(model, {data}); other nets: nm.compare(models, {data})"
    if report.input_margins is not None and report.input_margins.layer:  # tokens cannot move
        return "the samples nearest to the boundary: nm.page(model, data)"
    return "how far inputs must move to be misclassified: nm.robustness(model, data)"


def _describe_distances(report: Any) -> list[Row]:
    """Rows on the input margins of a net."""
    found: list[Row] = [
        ("HOW SURE THE NET IS OF THESE SAMPLES  (how far they lie from where its answer changes)",)
    ]
    quantiles = report.margins["input"].quantiles()
    if quantiles is None:
        return [*found, ("distance to the boundary", "not measured: input_margins=True")]
    found += [
        (f"distance to the boundary, {name} quantile", (number(value), Certainty.ESTIMATED))
        for name, value in zip(LEVEL_NAMES, quantiles, strict=True)
    ]
    exceeds = "" if report.error <= FITS else ", which this net exceeds"
    found.append(
        "A quarter of the samples are wrong, or turn so when they are moved by the 25% quantile"
        " in the worst direction, in the units of the inputs: an estimate by slopes, no"
        " guarantee. On training data it compares only nets of one architecture, trained in one"
        f" way, that both fit them (error up to 1%{exceeds})."
    )
    return found + list(filter(None, [report.input_margins.left_out]))


def _describe_rank(report: Any) -> list[Row]:
    """Rows on what compares nets: numbers of samples that none of them was trained on."""
    if report.saturated:
        return []
    found: list[Row] = [
        ("TO COMPARE NETS  (all on the same samples, which none of them was trained on)",)
    ]
    if report.heldout is False:
        return [*found, "These are training samples. Measure others: heldout=True."]
    error = report.margin_weighted_error
    weighted = "–" if error is None else f"{100 * error:.2f}%"
    return [
        *found,
        ("z = mean margin / standard deviation", _measured(number(report.z))),
        "Larger is better. It tells nets apart as the error on one and a half to four times as many"
        " labels would; it is neither an error rate nor a test statistic.",
        ("margin-weighted error", _measured(weighted)),
        "The share of wrong samples in the sizes of all margins: small where they are close calls."
        " nm.compare(models, data) says which differences between nets are more than chance.",
    ]


def _describe_optimization(report: Any) -> list[Row]:
    """Rows on the normalized margins of a net, and on what keeps others from being defined."""
    rows, homogeneity = report.margins, report.homogeneity
    found: list[Row] = [
        (
            "HOW FAR OPTIMIZATION HAS COME  (to follow one net while it trains; it does not compare"
            " nets)",
        ),
        ("smallest margin, q_min", _measured(f"{report.q_min:.6g}")),
    ]
    if wrong := int((report.q <= 0).sum()):
        found.append(
            f"Wrong samples: {wrong} of {report.n}, and this is the worst of them. Until all are"
            " right, follow the loss, or the quantiles over all samples: report.margins.frame()."
        )
    if all(rows[name].smoothed is None for name in ("global", "layers", "partial", "quasi")):
        found.append(
            "In this net no power of the size of the weights says how much they stretch margins:"
            " there is no normalized margin. Follow the loss, and the distance to the boundary."
        )
    elif wrong:
        found.append(
            "The quotients of q_min by what the size of the weights explains (report.margins) are"
            " negative until then, and say little. Held-out samples say if more training helps."
        )
        found += _describe_order(report)
    else:
        found.append(
            "Larger weights stretch all margins without changing one answer, so it is divided by"
            " what their size explains. Compare each quotient with its own value earlier in the"
            " same training: it is to rise."
        )
        found += _list_quotients(report)
        found += [_explain_smoothed(report), *_describe_order(report)]
    found += [f"note: {note}" for note in homogeneity.notes]
    if rows["global"].value is None and homogeneity.blockers:
        found.append(
            "Why no power of the size of all weights explains the scores (no fault of the net; the"
            " remedies are for those who need that quotient):"
        )
        found += [f"- blocked by {text}" for text in group_blockers(homogeneity.blockers)]
    return found


def _list_quotients(report: Any) -> list[Row]:
    """The normalized margins, in words of one who has not read the papers."""
    rows, homogeneity = report.margins, report.homogeneity
    whole, quasi = rows["global"].value, rows["quasi"].value
    power = homogeneity.order or "L"
    words = {
        "global": f"q_min / (norm of all weights)^{'L' if whole is None else power}",
        "layers": "q_min / product of the layers' norms",
        "partial": f"q_min / (norm of the part below)^{power}",
        "quasi": "q_min / size with every bias counted",
    }
    idle = whole is not None and any(not exponent for exponent in homogeneity.groups.values())
    if idle:
        words["partial"] = f"q_min / (norm of what scales)^{power}"
    elif whole is not None:
        del words["partial"]  # where all weights scale, the part that does is all
    if whole is not None and quasi is not None and math.isclose(whole, quasi, rel_tol=_EQUAL):
        del words["quasi"]  # there are no biases that the norm of all weights leaves out
    found: list[Row] = []
    for name, quotient in words.items():
        row = rows[name]
        if row.value is not None and row.smoothed is not None:
            value = _measured(f"{row.value:.6g}")
            found.append((quotient, value, f"smoothed {row.smoothed:.4g}"))
        else:
            blocked = name in ("global", "layers")
            found.append((quotient, "none, see below" if blocked else f"none: {row.note}"))
    if idle:
        found.append(
            "The size of weights before a normalization does not change the scores. The quotient"
            " with the norm of all weights changes with it all the same; the others do not."
        )
    return found


def _explain_smoothed(report: Any) -> str:
    """What the smoothed margin is, and why it is negative where it is."""
    text = (
        "Smoothed: computed from the loss, so that all samples count, the nearest ones most; never"
        " above the smallest margin. Once positive, and over the norm of all weights, it never"
        " falls along gradient flow; in SGD it rises on the whole."
    )
    at_boundary, log_loss = report.loss.log_sum([0.0]), report.log_loss
    if log_loss > at_boundary:
        one, total = (_show_loss(found / math.log(10)) for found in (at_boundary, log_loss))
        text += (
            f" It is negative until the losses of all samples add up to less than {one}, the loss"
            f" of one at margin 0; now they add up to {total}."
        )
    return text


def _describe_order(report: Any) -> list[Row]:
    """What happens to the scores when the weights are halved, and how exactly that holds."""
    homogeneity, order = report.homogeneity, report.homogeneity.order
    if order is None:
        return []
    scaling = [name for name, exponent in homogeneity.groups.items() if exponent > 0]
    where = ", with the biases that the note names at 0" * bool(homogeneity.ignored)
    if report.margins["global"].applies:
        which = f"all {'other ' * bool(homogeneity.ignored)}weights"
    else:
        more = ", ..." * (len(scaling) > _SHOWN_LAYERS)
        which = f"the part {', '.join(scaling[:_SHOWN_LAYERS])}{more}"
    which += ", and stored statistics as they would follow," * bool(homogeneity.statistics)
    text = (
        f"Order of homogeneity {order}{where}: halving {which} multiplies the scores by 2^-{order}."
    )
    if homogeneity.deviation is not None:
        found = f"off by {homogeneity.deviation:.1g} of their size, because of {homogeneity.cause}"
        text += (
            f" Checked on {plural(homogeneity.samples, 'sample')}:"
            f" {found if homogeneity.deviation else 'exact'}."
        )
    if homogeneity.ignored:
        text += " With these biases as they are, it does not hold."
    return [text]


def _show_loss(log10_loss: float) -> str:
    """A loss as a number, or as a power of 10 beyond the range of float64."""
    if abs(log10_loss) < _PLAIN_EXPONENT or log10_loss == -math.inf:
        return f"{10**log10_loss:.3g}"
    return f"10^{log10_loss:.1f}"


def _measured(text: str) -> Cell:
    """The cell of a number that was measured."""
    return text, Certainty.MEASURED

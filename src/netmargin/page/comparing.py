"""A section of a page: how the nets compare: by their errors and margin scores on one data set."""

from ..core.records import Table
from ..margins import Comparison as Compared, Difference, MarginReport
from ..margins.intervals import ERROR, Z
from .facts import Facts
from .numbers import distance, percent, percent_number
from .payload import Cell, Certainty, Comparison, NetRow, Tag

_PADDING = 0.08
"""Share of a column's width that is left free beside the outermost ends of intervals."""


def write_comparison(facts: Facts) -> Comparison | None:
    """Write section 8; None where there is one net."""
    found = facts.comparison
    if found is None:
        return None
    rows, kind = _make_rows(found), "held-out " * (found.kind == "held-out")
    tags = [Tag(Certainty.MEASURED, "bars, and differences from the first net: 95% intervals")]
    tags += [Tag(Certainty.ESTIMATED, "nearest quarter")] * any(row.quarter for row in rows)
    frame = found.class_frame()
    differ = frame[frame[list(found.names)].nunique(axis=1) > 1]
    lines = zip(differ.index, differ.values, strict=True)
    classes = [(name, *(f"{number:,}" for number in line)) for name, line in lines]
    return Comparison(
        takeaway=_describe(found),
        data=f"{found.reports[0].n:,} {kind}{facts.noun}s, the same for all nets",
        tags=tuple(tags),
        kind=found.kind,
        nets=rows,
        classes=Table("Classes in which their errors differ", classes, ("class", *frame.columns)),
        notes=(
            f"Differences are taken {facts.noun} by {facts.noun}: one can be clear where the bars"
            " of both nets overlap. The margin score z is the mean score margin over its standard"
            " deviation; calibration alone, as by label smoothing, changes it.",
        ),
    )


def _describe(found: Compared) -> str:
    """What the errors say of the net of the page and the others, and clear differences of z."""
    said = list(found.verdict)
    if scores := {d.second: _is_better(d) for d in _differences(found, Z) if d.real}:
        parts = [
            f"{word} than {' and '.join(name for name in scores if scores[name] is better)}"
            for better, word in ((True, "better"), (False, "worse"))
            if better in scores.values()
        ]
        said.append(f"By margin score {found.names[0]} is {', '.join(parts)} (95%).")
    return " ".join(said)


def _differences(found: Compared, number: str) -> list[Difference]:
    """The differences of the net of the page to each other one, on the same samples."""
    wanted = (found.kind, number, found.names[0])
    return [d for d in found.differences if (d.data, d.number, d.first) == wanted]


def _is_better(difference: Difference) -> bool:
    """Whether the first net of a real difference is better: a larger z, a smaller error."""
    assert difference.interval is not None  # it is real
    return (difference.interval[0] > 0) == (difference.number == Z)


def _make_rows(found: Compared) -> tuple[NetRow, ...]:
    """One row for each net, the bars of their errors on one scale."""
    ends = [end for report in found.reports for end in report.error_interval]
    padding = _PADDING * (max(ends) - min(ends))
    start, width = min(ends) - padding, max(ends) - min(ends) + 2 * padding
    rows = []
    for index, (name, report) in enumerate(zip(found.names, found.reports, strict=True)):
        low, high = report.error_interval
        verdicts = [
            _write_verdict(_differences(found, number)[index - 1]) if index else ""
            for number in (ERROR, Z)
        ]
        seen = found.training[index] if found.training else None
        bar = tuple(100 * (end - start) / width for end in (low, report.error, high))
        ends_of_bar = f"{percent(low, 1)} to {percent(high, 1)}"
        rows.append(
            NetRow(
                name=name,
                here=index == 0,
                error=Cell(percent(report.error, 1), verdicts[0], bar, ends_of_bar),
                z=Cell("–") if report.z is None else Cell(distance(report.z), verdicts[1]),
                quarter=_quarter(seen or report),
                wrong="" if seen is None else f"{int((seen.q <= 0).sum()):,}",
            )
        )
    return tuple(rows)


def _write_verdict(difference: Difference) -> str:
    """By how much a net is better or worse than the first one, or that it is not clearly so."""
    if difference.interval is None and difference.note:
        return "not compared"
    if not difference.more_than_chance:
        return "not clearly different"
    if not difference.real:
        return "differs, perhaps by calibration alone"
    assert difference.interval is not None  # it is real
    low, high = sorted(map(abs, difference.interval))
    amount = f"{percent_number(low, 1)} to {percent_number(high, 1)} points"
    if difference.number == Z:
        amount = f"{distance(low)} to {distance(high)}"
    return f"{'worse' if _is_better(difference) else 'better'} by {amount}"


def _quarter(report: MarginReport) -> str:
    """The distance within which the nearest quarter of the samples lies; "" without distances."""
    found = report.margins["input"].quantiles((0.25,))
    if found is None:
        return ""
    return distance(found[0]) if found[0] > 0 else "wrong side"

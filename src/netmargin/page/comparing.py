"""Section 8 of a page, how the nets compare: on held-out data, and how far each has come."""

from collections.abc import Sequence

from ..margins import Comparison as Compared, Difference, MarginReport
from ..margins.intervals import ERROR, WEIGHTED_ERROR, Z
from .classes import ROW, summarize
from .facts import Facts
from .numbers import count, distance, percent, percent_number, quoted, significant
from .payload import Cell, Certainty, Columns, Comparison, NetRow, Tag

_PADDING = 0.08
"""Share of a column's width that is left free beside the outermost ends of intervals."""
_TOLD = 4
"""Nets whose differences a sentence can tell; those of more are in the table alone."""
_Interval = tuple[float, float] | None


def write_comparison(facts: Facts) -> Comparison | None:
    """Write section 8; None where there is one net."""
    found = facts.comparison
    if found is None:
        return None
    heldout = bool(found.heldout)
    tags = [
        Tag(
            Certainty.MEASURED,
            "bars, and differences from the first net: 95% intervals",
        )
    ]
    if facts.net_distances:
        tags.append(Tag(Certainty.ESTIMATED, "distances"))
    return Comparison(
        takeaway=_describe(facts, found),
        data=f"the same {facts.noun}s for all nets",
        tags=tuple(tags),
        heldout=heldout,
        nets=_make_rows(found),
        distances=_measure_nets(facts),
        distances_of=facts.phrase(facts.splits[0]) if facts.splits else "",
        note=(
            f"All nets answer the same {facts.noun}s, and differences are taken {facts.noun} by"
            f" {facts.noun}: one can be clear where the bars of both nets overlap. "
            * bool(found.differences)
            + "Distances on training data compare only nets of one kind that fit these data."
        ),
    )


def _describe(facts: Facts, found: Compared) -> str:
    """Which net is better, or that these data do not tell."""
    if not found.heldout:
        return (
            "Training data alone do not say which net is better: give held-out data,"
            " heldout=(X, y)."
        )
    lines: dict[tuple[str, str], list[str]] = {}  # by the better and the worse net
    for number, word in ((ERROR, "lower"), (Z, "higher")):
        for difference in _differences(found, number):
            if not difference.real:
                continue
            better, worse, *_ = _order(difference, smaller_is_better=number == ERROR)
            text = f"{number} {_amount(difference, number)} {word}"
            lines.setdefault((better, worse), []).append(text)
    if len(found.names) > _TOLD and lines:
        others = {name for pair in lines for name in pair} - {found.names[0]}
        return (
            f"{quoted(found.names[0])} differs clearly (95%) from {count(len(others))} of"
            f" {count(len(found.names) - 1)} other nets; the table says by how much."
        )
    if not lines:
        n = count(found.heldout[0].n)
        if any(d.more_than_chance for d in _differences(found, Z)):
            return (
                f"These {n} {facts.noun}s do not tell the nets apart by error. Their margin scores"
                " differ, which a change of calibration alone, as by label smoothing, can make."
            )
        return f"These {n} {facts.noun}s do not tell the nets apart by error, nor by margin score."
    parts = []
    for (better, worse), own in lines.items():
        alone = " by error alone" * (len(own) == 1)
        parts.append(
            f"{quoted(better)} is better than {quoted(worse)}{alone}: {' and '.join(own)} (95%)"
        )
    left = [name for name in found.names[1:] if not any(name in pair for pair in lines)]
    if left:
        parts.append(
            f"{' and '.join(map(quoted, left))} and {quoted(found.names[0])} are not told apart"
        )
    return "; ".join(parts) + "."


def _differences(found: Compared, number: str) -> list[Difference]:
    """The differences to the net of the page, on held-out data."""
    return [
        d
        for d in found.differences
        if d.data == "held-out" and d.number == number and d.first == found.names[0]
    ]


def _amount(difference: Difference, number: str) -> str:
    """By how much the better net is better: the interval of a real difference."""
    *_, low, high = _order(difference, smaller_is_better=number != Z)
    if number == Z:
        return f"{distance(low)} to {distance(high)}"
    return f"{percent_number(low, 1)} to {percent_number(high, 1)} percentage points"


def _order(difference: Difference, *, smaller_is_better: bool) -> tuple[str, str, float, float]:
    """The better and the worse net of a difference, and the ends of its interval, both positive."""
    assert difference.interval is not None  # it is real
    low, high = difference.interval
    first_larger = low > 0
    low, high = (low, high) if first_larger else (-high, -low)
    if first_larger == smaller_is_better:
        return difference.second, difference.first, low, high
    return difference.first, difference.second, low, high


def _make_rows(found: Compared) -> tuple[NetRow, ...]:
    """One row for each net."""
    columns: dict[str, Sequence[Cell | None]] = dict.fromkeys(
        ("error", "z", "weighted"), [None] * len(found.names)
    )
    if found.heldout:
        errors = [(r.error, r.error_interval) for r in found.heldout]
        scores = list(zip((r.z for r in found.heldout), found.z_intervals, strict=True))
        weighted = [(r.margin_weighted_error, None) for r in found.heldout]
        columns = {
            "error": _make_cells(found, ERROR, errors, percentages=True),
            "z": _make_cells(found, Z, scores, percentages=False),
            "weighted": _make_cells(found, WEIGHTED_ERROR, weighted, percentages=True),
        }
    return tuple(
        NetRow(
            name=name,
            here=index == 0,
            error=columns["error"][index],
            z=columns["z"][index],
            weighted=columns["weighted"][index],
            quarter=_quarter(found.training[index]),
            wrong=count(int((found.training[index].q <= 0).sum())),
            margin=_margin(found.training[index]),
        )
        for index, name in enumerate(found.names)
    )


def _make_cells(
    found: Compared,
    number: str,
    values: Sequence[tuple[float | None, _Interval]],
    *,
    percentages: bool,
) -> list[Cell]:
    """The cells of a column, their bars on one scale."""
    ends = [end for _, interval in values if interval is not None for end in interval]
    width = (max(ends) - min(ends)) * (1 + 2 * _PADDING) if ends else 0.0
    start = min(ends) - _PADDING * (max(ends) - min(ends)) if ends else 0.0

    def place(value: float) -> float:
        return 100 * (value - start) / width if width else 50.0

    def show(value: float) -> str:
        return percent(value, 1) if percentages else distance(value)

    cells = []
    for index, (value, interval) in enumerate(values):
        verdict = _verdict(found, number, index)
        if value is None:
            cells.append(Cell("–"))
        elif interval is None:
            cells.append(Cell(show(value), verdict=verdict))
        else:
            low, high = interval
            cells.append(
                Cell(
                    show(value),
                    place(low),
                    place(high),
                    place(value),
                    verdict,
                    f"{show(low)} to {show(high)}",
                )
            )
    return cells


def _verdict(found: Compared, number: str, index: int) -> str:
    """By how much a net is better or worse than the first one, or that it is not clearly so."""
    if not index:
        return ""
    difference = _differences(found, number)[index - 1]
    if difference.interval is None and difference.note:
        return "not compared"
    if not difference.more_than_chance:
        return "not clearly different"
    if not difference.real:
        return "differs, perhaps by calibration alone"
    better, *_ = _order(difference, smaller_is_better=number != Z)
    word = "better" if better == found.names[index] else "worse"
    return f"{word} by {_amount(difference, number).replace('percentage ', '')}"


def _quarter(report: MarginReport) -> str:
    """The distance within which the nearest quarter of the training samples lies."""
    found = report.margins["input"].quantiles((0.25,))
    if found is None:
        return "–"
    return distance(found[0]) if found[0] > 0 else "wrong side"


def _margin(report: MarginReport) -> str:
    """The normalized margin of a net that has one and fits its data."""
    if report.q_min <= 0:
        return "needs 0 wrong"
    value = report.normalized_margin
    return "–" if value is None else significant(value)


def _measure_nets(facts: Facts) -> Columns:
    """The quantiles of the distances, a row for each net."""
    rows = [(name, *summarize(values)) for name, values in facts.net_distances.items()]
    names = ("name", "n", *ROW)
    columns: Columns = {name: [] for name in names}
    for row in rows:
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    return columns

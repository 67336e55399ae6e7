"""A section of a page: how the nets compare: on held-out data, and how far each has come."""

from collections.abc import Sequence

from ..margins import Comparison as Compared, Difference, MarginReport
from ..margins.intervals import ERROR, WEIGHTED_ERROR, Z
from .classes import ROW, summarize
from .facts import Facts
from .numbers import count, distance, percent, percent_number, significant
from .payload import Cell, Certainty, Columns, Comparison, NetRow, Tag

_PADDING = 0.08
"""Share of a column's width that is left free beside the outermost ends of intervals."""


def write_comparison(facts: Facts) -> Comparison | None:
    """Write section 8; None where there is one net."""
    found = facts.comparison
    if found is None:
        return None
    tags = [Tag(Certainty.MEASURED, "bars, and differences from the first net: 95% intervals")]
    tags += [Tag(Certainty.ESTIMATED, "distances")] * bool(facts.net_distances)
    return Comparison(
        takeaway=_describe(facts, found),
        data=f"the same {facts.noun}s for all nets",
        tags=tuple(tags),
        kind=found.kind,
        training=bool(found.training),
        nets=_make_rows(found),
        distances_of=facts.phrase(facts.splits[0]) if facts.splits else "",
        notes=(
            f"Differences are taken {facts.noun} by {facts.noun}: one can be clear where the bars"
            " of both nets overlap. Calibration alone, as by label smoothing, changes z. Distances"
            " on training data compare only nets of one kind that fit these data.",
        ),
        distances=_measure_nets(facts),
    )


def _describe(facts: Facts, found: Compared) -> str:
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
    """One row for each net."""
    held = found.reports
    errors = _make_cells(found, ERROR, [(r.error, r.error_interval) for r in held])
    scores = _make_cells(found, Z, [(r.z, None) for r in held])
    weighted = _make_cells(found, WEIGHTED_ERROR, [(r.margin_weighted_error, None) for r in held])
    return tuple(
        NetRow(
            name=name,
            here=index == 0,
            error=errors[index],
            z=scores[index],
            weighted=weighted[index],
            quarter=_quarter(report),
            wrong=count(int((report.q <= 0).sum())),
            margin=_margin(report),
        )
        for index, (name, report) in enumerate(
            zip(found.names, found.training or held, strict=True)
        )
    )


def _make_cells(
    found: Compared, number: str, values: Sequence[tuple[float | None, tuple[float, float] | None]]
) -> list[Cell]:
    """The cells of a column, their bars on one scale."""
    ends = [end for _, interval in values if interval is not None for end in interval] or [0.0]
    padding = _PADDING * (max(ends) - min(ends))
    start, width = min(ends) - padding, max(ends) - min(ends) + 2 * padding

    def place(value: float) -> float:
        return 100 * (value - start) / width if width else 50.0

    def show(value: float) -> str:
        return distance(value) if number == Z else percent(value, 1)

    verdicts = ["", *(_write_verdict(difference) for difference in _differences(found, number))]
    cells = []
    for (value, interval), verdict in zip(values, verdicts, strict=True):
        if value is None:
            cells.append(Cell("–"))
        elif interval is None:
            cells.append(Cell(show(value), verdict=verdict))
        else:
            said, ends = " to ".join(map(show, interval)), list(map(place, interval))
            cells.append(Cell(show(value), ends[0], ends[1], place(value), verdict, said))
    return cells


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
    return {key: [row[k] for row in rows] for k, key in enumerate(("name", "n", *ROW))}

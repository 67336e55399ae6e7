"""Reports of margins, input margins and comparisons as the small tables of notebooks."""

import math

from ..core.notebook_tables import Cell, Certainty, NotebookTable, describe_in_notebook, number
from ..nets.probabilities import show_warning
from .comparison import Comparison
from .input_margins import InputMargins
from .quantiles import quantile_names
from .report import MarginReport


@describe_in_notebook.register
def describe_report(report: MarginReport) -> NotebookTable:
    """Errors, the smallest margin in every normalization there is, and distances."""
    wrong = int((report.q <= 0).sum())
    low, high = report.error_interval
    rows: list[tuple[Cell, ...]] = [
        ("wrong", (f"{wrong:,} of {report.n:,}", Certainty.MEASURED)),
        ("error on new data, if these are held out", f"{low:.2%} to {high:.2%} (95%)"),
        ("z", (number(report.z), Certainty.MEASURED)),
        ("log10 of the mean loss", (number(report.log10_mean_loss), Certainty.MEASURED)),
        ("smallest margin", (number(report.q_min), Certainty.MEASURED)),
    ]
    for margin in report.margins.values():
        if margin.value is not None:
            of_inputs = margin.name in ("input", "relative input")
            name = f"{margin.name} margin{', 25% quantile' * of_inputs}"
            certainty = Certainty.ESTIMATED if of_inputs else Certainty.MEASURED
            rows.append((name, (number(margin.value), certainty)))
    return NotebookTable(
        f"Margins of {report.n:,} samples", rows, notes=show_warning(report.warning)
    )


@describe_in_notebook.register
def describe_input_margins(found: InputMargins) -> NotebookTable:
    """Quantiles of the first-order distances."""
    rows = [
        (f"distance, {name} quantile", (number(value), Certainty.ESTIMATED))
        for name, value in zip(quantile_names(), found.quantiles(), strict=True)
    ]
    wrong = (f"{int((found.q <= 0).sum()):,} of {found.n:,}", Certainty.MEASURED)
    return NotebookTable(
        f"Distances of {found.n:,} samples",
        [("wrong", wrong), *rows],
        notes=show_warning(found.warning),
    )


@describe_in_notebook.register
def describe_comparison(found: Comparison) -> NotebookTable:
    """A column for each net, and a line for each difference that is more than chance."""
    table = found.frame()
    rows: list[list[Cell]] = []
    for (data, name), values in zip(table.columns, table.to_numpy(float).T, strict=True):
        estimated = name.startswith("input margin")
        certainty = Certainty.ESTIMATED if estimated else Certainty.MEASURED
        cells = (number(None if math.isnan(value) else value) for value in values)
        rows.append([(f"{data}: {name}", certainty), *cells])
    clear = [difference for difference in found.differences if difference.more_than_chance]
    notes = show_warning(found.warning)
    notes += ["More than chance:"] * bool(clear)
    for difference in clear:
        if difference.interval is not None:
            low, high = map(number, difference.interval)
            notes.append(
                f"{difference.data} {difference.number}, {difference.first} minus"
                f" {difference.second}: {low} to {high} (95%)"
                + f"; {difference.note}"
                * bool(difference.note)
            )
    return NotebookTable(f"{len(found.names)} nets", rows, ("", *found.names), notes)

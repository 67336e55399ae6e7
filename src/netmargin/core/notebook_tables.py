"""Small tables in which a notebook shows records, readable on light and on dark ground."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context
from enum import StrEnum
from functools import singledispatch
from html import escape
from typing import Any


class Certainty(StrEnum):
    """How far a number can be relied on; the members are what labels say."""

    PROVED = "Proved"
    MEASURED = "Measured"
    ESTIMATED = "Estimated"


Cell = str | tuple[str, Certainty]
"""A text, or a pair of a text and its certainty."""


@dataclass(frozen=True)
class NotebookTable:
    """A table of texts.

    Attributes
    ----------
    title : str
        What stands above it.
    rows : sequence of sequences of cells
        Each row begins with its name.
    heads : sequence of cells
        The titles of the columns; empty for none.
    notes : sequence of str
        Lines below it.
    """

    title: str
    rows: Sequence[Sequence[Cell]]
    heads: Sequence[Cell] = ()
    notes: Sequence[str] = ()

    def html(self) -> str:
        """Write the table as HTML, every text escaped."""
        heads = "".join(
            f'<th style="{_CELL}" scope="col">{_write(cell)}</th>' for cell in self.heads
        )
        rows = "".join(f"<tr>{_write_row(row)}</tr>" for row in self.rows)
        notes = "".join(f'<div style="color:inherit">{escape(note)}</div>' for note in self.notes)
        return (
            f'<table style="{_TABLE}"><caption style="{_CAPTION}">{escape(self.title)}</caption>'
            f"{heads and f'<tr>{heads}</tr>'}{rows}</table>{notes}"
        )


@singledispatch
def describe_in_notebook(record: Any) -> NotebookTable | None:
    """The table in which a notebook shows a record; None for those that it shows as text.

    Rooms register a function for each of their records.
    """
    return None


def number(value: float | None, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with four digits as tables show it, a dash for none.

    What is proved is rounded away from what is not: lower bounds with `decimal.ROUND_FLOOR`, upper
    ones with `decimal.ROUND_CEILING`.

    Examples
    --------
    >>> number(0.123456), number(-2.0), number(None), number(0.123456, "ROUND_FLOOR")
    ('0.1235', '−2', '–', '0.1234')
    """
    if value is None:
        return "–"
    if value and math.isfinite(value):
        value = float(Context(prec=4, rounding=rounding).create_decimal_from_float(value))
    return f"{value:.4g}".replace("-", "−")


# No colour of text and no ground but the notebook's own, except for white on teal: 6.4 to 1.
_TABLE = "border-collapse:collapse;color:inherit;font-size:inherit"
_CELL = "text-align:left;padding:2px 12px 2px 0;background:transparent"
_NUMBER = f"{_CELL};font-variant-numeric:tabular-nums"
_CAPTION = "text-align:left;font-weight:600;color:inherit;caption-side:top;padding:2px 0"
_LABEL = "font-size:11px;font-weight:600;padding:0 5px;margin-left:8px;border-radius:3px;"
_LABELS = {
    Certainty.PROVED: "background:#0b6b5d;color:#fff;border:1px solid #0b6b5d",
    Certainty.MEASURED: "border:1px solid currentColor",
    Certainty.ESTIMATED: "border:1px dashed currentColor",
}


def _write_row(row: Sequence[Cell]) -> str:
    """A row, whose first cell names it."""
    name, *cells = row
    head = f'<th style="{_CELL};font-weight:400" scope="row">{_write(name)}</th>'
    return head + "".join(f'<td style="{_NUMBER}">{_write(cell)}</td>' for cell in cells)


def _write(cell: Cell) -> str:
    """The text of a cell, and its label."""
    if isinstance(cell, str):
        return escape(cell)
    text, certainty = cell
    return f'{escape(text)}<span style="{_LABEL}{_LABELS[certainty]}">{certainty}</span>'

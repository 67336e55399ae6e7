"""What records show: a line for `repr`, a table as text or as HTML, and values for JSON."""

import dataclasses
import math
import numbers
import textwrap
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import Enum, StrEnum
from fractions import Fraction
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from .field_docs import FieldDocs

_LONGEST, _LONGEST_TEXT = 280, 90
"""Characters of a whole line, and of one piece of text in it: a line and a half of a notebook."""
_WIDTH = 100
"""Characters of a line of text: what terminals and notebooks show without wrapping."""
_UNSEEN = Decimal("1e-9")
"""What bounds are widened by for the rounding of float64, and far less than four digits show."""


class Certainty(StrEnum):
    """How far a number can be relied on; the members are what labels say."""

    PROVED = "Proved"
    MEASURED = "Measured"
    ESTIMATED = "Estimated"


Cell = str | tuple[str, Certainty]
"""A text, or a pair of a text and its certainty."""
Row = Sequence[Cell] | str
"""Cells, of which the first names the row; one cell alone is a heading. A sentence is an
explanation, which tables in notebooks leave out.
"""


@dataclasses.dataclass(frozen=True)
class Table:
    """What a record says, for every place where it is shown."""

    title: str
    rows: Sequence[Row]  # names and values, headings and explanations
    heads: Sequence[Cell] = ()  # the titles of the columns
    notes: Sequence[str] = ()  # sentences below it
    warning: str = ""  # what is wrong with the numbers

    def text(self) -> str:
        """Write the table as text in columns; warnings come first."""
        rows = [self.heads, *self.rows] if self.heads else self.rows
        lines = _wrap(self.warning and f"WARNING: {self.warning}") + _wrap(self.title)
        cells = [[*map(_plain, row)] for row in rows if not isinstance(row, str) and len(row) > 1]
        widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
        # Values of a table without columns are of any length.
        widths = widths if self.heads else [*widths[:1], *(0 for _ in widths[1:])]
        for row in rows:
            if isinstance(row, str):
                lines += _wrap(f"    {row}", 4)
            elif len(row) == 1:
                lines += ["", _plain(row[0])]
            else:
                texts = zip(map(_plain, row), widths, strict=False)
                line = "  " + "  ".join(text.ljust(width) for text, width in texts).rstrip()
                # A line of columns may be longer, as it cannot be broken.
                lines += [line] if self.heads else _wrap(line, 4 + widths[0])
        lines += [line for note in self.notes for line in _wrap(note, 2)]
        return "\n".join(lines).replace("−", "-")  # text has no minus of its own

    def html(self) -> str:
        """Write the table as HTML without explanations, every text escaped."""
        head, note = f'<th style="{_CELL}" scope="col">', '<div style="color:inherit">'
        heads = "".join(f"{head}{_write(cell)}</th>" for cell in self.heads)
        rows = "".join(f"<tr>{_write_row(r)}</tr>" for r in self.rows if not isinstance(r, str))
        warning = [f"WARNING: {self.warning}"] if self.warning else []
        notes = "".join(f"{note}{escape(text)}</div>" for text in (*warning, *self.notes))
        return (
            f'<table style="{_TABLE}"><caption style="{_CAPTION}">{escape(self.title)}</caption>'
            f"{heads and f'<tr>{heads}</tr>'}{rows}</table>{notes}"
        )


class Shown:
    """A base of dataclasses that show themselves: a line for `repr`, a table for `print` and
    notebooks, and for `help` what the fields are.
    """

    _shown: ClassVar[tuple[str, ...]] = ()
    """What `repr` shows, the important names first; () are all fields, as of `short_repr`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # or `dataclass` writes one
        cls.__doc__ = FieldDocs(cls.__doc__)  # type: ignore[assignment]

    def __repr__(self) -> str:
        return short_repr(self, *self._shown)

    def __str__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        """What `print` and notebooks show: what `repr` does, where there is no more to say."""
        rows = []
        for name, text in _list_shown(self, self._shown):
            value = getattr(self, name)
            whole = value or "–" if value is None or isinstance(value, str) else text.lstrip("=: ")
            rows.append((name.replace("_", " "), str(whole)))
        return Table(type(self).__name__, rows)


def short_repr(record: Any, *names: str) -> str:
    """A line of the attributes that are named, or of all fields that a line can show."""
    line = f"<{type(record).__name__}"
    for name, text in _list_shown(record, names):
        # A long field is passed over, and a shorter one after it may still fit.
        if len(line) + len(name) + len(text) < _LONGEST:
            line += f" {name}{text}"
    return line + ">"


def _list_shown(record: Any, names: Sequence[str]) -> list[tuple[str, str]]:
    """The named attributes, or all fields, with their texts; what no line can show is left out."""
    fields = [f.name for f in dataclasses.fields(record) if not f.name.startswith("_")]
    texts = ((name, _describe(getattr(record, name))) for name in names or fields)
    return [(name, text) for name, text in texts if text is not None]


def _describe(value: Any) -> str | None:
    """The text after a field's name, or None for a value that no line can show."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return f"={value}"
    if isinstance(value, str):
        text = " ".join(value.split())
        return f"={text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 4] + ' ...'!r}"
    # Whole numbers and fractions are shown exactly, floats with six digits.
    if isinstance(value, numbers.Real):
        return f"={value}" if isinstance(value, numbers.Rational) else f"={float(value):.6g}"
    if isinstance(value, (np.ndarray, Tensor)):
        shape = " x ".join(map(str, value.shape))
        return f": {shape}" if shape else f"={value.item():.6g}"
    if isinstance(value, (list, tuple, dict)):
        return f": {len(value)}"
    return None


def values_of(record: Any, *names: str) -> dict[str, Any]:
    """The values of attributes of a record, ready for JSON; what is not finite is None."""
    return {name: json_ready(getattr(record, name)) for name in names}


def json_ready(value: Any, rename: Callable[[Any], Any] = str) -> Any:
    """A value in types that JSON has, None for what is not finite; keys as `rename` makes them."""
    if isinstance(value, dict):
        return {rename(key): json_ready(part, rename) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(part, rename) for part in value]
    if isinstance(value, (np.ndarray, np.generic, Tensor)):
        return json_ready(value.tolist(), rename)
    if isinstance(value, (Path, Fraction, Enum)):
        return float(value) if isinstance(value, Fraction) else str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def printable(name: str) -> str:
    """A name as UTF-8 can hold it: those of files need not be such, and bytes are escaped."""
    return name.encode(errors="backslashreplace").decode()


def plural(n: int, noun: str) -> str:
    """A number and what it counts, whose plural ends in s."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def number(value: float | None, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with four digits as tables show it, rounded away from what is not proved; a bound
    that is a number of four digits but for rounding is shown as that and the rest, 1 + 1e-14.
    """
    if value is None:
        return "–"
    rest = ""
    if value and math.isfinite(value):
        exact = Decimal(value)
        near, shown = (Context(4, way).plus(exact) for way in (ROUND_HALF_EVEN, rounding))
        if near != shown and abs(exact - near) < _UNSEEN * abs(exact):
            shown, over = near, float(Context(1, rounding).subtract(exact, near))
            if value != float(near):  # 0.7 is not 7/10 in all digits
                rest = f" {'+' if over > 0 else '-'} {abs(over):.0e}"
        value = float(shown)
    return f"{value + 0.0:.4g}{rest}".replace("-", "−")  # -0 is 0


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
    if not cells:
        return f'<th style="{_CELL}" colspan="9">{_write(name)}</th>'
    head = f'<th style="{_CELL};font-weight:400" scope="row">{_write(name)}</th>'
    return head + "".join(f'<td style="{_NUMBER}">{_write(cell)}</td>' for cell in cells)


def _write(cell: Cell) -> str:
    """The text of a cell, and its label."""
    if isinstance(cell, str):
        return escape(cell)
    text, certainty = cell
    return f'{escape(text)}<span style="{_LABEL}{_LABELS[certainty]}">{certainty}</span>'


def _plain(cell: Cell) -> str:
    """A cell as text."""
    text, label = (cell, "") if isinstance(cell, str) else (cell[0], f" ({cell[1].lower()})")
    return "none" if text == "–" else text + label


def _wrap(text: str, indent: int = 2) -> list[str]:
    """Lines of a text, those after the first with an indent."""
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )

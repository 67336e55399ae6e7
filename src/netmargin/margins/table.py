"""The table of a report: every normalization of the margins as one record."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..core.arguments import suggest_word
from ..core.records import Shown, Table, json_ready, number
from ..core.saved_records import Record
from ..errors import ArgumentError
from .quantiles import LEVEL_NAMES, LEVELS, class_table, quantiles

_LARGEST_EXPONENT = 700
"""e to this power, and to minus it, is a float64; norms beyond it are divided by in log space."""


@dataclass(frozen=True)
class Margin(Record):
    """One normalization of the margins of a net on its samples."""

    name: str  #: Its name in the table
    formula: str  #: What is divided by what
    #: The smallest normalized margin; for input margins the 25% quantile. None where the
    #: normalization does not apply.
    value: float | None
    #: The smoothed margin l^{-1}(summed loss) in the same normalization, where there is one
    smoothed: float | None
    note: str  #: Why it does not apply, or what it leaves out; "" otherwise
    labels: Tensor | None  #: As in `MarginReport`, like `class_names`
    _numerators: Tensor = field(repr=False)
    _log_norm: float = field(default=0.0, repr=False)
    class_names: tuple[str, ...] | None = None

    _shown = ("name", "value", "smoothed", "note")

    @property
    def applies(self) -> bool:
        """Whether this normalization exists for the net, and was measured."""
        return self.value is not None

    @property
    def per_sample(self) -> Tensor | None:
        """The normalized margin of each sample, float64 (n,), or infinite or 0; else None."""
        if not self.applies:
            return None
        q = self._numerators
        if abs(self._log_norm) < _LARGEST_EXPONENT:
            return q / math.exp(self._log_norm)
        return q.sign() * torch.exp(q.abs().log() - self._log_norm)

    def quantiles(self, levels: Sequence[float] = LEVELS) -> tuple[float, ...] | None:
        """Return the normalized margins below which these shares of the samples lie."""
        return None if self.per_sample is None else quantiles(self.per_sample, levels)

    def by_class(self) -> Any:
        """Return a pandas DataFrame of n and quantiles per class, or None where there is none."""
        if self.per_sample is None or self.labels is None:
            return None
        return class_table(self.per_sample, self.labels, self.class_names)


class MarginTable(Shown, Mapping[str, Margin]):
    """The normalizations of one report by name, in a fixed order.

    A row is computed when it is asked for: that of "bartlett" takes long in wide nets.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> report = nm.measure(torch.nn.Linear(2, 1), ([[1.0, 0.0], [0.0, -2.0]], [1, -1]))
    >>> list(report.margins)
    ['global', 'layers', 'partial', 'quasi', 'bartlett', 'input', 'relative input']
    >>> report.margins["bartlett"].applies
    True
    """

    def __init__(self, names: Collection[str], row: Callable[[str], Margin]) -> None:
        self._names, self._row = names, row

    def __getitem__(self, name: str) -> Margin:
        if name not in self._names:
            raise ArgumentError(
                f"There is no margin {name!r} in the table, which has {', '.join(self)}."
                f" {suggest_word(name, self)}"
            )
        return self._row(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        applying = [
            f"{name}={row.value:.4g}" for name, row in self.items() if row.value is not None
        ]
        return f"<{type(self).__name__} {' '.join(applying)}>"

    def _table(self) -> Table:
        """What is divided by what, and the smallest quotient."""
        said = {name: row.formula if row.applies else row.note for name, row in self.items()}
        rows = [(name, number(row.value), said[name]) for name, row in self.items()]
        return Table("Normalized margins, the smallest; of input margins the 25% quantile", rows)

    def frame(self) -> Any:
        """Return a pandas DataFrame with one row per normalization."""
        import pandas

        names = ["value", "smoothed", *LEVEL_NAMES, "applies", "formula", "note"]
        rows = []
        for row in self.values():
            found = row.quantiles() or [None] * len(LEVELS)
            rows.append([row.value, row.smoothed, *found, row.applies, row.formula, row.note])
        return pandas.DataFrame(rows, index=pandas.Index(self, name="margin"), columns=names)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return value, smoothed and quantiles of the rows that apply, ready for JSON."""
        names = ("value", "smoothed", *LEVEL_NAMES)
        rows = [(name, row, row.quantiles()) for name, row in self.items()]
        return {
            name: json_ready(dict(zip(names, (row.value, row.smoothed, *found), strict=True)))
            for name, row, found in rows
            if found is not None
        }

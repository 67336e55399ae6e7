"""Rules that read the history and say when training is over."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arguments import check_count, check_instance, check_number
from ..core.records import plural
from ..errors import ArgumentError, NotHomogeneousError

_TREND_ROWS = 20
"""Rows from which the pace is taken to estimate the epochs left: enough to average single epochs,
few enough to follow changes. Only the display uses it.
"""


class StoppingRule(ABC):
    """A rule that reads the rows of a history, and says when training is over.

    There is one row per accepted epoch, the first one before training.
    """

    @abstractmethod
    def reached(self, rows: list[dict[str, Any]]) -> str | None:
        """A sentence that says why training is over, or None."""

    def epochs_left(self, rows: list[dict[str, Any]]) -> float | None:
        """An estimate of the epochs still to come, or None where the rows do not tell."""
        return None


@dataclass(frozen=True)
class Epochs(StoppingRule):
    """Stop after some accepted epochs in all, those before a resume included.

    Parameters
    ----------
    count : int
        Number of epochs, >= 0.

    Examples
    --------
    >>> import netmargin as nm
    >>> nm.Epochs(2).reached([{"epoch": 0}]), nm.Epochs(2).reached([{"epoch": 2}])
    (None, 'ran 2 epochs')
    """

    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", check_count("count", self.count, at_least=0))

    def reached(self, rows: Any) -> Any:
        """A sentence once the last row is of epoch `count` or later, else None."""
        return f"ran {plural(self.count, 'epoch')}" if rows[-1]["epoch"] >= self.count else None

    def epochs_left(self, rows: Any) -> Any:
        """The epochs that are missing to `count`."""
        return self.count - rows[-1]["epoch"]


@dataclass(frozen=True)
class Separated(StoppingRule):
    """Stop once every training sample is classified correctly.

    Examples
    --------
    >>> import netmargin as nm
    >>> nm.Separated().reached([{"q_min": 0.5}])
    'all samples are correct'
    """

    def reached(self, rows: Any) -> Any:
        """A sentence once the smallest margin is positive, else None."""
        return "all samples are correct" if rows[-1]["q_min"] > 0 else None


@dataclass(frozen=True)
class LogLossBelow(StoppingRule):
    """Stop once the base-10 logarithm of the mean training loss is below a level.

    Parameters
    ----------
    log10 : float
        The level; -800 is as good as -3.

    Examples
    --------
    >>> import netmargin as nm
    >>> nm.LogLossBelow(-800).reached([{"log10_mean_loss": -801.5}])
    'log10-loss fell below -800'
    """

    log10: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "log10", check_number("log10", self.log10))

    def reached(self, rows: Any) -> Any:
        """A sentence once the loss is below the level, else None."""
        fell = rows[-1]["log10_mean_loss"] < self.log10
        return f"log10-loss fell below {self.log10:g}" if fell else None

    def epochs_left(self, rows: Any) -> Any:
        """The epochs to the level if the log-loss goes on as over the last rows, or None."""
        return rows_to(rows, "log10_mean_loss", self.log10)


@dataclass(frozen=True)
class MarginGrowthBelow(StoppingRule):
    """Stop once the data are separated and the normalized margin has nearly stopped growing.

    Parameters
    ----------
    ratio, epochs : float and int, default 0.01 and 100
        The growth in so many epochs, relative to the margin before them, below which it is over.

    Examples
    --------
    >>> import netmargin as nm
    >>> rows = [{"normalized_margin": 1.0}, {"normalized_margin": 1.001}]
    >>> nm.MarginGrowthBelow(0.01, epochs=1).reached(rows)
    'the normalized margin grew by 0.10% in 1 epoch'
    """

    ratio: float = 0.01
    epochs: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", check_number("ratio", self.ratio))
        object.__setattr__(self, "epochs", check_count("epochs", self.epochs))

    def reached(self, rows: Any) -> Any:
        """A sentence once the margin grows by less, else None.

        Raises NotHomogeneousError for a net without a normalized margin.
        """
        if rows[-1]["normalized_margin"] is None:
            raise NotHomogeneousError(
                "MarginGrowthBelow needs a normalized margin, which this net lacks;"
                " netmargin.analyse says why. Use LogLossBelow or Epochs."
            )
        # Relative growth means nothing from a margin that was not positive yet.
        if len(rows) <= self.epochs or rows[-1 - self.epochs]["normalized_margin"] <= 0:
            return None
        growth = rows[-1]["normalized_margin"] / rows[-1 - self.epochs]["normalized_margin"] - 1
        grew = f"the normalized margin grew by {growth:.2%} in {plural(self.epochs, 'epoch')}"
        return grew if growth < self.ratio else None


def rows_to(rows: list[dict[str, Any]], key: str, goal: float) -> float | None:
    """The rows until a column reaches a goal at the pace of the last rows, or None."""
    recent = rows[-_TREND_ROWS:]
    if len(recent) < 2:
        return None
    moved, left = recent[-1][key] - recent[0][key], goal - recent[-1][key]
    return left * (len(recent) - 1) / moved if moved * left > 0 and math.isfinite(left) else None


def first_reason(rules: list[StoppingRule], rows: list[dict[str, Any]]) -> str | None:
    """What the first rule that is reached says, or None."""
    return next((reason for rule in rules if (reason := rule.reached(rows))), None)


def fewest(*estimates: float | None) -> float | None:
    """The smallest of some numbers of rows that are known; None where none is."""
    return min((rows for rows in estimates if rows is not None), default=None)


def as_stopping_rules(until: Any) -> list[StoppingRule]:
    """The rules that a caller means by one rule or a list of several. Raises ArgumentError."""
    wanted = "a stopping rule, such as nm.Epochs(100) or nm.LogLossBelow(-10)"
    if isinstance(until, (int, float, np.number)) and not isinstance(until, bool):
        meant = f"nm.Epochs({until})" if until >= 1 else f"nm.LogLossBelow({until})"
        raise ArgumentError(
            f"until must be {wanted}; got {until!r}. A number alone could be of epochs or of the"
            f" log10-loss: write until={meant}"
        )
    if isinstance(until, Sequence) and not isinstance(until, (str, bytes)):
        if not until:
            raise ArgumentError(
                f"until names no stopping rule; it must be {wanted}, or a list of such rules"
            )
        return [
            check_instance(f"until[{index}]", rule, StoppingRule, wanted)
            for index, rule in enumerate(until)
        ]
    return [check_instance("until", until, StoppingRule, f"{wanted}, or a list of such rules")]

"""When to stop: rules that read the history."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arguments import check_count, check_instance, check_number
from ..errors import ArgumentError, NotHomogeneousError

_TREND = 20


class StoppingRule(ABC):
    """Reads the rows of a history (one per accepted epoch, the first before training)."""

    @abstractmethod
    def reached(self, rows: list[dict]) -> str | None:
        """A sentence that says why training is over, or None."""

    @abstractmethod
    def epochs_left(self, rows: list[dict]) -> float | None:
        """An estimate of the epochs still to come, or None where there is none yet."""


@dataclass(frozen=True)
class Epochs(StoppingRule):
    """Stop after `count` accepted epochs in all, those before a resume included."""

    count: int

    def __post_init__(self):
        check_count("count", self.count, at_least=0)

    def reached(self, rows):
        return f"ran {self.count} epochs" if rows[-1]["epoch"] >= self.count else None

    def epochs_left(self, rows):
        return self.count - rows[-1]["epoch"]


@dataclass(frozen=True)
class Separated(StoppingRule):
    """Stop once every training sample is classified correctly."""

    def reached(self, rows):
        return "all samples are correct" if rows[-1]["q_min"] > 0 else None

    def epochs_left(self, rows):
        return None


@dataclass(frozen=True)
class LogLossBelow(StoppingRule):
    """Stop once the base-10 log of the mean training loss is below `log10`; -800 is fine."""

    log10: float

    def __post_init__(self):
        check_number("log10", self.log10)

    def reached(self, rows):
        return (
            f"log10-loss fell below {self.log10:g}"
            if rows[-1]["log10_mean_loss"] < self.log10
            else None
        )

    def epochs_left(self, rows):
        recent = rows[-_TREND:]
        fallen = recent[0]["log10_mean_loss"] - recent[-1]["log10_mean_loss"]
        if len(recent) < 2 or fallen <= 0:
            return None
        return (recent[-1]["log10_mean_loss"] - self.log10) * (len(recent) - 1) / fallen


@dataclass(frozen=True)
class MarginGrowthBelow(StoppingRule):
    """Stop once the data are separated and the normalized margin grew by less than `ratio`
    (relative) over `epochs` epochs.
    """

    ratio: float = 0.01
    epochs: int = 100

    def __post_init__(self):
        check_number("ratio", self.ratio)
        check_count("epochs", self.epochs)

    def reached(self, rows):
        if rows[-1]["normalized_margin"] is None:
            raise NotHomogeneousError(
                "MarginGrowthBelow needs a normalized margin, which this net lacks;"
                " netmargin.analyse says why. Use LogLossBelow or Epochs."
            )
        if len(rows) <= self.epochs or rows[-1 - self.epochs]["normalized_margin"] <= 0:
            return None
        growth = rows[-1]["normalized_margin"] / rows[-1 - self.epochs]["normalized_margin"] - 1
        return (
            f"the normalized margin grew by {growth:.2%} in {self.epochs} epochs"
            if growth < self.ratio
            else None
        )

    def epochs_left(self, rows):
        return None


def as_stopping_rules(until: Any) -> list[StoppingRule]:
    """The rules that a caller means by one rule or a list of several. Raises ArgumentError, which
    names the rule for a number.

    Examples
    --------
    >>> from netmargin.training.stopping import as_stopping_rules
    >>> as_stopping_rules(5)
    Traceback (most recent call last):
    netmargin.errors.ArgumentError: until must be a stopping rule, such as nm.Epochs(100) or nm.LogLossBelow(-10); got 5. A number alone could be of epochs or of the log10-loss: write until=nm.Epochs(5)
    """
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

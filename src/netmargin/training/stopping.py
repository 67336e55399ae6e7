"""When to stop: rules that read the history."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..errors import NotHomogeneousError

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

    def reached(self, rows):
        return f"log10-loss fell below {self.log10:g}" if rows[-1]["log10_mean_loss"] < self.log10 else None

    def epochs_left(self, rows):
        recent = rows[-_TREND:]
        fallen = recent[0]["log10_mean_loss"] - recent[-1]["log10_mean_loss"]
        if len(recent) < 2 or fallen <= 0:
            return None
        return (recent[-1]["log10_mean_loss"] - self.log10) * (len(recent) - 1) / fallen


@dataclass(frozen=True)
class MarginGrowthBelow(StoppingRule):
    """Stop once the data are separated and the normalized margin grew by less than `ratio` (relative) over `epochs` epochs."""

    ratio: float = 0.01
    epochs: int = 100

    def reached(self, rows):
        if rows[-1]["normalized_margin"] is None:
            raise NotHomogeneousError(
                "MarginGrowthBelow needs a normalized margin, which this net lacks; netmargin.analyse says why. Use LogLossBelow or Epochs."
            )
        if len(rows) <= self.epochs or rows[-1 - self.epochs]["normalized_margin"] <= 0:
            return None
        growth = rows[-1]["normalized_margin"] / rows[-1 - self.epochs]["normalized_margin"] - 1
        return f"the normalized margin grew by {growth:.2%} in {self.epochs} epochs" if growth < self.ratio else None

    def epochs_left(self, rows):
        return None

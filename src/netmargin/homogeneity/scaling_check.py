"""The record of how well claimed exponents hold, in numbers and in words."""

from dataclasses import dataclass

from ..core.saved_records import Record
from .scaling import TOLERANCE

LARGEST_MISS = 0.01
"""A net that misses its power of c by more than this, relatively, is not called homogeneous:
margins are compared to a per cent.
"""
FARTHEST = (1e-3, 1e3)
"""Factors up to which the range of an answer is looked for: training rarely goes further, and a net
whose exponents hold there will not show more at the next decade.
"""


@dataclass(frozen=True)
class ScalingCheck(Record):
    """A measurement of how well claimed exponents hold, from `Homogeneity.check`."""

    deviation: float  #: As in `Homogeneity`, like `samples`
    #: The same at factors from 1/100 to 100 with all epsilons made negligible, at a generic point;
    #: rounding only, where the exponents are right
    exact: float
    samples: int
    #: The smallest and the largest factor c from 1e-3 to 1e3, for all parameters
    #: together, up to which the outputs miss c^order by less than 1%; None where it was not asked
    #: for
    range: tuple[float, float] | None = None
    cause: str = "its epsilons"  #: The cause of the deviation, in words

    @property
    def passed(self) -> bool:
        """True if the exponents are right, and the net as it is keeps to them within 1%."""
        return self.exact <= TOLERANCE and self.deviation <= LARGEST_MISS

    def __str__(self) -> str:
        where = "" if self.range is None else f"; {range_sentence(*self.range)}"
        return f"up to {self.cause}: {self.deviation:.1g} (on {self.samples} samples){where}"


def range_sentence(low: float, high: float) -> str:
    """Say between which multiples of theta the exponents hold up to 1%."""
    if low <= FARTHEST[0] and high >= FARTHEST[1]:
        return "under 1% from 0.001 theta to 1000 theta"
    if high >= FARTHEST[1]:
        return f"under 1% from {low:.2g} theta upwards"
    if low <= FARTHEST[0]:
        return f"under 1% up to {high:.2g} theta"
    return f"under 1% from {low:.2g} theta to {high:.2g} theta"

"""The record of how well claimed exponents hold, in numbers and in words."""

from dataclasses import dataclass

from ..core.saved_records import Record
from .scaling import TOLERANCE

LARGEST_MISS = 0.01
"""A net that misses its power of c by more than this, relatively, is not called homogeneous:
margins are compared to a per cent.
"""


@dataclass(frozen=True)
class ScalingCheck(Record):
    """A measurement of how well claimed exponents hold, from `Homogeneity.check`."""

    deviation: float  #: As in `Homogeneity`, like `samples`
    #: The same at factors from 1/100 to 100 with all epsilons made negligible, at a generic point;
    #: rounding only, where the exponents are right
    exact: float
    samples: int
    cause: str = "its epsilons"  #: The cause of the deviation, in words

    @property
    def passed(self) -> bool:
        """True if the exponents are right, and the net as it is keeps to them within 1%."""
        return self.exact <= TOLERANCE and self.deviation <= LARGEST_MISS

    def __str__(self) -> str:
        return f"up to {self.cause}: {self.deviation:.1g} (on {self.samples} samples)"

"""What every solver returns: a value with a proved bracket, a status that is a sentence, and
statistics.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .core.records import short_repr


class Status(StrEnum):
    """How a solver ended. Members are sentences."""

    OPTIMAL = "optimal: the proved bracket is within the tolerance"
    LOCALLY_OPTIMAL = (
        "no better neuron was found by local search; the proved bound is not tight enough to prove"
        " optimality"
    )
    NOT_SEPARABLE = (
        "not separable to the precision of float64: the dual weights bound the margin by"
        " upper_bound"
    )
    NOT_ATTAINABLE = "no function of this class takes the given values: the dual weights prove it"
    TIME_LIMIT = "stopped at the time limit with the best bracket so far; raise time_limit to go on"
    INTERRUPTED = "interrupted with the best bracket so far"
    NOT_REACHED = (
        "no function was found that takes the values to the precision of float64; the lower bound"
        " is valid. Merge samples that nearly coincide"
    )
    STALLED = "stopped where floating point allowed no further progress; the bracket is valid"


@dataclass(frozen=True)
class Bracket:
    """A number known to lie in [lower, upper]: lower is attained, upper is proved."""

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """upper - lower, relative to the end that is larger in size: 0 only where both are equal,
        infinity where the bracket is open.

        For 0 <= lower it is the part of `upper` that is not attained, at most 1; at most 2 for any
        finite ends.

        Examples
        --------
        >>> from netmargin.result import Bracket
        >>> Bracket(3.0, 4.0).gap, Bracket(-1.0, -0.5).gap, Bracket(0.0, 0.0).gap, Bracket(1.0, float("inf")).gap
        (0.25, 0.5, 0.0, inf)
        """
        if self.lower == self.upper:  # two infinite ends too: a norm that is proved to be infinite
            return 0.0
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        size = max(abs(self.lower), abs(self.upper))
        return self.upper / size - self.lower / size  # the difference itself could overflow


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What all max-margin problems share.

    margin : attained, recomputed in float64 from the returned solution.
    upper_bound : proved.
    certified : the bracket is within the tolerance, or the margin is 0 and the bound proves that it
        is at most what float64 can tell from 0 (status NOT_SEPARABLE).
    dual : (n,), nonnegative, sum 1: weights of the samples that the margin rests on, and the proof
        of the upper bound.
    note : why the samples are not separated, where they are not: which ones contradict each other,
        and what to do; else empty.
    """

    margin: float
    upper_bound: float
    certified: bool
    status: Status
    dual: np.ndarray
    seconds: float
    note: str = ""

    __repr__ = short_repr

    @property
    def bracket(self) -> Bracket:
        """[margin, upper_bound]."""
        return Bracket(self.margin, self.upper_bound)

    @property
    def gap(self) -> float:
        """Of `bracket`: (upper_bound - margin) / upper_bound where the margin is at least 0."""
        return self.bracket.gap

    @property
    def support(self) -> np.ndarray:
        """Samples with positive dual weight."""
        return np.flatnonzero(self.dual > 0)


@dataclass(frozen=True, kw_only=True)
class RegularizedSolution:
    """What all problems of a norm plus a loss share, minimized.

    objective : attained, recomputed in float64.
    lower_bound : proved.
    certified : they agree within the tolerance.
    dual : (n,), >= 0, at most the largest slope of the loss: weights of the samples, and the proof
        of the lower bound.
    """

    objective: float
    lower_bound: float
    certified: bool
    status: Status
    dual: np.ndarray
    seconds: float

    __repr__ = short_repr

    @property
    def gap(self) -> float:
        """(objective - lower_bound) / objective, 0 only where both are equal."""
        return Bracket(self.lower_bound, self.objective).gap

    @property
    def support(self) -> np.ndarray:
        """Samples with positive dual weight."""
        return np.flatnonzero(self.dual > 0)


@dataclass(frozen=True, kw_only=True)
class SoftSolution(RegularizedSolution):
    """What all soft-margin problems share: norm + C (sum of hinge losses), minimized.

    hinge : the sum of hinge losses.
    margin : the least y_n f(x_n) over the norm of f, as in the hard problem; negative where a
        sample is on the wrong side. dual : (n,), between 0 and C.
    """

    hinge: float
    margin: float

    __repr__ = short_repr

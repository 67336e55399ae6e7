"""What every solver returns: a value with a proved bracket, a status that is a sentence, and statistics."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .records import short_repr


class Status(StrEnum):
    """How a solver ended. Members are sentences."""

    OPTIMAL = "optimal: the proved bracket is within the tolerance"
    LOCALLY_OPTIMAL = "no better neuron was found by local search; the upper bound is not tight enough to prove optimality"
    NOT_SEPARABLE = "not separable to the precision of float64: the dual weights bound the margin by upper_bound"
    NOT_ATTAINABLE = "no function of this class takes the given values: the dual weights prove it"
    TIME_LIMIT = "stopped at the time limit with the best bracket so far; raise time_limit to go on"
    INTERRUPTED = "interrupted with the best bracket so far"
    STALLED = "stopped where floating point allowed no further progress; the bracket is valid"


@dataclass(frozen=True)
class Bracket:
    """A number known to lie in [lower, upper]: lower is attained, upper is proved."""

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """upper - lower, relative to upper; 0 when both are 0."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What all max-margin problems share.

    margin : attained, recomputed in float64 from the returned solution. upper_bound : proved. certified : the bracket is within the tolerance,
    or the margin is 0 and the bound proves that it is at most what float64 can tell from 0 (status NOT_SEPARABLE).
    dual : (n,), nonnegative, sum 1: weights of the samples that the margin rests on, and the proof of the upper bound.
    """

    margin: float
    upper_bound: float
    certified: bool
    status: Status
    dual: np.ndarray
    seconds: float

    __repr__ = short_repr

    @property
    def bracket(self) -> Bracket:
        """[margin, upper_bound]."""
        return Bracket(self.margin, self.upper_bound)

    @property
    def gap(self) -> float:
        """(upper_bound - margin) / upper_bound."""
        return self.bracket.gap

    @property
    def support(self) -> np.ndarray:
        """Samples with positive dual weight."""
        return np.flatnonzero(self.dual > 0)


@dataclass(frozen=True, kw_only=True)
class RegularizedSolution:
    """What all problems of a norm plus a loss share, minimized.

    objective : attained, recomputed in float64. lower_bound : proved. certified : they agree within the tolerance. dual : (n,), >= 0, at most the largest
    slope of the loss: weights of the samples, and the proof of the lower bound.
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
        """(objective - lower_bound) / objective."""
        return Bracket(self.lower_bound, self.objective).gap

    @property
    def support(self) -> np.ndarray:
        """Samples with positive dual weight."""
        return np.flatnonzero(self.dual > 0)


@dataclass(frozen=True, kw_only=True)
class SoftSolution(RegularizedSolution):
    """What all soft-margin problems share: norm + C (sum of hinge losses), minimized.

    hinge : the sum of hinge losses. margin : the least y_n f(x_n) over the norm of f, as in the hard problem; negative where a sample is on the wrong side.
    dual : (n,), between 0 and C.
    """

    hinge: float
    margin: float

    __repr__ = short_repr

"""The records that every solver returns: a value with a proved bracket, a status that is a
sentence, and the weights of the samples that prove it.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .core.records import short_repr
from .core.saved_records import Record


class Status(StrEnum):
    """How a solver ended; each member is a sentence that says so."""

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
class Bracket(Record):
    """A number known to lie in [lower, upper].

    Attributes
    ----------
    lower : float
        The end that is attained, or proved from below.
    upper : float
        The end that is proved from above.
    """

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """The difference upper - lower, relative to the end that is larger in size.

        It is 0 only where both ends are equal, and infinity where the bracket is open. For
        0 <= lower it is the part of `upper` that is not attained, at most 1; at most 2 for any
        finite ends.

        Examples
        --------
        >>> from netmargin.result import Bracket
        >>> Bracket(3.0, 4.0).gap, Bracket(-1.0, -0.5).gap, Bracket(0.0, 0.0).gap
        (0.25, 0.5, 0.0)
        >>> Bracket(1.0, float("inf")).gap
        inf
        """
        if self.lower == self.upper:  # two infinite ends too: a norm that is proved to be infinite
            return 0.0
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        size = max(abs(self.lower), abs(self.upper))
        return self.upper / size - self.lower / size  # the difference itself could overflow


@dataclass(frozen=True, kw_only=True)
class Solution(Record):
    """The fields that the solutions of all max-margin problems share.

    Attributes
    ----------
    margin : float
        The margin that the returned solution attains, recomputed in float64; in the normalization
        of its problem.
    upper_bound : float
        A number that no solution exceeds, proved by `dual`.
    certified : bool
        Whether the bracket is within the tolerance, or the margin is 0 and the bound proves that it
        is at most what float64 can tell from 0 (status NOT_SEPARABLE).
    status : Status
        How the solver ended.
    dual : ndarray, shape (n,), float64
        Weights of the samples that the margin rests on, nonnegative with sum 1.
    seconds : float
        Wall-clock time of the call.
    note : str
        Which samples contradict each other where they are not separated, and what to do; else
        empty.
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
        """The bracket [margin, upper_bound] of the largest margin."""
        return Bracket(self.margin, self.upper_bound)

    @property
    def gap(self) -> float:
        """The relative gap (upper_bound - margin) / upper_bound, for a margin of at least 0.

        For a negative margin it is relative to the end that is larger in size.
        """
        return self.bracket.gap

    @property
    def support(self) -> np.ndarray:
        """The indices of the samples with positive dual weight, ascending."""
        return np.flatnonzero(self.dual > 0)


@dataclass(frozen=True, kw_only=True)
class RegularizedSolution(Record):
    """The fields that all minimizers of a norm plus a loss share.

    Attributes
    ----------
    objective : float
        The value that the returned solution attains, recomputed in float64.
    lower_bound : float
        A number that no solution falls below, proved by `dual`.
    certified : bool
        Whether the two agree within the tolerance.
    status : Status
        How the solver ended.
    dual : ndarray, shape (n,), float64
        Weights of the samples, at least 0 and at most the largest slope of the loss.
    seconds : float
        Wall-clock time of the call.
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
        """The relative gap (objective - lower_bound) / objective, 0 only where both are equal."""
        return Bracket(self.lower_bound, self.objective).gap

    @property
    def support(self) -> np.ndarray:
        """The indices of the samples with positive dual weight, ascending."""
        return np.flatnonzero(self.dual > 0)


@dataclass(frozen=True, kw_only=True)
class SoftSolution(RegularizedSolution):
    """The fields that all minimizers of norm + C (sum of hinge losses) share.

    Weights `dual` lie between 0 and C here.

    Attributes
    ----------
    hinge : float
        The sum of hinge losses.
    margin : float
        The least y_n f(x_n) over the norm of f, as in the hard problem; negative where a sample is
        on the wrong side.
    """

    hinge: float
    margin: float

    __repr__ = short_repr

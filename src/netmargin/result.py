"""How work ended, and the records that every solver returns: a value with a proved bracket, a
status that is a sentence, and the weights of the samples that prove it.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from enum import StrEnum

import numpy as np

from .core.records import Certainty, Table, number
from .core.saved_records import Record


class Status(StrEnum):
    """How a solver, a training run or a flow ended; each member is a sentence that says so.

    Examples
    --------
    >>> import netmargin as nm
    >>> nm.solvers.linear_max_margin([[1.0], [-1.0]], [1, -1]).status is nm.Status.OPTIMAL
    True
    """

    OPTIMAL = "optimal: the proved bracket is within the tolerance"
    LOCALLY_OPTIMAL = (
        "no better neuron was found by local search; the proved bound is not tight enough to prove"
        " optimality"
    )
    NOT_SEPARABLE = (
        "not separable: it is proved that no function of this class has a margin above 0, as the"
        " data are, or for a kernel matrix as its entries are rounded"
    )
    NOT_ATTAINABLE = "no function of this class takes the given values: the dual weights prove it"
    TIME_LIMIT = "stopped at the time limit with the best bracket so far; raise time_limit to go on"
    INTERRUPTED = "interrupted: the best so far, of which every number holds"
    NOT_REACHED = (
        "no function was found that takes the values to the precision of float64; the lower bound"
        " is valid. Merge samples that nearly coincide"
    )
    STALLED = "stalled: floating point allowed no further progress; what is returned is valid"
    FINISHED = "finished: it ran to its end"
    EVALUATION_LIMIT = (
        "stopped at the limit of evaluations with what was done; raise max_evaluations to go on"
    )
    RUNNING = "running"


@dataclass(frozen=True)
class Bracket(Record):
    """A number known to lie in [lower, upper]."""

    lower: float  #: The end that is attained, or proved from below
    upper: float  #: The end that is proved from above

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
        difference = self.upper - self.lower
        if math.isinf(difference):  # two huge ends of opposite signs
            return self.upper / size - self.lower / size
        return difference / size

    def _table(self) -> Table:
        """Both ends, rounded outwards."""
        ends = f"{number(self.lower, ROUND_FLOOR)} to {number(self.upper, ROUND_CEILING)}"
        return Table(f"{ends}, a relative gap of {number(self.gap)}", ())


def judge_bracket(
    bracket: Bracket, tol: float, *, ended: Status = Status.STALLED, zero: float | None = None
) -> tuple[Status, bool]:
    """Decide with which status a solver returns, and whether its answer is certified.

    Every solver asks here, so that the same bracket has the same status everywhere. What a search
    believes counts for nothing: only what is attained and what is proved.

    bracket : the value that is attained and the bound that is proved, in order of size. The upper
        end of a least norm is infinite where no function was found; both are where there is none.
    tol : the largest gap of a certified answer.
    ended : why the search ended, the status of an answer that is not certified. Ctrl-C is told
        whatever the bracket is, as it is meant for the caller too, and nothing is certified then.
    zero : for margins, the largest bound that proves that nothing separates the samples. It is 0
        for data that are taken as they are: there only a proof in exact arithmetic counts, and the
        bound is 0 then. It is above 0 only for a kernel matrix that the caller computed, by as much
        as the rounding of its entries K_ij, 2^-52 of the root of K_ii K_jj, may make of 0: 2^-26
        times sum_n p_n K_nn^(1/2), which samples without weight p do not change.
    """
    if ended is Status.INTERRUPTED:
        return ended, False
    if bracket.lower == math.inf:
        return Status.NOT_ATTAINABLE, True
    if zero is not None and bracket.lower <= 0:
        # A margin of 0 is no optimum, however near its bound: nothing is separated.
        if bracket.upper <= zero:
            return Status.NOT_SEPARABLE, True
    elif bracket.gap <= tol:
        return Status.OPTIMAL, True
    if ended is Status.TIME_LIMIT:
        return ended, False
    if bracket.upper == math.inf:
        return Status.NOT_REACHED, False
    # A search that took its bracket for closed was wrong, by the rounding of its units.
    return (ended if ended is Status.LOCALLY_OPTIMAL else Status.STALLED), False


_ENDS = {
    "margin": (Certainty.MEASURED, ROUND_HALF_EVEN),
    "upper_bound": (Certainty.PROVED, ROUND_CEILING),
    "objective": (Certainty.MEASURED, ROUND_HALF_EVEN),
    "norm": (Certainty.MEASURED, ROUND_HALF_EVEN),
    "lower_bound": (Certainty.PROVED, ROUND_FLOOR),
}
"""Fields that are ends of brackets, attained by what is returned or proved by the dual weights; and
how they are rounded: a bound must not be cut.
"""


class Solution(Record, ABC):
    """What the solutions of all problems share: a bracket, a status and weights of the samples.

    A subclass is a dataclass with the two ends of its bracket as fields, under the names of its
    problem, and with the fields `certified`, `status`, `dual` and `seconds`.
    """

    certified: bool
    status: Status
    dual: np.ndarray
    seconds: float

    @property
    @abstractmethod
    def bracket(self) -> Bracket:
        """What is attained and what is proved, in order of size."""

    @property
    def gap(self) -> float:
        """The gap of the bracket relative to its end that is larger in size, as `Bracket.gap`."""
        return self.bracket.gap

    @property
    def support(self) -> np.ndarray:
        """The indices of the samples with a dual weight other than 0, ascending."""
        return np.flatnonzero(self.dual)

    def _table(self) -> Table:
        """Both ends of the bracket: which is attained, and which is proved by the dual weights."""
        ends = [name for name in _ENDS if isinstance(getattr(self, name, None), float)]
        # A soft margin has a margin, too, and its bound is that of the objective beside it.
        bounded = next(name for name in ("objective", "norm", "margin") if name in ends)
        rows = []
        for name in ends:
            certainty, rounding = _ENDS[name]
            title = name.replace("_", " ") + f" of the {bounded}" * name.endswith("bound")
            rows.append((title, (number(getattr(self, name), rounding), certainty)))
        local = getattr(self, "local_gap", None)
        others = (
            ("gap", number(self.gap)),
            *((("local gap, by search alone", number(local)),) if local else ()),
            ("certified", "yes" if self.certified else "no"),
            ("status", str(self.status)),
            ("support", f"{len(self.support):,} of {len(self.dual):,} samples, by dual weight"),
        )
        return Table(type(self).__name__, (*rows, *others))


@dataclass(frozen=True, kw_only=True)
class MarginSolution(Solution):
    """The fields that the solutions of all max-margin problems share."""

    #: The margin that the returned solution attains, recomputed in float64; in the normalization of
    #: its problem
    margin: float
    upper_bound: float  #: A number that no solution exceeds, proved by `dual`
    #: Whether the bracket is proved to be within the tolerance, or the margin is proved to be 0
    #: (status NOT_SEPARABLE, which for a kernel matrix allows for its rounding); False for a search
    #: that was interrupted
    certified: bool
    status: Status  #: How the solver ended
    #: (n,): Weights of the samples that the margin rests on, nonnegative with sum 1
    dual: np.ndarray
    seconds: float  #: Wall-clock time of the call
    #: Which samples contradict each other where they are not separated, and what to do; else empty
    note: str = ""

    @property
    def bracket(self) -> Bracket:
        """The bracket [margin, upper_bound] of the largest margin."""
        return Bracket(self.margin, self.upper_bound)


@dataclass(frozen=True, kw_only=True)
class RegularizedSolution(Solution):
    """The fields that all minimizers of a norm plus a loss share."""

    objective: float  #: The value that the returned solution attains, recomputed in float64
    lower_bound: float  #: A number that no solution falls below, proved by `dual`
    certified: bool  #: As of `MarginSolution`, like `status` and `seconds`
    status: Status
    #: (n,): Weights of the samples: the slopes of the loss, or nearly, at what is returned
    dual: np.ndarray
    seconds: float

    @property
    def bracket(self) -> Bracket:
        """The bracket [lower_bound, objective] of the least objective."""
        return Bracket(self.lower_bound, self.objective)


@dataclass(frozen=True, kw_only=True)
class SoftSolution(RegularizedSolution):
    """The fields that all minimizers of norm + C (sum of hinge losses) share.

    Weights `dual` lie between 0 and C here, times the weight of the sample.
    """

    hinge: float  #: The sum of hinge losses
    #: The least y_n f(x_n) over the norm of f, as in the hard problem; negative where a sample is
    #: on the wrong side
    margin: float

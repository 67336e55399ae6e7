"""The loop of column generation, one for all problems over the neurons of two-layer nets.

Neurons are added to a restricted problem, which knows only some of them, until none is missing: its
dual weights tell what any other neuron would be worth. A problem, `ColumnProblem`, says how it is
solved over some, at which dual weights others are priced, and what their largest value proves.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...core.progress import Progress
from ...result import Bracket, Status, judge_bracket

Report = Callable[[Bracket, str], None]
"""Called with the bracket as a proof brings it, and with how far the proof of the next is."""


class ColumnProblem(Protocol):
    """A problem whose columns are neurons: unit directions, the rows of arrays (k, D).

    At Ctrl-C `bracket` is valid and what attains it is whole: both change by one assignment each.
    """

    deadline: float  # time (time.monotonic) at which the search ends
    tol: float  # relative gap at which it ends
    exact: bool  # whether a proof visits every neuron, so that a bound which stays open is rounding

    @property
    def zero(self) -> float | None:
        """For margins: a bound up to this is 0 to rounding."""

    @property
    def bracket(self) -> Bracket:
        """What is attained, recomputed in float64, and what is proved."""

    @property
    def searched_bracket(self) -> Bracket:
        """The bracket if local search has missed no neuron; it is shown, and proves nothing."""

    def start(self) -> np.ndarray:
        """The neurons (k, D) to begin with."""

    def solve(self, neurons: np.ndarray) -> None:
        """Add neurons, solve the restricted problem, and keep its dual weights."""

    def search(self) -> np.ndarray:
        """Find neurons of large value at dual weights of the problem's choice, by local search."""

    def proof_is_due(self) -> bool:
        """Whether search says that the bracket is closed, or helps no more."""

    def prove(self, report: Report) -> np.ndarray:
        """Improve the proved end of the bracket; returns neurons of large value that were met."""

    def select(self, found: np.ndarray) -> np.ndarray | None:
        """The neurons with which to go on, maybe none; None where nothing is gained by that."""

    def finish(self, *, early: bool) -> None:
        """Improve the answer by what costs little, of a search that ended or was stopped early."""


@dataclass(frozen=True)
class Ending:
    """How a search ended: why, for `judge_bracket`, and after how many restricted problems."""

    status: Status
    rounds: int

    @property
    def early(self) -> bool:
        """Whether the search was stopped before it came to its end."""
        return self.status in (Status.INTERRUPTED, Status.TIME_LIMIT)


def generate_columns(
    problem: ColumnProblem, *, progress: bool, title: str, in_units: Callable[[Bracket], Bracket]
) -> Ending:
    """Generate columns until the bracket is closed, or as far as time and precision allow.

    At the deadline, and at Ctrl-C, the problem holds the best so far; a second Ctrl-C ends the
    search for a better bound that follows the first. Progress is shown after `title`, with the
    bracket that search knows of, which `in_units` turns into the units of the caller.
    """
    rounds = 0

    def show(bracket: Bracket, proof: str = "") -> None:
        shown = in_units(bracket)
        line = f"round {rounds}  bracket {shown.lower:.7g} to {shown.upper:.7g}"
        line += f"  {proof}" if proof else ""
        display.draw(rounds, None, line, "  (Ctrl-C returns the best so far)")

    def run() -> Status:
        nonlocal rounds
        neurons: np.ndarray | None = problem.start()
        while neurons is not None:
            rounds += 1
            problem.solve(neurons)
            show(problem.searched_bracket)
            if time.monotonic() > problem.deadline:
                return Status.TIME_LIMIT
            found = problem.search()
            # A proof costs more than a round: it waits until search has nothing left to say.
            if problem.proof_is_due():
                found = np.concatenate([found, problem.prove(show)])
                status, proved = judge_bracket(problem.bracket, problem.tol, zero=problem.zero)
                if proved:
                    return status
            neurons = problem.select(found)
        if time.monotonic() > problem.deadline:
            return Status.TIME_LIMIT
        # Where a proof visits every neuron, rounding alone can keep the bracket open.
        return Status.STALLED if problem.exact else Status.LOCALLY_OPTIMAL

    with Progress(progress, title) as display:
        try:
            status = run()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except TimeoutError:
            status = Status.TIME_LIMIT
        try:
            problem.finish(early=Ending(status, rounds).early)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except TimeoutError:
            pass  # the answer is as good without the last touch
    return Ending(status, rounds)


class Patience:
    """Counts `idle` rounds since a number fell by a part `progress`: over after `rounds`."""

    def __init__(self, rounds: int, progress: float) -> None:
        self._rounds, self._progress = rounds, progress
        self.reset()

    def reset(self) -> None:
        """Begin anew: whatever comes next is progress."""
        self.idle, self._least = 0, math.inf

    def count_round(self, value: float) -> None:
        """Take the number of one more round; rounding may make it negative."""
        fell = value < self._least * (1 - math.copysign(self._progress, self._least))
        self.idle = 0 if fell else self.idle + 1
        self._least = min(value, self._least)

    @property
    def is_over(self) -> bool:
        """Whether there was no progress for so many rounds."""
        return self.idle >= self._rounds

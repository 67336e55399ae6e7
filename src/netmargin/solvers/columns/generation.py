"""Column generation over the neurons of an infinitely wide two-layer ReLU net.

Everything is in units of the largest |z|, of unit-norm features, and of t: the largest t such that
the rows (`MarginConstraints`) hold with mass 1. For dual weights p with p . target = 1, max(max_u
|sum_i p_i signs_i relu(u . z_i)|, max_i p_i / slack_cost) is an upper bound of t. A round solves
the restricted problem, prices neurons by local search at dual weights between the new ones and the
best so far, and adds them. Where that finds nothing more, neurons are moved continuously
(`RestrictedProblem.polish`), and the bound is proved: over the whole arrangement for points of low
rank, by branch and bound elsewhere.
"""

import time
from contextlib import suppress

import numpy as np

from ...core.matrices import SolverData
from ...result import Status
from ..progress import Progress
from .dual_search import COLUMNS_PER_ROUND, STARTS, THOROUGH_STARTS, ZERO_MARGIN, DualSearch
from .master import MarginConstraints
from .options import Options

# The numbers below trade rounds against the time of a round, and were set by trial. No proof
# depends on them: all bounds are recomputed.

_CENTRE_WEIGHT = 0.5
"""Neurons are priced halfway between the new dual weights and the best so far: at the new ones
alone, which jump about, bounds fall slowly; at the best alone nothing new is found.
"""
_PATIENCE, _PROGRESS = 6, 1e-3
"""Rounds without a gap that is relatively smaller by that much, after which search is taken to be
exhausted and a proof is tried; also the proofs that may fail to help before the run ends.
"""
_FIRST_PROOF_GAP, _NEXT_PROOF_GAP = 0.03, 0.3
"""Above rank 4 branch and bound takes a first look once the gap is 3%, where few activation
patterns remain open, and again each time the gap fell to 0.3 of what it was: a few looks in all.
"""
_POLISH_EVERY, _POLISH_GAP = 5, 1e-2
"""Neurons are moved by a cone program, dearer than a round, once the activation patterns are nearly
right (gap 1%), and then in one round of five.
"""


def generate_columns(
    data: SolverData,
    rows: MarginConstraints,
    options: Options,
    neurons,
    progress: bool,
    title: str,
    *,
    unit: float,
    power: int = 1,
) -> "ColumnGeneration":
    """Run column generation for data in their own units; `unit` turns t into what is shown."""
    with Progress(progress, title) as shown:
        run = ColumnGeneration(
            data.Z / data.size / (data.longest / data.size),
            rows,
            options,
            data.directions(neurons),
            lambda rounds, t, upper: shown.show(rounds, unit * t, unit * upper),
            power,
        )
        run.run()
    return run


class ColumnGeneration(DualSearch):
    """Column generation for one problem: `run` it, then read what `DualSearch` holds, and from
    `problem` t, weights, U and s.

    Attributes
    ----------
    status : Status
        How the run ended.
    seconds : float
        Time of the run.
    """

    def run(self) -> None:
        """Generate columns until the bracket is closed, or as far as time and precision allow."""
        started = time.monotonic()
        try:
            self.status = self.generate()
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        except TimeoutError:
            self.status = Status.TIME_LIMIT
        if self.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            # A relaxed bound costs nothing, and at the centre it may beat what was proved so far.
            self.offer_bound(self.centre, self.prover.relaxed(self.coefficients(self.centre)))
        else:
            with suppress(KeyboardInterrupt, TimeoutError):
                self.drop_dust()
        self.seconds = time.monotonic() - started

    def generate(self) -> Status:
        """Solve the restricted problem, price neurons and add them, round by round, to the end."""
        candidates = np.concatenate(
            [
                self.recent,
                self.linear_neurons(),
                self.starts(COLUMNS_PER_ROUND),
                self.search(self.centre),
            ]
        )
        dual, narrowest, stalled = self.centre, np.inf, 0
        # The narrowest gap at which a conclusion was tried, and the attempts since it fell.
        concluded_gap, attempts = np.inf, 0
        proof_gap = _FIRST_PROOF_GAP
        while True:
            self.rounds += 1
            # Neurons that would not raise t only make the linear program larger.
            if self.rounds > 1:
                candidates = candidates[self.problem.improving(candidates, dual)]
            self.problem.add(candidates, dual)
            dual = self.problem.solve(self.deadline)
            self.consider_centre(self.centre, 0.0)
            gap = 1 - self.t / self.local_upper if self.local_upper > 0 else 0.0
            self.report(self.rounds, self.t, self.local_upper)
            if time.monotonic() > self.deadline:
                return Status.TIME_LIMIT
            stalled = 0 if gap < narrowest * (1 - _PROGRESS) else stalled + 1
            narrowest = min(gap, narrowest)
            if (
                gap <= 0.5 * self.tol
                or stalled >= _PATIENCE
                or not len(candidates)
                or self.local_upper <= ZERO_MARGIN
            ):
                stalled, narrowest = 0, np.inf
                attempts = attempts + 1 if gap > concluded_gap * (1 - _PROGRESS) else 0
                concluded_gap = min(gap, concluded_gap)
                answer = self.conclude(dual, attempts)
                if isinstance(answer, Status):
                    return answer
                candidates = answer
                continue
            # Duals jump about: price between the new ones and the best so far, and where polishing
            # says they should be.
            between = (1 - _CENTRE_WEIGHT) * dual + _CENTRE_WEIGHT * self.centre
            candidates = self.search(between)
            if self.prover.exact and gap < _POLISH_GAP and self.rounds % _POLISH_EVERY == 0:
                candidates = np.concatenate([*self.polish(), candidates])
            if not self.prover.exact and gap < proof_gap:
                candidates = np.concatenate([self.prove(self.centre, thoroughly=False), candidates])
                proof_gap = _NEXT_PROOF_GAP * gap
            if not self.problem.improving(candidates, dual).any():
                candidates = self.search(dual)

    def conclude(self, dual: np.ndarray, attempts: int) -> Status | np.ndarray:
        """Search thoroughly where rounds find no more, then prove; returns the final status, or
        neurons with which to go on.
        """
        last = attempts >= _PATIENCE
        starts = STARTS if self.prover.exact else THOROUGH_STARTS
        self.local_upper = np.inf  # values of the past were found by less thorough search
        candidates = [self.search(self.centre, starts=starts), self.search(dual, starts=starts)]
        if self.prover.exact or attempts > 1:
            candidates += self.polish()
        candidates.append(self.prove(self.centre, thoroughly=last or self.settled()))
        if self.t <= 0 and self.upper <= ZERO_MARGIN:
            return Status.NOT_SEPARABLE
        if self.upper - self.t <= self.tol * self.upper:
            return Status.OPTIMAL
        found = np.concatenate(candidates)
        # Above rank 4 there is no more to do once search finds nothing: the bound stays as it is.
        go_on = self.prover.exact or not self.settled()
        if not last and go_on and self.problem.improving(found, dual).any():
            return found
        if time.monotonic() > self.deadline:
            return Status.TIME_LIMIT
        return Status.STALLED if self.prover.exact else Status.LOCALLY_OPTIMAL

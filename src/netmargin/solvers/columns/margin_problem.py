"""The max margin, hard and soft, as a problem of column generation.

Everything is in units of the largest |z|, of unit-norm features, and of t: the largest t such that
the rows (`Constraints`) hold with mass 1. For dual weights p with p . target = 1, max(max_u
|sum_i p_i signs_i phi(u . z_i)|, max_i p_i / slack_cost) is an upper bound of t. Neurons are
priced by local search at dual weights between the new ones and the best so far; the first ones are
those of a net whose margin is ascended (`smooth_ascent`). Where search finds nothing more, neurons
are moved continuously (`RestrictedProblem.polish_neurons`), and the bound is proved: over the whole
arrangement for points of low rank, by branch and bound elsewhere.
"""

import time

import numpy as np

from ...result import Bracket
from ..neurons.search import draw_starts, unit_rows
from ..pricing.bounds import BY_RELAXATION, QUICK_WORK
from .dual_search import STARTS, THOROUGH_STARTS, DualSearch
from .engine import Patience, Report
from .neuron_search import COLUMNS_PER_ROUND
from .options import Options
from .restricted_problem import RestrictedProblem
from .smooth_ascent import ascend_margin

# The numbers below trade rounds against the time of a round, and were set by trial. No proof
# depends on them: all bounds are recomputed.

_PATIENCE, _PROGRESS = 6, 1e-3
"""Rounds without a gap that is relatively smaller by that much, after which search is taken to be
exhausted and a proof is tried; also the proofs that may fail to help before the run ends.
"""
_MOST_UNSEPARATED = 100
"""Rounds that may pass before samples are separated, at most as many as samples: each brings a
neuron or more, and n neurons separate n samples.
"""
_FIRST_PROOF_GAP, _NEXT_PROOF_GAP = 0.03, 0.3
"""Above rank 4 branch and bound is tried for a moment once the gap is 3%, where few activation
patterns remain open, and again each time the gap fell to 0.3 of what it was: a few times in all.
"""
_POLISH_EVERY, _POLISH_GAP = 5, 1e-2
"""Neurons are moved by a cone program, dearer than a round, once the activation patterns are nearly
right (gap 1%), and then in one round of five.
"""
_LEAST_SAMPLES = 64
"""Fewer samples than that need so few neurons that rounds find them in the time of an ascent: on 40
normal points in 8 dimensions a proved optimum took longer with ascents (1.9 to 3.2 s).
"""


def invert(bracket: Bracket, unit: float) -> Bracket:
    """The bracket of unit / t, where t lies in this one; inf where t may be 0."""
    lower, upper = (unit / t if t > 0 else np.inf for t in (bracket.upper, bracket.lower))
    return Bracket(lower, upper)


class MarginProblem(DualSearch):
    """A `ColumnProblem`: hand it to `generate_columns`, then read what `DualSearch` holds, and from
    `restricted` t, weights, U and s.
    """

    zero = 0.0  # a bound of rounding is no proof
    drawn = COLUMNS_PER_ROUND // 2, COLUMNS_PER_ROUND // 2  # rays and others to begin with
    centre_weight = 0.5
    """Neurons are priced halfway between the new dual weights and the best so far: at the new ones
    alone, which jump about, bounds fall slowly; at the best alone nothing new is found.
    """

    def __init__(
        self, restricted: RestrictedProblem, options: Options, neurons: np.ndarray | None = None
    ) -> None:
        """`neurons` (k, D) are those of the caller."""
        super().__init__(restricted, options)
        self.recent = self.recent if neurons is None else neurons
        self._polishes = self.exact
        self._rounds, self._last_dual, self._targets_are_due = 0, self.centre, False
        # Rounds since the gap fell, and conclusions since the gap at which they were tried fell.
        self._patience = Patience(_PATIENCE, _PROGRESS)
        self._conclusions = Patience(_PATIENCE, _PROGRESS)
        self._gap, self._proof_gap, self._concluding = np.inf, _FIRST_PROOF_GAP, False

    @property
    def bracket(self) -> Bracket:
        """The largest t that is attained, and its proved bound."""
        return Bracket(self.t, self.upper)

    @property
    def searched_bracket(self) -> Bracket:
        """The same with the largest value that search found."""
        return Bracket(self.t, self.local_upper)

    def start(self) -> np.ndarray:
        """Neurons of the caller, a linear function, random ones, and those of large value; of hard
        problems those of an ascended net too.
        """
        samples, normal = self.drawn
        drawn = draw_starts(self.Z, self.random, samples=samples, normal=normal)
        rows = self.restricted.rows
        # The linear function that fits best: t > 0 where that separates by far.
        w = np.linalg.lstsq(self.Z, rows.signs * rows.target, rcond=None)[0]
        others = np.concatenate([self.recent, unit_rows(np.array([w, -w])), drawn])
        # Where samples are few or the arrangement is visited, search finds the neurons at once;
        # the caller's may be better; and a net with slack need not separate the samples.
        unknown = len(self.Z) >= _LEAST_SAMPLES and not self.exact and not len(self.recent)
        hard = rows.slack_cost == np.inf and not rows.equal and self.activation.power == 1
        if unknown and hard and time.monotonic() < self.deadline:
            U, s, dual = ascend_margin(
                self.Z, rows.signs, self.random, self._search_ends, slope=self.activation.slope
            )
            self.restricted.add(U, s)
            self._last_dual = self.restricted.normalize_dual(dual)
        # They are there even if search ends at once.
        self.restricted.add(others, self.restricted.paying_signs(others, self._last_dual))
        return self.search_at(self._last_dual)

    def solve(self, neurons: np.ndarray) -> None:
        """Add neurons, solve the linear program, and see whether it is time for a conclusion."""
        self._rounds += 1
        self.restricted.add(neurons, self.restricted.paying_signs(neurons, self._last_dual))
        self._last_dual = self.restricted.solve(self.deadline)
        self.consider_centre(self.centre, 0.0)
        level = self.restricted.level
        self._gap = 1 - level / self.local_upper if self.local_upper > 0 else 0.0
        # Before the neurons separate the samples the gap is 1, whatever a round brings.
        if level > self.zero_margin or self._rounds > min(len(self.Z), _MOST_UNSEPARATED):
            self._patience.count_round(self._gap)
        self._concluding = (
            self._gap <= 0.5 * self.tol
            or self._patience.is_over
            or not len(neurons)
            or self.local_upper <= self.zero_margin
            or self.is_late
        )

    def search(self) -> np.ndarray:
        """Find neurons between the new dual weights and the best; before a conclusion, at both."""
        dual, gap = self._last_dual, self._gap
        if self._concluding:
            return self._search_thoroughly(dual)
        # Duals jump about: price between the new and the best ones, and where polishing says.
        found = self.search_at((1 - self.centre_weight) * dual + self.centre_weight * self.centre)
        if self._polishes and gap < _POLISH_GAP and self._rounds % _POLISH_EVERY == 0:
            found = np.concatenate([*self.polish_neurons(), found])
        if not self.exact and gap < self._proof_gap:
            found = np.concatenate([self.prove_at(self.centre, work=QUICK_WORK), found])
            self._proof_gap = _NEXT_PROOF_GAP * gap
        if not self.restricted.improving(found, dual).any():
            found = self.search_at(dual)
        return found

    def _search_thoroughly(self, dual: np.ndarray) -> np.ndarray:
        """Neurons by more starts, and by moving those that there are."""
        self._patience.reset()
        self._conclusions.count_round(self.bracket.gap if self.exact else self._gap)
        starts = STARTS if self.exact else THOROUGH_STARTS
        self.local_upper = np.inf  # values of the past were found by less thorough search
        found = [self.search_at(self.centre, starts=starts), self.search_at(dual, starts=starts)]
        if self._polishes or self._conclusions.idle > 1:
            found += self.polish_neurons()
        return np.concatenate(found)

    def proof_is_due(self) -> bool:
        """Whether the gap that search knows is closed, or does not fall."""
        return self._concluding

    def prove(self, report: Report) -> np.ndarray:
        """Prove a bound: at the best dual weights, and where these are too many, by targets."""

        def prove_at_centre(work: float | None) -> np.ndarray:
            return self.prove_at(
                self.centre, work=work, report=lambda upper: report(Bracket(self.t, upper), "")
            )

        if not (self._conclusions.is_over or self.is_settled() or self.is_late):
            return prove_at_centre(QUICK_WORK)
        found = [np.zeros((0, self.Z.shape[1]))]
        if not self._targets_are_due:
            found.append(prove_at_centre(None))
            self._targets_are_due = self.targets_pay(self.upper, self.t)
        if self._targets_are_due:
            if self.t > self.zero_margin:
                found.append(self.prove_by_targets(lambda line: report(self.bracket, line)))
            if self.endless:
                found.append(prove_at_centre(np.inf))
        self.restart_clock()
        return np.concatenate(found)

    def select(self, found: np.ndarray) -> np.ndarray | None:
        """Those that would raise t: others only make the linear program larger."""
        useful: np.ndarray = found[self.restricted.improving(found, self._last_dual)]
        if not self._concluding:
            return useful
        # Above rank 4 there is no more to do once search finds nothing: the bound stays as it is.
        go_on = self.exact or not self.is_settled()
        return useful if go_on and len(useful) and not self._conclusions.is_over else None

    def finish(self, *, early: bool) -> None:
        """Take the relaxed bound after an early end; else drop what the proof does not need."""
        if early:
            # A relaxed bound costs nothing, and at the centre it may beat what was proved so far.
            relaxed = self.pricing.relax(self.coefficients(self.centre))
            self.offer_bound(self.centre, relaxed, BY_RELAXATION)
        else:
            self.drop_dust()

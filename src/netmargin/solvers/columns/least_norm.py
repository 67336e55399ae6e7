"""Interpolation as a problem of column generation: the least sum |alpha_j| at which neurons take
given values.

In units of unit-norm samples and of the largest target. Dual weights p whose response max_u |sum_i
p_i relu(u . z_i)| is at most 1 prove that the norm is at least p . target. The restricted problem
is elastic (`ElasticProgram`): its slacks grow dearer until none is left. Neurons are priced by
local search at its dual weights, or between them and the best so far. What search knows of
responses is proved at the end, by `PricingBound`.
"""

from collections.abc import Callable

import numpy as np

from ...result import Bracket
from ..pricing.bounds import BY_RELAXATION
from ..pricing.local import draw_starts, weighted_sums
from .engine import Patience
from .falling_targets import FallingTargets
from .neuron_search import NeuronSearch
from .options import Options
from .restricted_norm import NO_SLACK, RestrictedNorm

# Numbers of rounds, starts and columns were set by trial; no proof depends on them.

_RAISE_COST_GAP = 0.3
"""Slacks grow dearer once the elastic problem is solved to this relative gap: sharper answers to it
are not needed.
"""
_COLUMNS_PER_ROUND = 96
"""All local maxima are worth adding: rounds get few, and the linear program takes less time than
pricing.
"""
_STARTS, _THOROUGH_STARTS = 64, 512
"""Random starts of local search, in a round and before it is given up."""
_INITIAL_RAYS = 1000
"""More would take the first linear program longer than they save."""
_CENTRE_WEIGHT = 0.5
"""Every other round prices halfway between the new dual weights, which jump about, and the best."""
_CHEAP_ARCS = 40_000
"""Arcs of the arrangement that are priced in milliseconds: in the plane up to 200 samples."""
_IMPROVES = 1e-10
"""The dual tolerance of the linear program: what is worth less would be found again and again."""
_PATIENCE, _PROGRESS = 15, 1e-3
"""Rounds without that much progress of the relative gap, after which rounding is taken for the
reason.
"""
_RELATIVE_ROUNDING = 1e-12
"""Room for the rounding of a sum of weights: some 1e-16 for each of thousands."""
_ULPS_OF_TARGETS = 16
"""Ulps by which a target may be off for the few quotients that lead to it, and a bound for the
product that leads to the units of the caller.
"""


class LeastNormProblem(NeuronSearch):
    """A `ColumnProblem` for unit rows Z (n, D), no two of them equal, and values `target` (n,), the
    largest of absolute value 1.

    Hand it to `generate_columns`, then read `best`, the function of least norm that was found, and
    the proved bound `lower` = dual . target, where the weights `dual` (n,) have response at most 1,
    as `proof` says.
    """

    zero = None

    def __init__(self, Z: np.ndarray, target: np.ndarray, options: Options):
        super().__init__(Z, 1, options)
        self.by_targets &= not self.endless
        self.target, self.best = target, RestrictedNorm(Z, target)
        rank = np.linalg.matrix_rank(Z)
        self._cheap = self.exact and len(Z) ** max(rank - 1, 1) <= _CHEAP_ARCS
        # |relu(u . z)| is at most 1: the response of these is at most 1.
        self.dual = self._centre = self._last_dual = target / (
            np.abs(target).sum() * (1 + _RELATIVE_ROUNDING)
        )
        self.lower, self._local_lower = self._value(self.dual), 0.0
        self.proof = "the sum of the weights"
        self._targets: FallingTargets | None = None
        self._rounds, self._slack = 0, np.inf
        self._patience, self._proof_failed = Patience(_PATIENCE, _PROGRESS), False
        self._search_is_over, self._proved_centre = False, None

    @property
    def norm(self) -> float:
        """The least norm that is attained."""
        return self.best.norm

    @property
    def bracket(self) -> Bracket:
        """The proved bound, and the least norm that is attained."""
        return Bracket(self.lower, self.norm)

    @property
    def searched_bracket(self) -> Bracket:
        """The same with the bound by the largest response that search found."""
        return Bracket(self._local_lower, self.norm)

    def start(self) -> np.ndarray:
        """Samples, directions at random, and neurons of large response at the targets."""
        drawn = draw_starts(self.Z, self.random, samples=_INITIAL_RAYS, normal=_STARTS)
        self.best.add(drawn, self._centre)
        return self._price_at(self._centre)

    def solve(self, neurons: np.ndarray) -> None:
        """Add neurons and solve the elastic program."""
        self._rounds += 1
        self.best.add(neurons, self._last_dual)
        self._slack, self._last_dual = self.best.solve(self._last_dual, self.deadline)
        self._consider_centre(self._centre, 0.0)

    def search(self) -> np.ndarray:
        """Find neurons in turn at the new dual weights and between them and the best, which settles
        them.
        """
        dual, part = self._last_dual, 0.0 if self._rounds % 2 else _CENTRE_WEIGHT
        # The same array in every other round, as the centre is known by it.
        tried = (1 - part) * dual + part * self._centre if part else dual
        found = self._improving(self._price_at(tried), dual)
        return found if len(found) else self._improving(self._price_at(dual), dual)

    def proof_is_due(self) -> bool:
        """Whether the bracket is closed, if search has found the largest response, or search helps
        no more.
        """
        closed = self.norm - self._local_lower <= 0.5 * self.tol * self.norm
        return self._search_is_over or bool(np.isfinite(self.norm) and (closed or self.is_late))

    def prove(self, report: Callable[[Bracket, str], None]) -> np.ndarray:
        """Prove a bound at the best dual weights."""
        known, self._proved_centre = self._value(self._centre) / self._local_lower, self._centre
        largest, neurons = 0.0, np.zeros((0, self.Z.shape[1]))
        if self._targets is None:
            largest, neurons = self._prove_at(self._centre, report)
            if self.norm < np.inf and self.targets_pay(1 / self.lower, 1 / self.norm):
                self._targets = self._pose_targets()
        if self._targets is not None:
            neurons = np.concatenate([neurons, self._prove_by_targets(self._targets, report)])
            there = np.abs(weighted_sums(self.Z, self._centre, neurons))
            largest = float(there.max(initial=largest))
        # Branch and bound that met no better neuron would end where it ended now.
        self._proof_failed = not self.exact and largest <= known and not self.is_late
        self.restart_clock()
        return self._improving(neurons, self._last_dual)

    def select(self, found: np.ndarray) -> np.ndarray | None:
        """Those that were found, or more where rounds help no more; slacks grow dearer once their
        problem is nearly solved.
        """
        if self._proof_failed:
            return None
        # The gap is that of the elastic problem while slacks are left, and then of the norm.
        slack = self._slack > NO_SLACK
        least = float(self._last_dual @ self.target) if slack else self.norm
        gap = 1 - self._local_lower / least
        self._patience.count_round(gap)
        if slack and gap <= _RAISE_COST_GAP and self.best.raise_slack_cost():
            self._patience.reset()
        elif not len(found):
            found = self._price_thoroughly(self._last_dual)
        self._search_is_over = self._patience.is_over or (
            not len(found) and self._patience.idle > 0
        )
        # No search ends before its best dual weights have proved what they can.
        return None if self._search_is_over and self._proved_centre is self._centre else found

    def finish(self, *, early: bool) -> None:
        """Take a bound at once, and any function through the points, after an early end."""
        if not early:
            return
        self._offer(self._centre, self.pricing.relax(self._centre), BY_RELAXATION)
        self.best.fit_all()

    # The rest is how neurons are priced.

    def _search_at(self, dual: np.ndarray, starts: int = _STARTS) -> np.ndarray:
        """Neurons of large response at these dual weights, found by local search."""
        largest = self.find_neurons(
            dual, self.best.U, samples=4 * starts, normal=starts, count=_COLUMNS_PER_ROUND
        )
        self._consider_centre(dual, largest)
        return self.recent

    def _price_at(self, dual: np.ndarray) -> np.ndarray:
        """Neurons by search, and also by proof where that costs next to nothing: each finds maxima
        that the other misses.
        """
        found = self._search_at(dual)
        return np.concatenate([found, self._prove_at(dual)[1]]) if self._cheap else found

    def _price_thoroughly(self, dual: np.ndarray) -> np.ndarray:
        """Neurons that search with few starts has missed, if there are any."""
        found = self._improving(self._search_at(dual, _THOROUGH_STARTS), dual)
        return (
            found
            if len(found) or not self.exact
            else self._improving(self._prove_at(dual)[1], dual)
        )

    def _improving(self, U: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Select the neurons that would lower the norm, to first order."""
        return U[np.abs(weighted_sums(self.Z, dual, U)) > 1 + _IMPROVES]

    def _consider_centre(self, dual: np.ndarray, found: float) -> None:
        """Make these dual weights the centre if their bound is the largest, by the largest response
        that is known; `found` is the largest that search just found.
        """
        known = max(found, self.best.largest_response(dual))
        if not known > 0:
            return
        value = self._value(dual) / known
        if dual is self._centre:
            if value < self._local_lower * (1 - _PROGRESS):
                # The gaps so far were too small by that: none of them is a mark for progress.
                self._patience.reset()
            self._local_lower = min(self._local_lower, value) if self._local_lower else value
        elif value > self._local_lower:
            self._centre, self._local_lower = dual, value

    def _value(self, dual: np.ndarray) -> float:
        """The value dual . target, less what rounding may have added."""
        terms = dual * self.target
        # Targets are off by ulps too: those of a value, divided by the length of D coordinates.
        ulps = sum(self.Z.shape) + _ULPS_OF_TARGETS
        return float(terms.sum() - ulps * np.finfo(float).eps * np.abs(terms).sum())

    def _prove_at(
        self, dual: np.ndarray, report: Callable[[Bracket, str], None] = lambda bracket, line: None
    ) -> tuple[float, np.ndarray]:
        """Try to improve the proved bound by these dual weights; returns the largest response
        found, and neurons of large response.
        """
        value = self._value(dual)
        priced = self.bound_neurons(
            dual,
            floor=value / self.norm,
            found=value / self._local_lower if dual is self._centre else 0.0,
            attained=value / self.norm,
            count=_COLUMNS_PER_ROUND,
            report=lambda response: report(Bracket(value / response, self.norm), ""),
        )
        self._offer(dual, priced.upper_bound, priced.proof)
        largest = float(np.abs(priced.values).max(initial=0.0))
        self._consider_centre(dual, largest)
        return largest, priced.directions

    def _pose_targets(self) -> FallingTargets:
        """The search for dual weights on few samples, of the signs that the best ones have."""
        signs = np.where(self._centre == 0, np.sign(self.target), np.sign(self._centre))
        return FallingTargets(self.Z, signs, signs * self.target, self.options)

    def _prove_by_targets(
        self, targets: FallingTargets, report: Callable[[Bracket, str], None]
    ) -> np.ndarray:
        """Improve the bound by targets that fall; returns the neurons that were met."""
        attained = 1 / self.norm
        weights = np.abs(self._centre) / float(self._centre @ self.target)
        targets.begin(weights, attained, self.best.neurons)
        return targets.improve(
            upper=1 / self.lower,
            lower=attained,
            tol=self.tol,
            offer=lambda p: self._offer(p.dual * targets.signs, p.largest, p.words),
            report=lambda line: report(self.bracket, line),
        )

    def _offer(self, dual: np.ndarray, response: float, proof: str) -> None:
        """Keep dual weights whose largest response has this proved bound, if they are the best."""
        bound = self._value(dual) / response if response > 0 else 0.0
        if bound > self.lower:
            self.lower, self.dual, self.proof = bound, dual / response, proof

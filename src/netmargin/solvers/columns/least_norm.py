"""Column generation for interpolation: the least sum |alpha_j| at which neurons take given values.

In units of unit-norm samples and of the largest target. Dual weights p whose response max_u |sum_i
p_i relu(u . z_i)| is at most 1 prove that the norm is at least p . target. A round solves the
elastic problem over the neurons found so far (`ElasticProgram`), prices neurons by local search at
its dual weights, or between them and the best so far, and adds them. Slacks grow dearer until none
is left. What search knows of responses is proved at the end, by `Prover`.
"""

import time
from collections.abc import Callable

import numpy as np

from ...result import Status
from ..pricing.bounds import Prover
from ..pricing.local import price_locally, weighted_sums
from .options import Options
from .restricted_norm import LARGEST_SLACK_COST, SLACK_COST_FACTOR, RestrictedNorm

# Numbers of rounds, starts and columns were set by trial; no proof depends on them.

_RAISE_COST_GAP = 0.3
"""Slacks grow dearer once the elastic problem is solved to this relative gap: sharper answers to it
are not needed.
"""
_NO_SLACK = 1e-8
"""A sum of slacks that the tolerances of the linear program (1e-10 a row) may leave."""
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
_MOST_OPERATIONS_AT_END = 1_000_000_000
"""Operations of a second or so: what may be spent after the time is up."""
_DUST = 1e-13
"""Weights below this part of their sum are rounding of the linear program, and left out."""


class LeastNorm(RestrictedNorm):
    """Column generation for one problem: `run` it, then read the attributes below and those
    of `RestrictedNorm`.

    Parameters
    ----------
    Z : ndarray of shape (n, D)
        Unit rows, no two of them equal.
    target : ndarray of shape (n,)
        Values, the largest of absolute value 1.
    options : Options
        Tolerance, pricing and seed; the time limit is in the deadline.
    deadline : float
        Time (time.monotonic) at which to return the best so far.
    report : callable
        Called with rounds, lower and norm, as they come.

    Attributes
    ----------
    lower, dual : float and ndarray of shape (n,)
        The proved bound dual . target, where dual has response at most 1.
    status : Status
        How the run ended.
    """

    def __init__(
        self,
        Z: np.ndarray,
        target: np.ndarray,
        options: Options,
        deadline: float,
        report: Callable[[int, float, float], None],
    ):
        super().__init__(Z, target)
        self.tol, self.report = options.tol, report
        self._deadline, self._pricing = deadline, options.pricing
        self._random = np.random.default_rng(options.seed)
        self._recent = self._neurons
        # |relu(u . z)| is at most 1: the response of these is at most 1.
        self.dual = self._centre = target / (np.abs(target).sum() * (1 + 1e-12))
        self.lower, self._local_lower = self._value(self.dual), 0.0
        self.rounds = 0

    def run(self) -> None:
        """Generate columns until the bracket is within the tolerance, or as far as it goes."""
        try:
            self.status = self._generate()
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        except TimeoutError:
            self.status = Status.TIME_LIMIT
        if self.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            self._use_what_is_there()

    def _generate(self) -> Status:
        """Solve the elastic problem, price neurons and add them, round by round, to the end."""
        self._add(np.concatenate([self._rays(_INITIAL_RAYS), self._starts(_STARTS)]), self._centre)
        self._prover = Prover(self.Z, 1, self._pricing, self._deadline)
        rank = np.linalg.matrix_rank(self.Z)
        self._cheap = self._prover.exact and len(self.Z) ** max(rank - 1, 1) <= _CHEAP_ARCS
        self._add(self._look(self._centre), self._centre)
        narrowest, stalled = np.inf, 0
        while True:
            self.rounds += 1
            weights, slack, dual = self._program.solve(self._deadline)
            if slack <= _NO_SLACK:
                used = np.flatnonzero(weights > _DUST * weights.sum())
                self._correct_weights(
                    self._signs[used] * weights[used], self._neurons[used], self._A[:, used]
                )
            self._consider(self._centre, 0.0)
            self.report(self.rounds, self.lower, self.norm)
            if time.monotonic() > self._deadline:
                return Status.TIME_LIMIT
            # In turn at the new dual weights and between them and the best, which settles them.
            tried = (
                dual
                if self.rounds % 2
                else (1 - _CENTRE_WEIGHT) * dual + _CENTRE_WEIGHT * self._centre
            )
            found = self._improving(self._look(tried), dual)
            if not len(found):
                found = self._improving(self._look(dual), dual)
            # A proof costs more than a round: it waits until search says that the bracket closes.
            if self._settled():
                known = self._value(self._centre) / self._local_lower
                largest, neurons = self._prove(self._centre)
                if self.norm - self.lower <= self.tol * self.norm:
                    return Status.OPTIMAL
                if not self._prover.exact and largest <= known:
                    return Status.LOCALLY_OPTIMAL
                found = self._improving(np.concatenate([found, neurons]), dual)
            # The gap is that of the elastic problem while slacks are left, and then of the norm.
            least = self.norm if slack <= _NO_SLACK else float(dual @ self.target)
            gap = 1 - self._local_lower / least
            stalled = 0 if gap < narrowest * (1 - _PROGRESS) else stalled + 1
            narrowest = min(gap, narrowest)
            if (
                slack > _NO_SLACK
                and gap <= _RAISE_COST_GAP
                and self._slack_cost < LARGEST_SLACK_COST
            ):
                self._slack_cost *= SLACK_COST_FACTOR
                self._program.change_slack_cost(self._slack_cost)
                narrowest, stalled = np.inf, 0
            elif not len(found):
                found = self._look_thoroughly(dual)
            if stalled >= _PATIENCE or (not len(found) and stalled):
                return Status.STALLED if self._prover.exact else Status.LOCALLY_OPTIMAL
            self._add(found, dual)
            self._drop_idle(dual)

    # Pricing

    def _starts(self, count: int) -> np.ndarray:
        """Random unit directions (count, D)."""
        directions = self._random.normal(size=(count, self.Z.shape[1]))
        return directions / np.linalg.norm(directions, axis=1, keepdims=True)

    def _rays(self, most: int) -> np.ndarray:
        """The samples and their opposites as neurons, or a random `most` of them."""
        rays = np.concatenate([self.Z, -self.Z])
        return (
            rays if len(rays) <= most else rays[self._random.choice(len(rays), most, replace=False)]
        )

    def _search(self, dual: np.ndarray, starts: int = _STARTS) -> np.ndarray:
        """Neurons of large response at these dual weights, found by local search."""
        tried = np.concatenate([self.U, self._recent, self._rays(4 * starts), self._starts(starts)])
        self._recent, values = price_locally(
            self.Z, dual, tried, count=_COLUMNS_PER_ROUND, deadline=self._deadline
        )
        self._consider(dual, np.abs(values).max(initial=0.0))
        return self._recent

    def _look(self, dual: np.ndarray) -> np.ndarray:
        """Neurons by search, and also by proof where that costs next to nothing: each finds maxima
        that the other misses.
        """
        found = self._search(dual)
        return np.concatenate([found, self._prove(dual)[1]]) if self._cheap else found

    def _look_thoroughly(self, dual: np.ndarray) -> np.ndarray:
        """Neurons that search with few starts has missed, if there are any."""
        found = self._improving(self._search(dual, _THOROUGH_STARTS), dual)
        return (
            found
            if len(found) or not self._prover.exact
            else self._improving(self._prove(dual)[1], dual)
        )

    def _improving(self, U: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """Select the neurons that would lower the norm, to first order."""
        return U[np.abs(weighted_sums(self.Z, dual, U)) > 1 + _IMPROVES]

    def _consider(self, dual: np.ndarray, found: float) -> None:
        """Make these dual weights the centre if their bound is the largest, by the largest response
        that is known; `found` is the largest that search just found.
        """
        known = max(found, float(np.abs(self._A.T @ dual).max(initial=0.0)))
        if not known > 0:
            return
        value = self._value(dual) / known
        if dual is self._centre:
            self._local_lower = min(self._local_lower, value) if self._local_lower else value
        elif value > self._local_lower:
            self._centre, self._local_lower = dual, value

    def _value(self, dual: np.ndarray) -> float:
        """The value dual . target, less what rounding may have added."""
        terms = dual * self.target
        return float(terms.sum() - len(terms) * np.finfo(float).eps * np.abs(terms).sum())

    def _settled(self) -> bool:
        """Whether the bracket is closed, if search has found the largest response."""
        return (
            self.norm - self._local_lower <= 0.5 * self.tol * self.norm
            if np.isfinite(self.norm)
            else False
        )

    def _prove(self, dual: np.ndarray) -> tuple[float, np.ndarray]:
        """Try to improve the proved bound by these dual weights; returns the largest response
        found, and neurons of large response.
        """
        value = self._value(dual)
        priced = self._prover.price(
            dual,
            floor=value / self.norm if np.isfinite(self.norm) else 0.0,
            found=value / self._local_lower if dual is self._centre else 0.0,
            tol=self.tol,
            count=_COLUMNS_PER_ROUND,
            thoroughly=True,
            report=lambda response: self.report(self.rounds, value / response, self.norm),
        )
        self._offer(dual, priced.upper_bound)
        largest = float(np.abs(priced.values).max(initial=0.0))
        self._consider(dual, largest)
        return largest, priced.directions

    def _offer(self, dual: np.ndarray, response: float) -> None:
        """Keep dual weights whose largest response has this proved bound, if they are the best."""
        bound = self._value(dual) / response if response > 0 else 0.0
        if bound > self.lower:
            self.lower, self.dual = bound, dual / response

    def _use_what_is_there(self) -> None:
        """Take a bound at once, and any function through the points, after an early end."""
        self._offer(self._centre, self._prover.relaxed(self._centre))
        if self.norm == np.inf and len(self.Z) * self._A.size <= _MOST_OPERATIONS_AT_END:
            self._correct_weights(
                np.linalg.lstsq(self._A, self.target, rcond=None)[0], self._neurons, self._A
            )

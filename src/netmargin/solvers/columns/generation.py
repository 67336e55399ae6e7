"""Column generation over the neurons of an infinitely wide two-layer ReLU net.

Everything is in units of the largest |z|, of unit-norm features, and of t: the largest t such that
the rows (`master.Rows`) hold with mass 1. For dual weights p with p . target = 1, max(max_u |sum_i
p_i signs_i relu(u . z_i)|, max_i p_i / slack_cost) is an upper bound of t. A round solves the
restricted problem, prices neurons by local search at dual weights between the new ones and the best
so far, and adds them. Where that finds nothing more, neurons are moved continuously
(`RestrictedProblem.polish`), and the bound is proved: over the whole arrangement for points of low
rank, by branch and bound elsewhere.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ...core.arguments import check_choice, check_number, check_seed, check_time_limit
from ...core.matrices import SolverData
from ...result import Status
from ..pricing.bounds import Prover
from ..pricing.local import price_locally
from ..progress import Progress
from .master import Rows
from .restricted_problem import RestrictedProblem

_COLUMNS_PER_ROUND = 32
_STARTS = 64
_CENTRED = 0.5
_THOROUGH_STARTS = 512
_PATIENCE = 6
_PROGRESS = 1e-3
_LOOK_BELOW = 0.03
_LOOK_AGAIN = 0.3
_POLISH_EVERY = 5
_POLISH_BELOW = 1e-2
_ZERO = 1e-10

Report = Callable[[int, float, float], None]


@dataclass(frozen=True)
class Options:
    """Relative gap to stop at; seconds; "auto", "complete" or "local" proofs; seed of the starts of
    local search.
    """

    tol: float
    time_limit: float | None
    pricing: str
    seed: int

    def __post_init__(self) -> None:
        check_number("tol", self.tol, above=0, below=1)
        check_time_limit(self.time_limit)
        check_choice("pricing", self.pricing, ("auto", "complete", "local"))
        check_seed(self.seed)


def generate_columns(
    data: SolverData,
    rows: Rows,
    options: Options,
    neurons,
    progress: bool,
    title: str,
    *,
    unit: float,
    power: int = 1,
) -> "ColumnGeneration":
    """A finished run for data in their own units; `unit` turns t into what a person is shown."""
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


class ColumnGeneration:
    """One problem; `run` it, then read status, upper, dual, and from `problem` t, weights, U, s.

    t : attained and recomputed in float64. upper : proved, attained by `dual`. local_upper : the
        largest value that search found at `centre`, the best dual weights known.
    """

    def __init__(
        self,
        Z: np.ndarray,
        rows: Rows,
        options: Options,
        neurons: np.ndarray,
        report: Report,
        power: int = 1,
    ):
        self.tol, self.report = options.tol, report
        self.deadline = (
            np.inf if options.time_limit is None else time.monotonic() + options.time_limit
        )
        self.random = np.random.default_rng(options.seed)
        self.rounds, self.recent = 0, neurons
        self.problem = RestrictedProblem(Z, rows, power)
        self.centre = self.dual = self.problem.even_dual()
        self.local_upper = np.inf
        self.upper = max(
            float(np.abs(self.dual).sum()) + 1e-12, self.problem.slack_bound(self.dual)
        )  # |u . z| is at most 1
        self.prover = Prover(Z, power, options.pricing, self.deadline)

    @property
    def t(self) -> float:
        return self.problem.t

    def run(self) -> None:
        started = time.monotonic()
        try:
            self.status = self.generate()
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        except TimeoutError:
            self.status = Status.TIME_LIMIT
        if self.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            self.offer_bound(self.centre, self.prover.relaxed(self.coefficients(self.centre)))
        else:
            with suppress(KeyboardInterrupt, TimeoutError):
                self.drop_dust()
        self.seconds = time.monotonic() - started

    def generate(self) -> Status:
        proposals = np.concatenate(
            [self.recent, self.linear(), self.starts(_COLUMNS_PER_ROUND), self.search(self.centre)]
        )
        dual, narrowest, stalled, concluded, look_below = (
            self.centre,
            np.inf,
            0,
            (np.inf, 0),
            _LOOK_BELOW,
        )
        while True:
            self.rounds += 1
            if self.rounds > 1:
                proposals = proposals[self.problem.improving(proposals, dual)]
            self.problem.add(proposals, dual)
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
                or not len(proposals)
                or self.local_upper <= _ZERO
            ):
                stalled, narrowest = 0, np.inf
                attempts = concluded[1] + 1 if gap > concluded[0] * (1 - _PROGRESS) else 0
                concluded = (min(gap, concluded[0]), attempts)
                answer = self.conclude(dual, attempts)
                if isinstance(answer, Status):
                    return answer
                proposals = answer
                continue
            # Duals jump about: price between the new ones and the best so far, and where polishing
            # says they should be.
            between = (1 - _CENTRED) * dual + _CENTRED * self.centre
            proposals = self.search(between)
            if self.prover.exact and gap < _POLISH_BELOW and self.rounds % _POLISH_EVERY == 0:
                proposals = np.concatenate([*self.polished(), proposals])
            if not self.prover.exact and gap < look_below:
                proposals = np.concatenate([self.prove(self.centre, thoroughly=False), proposals])
                look_below = _LOOK_AGAIN * gap
            if not self.problem.improving(proposals, dual).any():
                proposals = self.search(dual)

    # Pricing

    def coefficients(self, dual: np.ndarray) -> np.ndarray:
        return dual * self.problem.rows.signs

    def linear(self) -> np.ndarray:
        """The two neurons of the linear function that fits best: a positive t at once where the
        data are linearly separable by far.
        """
        rows = self.problem.rows
        w = np.linalg.lstsq(self.problem.Z, rows.signs * rows.target, rcond=None)[0]
        size = np.linalg.norm(w)
        return np.array([w, -w]) / size if 0 < size < np.inf else np.zeros((0, len(w)))

    def starts(self, count: int) -> np.ndarray:
        rows = self.problem.Z[
            self.random.integers(len(self.problem.Z), size=count // 2)
        ] * self.random.choice([-1.0, 1.0], (count // 2, 1))
        directions = np.concatenate(
            [rows, self.random.normal(size=(count - count // 2, self.problem.Z.shape[1]))]
        )
        norms = np.linalg.norm(directions, axis=1)
        return directions[norms > 0] / norms[norms > 0, None]

    def search(self, dual: np.ndarray, *, starts: int = _STARTS) -> np.ndarray:
        """Neurons that are valuable at these dual weights."""
        tried = np.concatenate(
            [self.problem.U[self.problem.weights > 0], self.recent, self.starts(starts)]
        )
        c = self.coefficients(dual)
        self.recent, values = price_locally(
            self.problem.Z,
            c,
            tried,
            count=_COLUMNS_PER_ROUND,
            power=self.problem.power,
            deadline=self.deadline,
        )
        self.consider_centre(dual, np.abs(values).max(initial=0.0))
        return self.recent

    def polished(self) -> list[np.ndarray]:
        """Neurons moved continuously, and neurons that are valuable at the dual weights of that
        problem.
        """
        neurons, dual = self.problem.polish(self.deadline)
        return [neurons] if dual is None else [neurons, self.search(dual)]

    def consider_centre(self, dual: np.ndarray, found: float) -> None:
        """The centre is where the largest value known, among all columns, is least."""
        known = max(found, self.problem.known_bound(dual))
        if dual is self.centre:
            self.local_upper = known if self.local_upper == np.inf else max(known, self.local_upper)
        elif known < self.local_upper:
            self.centre, self.local_upper = dual, known

    def conclude(self, dual: np.ndarray, attempts: int) -> Status | np.ndarray:
        """Where rounds find no more: look thoroughly, then prove. A final status, or neurons with
        which to go on.
        """
        last = attempts >= _PATIENCE
        starts = _STARTS if self.prover.exact else _THOROUGH_STARTS
        self.local_upper = np.inf  # values of the past were found by less thorough search
        proposals = [self.search(self.centre, starts=starts), self.search(dual, starts=starts)]
        if self.prover.exact or attempts > 1:
            proposals += self.polished()
        proposals.append(self.prove(self.centre, thoroughly=last or self.settled()))
        if self.t <= 0 and self.upper <= _ZERO:
            return Status.NOT_SEPARABLE
        if self.upper - self.t <= self.tol * self.upper:
            return Status.OPTIMAL
        found = np.concatenate(proposals)
        go_on = self.prover.exact or not self.settled()
        if not last and go_on and self.problem.improving(found, dual).any():
            return found
        if time.monotonic() > self.deadline:
            return Status.TIME_LIMIT
        return Status.STALLED if self.prover.exact else Status.LOCALLY_OPTIMAL

    def settled(self) -> bool:
        """Whether no search has found a neuron that promises more than half the tolerance."""
        return self.local_upper <= max(self.t * (1 + 0.5 * self.tol), _ZERO)

    def local_gap(self) -> float:
        """Relative distance of t to what search promises at best, or to what is proved where that
        is closer.
        """
        upper = min(self.local_upper, self.upper)
        return max(1 - self.t / upper, 0.0) if upper > 0 else 0.0

    def prove(self, dual: np.ndarray, *, thoroughly: bool = True) -> np.ndarray:
        """Improves the proved bound at these dual weights; returns valuable neurons."""
        directions, known = [], self.local_upper
        for candidate in [dual] if self.prover.exact else [self.sparse(dual), dual]:
            found = self.prover.price(
                self.coefficients(candidate),
                floor=max(self.t, 0.5 * _ZERO),
                found=self.local_upper,
                tol=self.tol,
                count=_COLUMNS_PER_ROUND,
                thoroughly=thoroughly,
                report=lambda upper: self.report(self.rounds, self.t, upper),
            )
            self.offer_bound(candidate, found.upper_bound)
            directions.append(found.directions)
            there = self.problem.values(found.directions, self.centre)
            self.consider_centre(self.centre, np.abs(there).max(initial=0.0))
            # A neuron that is valuable only where small weights were trimmed away says nothing
            # about the weights themselves.
            trimmed_too_much = (
                np.abs(found.values).max(initial=0.0) > known * (1 + 0.5 * self.tol)
                and self.local_upper <= known
            )
            if not trimmed_too_much:
                break
        return np.concatenate(directions)

    def sparse(self, dual: np.ndarray) -> np.ndarray:
        """Few dual weights whose largest known value is nearly as small: the cost of branching
        grows with their number.
        """
        for threshold in (1e-3, 1e-4, 1e-6):
            trimmed = self.problem.normalized(
                np.where(np.abs(dual) > threshold * np.abs(dual).max(), dual, 0.0)
            )
            used = self.problem.U[self.problem.weights > 0]
            _, values = price_locally(
                self.problem.Z,
                self.coefficients(trimmed),
                used,
                count=1,
                power=self.problem.power,
                deadline=self.deadline,
            )
            if np.abs(values).max(initial=0.0) <= self.local_upper * (1 + 0.1 * self.tol):
                return trimmed
        return dual

    def offer_bound(self, dual: np.ndarray, value: float) -> None:
        upper = max(value, self.problem.slack_bound(dual))
        if upper < self.upper:
            self.upper, self.dual = float(upper), dual

    def drop_dust(self) -> None:
        """Take away dual weights that prove nothing: what mixing of duals left on samples far from
        the margin.
        """
        if not self.prover.exact or self.upper >= 1.0:
            return
        upper, dual = self.upper, self.dual
        enough = upper * (1 + 0.1 * self.tol)
        self.upper = np.inf
        try:
            for threshold in (1e-4, 1e-6, 1e-8, 1e-10):
                self.prove(
                    self.problem.normalized(np.where(dual > threshold * dual.max(), dual, 0.0))
                )
                if self.upper <= enough:
                    return
        finally:
            if self.upper > enough:
                self.upper, self.dual = upper, dual

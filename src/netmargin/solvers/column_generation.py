"""Column generation over the neurons of an infinitely wide two-layer ReLU net.

Everything is in units of the largest |z|, of unit-norm features, and of t: the largest t such that the rows (`master.Rows`) hold with mass 1. For
dual weights p with p . target = 1, max(max_u |sum_i p_i signs_i relu(u . z_i)|, max_i p_i / slack_cost) is an upper bound of t. A round solves the restricted problem,
prices neurons by local search at dual weights between the new ones and the best so far, and adds them. Where that finds nothing more, neurons are moved continuously
(`polish`), and the bound is proved: over the whole arrangement for points of low rank, by branch and bound elsewhere.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..result import Status
from .data import SolverData
from .local_pricing import price_locally, weighted_sums
from .master import Master, Rows
from .polish import polish
from .progress import Progress
from .proof import Prover

_COLUMNS_PER_ROUND = 32
_STARTS = 64
_CENTRED = 0.5
_THOROUGH_STARTS = 512
_MOST_COLUMNS = 2500
_KEPT_COLUMNS = 1000
_PATIENCE = 6
_PROGRESS = 1e-3
_LOOK_BELOW = 0.03
_LOOK_AGAIN = 0.3
_POLISH_EVERY = 5
_POLISH_BELOW = 1e-2
_WALLS_PER_DIMENSION = 3
_KINK = 1e-9
_ZERO = 1e-10
_WEIGHT = 1e-11

Report = Callable[[int, float, float], None]


@dataclass(frozen=True)
class Options:
    """Relative gap to stop at; seconds; "auto", "complete" or "local" proofs; seed of the starts of local search."""

    tol: float
    time_limit: float | None
    pricing: str
    seed: int

    def __post_init__(self) -> None:
        if self.pricing not in ("auto", "complete", "local"):
            raise ValueError(f'pricing must be "auto", "complete" or "local"; got {self.pricing!r}')


def generate_columns(
    data: SolverData, rows: Rows, options: Options, neurons, progress: bool, title: str, *, unit: float, power: int = 1
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
    """One problem; `run` it, then read status, t, upper, dual, weights, U, s.

    t : attained and recomputed in float64. upper : proved, attained by `dual`. local_upper : the largest value that search found
    at `centre`, the best dual weights known. U : (k, D) unit directions, s : (k,) output signs, weights : (k,).
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
        self.power = power
        self.Z, self.rows, self.tol, self.report = Z, rows, options.tol, report
        self.deadline = np.inf if options.time_limit is None else time.monotonic() + options.time_limit
        self.random = np.random.default_rng(options.seed)
        self.rounds, self.t = 0, 0.0
        dimension = Z.shape[1]
        self.magnification = 1.0
        self.U, self.s, self.A = np.zeros((0, dimension)), np.zeros(0), np.zeros((len(Z), 0))
        self.weights, self.recent = np.zeros(0), neurons
        self.centre = self.dual = self.start()
        self.local_upper = np.inf
        self.upper = float(np.abs(self.dual).sum()) + 1e-12  # |u . z| is at most 1
        self.upper = max(self.upper, self.slack_bound(self.dual))
        self.prover = Prover(Z, power, options.pricing, self.deadline)

    def start(self) -> np.ndarray:
        """Dual weights to begin with: the same for both classes."""
        target = self.rows.target
        if self.rows.equality:
            return target / (target @ target)
        positive = self.rows.signs > 0
        weights = np.where(positive, 1 / max(positive.sum(), 1), 1 / max((~positive).sum(), 1))
        return weights / weights.sum()

    def run(self) -> None:
        started = time.monotonic()
        try:
            self.status = self.generate()
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        if self.status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            self.offer_bound(self.centre, self.prover.relaxed(self.coefficients(self.centre)))
        self.drop_dust()
        self.seconds = time.monotonic() - started

    def generate(self) -> Status:
        self.master = Master(self.rows)
        proposals = np.concatenate([self.recent, self.starts(_COLUMNS_PER_ROUND), self.search(self.centre)])
        dual, narrowest, stalled, concluded, look_below = self.centre, np.inf, 0, (np.inf, 0), _LOOK_BELOW
        while True:
            self.rounds += 1
            added = self.add(proposals, dual)
            dual = self.solve_master()
            self.consider_centre(self.centre, 0.0)
            gap = 1 - self.t / self.local_upper if self.local_upper > 0 else 0.0
            self.report(self.rounds, self.t, self.local_upper)
            if time.monotonic() > self.deadline:
                return Status.TIME_LIMIT
            stalled = 0 if gap < narrowest * (1 - _PROGRESS) else stalled + 1
            narrowest = min(gap, narrowest)
            if gap <= 0.5 * self.tol or stalled >= _PATIENCE or (not added and self.rounds > 2) or self.local_upper <= _ZERO:
                stalled, narrowest = 0, np.inf
                attempts = concluded[1] + 1 if gap > concluded[0] * (1 - _PROGRESS) else 0
                concluded = (min(gap, concluded[0]), attempts)
                answer = self.conclude(dual, attempts)
                if isinstance(answer, Status):
                    return answer
                proposals = answer
                continue
            # Duals jump about: price between the new ones and the best so far, and where polishing says they should be.
            between = (1 - _CENTRED) * dual + _CENTRED * self.centre
            proposals = self.search(between)
            if self.prover.exact and gap < _POLISH_BELOW and self.rounds % _POLISH_EVERY == 0:
                neurons, polished = self.polish()
                proposals = np.concatenate([neurons, self.search(polished), proposals])
            if not self.prover.exact and gap < look_below:
                proposals = np.concatenate([self.prove(self.centre, thoroughly=False), proposals])
                look_below = _LOOK_AGAIN * gap
            if not self.improving(proposals, dual).any():
                proposals = self.search(dual)

    # Pricing

    def starts(self, count: int) -> np.ndarray:
        rows = self.Z[self.random.integers(len(self.Z), size=count // 2)] * self.random.choice([-1.0, 1.0], (count // 2, 1))
        directions = np.concatenate([rows, self.random.normal(size=(count - count // 2, self.Z.shape[1]))])
        norms = np.linalg.norm(directions, axis=1)
        return directions[norms > 0] / norms[norms > 0, None]

    def search(self, dual: np.ndarray, *, starts: int = _STARTS) -> np.ndarray:
        """Neurons that are valuable at these dual weights."""
        tried = np.concatenate([self.U[self.weights > 0], self.recent, self.starts(starts)])
        c = self.coefficients(dual)
        self.recent, values = price_locally(self.Z, c, tried, count=_COLUMNS_PER_ROUND, power=self.power)
        self.consider_centre(dual, np.abs(values).max(initial=0.0))
        return self.recent

    def consider_centre(self, dual: np.ndarray, found: float) -> None:
        """The centre is where the largest value known, among all columns, is least."""
        known = max(found, self.slack_bound(dual), float(np.abs(self.A.T @ dual).max(initial=0.0)))
        if dual is self.centre:
            self.local_upper = known if self.local_upper == np.inf else max(known, self.local_upper)
        elif known < self.local_upper:
            self.centre, self.local_upper = dual, known

    def conclude(self, dual: np.ndarray, attempts: int) -> Status | np.ndarray:
        """Where rounds find no more: look thoroughly, then prove. A final status, or neurons with which to go on."""
        last = attempts >= _PATIENCE
        candidates, proposals = [self.centre, dual], []
        if self.prover.exact or attempts > 1:
            neurons, polished = self.polish()
            candidates.append(polished)
            proposals.append(neurons)
        self.local_upper = np.inf  # values of the past were found by less thorough search
        for candidate in candidates:
            proposals.append(self.search(candidate, starts=_STARTS if self.prover.exact else _THOROUGH_STARTS))
        proposals.append(self.prove(self.centre, thoroughly=last or self.settled()))
        if self.t <= 0 and self.upper <= _ZERO:
            return Status.NOT_SEPARABLE
        if self.upper - self.t <= self.tol * self.upper:
            return Status.OPTIMAL
        found = np.concatenate(proposals)
        go_on = self.prover.exact or not self.settled()
        if not last and go_on and self.improving(found, dual).any():
            return found
        if time.monotonic() > self.deadline:
            return Status.TIME_LIMIT
        return Status.STALLED if self.prover.exact else Status.LOCALLY_OPTIMAL

    def settled(self) -> bool:
        """Whether no search has found a neuron that promises more than half the tolerance."""
        return self.local_upper <= max(self.t * (1 + 0.5 * self.tol), _ZERO)

    def local_gap(self) -> float:
        """Relative distance of t to what search promises at best, or to what is proved where that is closer."""
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
            there = weighted_sums(self.Z, self.coefficients(self.centre), found.directions, self.power)
            self.consider_centre(self.centre, np.abs(there).max(initial=0.0))
            # A neuron that is valuable only where small weights were trimmed away says nothing about the weights themselves.
            trimmed_too_much = np.abs(found.values).max(initial=0.0) > known * (1 + 0.5 * self.tol) and self.local_upper <= known
            if not trimmed_too_much:
                break
        return np.concatenate(directions)

    def sparse(self, dual: np.ndarray) -> np.ndarray:
        """Few dual weights whose largest known value is nearly as small: the cost of branching grows with their number."""
        for threshold in (1e-3, 1e-4, 1e-6):
            trimmed = self.normalized(np.where(np.abs(dual) > threshold * np.abs(dual).max(), dual, 0.0))
            used = self.U[self.weights > 0]
            _, values = price_locally(self.Z, self.coefficients(trimmed), used, count=1, power=self.power)
            if np.abs(values).max(initial=0.0) <= self.local_upper * (1 + 0.1 * self.tol):
                return trimmed
        return dual

    def offer_bound(self, dual: np.ndarray, value: float) -> None:
        upper = max(value, self.slack_bound(dual))
        if upper < self.upper:
            self.upper, self.dual = upper, dual

    def slack_bound(self, dual: np.ndarray) -> float:
        return float(np.abs(dual).max()) / self.rows.slack_cost

    def drop_dust(self) -> None:
        """Take away dual weights that prove nothing: what mixing of duals left on samples far from the margin."""
        if not self.prover.exact or self.upper >= 1.0 or self.rows.equality:
            return
        upper, dual = self.upper, self.dual
        self.upper = np.inf
        for threshold in (1e-4, 1e-6, 1e-8, 1e-10):
            self.prove(self.normalized(np.where(dual > threshold * dual.max(), dual, 0.0)))
            if self.upper <= upper + 0.1 * self.tol * upper:
                return
        self.upper, self.dual = upper, dual

    # The restricted problem

    def coefficients(self, dual: np.ndarray) -> np.ndarray:
        return dual * self.rows.signs

    def improving(self, U: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return np.abs(weighted_sums(self.Z, self.coefficients(dual), U, self.power)) > self.t * (1 + 1e-13) + 1e-15

    def add(self, U: np.ndarray, dual: np.ndarray) -> int:
        U = U[self.improving(U, dual)] if self.rounds > 1 else U
        signs = np.where(weighted_sums(self.Z, self.coefficients(dual), U, self.power) >= 0, 1.0, -1.0)
        columns = self.columns(U, signs)
        self.master.add(self.magnification * columns)
        self.U, self.s = np.concatenate([self.U, U]), np.concatenate([self.s, signs])
        self.A = np.hstack([self.A, columns])
        self.weights = np.concatenate([self.weights, np.zeros(len(U))])
        return len(U)

    def columns(self, U: np.ndarray, signs: np.ndarray) -> np.ndarray:
        return signs * self.rows.signs[:, None] * np.maximum(self.Z @ U.T, 0.0) ** self.power

    def solve_master(self) -> np.ndarray:
        t, weights, dual = self.master.solve()
        self.judge(t / self.magnification, weights)
        dual = self.normalized(dual)
        if (self.t > 0 and not 0.25 < self.t * self.magnification < 4) or len(self.s) > _MOST_COLUMNS:
            self.restart_master(dual)
        return dual

    def restart_master(self, dual: np.ndarray) -> None:
        """A master whose optimum is near 1, so that the tolerances of the solver are relative to it; without idle neurons."""
        self.magnification = 1 / self.t if self.t > 0 else self.magnification
        order = np.argsort(-np.abs(self.A.T @ dual) - (self.weights > 0), kind="stable")
        useful = order[: max(_KEPT_COLUMNS, 2 * len(self.Z))]
        self.U, self.s, self.weights, self.A = self.U[useful], self.s[useful], self.weights[useful], self.A[:, useful]
        rows = self.rows
        self.master = Master(Rows(rows.signs, rows.target, rows.equality, rows.slack_cost / self.magnification))
        self.master.add(self.magnification * self.A)

    def judge(self, t: float, weights: np.ndarray) -> None:
        """Recompute t for proposed weights, made feasible, in float64; keep them if they are the best so far."""
        weights = np.maximum(np.nan_to_num(weights), 0.0)
        weights = np.where(weights > _WEIGHT * weights.sum(), weights, 0.0)
        outputs, target = self.A @ weights, self.rows.target
        if self.rows.equality:
            candidates = np.array([outputs @ target / (target @ target)])
        elif np.isfinite(self.rows.slack_cost):
            candidates = np.array([t, (outputs / target).min()])  # the second has no slack
        else:
            candidates = np.array([(outputs / target).min()])
        masses = np.full(len(candidates), weights.sum())
        if np.isfinite(self.rows.slack_cost):
            masses += self.rows.slack_cost * np.maximum(candidates[:, None] * target - outputs, 0.0).sum(1)
        values = np.divide(candidates, masses, out=np.zeros_like(masses), where=masses > 0)
        best = int(np.argmax(values))
        if masses[best] > 0 and np.isfinite(values[best]) and values[best] >= self.t:
            self.t, self.weights = float(values[best]), weights / masses[best]

    def normalized(self, dual: np.ndarray) -> np.ndarray:
        """Proposed dual weights, made feasible: of the right sign, and p . target = 1."""
        dual = np.nan_to_num(dual, posinf=0.0, neginf=0.0)
        if not self.rows.equality:
            dual = np.maximum(dual * np.sign(dual.sum()), 0.0)
        total = float(dual @ self.rows.target)
        return dual / total if abs(total) > 1e-300 else self.start()

    def polish(self) -> tuple[np.ndarray, np.ndarray]:
        """Neurons moved to the optimum of their cells, and the dual weights there; of ReLU, which is linear on cells."""
        used = np.flatnonzero(self.weights)
        nothing = np.zeros((0, self.Z.shape[1])), self.centre
        if not len(used) or self.power == 2:
            return nothing
        products = self.U[used] @ self.Z.T
        patterns, index = np.unique(np.column_stack([products > _KINK, self.s[used] > 0]), axis=0, return_index=True)
        count = min(_WALLS_PER_DIMENSION * self.Z.shape[1], len(self.Z))
        walls = np.argpartition(np.abs(products[index]), count - 1, axis=1)[:, :count]
        v, dual = polish(self.Z, self.rows, patterns[:, :-1], self.s[used][index], walls=walls)
        norms = np.linalg.norm(v, axis=1)
        keep = np.isfinite(norms) & (norms > 1e-9)
        if not np.isfinite(dual).all():
            return nothing
        return v[keep] / norms[keep, None], self.normalized(dual)

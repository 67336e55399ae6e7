"""The exact max margin of infinitely wide two-layer ReLU nets, by column generation."""

import time
from dataclasses import dataclass, field

import numpy as np

from ..result import Status
from .arrangement import MAX_RANK, Arrangement, Rays
from .data import BinaryData, binary_data
from .local_pricing import price_locally
from .master import Master
from .polish import polish
from .relaxation import relaxed_bound
from .solution import VariationNormSolution

_COLUMNS_PER_ROUND = 64
_STARTS = 256
_KINK = 1e-9
_ZERO = 1e-10
_WEIGHT = 1e-11
_MAX_ARCS = 2_000_000
_PATIENCE = 6
_POLISH_EVERY = 5
_PROGRESS = 1e-6
_THOROUGH = 16
_WALLS_PER_DIMENSION = 6


def f1_max_margin(
    X, y, *, bias: bool = True, tol: float = 1e-6, time_limit: float | None = None, pricing: str = "auto", seed: int = 0
) -> VariationNormSolution:
    """The largest margin in the unit ball of the variation norm of two-layer ReLU nets.

    gamma_1 = max over probability measures nu on the unit sphere of (a, b) of min_n y_n int b relu(a . x~_n) d nu(a, b), where x~ is x,
    or (x, 1) with a bias. It equals the best q_min / ||theta||^2 of two-layer nets of width at least n.

    Parameters
    ----------
    X : (n, d), y : (n,) labels {-1, +1} or {0, 1}.
    bias : whether neurons have a bias.
    tol : relative gap between margin and upper bound at which to stop.
    time_limit : seconds, after which the best bracket so far is returned (a round that has begun is finished); Ctrl-C does the same.
    pricing : "complete" proves that no neuron is missing (points of rank at most 4, ValueError otherwise); "local" searches neurons by
        ascent and bounds the margin by a relaxation, which is valid but loose; "auto" takes complete where it is quick: rank 4 up to
        125 samples, rank 3 up to 1,400, rank 2 always.
    seed : of the starts of local pricing.

    Returns a `VariationNormSolution`. Data that no such net separates give margin 0, with dual weights on the samples that prove it.
    Raises DataError for data of a wrong shape or kind.

    >>> from netmargin.solvers import f1_max_margin
    >>> xor = f1_max_margin([[1, 1], [-1, -1], [1, -1], [-1, 1]], [1, 1, -1, -1], bias=False)
    >>> abs(xor.margin - 2**0.5 / 8) < 1e-12, xor.certified               # Wei et al. 2018, Lemma D.1, halved
    (True, True)

    Source: Chizat and Bach 2020, (4); Wei et al. 2018, (3.6) and Claim B.3. Margins are judged in float64; `certified` means that the
    gap to the proved upper bound is within `tol`.
    """
    if pricing not in ("auto", "complete", "local"):
        raise ValueError(f'pricing must be "auto", "complete" or "local"; got {pricing!r}')
    data = binary_data(X, y, bias=bias)
    run = _Run(data, tol, None if time_limit is None else time.monotonic() + time_limit, pricing, np.random.default_rng(seed))
    try:
        status = run.generate_columns()
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return run.solution(status, bias)


@dataclass
class _Run:
    """Everything in units of the largest |z|, and of unit-norm features (twice the library's margins)."""

    data: BinaryData
    tol: float
    deadline: float | None
    pricing: str
    random: np.random.Generator
    started: float = field(default_factory=time.monotonic)
    rounds: int = 0

    def __post_init__(self) -> None:
        n, dimension = self.data.Z.shape
        longest = float(np.linalg.norm(self.data.Z / self.data.size, axis=1).max()) or 1.0
        self.scale = longest * self.data.size
        self.Z, self.y = self.data.Z / self.data.size / longest, self.data.y
        self.arrangement: Arrangement | None = None
        self.master, self.magnification = Master(n), 1.0
        self.U, self.s = np.zeros((0, dimension)), np.zeros(0)
        self.margin, self.weights = 0.0, np.zeros(0)
        self.upper, self.dual = 1.0 + 1e-12, np.full(n, 1 / n)  # |u . z| is at most 1

    def prepare_pricing(self) -> None:
        rank = np.linalg.matrix_rank(self.Z)
        affordable = len(self.Z) ** max(rank - 1, 1) <= _MAX_ARCS
        if self.pricing == "complete" or (self.pricing == "auto" and rank <= MAX_RANK and affordable):
            self.arrangement = Arrangement(self.Z)
        self.rays = Rays(self.Z)

    def generate_columns(self) -> Status:
        self.prepare_pricing()
        classes = np.where(self.y > 0, 1 / max((self.y > 0).sum(), 1), 1 / max((self.y < 0).sum(), 1))
        self.price(classes / classes.sum())
        proposals = self.starts()
        dual_lp, average, stalled, gap = self.dual, self.dual, 0, np.inf
        while True:
            self.rounds += 1
            added = self.add(proposals, dual_lp)
            dual_lp = self.solve_master()
            stalled = 0 if self.upper - self.margin < gap * (1 - _PROGRESS) else stalled + 1
            gap = self.upper - self.margin
            if self.upper <= _ZERO and self.margin <= 0 and self.rounds > 2:
                return Status.NOT_SEPARABLE
            if self.upper - self.margin <= self.tol * self.upper:
                return Status.OPTIMAL
            if self.deadline is not None and time.monotonic() > self.deadline:
                return Status.TIME_LIMIT
            if (not added and self.rounds > 2) or stalled >= _PATIENCE:
                if self.arrangement is not None:
                    return Status.STALLED
                proposals = self.price(dual_lp, starts=_THOROUGH * _STARTS)
                if np.abs(self.values(proposals, dual_lp)).max(initial=0.0) <= self.margin * (1 + self.tol):
                    return Status.LOCALLY_OPTIMAL
                stalled = 0
                continue
            # Duals jump about: price between the new ones and the best so far, and where polishing says they should be.
            proposals = self.price(0.5 * dual_lp + 0.5 * (self.dual if self.arrangement is not None else average))
            if self.arrangement is not None or self.rounds % _POLISH_EVERY == 0:
                polished, dual_polished = self.polish()
                proposals = np.concatenate([polished, self.price(dual_polished), proposals])
            average = 0.7 * average + 0.3 * dual_lp
            if not self.improving(proposals, dual_lp).any():
                proposals = self.price(dual_lp)

    def starts(self, count: int = _STARTS) -> np.ndarray:
        rows = self.random.permutation(len(self.Z))[:count]
        directions = np.concatenate([self.Z[rows], -self.Z[rows], self.random.normal(size=(count, self.Z.shape[1]))])
        norms = np.linalg.norm(directions, axis=1)
        return directions[norms > 0] / norms[norms > 0, None]

    def values(self, U: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return np.maximum(U @ self.Z.T, 0.0) @ (dual * self.y)

    def improving(self, U: np.ndarray, dual: np.ndarray) -> np.ndarray:
        return np.abs(self.values(U, dual)) > self.margin * (1 + 1e-13) + 1e-15

    def add(self, U: np.ndarray, dual: np.ndarray) -> int:
        U = U[self.improving(U, dual)] if self.rounds > 1 else U
        signs = np.where(self.values(U, dual) >= 0, 1.0, -1.0)
        self.master.add(self.columns(U, signs))
        self.U, self.s = np.concatenate([self.U, U]), np.concatenate([self.s, signs])
        self.weights = np.concatenate([self.weights, np.zeros(len(U))])
        return len(U)

    def columns(self, U: np.ndarray, signs: np.ndarray) -> np.ndarray:
        return self.magnification * signs * self.y[:, None] * np.maximum(self.Z @ U.T, 0.0)

    def solve_master(self) -> np.ndarray:
        weights, dual = self.master.solve()
        margin, weights = self.judge(weights)
        if margin >= self.margin:
            self.margin, self.weights = margin, weights
        dual = _probability(dual, len(self.y))
        if not 0.25 < self.margin * self.magnification < 4 and self.margin > 0:
            self.restart_master(dual)
        return dual

    def restart_master(self, dual: np.ndarray) -> None:
        """A master whose optimum is near 1, so that the tolerances of the solver are relative to the margin; without idle neurons."""
        self.magnification = 1 / self.margin
        useful = np.argsort(-np.abs(self.values(self.U, dual)) - (self.weights > 0), kind="stable")[: 5 * len(self.y)]
        self.U, self.s, self.weights = self.U[useful], self.s[useful], self.weights[useful]
        self.master = Master(len(self.y))
        self.master.add(self.columns(self.U, self.s))

    def judge(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The margin of proposed weights, made feasible, in float64."""
        weights = np.maximum(weights, 0.0)
        total = weights.sum()
        if not np.isfinite(total) or total <= 0:
            return 0.0, np.zeros(len(weights))
        weights = np.where(weights > _WEIGHT * total, weights, 0.0)
        weights = weights / weights.sum()
        used = np.flatnonzero(weights)
        outputs = np.maximum(self.Z @ self.U[used].T, 0.0) @ (weights[used] * self.s[used])
        return float((self.y * outputs).min()), weights

    def price(self, dual: np.ndarray, *, starts: int = _STARTS) -> np.ndarray:
        """Neurons that are valuable at these dual weights; improves the upper bound."""
        c = dual * self.y
        if self.arrangement is not None:
            found = self.arrangement.price(c, count=_COLUMNS_PER_ROUND)
            directions, upper = found.directions, found.upper_bound
        else:
            tried = np.concatenate([self.U[np.flatnonzero(self.weights)], self.starts(starts)])
            directions, _ = price_locally(self.Z, c, tried, count=_COLUMNS_PER_ROUND)
            upper = relaxed_bound(self.rays.directions, self.rays.merge(c)) + self.rays.neglected(c)
        if upper < self.upper:
            self.upper, self.dual = upper, dual
        return directions

    def drop_dust(self) -> None:
        """Take away dual weights that prove nothing: what mixing of duals left on samples far from the margin."""
        if self.arrangement is None or self.upper >= 1.0:
            return
        upper, dual = self.upper, self.dual
        self.upper = np.inf
        for threshold in (1e-4, 1e-6, 1e-8, 1e-10):
            self.price(_probability(np.where(dual > threshold * dual.max(), dual, 0.0), len(dual)))
            if self.upper <= upper + 0.1 * self.tol * upper:
                return
        self.upper, self.dual = upper, dual

    def polish(self) -> tuple[np.ndarray, np.ndarray]:
        """Neurons moved to the optimum of their cells, and the dual weights there."""
        used = np.flatnonzero(self.weights)
        if not len(used):
            return np.zeros((0, self.Z.shape[1])), self.dual
        active = self.U[used] @ self.Z.T > _KINK
        patterns, index = np.unique(np.column_stack([active, self.s[used] > 0]), axis=0, return_index=True)
        distance = np.abs(self.U[used][index] @ self.Z.T)
        walls = np.argpartition(distance, min(_WALLS_PER_DIMENSION * self.Z.shape[1], len(self.y)) - 1, axis=1)
        walls = walls[:, : _WALLS_PER_DIMENSION * self.Z.shape[1]]
        v, dual = polish(self.Z, self.y, patterns[:, :-1], self.s[used][index], walls=walls)
        norms = np.linalg.norm(v, axis=1)
        keep = np.isfinite(norms) & (norms > 1e-9)
        if not np.isfinite(dual).all():
            return np.zeros((0, self.Z.shape[1])), self.dual
        return v[keep] / norms[keep, None], _probability(dual, len(self.y))

    def solution(self, status: Status, bias: bool) -> VariationNormSolution:
        self.drop_dust()
        used = np.flatnonzero(self.weights) if self.margin > 0 else np.array([], dtype=int)
        weights, U, s = self.weights[used], self.U[used], self.s[used]
        outputs = self.y * (np.maximum(self.Z @ U.T, 0.0) @ (weights * s))
        values = s * self.values(U, self.dual)
        slackness = max(
            float((self.dual * (outputs - self.margin)).max()),
            float((weights * (self.upper - values)).max(initial=0.0)),
        )
        half = 0.5 * self.scale  # unit-norm features (l1 units) -> the unit sphere of (a, b): Proposition 9
        return VariationNormSolution(
            margin=half * max(self.margin, 0.0),
            upper_bound=half * self.upper,
            certified=status in (Status.OPTIMAL, Status.NOT_SEPARABLE),
            status=status,
            atoms=np.column_stack([U, s]) / np.sqrt(2),
            weights=weights,
            dual=self.dual,
            slackness=slackness,
            bias=bias,
            rounds=self.rounds,
            seconds=time.monotonic() - self.started,
        )


def _probability(weights: np.ndarray, n: int) -> np.ndarray:
    weights = np.where(np.isfinite(weights), np.maximum(weights, 0.0), 0.0)
    total = weights.sum()
    return weights / total if total > 0 else np.full(n, 1 / n)

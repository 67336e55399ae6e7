"""The least loss with a price on the variation norm as a problem of column generation.

In units of unit-norm samples and features, and of the price of a unit of weight. Neurons are priced
at the slopes c of the loss, whose `bound` at c is proved where no neuron has |sum_i c_i phi(u .
z_i)| above 1.
"""

import numpy as np

from ...result import Bracket
from ..neurons.losses import ROUNDING, Loss
from ..neurons.weights import weigh_signed
from ..pricing.best_directions import Pricing
from ..pricing.bounds import BY_RELAXATION
from ..pricing.local import weighted_sums
from .engine import Patience, Report
from .falling_targets import FallingTargets
from .neuron_search import NeuronSearch
from .options import Options

# The numbers of rounds and starts were set by trial; no proof depends on them.

_COLUMNS_PER_ROUND = 32
"""Neurons added per round: more save rounds, but make the quadratic programs larger."""
_SAMPLES, _NORMAL = 896, 128
"""Starts of local search in a round."""
_PATIENCE, _PROGRESS = 5, 0.01
"""Rounds in a row that improve the objective by less than 1% of the tolerance, after which rounding
is taken for the reason.
"""
_MOST_ROUNDS = 500
"""An emergency brake: runs that still improve after so many rounds end as if they had stalled."""


class RegularizedProblem(NeuronSearch):
    """A `ColumnProblem`: hand it to `generate_columns`, then read the neurons U (k, D) with output
    signs s (k,), outputs A (n, k) and weights `alphas` (k,), their `objective`, recomputed in
    float64, and the bound `lower`, with the slopes `dual` (n,) that prove it, as `proof` says.
    """

    zero = None

    def __init__(self, Z: np.ndarray, loss: Loss, options: Options, *, enough: float = 0.0):
        """`enough` is a gap to what search believes at which it ends though nothing is proved."""
        super().__init__(Z, options)
        self.by_targets &= not self.endless
        self._loss, self._enough = loss, enough
        self.U, self.s, self.A = np.zeros((0, Z.shape[1])), np.zeros(0), np.zeros((len(Z), 0))
        self.alphas, self.objective = np.zeros(0), loss.value(np.zeros((len(Z), 1)))
        self.lower, self.dual, self.proof = 0.0, np.zeros(len(Z)), "nothing"
        self._searched, self._rounds = np.inf, 0
        ones = np.ones(len(Z))
        # All samples have slopes, so that targets are proved at these.
        self._targets = FallingTargets(Z, ones, ones, options, sparse=False)
        self._patience = Patience(_PATIENCE, _PROGRESS * options.tol)
        self._patience.count_round(self.objective)

    @property
    def bracket(self) -> Bracket:
        """The proved bound, and the objective that is attained."""
        return Bracket(self.lower, self.objective)

    @property
    def searched_bracket(self) -> Bracket:
        """The same with the bound by the largest value that search found."""
        return Bracket(max(self.lower, self._searched_bound()), self.objective)

    def start(self) -> np.ndarray:
        """Neurons of large value at the slopes of f = 0."""
        return self.search()

    def solve(self, neurons: np.ndarray) -> None:
        """Add neurons, and optimize all weights."""
        self._rounds += 1
        self._add(neurons)
        alphas = weigh_signed(self._loss, self.A, self.alphas)
        objective = float(alphas.sum()) + self._loss.value((self.A @ alphas)[:, None])
        if objective < self.objective:
            self.alphas, self.objective = alphas, objective
        self._patience.count_round(self.objective)

    def search(self) -> np.ndarray:
        """Find neurons of large value at the slopes."""
        used, c = self.U[self.alphas > 0], self._slopes()
        unit = float(np.abs(c).max()) or 1.0  # squares of huge prices are beyond float64
        largest = self.find_neurons(
            c / unit, used, samples=_SAMPLES, normal=_NORMAL, count=_COLUMNS_PER_ROUND
        )
        self._searched = max(unit * largest, 1.0)
        return self.recent

    def proof_is_due(self) -> bool:
        """Whether search says that the bracket may close, or the weights no longer improve."""
        may_close = self.objective - self._searched_bound() <= 0.5 * self.tol * self.objective
        return may_close or self.is_late or self._patience.idle > 0

    def prove(self, report: Report) -> np.ndarray:
        """Prove a bound at the slopes."""
        c = self._slopes()
        found = self.bound_neurons(
            c,
            floor=1.0,
            found=self._searched,
            attained=self._searched,
            count=_COLUMNS_PER_ROUND,
            report=lambda largest: report(Bracket(self._bound(c, largest), self.objective), ""),
        )
        self._offer(c, found.upper_bound, found.proof)
        self.restart_clock()
        if not self.targets_pay(found.upper_bound, self._searched):
            return found.directions
        return np.concatenate([found.directions, self._prove_by_targets(c, found, report)])

    def _prove_by_targets(self, c: np.ndarray, found: Pricing, report: Report) -> np.ndarray:
        """Improve the bound at the slopes c by targets that fall; returns the neurons met."""
        self._targets.begin(c, self._searched, found.directions)
        return self._targets.improve(
            upper=found.upper_bound,
            lower=1.0,
            tol=self.tol,
            offer=lambda _, *proof: self._offer(c, *proof),
            report=lambda line: report(self.bracket, line),
        )

    def select(self, found: np.ndarray) -> np.ndarray | None:
        """All of them, as long as the objective falls by what is worth a round."""
        over = self._patience.is_over or self._rounds >= _MOST_ROUNDS
        learned = self._enough and self.objective - self._searched_bound() <= self._enough
        return None if over or learned else found

    def finish(self, *, early: bool) -> None:
        """Take a relaxed bound, which costs nothing, where no proof was reached."""
        if self.lower == 0:
            c = self._slopes()
            self._offer(c, self.pricing.relax(c), BY_RELAXATION)

    def _slopes(self) -> np.ndarray:
        """The slopes (n,) of the loss at the present weights: the dual candidates."""
        return self._loss.slopes((self.A @ self.alphas)[:, None])[:, 0]

    def _searched_bound(self) -> float:
        """The bound at the slopes, if search found the largest value there."""
        return self._bound(self._slopes(), self._searched)

    def _scale(self, c: np.ndarray, largest: float) -> np.ndarray:
        """The multiple of c that proves most where no neuron is worth more than 1."""
        return c * self._loss.scale(c[:, None], 1 / largest if largest > 0 else 1.0)

    def _bound(self, c: np.ndarray, largest: float) -> float:
        """What slopes c prove if neurons have at most this value."""
        return self._loss.bound(self._scale(c, largest)[:, None])

    def _offer(self, c: np.ndarray, largest: float, proof: str) -> None:
        """Keep the slopes c, where all neurons have at most this value, if their bound is best."""
        largest = largest * (1 + ROUNDING)
        bound = self._bound(c, largest)
        if bound > self.lower:
            self.lower, self.dual, self.proof = bound, self._scale(c, largest), proof

    def _add(self, U: np.ndarray) -> None:
        """Add neurons, each with the output sign that pays, to those that have weight."""
        kept = self.alphas > 0
        values = weighted_sums(self.Z, self._slopes(), U, self.activation)
        signs = np.where(values >= 0, 1.0, -1.0)
        # All at once, so that they fit each other wherever Ctrl-C arrives.
        self.U, self.s, self.A, self.alphas = (
            np.concatenate([self.U[kept], U]),
            np.concatenate([self.s[kept], signs]),
            np.hstack([self.A[:, kept], signs * self.activation.feature(self.Z @ U.T)]),
            np.concatenate([self.alphas[kept], np.zeros(len(U))]),
        )

"""The least loss with a price on the variation norm as a problem of column generation.

In units of unit-norm samples and features, and of the price of a unit of weight. Neurons are priced
at the slopes c of the loss, whose `bound` holds if no neuron has |sum_i c_i phi(u . z_i)| above 1.
"""

import numpy as np

from ...result import Bracket
from ..neurons.losses import ROUNDING
from ..neurons.samples import Samples
from ..neurons.weights import weigh
from ..pricing.bounds import BY_RELAXATION
from .engine import Patience, Report
from .falling_targets import FallingTargets
from .neuron_search import COLUMNS_PER_ROUND, NeuronSearch
from .options import Options

# The numbers of rounds and starts were set by trial; no proof depends on them.

_SAMPLES, _NORMAL = 896, 128
"""Starts of local search in a round."""
_PATIENCE, _PROGRESS = 5, 0.01
"""Rounds in a row that gain less than 1% of the tolerance: rounding is taken for the reason."""
_MOST_ROUNDS = 500
"""An emergency brake: runs that still improve after so many rounds end as if they had stalled."""


class RegularizedProblem(NeuronSearch):
    """A `ColumnProblem`: hand it to `generate_columns`, then read the neurons W (k, D) with their
    outputs A (k, 1), none of them 0, the `objective`, recomputed in float64, and the bound `lower`,
    with the slopes `dual` (n,) that prove it, as `proof` says.
    """

    zero = None

    def __init__(self, samples: Samples, options: Options) -> None:
        super().__init__(samples.Z, options)
        self.by_targets &= not self.endless
        self._samples = samples
        self.W, self.A, self.objective = np.zeros((0, self.Z.shape[1])), np.zeros((0, 1)), np.inf
        self.lower, self.dual, self.proof = 0.0, np.zeros(len(self.Z)), "nothing"
        self._searched, self._rounds, ones = np.inf, 0, np.ones(len(self.Z))
        # All samples have slopes, so that targets are proved at these.
        self._targets = FallingTargets(self.Z, ones, ones, options, sparse=False)
        self._patience = Patience(_PATIENCE, _PROGRESS * options.tol)
        self._keep_if_better(self.W, self.A)

    @property
    def bracket(self) -> Bracket:
        """The proved bound, and the objective that is attained."""
        return Bracket(self.lower, self.objective)

    @property
    def searched_bracket(self) -> Bracket:
        """The same with the bound by the largest value that search found."""
        return Bracket(max(self.lower, self._prove(self._searched)[0]), self.objective)

    def start(self) -> np.ndarray:
        """Neurons of large value at the slopes of f = 0."""
        return self.search()

    def solve(self, neurons: np.ndarray) -> None:
        """Add neurons, and optimize all weights."""
        self._rounds += 1
        W, A = np.concatenate([self.W, neurons]), np.zeros((len(neurons), 1))
        A = weigh(self._samples, W, np.concatenate([self.A, A]))
        used = A.any(1)
        self._keep_if_better(W[used], A[used])

    def _keep_if_better(self, W: np.ndarray, A: np.ndarray) -> None:
        """Keep a net, and the slopes (n,) of the loss there, the dual candidates."""
        F, loss = self._samples.outputs(W, A), self._samples.loss
        objective = float(np.abs(A).sum()) + loss.value(F)
        if objective < self.objective:
            self._slopes = loss.slopes(F)[:, 0]
            # All at once, so that they fit each other wherever Ctrl-C arrives.
            self.W, self.A, self.objective = W, A, objective
        self._patience.count_round(self.objective)

    def search(self) -> np.ndarray:
        """Find neurons of large value at the slopes."""
        unit = float(np.abs(self._slopes).max()) or 1.0  # squares of huge ones are beyond float64
        largest = self.find_neurons(
            self._slopes / unit, self.W, samples=_SAMPLES, normal=_NORMAL, count=COLUMNS_PER_ROUND
        )
        self._searched = max(unit * largest, 1.0)
        return self.recent

    def proof_is_due(self) -> bool:
        """Whether search says that the bracket may close, or the weights no longer improve."""
        gap = self.objective - self._prove(self._searched)[0]
        return gap <= 0.5 * self.tol * self.objective or self.is_late or self._patience.idle > 0

    def prove(self, report: Report) -> np.ndarray:
        """Prove a bound at the slopes, and improve it by targets that fall where that pays."""
        found = self.bound_neurons(
            self._slopes,
            floor=1.0,
            found=self._searched,
            attained=self._searched,
            report=lambda largest: report(Bracket(self._prove(largest)[0], self.objective), ""),
        )
        self._offer(found.upper_bound, found.proof)
        self.restart_clock()
        if not self.targets_pay(found.upper_bound, self._searched):
            return found.directions
        self._targets.begin(self._slopes, self._searched, found.directions)
        met = self._targets.improve(
            upper=found.upper_bound,
            lower=1.0,
            tol=self.tol,
            offer=lambda _, *proof: self._offer(*proof),
            report=lambda line: report(self.bracket, line),
        )
        return np.concatenate([found.directions, met])

    def select(self, found: np.ndarray) -> np.ndarray | None:
        """All of them, as long as the objective falls by what is worth a round."""
        over = self._patience.is_over or self._rounds >= _MOST_ROUNDS
        return None if over else found

    def finish(self, *, early: bool) -> None:
        """Take a relaxed bound, which costs nothing, where no proof was reached."""
        if self.lower == 0:
            self._offer(self.pricing.relax(self._slopes), BY_RELAXATION)

    def _prove(self, largest: float) -> tuple[float, np.ndarray]:
        """What the slopes prove where no neuron is worth more, and their multiple that does."""
        c, loss = self._slopes[:, None], self._samples.loss
        c = c * loss.scale(c, 1 / largest if largest > 0 else 1.0)
        return loss.bound(c), c[:, 0]

    def _offer(self, largest: float, proof: str) -> None:
        """Keep the slopes, where all neurons have at most this value, if their bound is best."""
        bound, dual = self._prove(largest * (1 + ROUNDING))
        if bound > self.lower:
            self.lower, self.dual, self.proof = bound, dual, proof

"""The regularized logistic loss as a problem of column generation.

In units of unit-norm samples and features. Neurons are priced at the slopes of the losses (the dual
candidates), and all weights are optimized by Newton's method. The bound needs the largest value of
any neuron at some slopes, which `PricingBound` bounds.
"""

import time
from collections.abc import Callable

import clarabel
import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, xlog1py, xlogy

from ...core.cone_program import minimize
from ...losses import Logistic
from ...result import Bracket
from ..pricing.best_directions import Pricing
from ..pricing.bounds import BY_RELAXATION, PricingBound
from ..pricing.local import price_locally, weighted_sums
from .engine import Patience
from .falling_targets import NEAR, FallingTargets, end_of_search, is_endless, work_before_targets
from .options import Options

# The numbers of rounds, starts and steps were set by trial; no proof depends on them.

_COLUMNS_PER_ROUND = 32
"""Neurons added per round: more save rounds, but make the quadratic programs larger."""
_STARTS, _MOST_STARTS = 128, 1024
"""Normal starts of local search in a round; and of all starts, samples and neurons included, of
which a random part is taken beyond that.
"""
_PATIENCE, _PROGRESS = 5, 0.01
"""Rounds in a row that improve the objective by less than 1% of the tolerance, after which rounding
is taken for the reason.
"""
_MOST_ROUNDS = 500
"""An emergency brake: runs that still improve after so many rounds end as if they had stalled."""
_NEWTON_STEPS = 20
"""Newton's method converges in some ten steps; more are a sign of rounding."""
_STEP_LENGTHS = 0.5 ** np.arange(12.0)
"""Lengths tried in a line search; a step that needs less than 1/2000 of it is lost to rounding."""
_RELATIVE_DECREASE = 1e-14
"""A step that lowers the objective by less has reached the rounding of float64 sums."""
_DUST = (1e-9, 1e-6, 1e-4)
"""Weights below these parts of the largest are dropped, in turn, before the last refinement: an
interior point leaves dust on every neuron. The result is kept only if it is as good.
"""
_RANK = 1e-12
"""Singular values that count as 0 in Newton's equations, relative to the largest: nearly equal
neurons must not get huge steps of opposite signs.
"""
_GONE = 1e-12
"""A weight below this part of the largest is 0 to the rounding of the step that led to it."""
_RELATIVE_TIE = 1e-14
"""Objectives that differ by less are equal up to rounding: the one with fewer neurons is kept."""
_RELATIVE_ROUNDING = 1e-12
"""Room for the rounding of the scale by which weights are made feasible, and of the mean of the
terms of a bound: some 1e-16 per sample.
"""


class LogisticProblem:
    """A `ColumnProblem`: hand it to `generate_columns`, then read the attributes below.

    Attributes
    ----------
    U : ndarray of shape (k, D)
        Unit directions of the neurons.
    s : ndarray of shape (k,)
        Their output signs.
    A : ndarray of shape (n, k)
        Their labelled outputs, y_i s_j relu(u_j . z_i)^power.
    alphas : ndarray of shape (k,)
        Their weights, >= 0.
    objective : float
        Mean loss + cost sum alphas, recomputed in float64.
    lower : float
        The proved lower bound of the objective.
    dual : ndarray of shape (n,)
        The weights p that prove `lower`.
    proof : str
        How, in words.
    """

    zero = None

    def __init__(self, Z: np.ndarray, y: np.ndarray, cost: float, options: Options, power: int):
        self.tol, self.deadline, self._options = options.tol, options.deadline, options
        self._Z, self._y, self._cost, self._power = Z, y, cost, power
        self._random = np.random.default_rng(options.seed)
        self._pricing = PricingBound(Z, power, options.pricing, options.deadline)
        self.exact = self._pricing.exact
        self.U, self.s, self.A = np.zeros((0, Z.shape[1])), np.zeros(0), np.zeros((len(Z), 0))
        self.alphas, self.objective = np.zeros(0), float(np.log(2))
        self.lower, self.dual = 0.0, np.zeros(len(Z))
        self.proof = "nothing"
        self._searched, self._rounds = np.inf, 0
        self._targets = FallingTargets(Z, y, np.ones(len(Z)), options, sparse=False)
        sums = power == 1 and options.pricing != "local" and not self.exact
        self._by_targets = sums and not is_endless(options)
        self._search_ends = end_of_search(self._options)
        self._patience = Patience(_PATIENCE, _PROGRESS * options.tol)
        self._patience.count_round(self.objective)

    @property
    def bracket(self) -> Bracket:
        """The proved bound, and the objective that is attained."""
        return Bracket(self.lower, self.objective)

    @property
    def searched_bracket(self) -> Bracket:
        """The same with the bound by the largest value that search found at these slopes or the
        ones before.
        """
        return Bracket(max(self.lower, self._searched_bound()), self.objective)

    def start(self) -> np.ndarray:
        """Neurons of large value at the slopes of f = 0."""
        return self.search()

    def solve(self, neurons: np.ndarray) -> None:
        """Add neurons, and optimize all weights."""
        self._rounds += 1
        self._add(neurons)
        # This takes a fraction of a second, so that it ends where the time is up before.
        self._optimize_weights()
        self._patience.count_round(self.objective)

    def search(self) -> np.ndarray:
        """Find neurons of large value at the slopes."""
        normal = self._random.normal(size=(_STARTS, self._Z.shape[1]))
        starts = np.concatenate([self.U[self.alphas > 0], self._Z, -self._Z, normal])
        starts = starts[np.linalg.norm(starts, axis=1) > 0]
        if len(starts) > _MOST_STARTS:
            starts = starts[self._random.choice(len(starts), _MOST_STARTS, replace=False)]
        found, values = price_locally(
            self._Z, self._prices(), starts, count=_COLUMNS_PER_ROUND, power=self._power
        )
        self._searched = max(np.abs(values).max(initial=0.0), self._cost)
        return found

    def proof_is_due(self) -> bool:
        """Whether search says that the bracket may close, or the weights no longer improve."""
        may_close = self.objective - self._searched_bound() <= 0.5 * self.tol * self.objective
        early = time.monotonic() > self._search_ends
        return may_close or early or self._patience.idle > 0

    def prove(self, report: Callable[[Bracket, str], None]) -> np.ndarray:
        """Prove a bound at the slopes."""
        p = self._slopes()
        found = self._pricing.price_neurons(
            self._prices(),
            floor=self._cost,
            found=self._searched,
            tol=self.tol,
            count=_COLUMNS_PER_ROUND,
            work=work_before_targets(self.deadline) if self._by_targets else np.inf,
            near=NEAR * self._searched,
            report=lambda largest: report(Bracket(self._bound(p, largest), self.objective), ""),
        )
        self._offer(p, found.upper_bound, found.proof)
        self._search_ends = end_of_search(self._options)
        if not self._by_targets or found.upper_bound < NEAR * self._searched:
            return found.directions
        return np.concatenate([found.directions, self._prove_by_targets(p, found, report)])

    def _prove_by_targets(
        self, p: np.ndarray, found: Pricing, report: Callable[[Bracket, str], None]
    ) -> np.ndarray:
        """Improve the bound at the slopes p by values that fall; returns the neurons that were met.

        The entropy wants all samples, so that the slopes stay as they are.
        """
        before = len(self._targets.neurons)
        self._targets.begin(p / len(p), self._searched, found.directions)
        self._targets.improve(
            upper=found.upper_bound,
            lower=self._cost,
            tol=self.tol,
            offer=lambda proof: self._offer(p, proof.largest, proof.words),
            report=lambda line: report(self.bracket, line),
        )
        return self._targets.neurons[before:]

    def select(self, found: np.ndarray) -> np.ndarray | None:
        """All of them, as long as the objective falls."""
        return None if self._patience.is_over or self._rounds >= _MOST_ROUNDS else found

    def finish(self, *, early: bool) -> None:
        """Take a relaxed bound, which costs nothing, where no proof was reached."""
        if self.lower == 0:
            self._offer(self._slopes(), self._pricing.relax(self._prices()), BY_RELAXATION)

    def _slopes(self) -> np.ndarray:
        """Slopes p (n,) of the losses at the present weights, in (0, 1): the dual candidates."""
        return expit(-(self.A @ self.alphas))

    def _prices(self) -> np.ndarray:
        """The coefficients (n,) of relu(u . z_i)^power in the value of a neuron at the slopes."""
        p = self._slopes()
        return p * self._y / len(p)

    def _searched_bound(self) -> float:
        """The dual objective at the slopes, if search found the largest value there."""
        return self._bound(self._slopes(), self._searched)

    def _bound(self, p: np.ndarray, largest: float) -> float:
        """The dual objective at p, scaled down until no neuron is worth more than its cost."""
        p = p * min(1.0, self._cost / largest) if largest > 0 else p
        # Where p is small, 1 - p has lost it, but its logarithm need not.
        entropy = -float((xlogy(p, p) + xlog1py(1 - p, -p)).mean())
        return entropy * (1 - _RELATIVE_ROUNDING)

    def _offer(self, p: np.ndarray, largest: float, proof: str) -> None:
        """Keep the weights p, where all neurons have at most this value, if their bound is best."""
        bound = self._bound(p, largest * (1 + _RELATIVE_ROUNDING))
        if bound > self.lower:
            scaled = p * min(1.0, self._cost / largest) if largest > 0 else p
            self.lower, self.dual, self.proof = bound, scaled, proof

    def _add(self, U: np.ndarray) -> None:
        """Add neurons, each with the output sign that pays, to those that have weight."""
        kept = self.alphas > 0
        values = weighted_sums(self._Z, self._prices(), U, self._power)
        signs = np.where(values >= 0, 1.0, -1.0)
        columns = signs * self._y[:, None] * np.maximum(self._Z @ U.T, 0.0) ** self._power
        # All at once, so that they fit each other wherever Ctrl-C arrives.
        self.U, self.s, self.A, self.alphas = (
            np.concatenate([self.U[kept], U]),
            np.concatenate([self.s[kept], signs]),
            np.hstack([self.A[:, kept], columns]),
            np.concatenate([self.alphas[kept], np.zeros(len(U))]),
        )

    def _optimize_weights(self) -> None:
        """Optimize the weights of the present neurons by Newton's method, one quadratic program per
        step; keep them if their recomputed objective is better.
        """
        alphas, k = self.alphas, len(self.alphas)
        for _ in range(_NEWTON_STEPS):
            slope, roots = self._expand_objective(np.arange(k), alphas)
            # In units of the cost and of the total weight the solver's tolerances mean the same
            # for all costs.
            size = max(float(alphas.sum()), 1.0)
            roots = roots * np.sqrt(size / self._cost)
            found, _ = minimize(
                slope / self._cost - roots.T @ (roots @ alphas) / size,
                -sparse.identity(k),
                np.zeros(k),
                [clarabel.NonnegativeConeT(k)],
                quadratic=sparse.csc_matrix(roots.T @ roots),
                tol=1e-10,
                deadline=self.deadline,
            )
            step = np.maximum(found, 0.0) * size - alphas
            length = next(
                (h for h in _STEP_LENGTHS if self._value(alphas + h * step) < self._value(alphas)),
                0.0,
            )
            if not length:
                break
            before, alphas = self._value(alphas), alphas + length * step
            if (
                before - self._value(alphas) <= _RELATIVE_DECREASE * before
                or time.monotonic() > self.deadline
            ):
                break
        # The interior point has the neurons, a refinement without the dust has the digits.
        for threshold in _DUST:
            self._keep_if_better(
                self._refine_weights(
                    np.where(alphas > threshold * alphas.max(initial=0.0), alphas, 0.0)
                )
            )

    def _expand_objective(
        self, used: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The gradient (k,) of the objective in the weights in use, and a root (n, k) of its
        Hessian.
        """
        A, p = self.A[:, used], expit(-(self.A @ alphas))
        return self._cost - A.T @ p / len(p), np.sqrt(p * (1 - p) / len(p))[:, None] * A

    def _refine_weights(self, alphas: np.ndarray) -> np.ndarray:
        """Refine the weights by Newton's method over the neurons that have weight; a neuron whose
        weight falls to 0 leaves.
        """
        for _ in range(_NEWTON_STEPS):
            used = np.flatnonzero(alphas)
            slope, roots = self._expand_objective(used, alphas)
            step = np.linalg.lstsq(roots.T @ roots, -slope, rcond=_RANK)[0]
            shrinking = step < 0
            length = min(
                1.0, (-alphas[used] / np.where(shrinking, step, -1.0))[shrinking].min(initial=1.0)
            )
            moved = np.zeros_like(alphas)
            moved[used] = np.maximum(alphas[used] + length * step, 0.0)
            moved[moved <= _GONE * moved.max(initial=0.0)] = 0.0
            if not np.isfinite(moved).all() or self._value(moved) > self._value(alphas):
                break
            alphas = moved
        return alphas

    def _value(self, alphas: np.ndarray) -> float:
        """The objective at these weights, in float64."""
        return float(np.exp(log_mean_loss(self.A @ alphas))) + self._cost * float(alphas.sum())

    def _keep_if_better(self, alphas: np.ndarray) -> None:
        """Keep these weights if they are better than the ones so far, or as good and fewer."""
        objective = self._value(alphas)
        fewer = np.count_nonzero(alphas) < np.count_nonzero(self.alphas)
        if objective < self.objective or (
            fewer and objective <= self.objective * (1 + _RELATIVE_TIE)
        ):
            self.alphas, self.objective = alphas, objective


def log_mean_loss(q: np.ndarray) -> float:
    """Natural log of the mean logistic loss at labelled outputs q, without overflow."""
    return Logistic().log_sum(torch.from_numpy(q)) - float(np.log(len(q)))

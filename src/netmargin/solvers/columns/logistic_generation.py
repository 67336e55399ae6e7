"""Column generation for the regularized logistic loss.

In units of unit-norm samples and features. A round prices neurons at the slopes of the losses (the
dual candidates), adds the best ones, and optimizes all weights by Newton's method. The bound needs
the largest value of any neuron at some slopes, which `Prover` bounds.
"""

import time

import clarabel
import numpy as np
import torch
from scipy import sparse
from scipy.special import expit, xlogy

from ...core.cone_program import minimize
from ...losses import Logistic
from ...result import Status
from ..pricing.bounds import Prover
from ..pricing.local import price_locally
from ..progress import Progress
from .options import Options

# The numbers of rounds, starts and steps were set by trial; no proof depends on them.

_COLUMNS_PER_ROUND = 32
"""Neurons added per round: more save rounds, but make the quadratic programs larger."""
_STARTS, _MOST_STARTS = 128, 1024
"""Normal starts of local search in a round; and of all starts, samples and neurons included, of
which a random part is taken beyond that.
"""
_PATIENCE = 4
"""Rounds in a row that may improve the objective by less than 1% of the tolerance."""
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
"""Room for the rounding of the scale by which weights are made feasible, some 1e-16 per sample."""


class LogisticGeneration:
    """Column generation for one problem: `run` it, then read the attributes below.

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
    status : Status
        How the run ended.
    seconds : float
        Time of the run.
    """

    def __init__(self, Z: np.ndarray, y: np.ndarray, cost: float, options: Options, power: int):
        self._Z, self._y, self._cost, self._options, self._power = Z, y, cost, options, power
        self._random = np.random.default_rng(options.seed)
        self._deadline = (
            np.inf if options.time_limit is None else time.monotonic() + options.time_limit
        )
        self._prover = Prover(Z, power, options.pricing, self._deadline)
        self.U, self.s, self.A = np.zeros((0, Z.shape[1])), np.zeros(0), np.zeros((len(Z), 0))
        self.alphas, self.objective = np.zeros(0), float(np.log(2))
        self.lower, self.dual = 0.0, np.zeros(len(Z))

    def run(self, shown: Progress) -> None:
        """Generate columns until the bracket is closed, or as far as time and precision allow."""
        started = time.monotonic()
        try:
            self.status = self._generate(shown)
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        except TimeoutError:
            self.status = Status.TIME_LIMIT
        if self.lower == 0:  # no proof was reached: a relaxed bound costs nothing
            slopes = self._slopes()
            self._offer(slopes, self._prover.relaxed(slopes * self._y / len(slopes)))
        self.seconds = time.monotonic() - started

    def _generate(self, shown: Progress) -> Status:
        """Price neurons, add them and solve for the weights, round by round, to the end."""
        attempts, tol = 0, self._options.tol
        for rounds in range(1, _MOST_ROUNDS + 1):
            p = self._slopes()
            prices = p * self._y / len(p)
            U, values = self._search(prices)
            best = max(np.abs(values).max(initial=0.0), self._cost)
            shown.show(rounds, self.objective, max(self.lower, self._bound(p, best)))
            before = self.objective
            # A proof costs more than a round: it is due where search says that the bracket may
            # close, or where the weights no longer improve.
            if self.objective - self._bound(p, best) <= 0.5 * tol * self.objective or attempts:
                found = self._prover.price(
                    prices,
                    floor=self._cost,
                    found=best,
                    tol=tol,
                    count=_COLUMNS_PER_ROUND,
                    thoroughly=True,
                    report=lambda upper: None,
                )
                self._offer(p, found.upper_bound)
                if self.objective - self.lower <= tol * self.objective:
                    return Status.OPTIMAL
                U = np.concatenate([U, found.directions])
            self._add(U, prices)
            # The deadline is checked after this fraction of a second, so that no search is wasted.
            self._solve()
            if time.monotonic() > self._deadline:
                return Status.TIME_LIMIT
            attempts = 0 if self.objective < before * (1 - 0.01 * tol) else attempts + 1
            if attempts > _PATIENCE:
                break
        return Status.STALLED if self._prover.exact else Status.LOCALLY_OPTIMAL

    def _slopes(self) -> np.ndarray:
        """Slopes p (n,) of the losses at the present weights, in (0, 1): the dual candidates."""
        return expit(-(self.A @ self.alphas))

    def _search(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Neurons of large value at these prices, by local search, and their values."""
        normal = self._random.normal(size=(_STARTS, self._Z.shape[1]))
        starts = np.concatenate([self.U[self.alphas > 0], self._Z, -self._Z, normal])
        starts = starts[np.linalg.norm(starts, axis=1) > 0]
        if len(starts) > _MOST_STARTS:
            starts = starts[self._random.choice(len(starts), _MOST_STARTS, replace=False)]
        return price_locally(self._Z, prices, starts, count=_COLUMNS_PER_ROUND, power=self._power)

    def _bound(self, p: np.ndarray, largest: float) -> float:
        """The dual objective at p, scaled down until no neuron is worth more than its cost."""
        p = p * min(1.0, self._cost / largest) if largest > 0 else p
        return float(-(xlogy(p, p) + xlogy(1 - p, 1 - p)).mean())

    def _offer(self, p: np.ndarray, largest: float) -> None:
        """Keep the weights p, where all neurons have at most this value, if their bound is best."""
        bound = self._bound(p, largest * (1 + _RELATIVE_ROUNDING))
        if bound > self.lower:
            self.lower, self.dual = bound, p * min(1.0, self._cost / largest) if largest > 0 else p

    def _add(self, U: np.ndarray, prices: np.ndarray) -> None:
        """Add neurons, each with the output sign that pays, to those that have weight."""
        kept = self.alphas > 0
        values = np.maximum(U @ self._Z.T, 0.0) ** self._power @ prices
        signs = np.where(values >= 0, 1.0, -1.0)
        columns = signs * self._y[:, None] * np.maximum(self._Z @ U.T, 0.0) ** self._power
        self.U, self.s = np.concatenate([self.U[kept], U]), np.concatenate([self.s[kept], signs])
        self.A, self.alphas = (
            np.hstack([self.A[:, kept], columns]),
            np.concatenate([self.alphas[kept], np.zeros(len(U))]),
        )

    def _solve(self) -> None:
        """Optimize the weights of the present neurons by Newton's method, one quadratic program per
        step; keep them if their recomputed objective is better.
        """
        alphas, k = self.alphas, len(self.alphas)
        for _ in range(_NEWTON_STEPS):
            slope, roots = self._model(np.arange(k), alphas)
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
                deadline=self._deadline,
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
                or time.monotonic() > self._deadline
            ):
                break
        # The interior point has the neurons, a refinement without the dust has the digits.
        for threshold in _DUST:
            self._keep_if_better(
                self._newton(np.where(alphas > threshold * alphas.max(initial=0.0), alphas, 0.0))
            )

    def _model(self, used: np.ndarray, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient (k,) of the objective in the weights in use, and a root (n, k) of its
        Hessian.
        """
        A, p = self.A[:, used], expit(-(self.A @ alphas))
        return self._cost - A.T @ p / len(p), np.sqrt(p * (1 - p) / len(p))[:, None] * A

    def _newton(self, alphas: np.ndarray) -> np.ndarray:
        """Refine the weights by Newton's method over the neurons that have weight; a neuron whose
        weight falls to 0 leaves.
        """
        for _ in range(_NEWTON_STEPS):
            used = np.flatnonzero(alphas)
            slope, roots = self._model(used, alphas)
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

"""The least norm over the neurons found so far: 1 / t, of weights that are corrected in float64
until they reach the targets.
"""

import numpy as np
from scipy.linalg import qr

from ...core.matrices import EPS
from ..neurons.activations import RELU, Activation
from .master import Constraints
from .restricted_problem import RestrictedProblem

_FIRST_SLACK_COST, _LARGEST_SLACK_COST, _SLACK_COST_FACTOR = 10.0, 1e12, 10.0
"""Slack costs: dual weights of samples that lie apart are of order 10; of samples 1e-12 apart,
1e12.
"""
_NO_SLACK = 1e-8
"""A sum of slacks that the tolerances of the linear program (1e-10 a row) may leave."""
_RANKS = (1e-9, 1e-12, None)
"""Relative singular values that count as 0 when weights are corrected: nearly equal neurons must
not get huge weights of opposite signs, as long as the targets are reached without them.
"""
_CORRECTIONS = 3
"""Steps of iterative refinement: each gains several digits, and three reach rounding."""
_WORTH_CORRECTING = 1e-3
"""Weights whose norm exceeds the best by more than this part are not corrected: that changes less.
"""
_REACHED, _NEARLY_REACHED = 1e-12, 1e-7
"""Residuals relative to the largest target: rounding, and what is accepted where rounding is not
reached.
"""
_MOST_OPERATIONS_AT_END = 1_000_000_000
"""Operations of a second or so: what may be spent after the time is up."""
_DUST = 1e-13
"""Weights below this part of their sum are rounding of the linear program, and left out."""
_UNDERFLOW = 1e-280
"""Room in a product for coordinates that the division by a power of 2 has made 0: 2^-1075 each."""


class RestrictedNorm(RestrictedProblem):
    """The restricted problem of functions that take the values `target` (n,), the largest of
    absolute value 1, at unit rows Z (n, D).

    Weights have either sign, and reach the targets to 1e-7. The linear program is elastic: slacks
    make every target reachable, so that there are dual weights to price with from the first round
    on, and their cost keeps these from jumping about; it grows until no slack is left.
    """

    smallest = 1e-14  # of samples 1e-12 apart the norm is 1e12, and larger ones are not reached

    def __init__(self, Z: np.ndarray, target: np.ndarray, activation: Activation = RELU):
        rows = Constraints(np.ones(len(Z)), target, equal=True)
        super().__init__(Z, rows, activation, slack_cost=_FIRST_SLACK_COST)
        self._has_slack = True

    @property
    def norm(self) -> float:
        """The least norm that is attained; inf where there is no function through the points."""
        return 1 / self.t if self.t > 0 else np.inf

    @property
    def function(self) -> tuple[np.ndarray, np.ndarray]:
        """The best function: its neurons (k, D), and their weights (k,)."""
        used = np.flatnonzero(self.weights)
        return self.U[used], self.s[used] * self.weights[used] * self.norm

    def even_dual(self) -> np.ndarray:
        """Dual weights (n,) in proportion to the targets."""
        return self.rows.target / float(self.rows.target @ self.rows.target)

    def raise_slack_cost(self, dual: np.ndarray) -> bool:
        """Let slacks grow dearer, if there are any and they may."""
        if not self._has_slack or self._slack_cost >= _LARGEST_SLACK_COST:
            return False
        self._slack_cost *= _SLACK_COST_FACTOR
        self._restart(dual)
        return True

    def fit_all(self) -> None:
        """Take any function through the points, where there is none yet and time allows it."""
        if self.t == 0 and len(self.Z) * self.A.size <= _MOST_OPERATIONS_AT_END:
            weights = np.linalg.lstsq(self.A, self.rows.target, rcond=None)[0]
            self._correct_weights(weights, np.arange(len(weights)))

    def _keep_if_better(self, t: float, weights: np.ndarray, slack: float) -> None:
        """Correct the weights where no slack is left."""
        if not t > 0:  # the linear program broke down, as slacks reach any targets
            return self._restart(self.even_dual())
        self.level, self._has_slack = t, not slack <= _NO_SLACK * t
        if not self._has_slack:
            used = np.flatnonzero(weights > _DUST * weights.sum())
            self._correct_weights(weights[used] / t, used)

    def _correct_weights(self, alphas: np.ndarray, used: np.ndarray) -> None:
        """Correct weights (k,) until they reach the targets to rounding; keep the best."""
        if not len(alphas) or np.abs(alphas).sum() * (1 - _WORTH_CORRECTING) >= self.norm:
            return
        A, target = self.A[:, used], self.rows.target
        for rank in _RANKS:
            corrected = alphas
            for _ in range(_CORRECTIONS):
                rest = target - A @ corrected
                corrected = corrected + np.linalg.lstsq(A, rest, rcond=rank)[0]
            missed, norm = np.abs(target - A @ corrected).max(), float(np.abs(corrected).sum())
            if missed <= (_NEARLY_REACHED if rank is None else _REACHED * max(norm, 1.0)):
                if norm < self.norm:
                    weights = np.zeros(len(self.s))
                    weights[used] = corrected / norm
                    self.t, self.weights = 1 / norm, weights
                return

    def bound_exactly(self, rows: np.ndarray, values: np.ndarray, hidden: float) -> float:
        """At least the least norm of a function that takes the values at the rows in exact
        arithmetic: that of the function found and of a correction, of what that misses too at most.

        Some neurons have features A with an inverse X up to rounding, E = A X - 1. Their weights
        X (1 + E)^-1 r take values r, and sum to at most |X| |r| / (1 - |E|) in sums of columns.
        Rows (n, D) and values (n,) are Z and target times some lengths of 1/2 and more, without
        their rounding; `hidden` is the most by which the values are off besides.
        """
        (n, D), dtype = rows.shape, np.longdouble
        # Neurons of the search may not tell all samples apart; these bend at each.
        bent = np.random.default_rng(0).normal(size=(n, D))
        bent -= (bent * self.Z).sum(1, keepdims=True) * self.Z
        lengths = np.linalg.norm(bent, axis=1, keepdims=True)
        bent = np.divide(bent, lengths, out=np.zeros_like(bent), where=lengths > 0)
        U = np.concatenate([self.U, bent, -bent])
        feature, largest = self.activation.feature, self.activation.largest
        U = U[qr(feature(rows @ U.T), mode="r", pivoting=True)[1][:n]]
        A, one = feature(rows @ U.T), np.eye(n)
        X = np.linalg.pinv(A)
        sizes = largest * (np.abs(rows) @ np.abs(U).T + _UNDERFLOW) @ np.abs(X)
        # A sum of D products is known to D + 2 ulps of its terms, and one of n such to n + 2 more;
        # what is computed from them to far less than the factor 2.
        defect = 2 * float((np.abs(A @ X - one) + (n + D + 8) * EPS * (sizes + one)).sum(0).max())
        if not defect < 1:
            return np.inf
        neurons, alphas = self.function
        U, weights = np.concatenate([neurons, U]), np.concatenate([alphas, np.zeros(n)])
        features = feature(rows.astype(dtype) @ U.astype(dtype).T)
        missed = values - features @ weights.astype(dtype)
        for _ in range(_CORRECTIONS):
            weights[-n:] += X @ missed.astype(float)
            missed = values - features @ weights.astype(dtype)
        sizes = largest * (np.abs(rows) @ np.abs(U).T + _UNDERFLOW) @ np.abs(weights)
        sizes += np.abs(values)
        rest = np.abs(missed) + (len(U) + D + 8) * np.finfo(dtype).eps * sizes + hidden
        norm = np.abs(weights).sum() + np.abs(X).sum(0).max() * rest.sum() / (1 - defect)
        # Neurons have length 1 to rounding.
        return float(norm * np.linalg.norm(U, axis=1).max() * (1 + (len(U) + D + 8) * EPS))

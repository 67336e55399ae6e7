"""The least norm over the neurons found so far, 1 / t, of weights corrected in float64."""

import numpy as np
from scipy.linalg import qr

from ...core.matrices import EPS
from ..neurons.activations import RELU, Activation
from .master import Constraints
from .restricted_problem import RestrictedProblem

_RANKS = (1e-9, 1e-12, None)
"""Relative singular values that count as 0 when weights are corrected: nearly equal neurons must
not get huge weights of opposite signs, as long as the targets are reached without them.
"""
_CORRECTIONS = 3
"""Steps of iterative refinement: each gains several digits, and three reach rounding."""
_WORTH_CORRECTING = 1e-3
"""Weights of a norm above the best by this part are not corrected: that changes less."""
_REACHED, _NEARLY_REACHED = 1e-12, 1e-7
"""Residuals relative to the largest target: rounding, and what is accepted in its place."""
_MOST_OPERATIONS = 1_000_000_000
"""Operations of a second or so: what a first function may cost."""
_DUST = 1e-13
"""Weights below this part of their sum are rounding of the linear program, and left out."""
_UNDERFLOW = 1e-280
"""Room in a product for coordinates that the division by a power of 2 has made 0: 2^-1075 each."""


class RestrictedNorm(RestrictedProblem):
    """The restricted problem of functions that take the values `target` (n,), the largest of
    absolute value 1, at unit rows Z (n, D).

    Weights have either sign, and reach the targets to 1e-7. The first neurons bend at one sample
    each, so that some function over them takes any values.
    """

    smallest = 1e-14  # of samples 1e-12 apart the norm is 1e12, and larger ones are not reached

    def __init__(self, Z: np.ndarray, target: np.ndarray, activation: Activation = RELU) -> None:
        super().__init__(Z, Constraints(np.ones(len(Z)), target, equal=True), activation)

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

    def bend_neurons(self) -> np.ndarray:
        """Neurons (2n, D) of which one and its opposite have a kink at each sample."""
        bent = np.random.default_rng(0).normal(size=self.Z.shape)
        bent -= (bent * self.Z).sum(1, keepdims=True) * self.Z
        lengths = np.linalg.norm(bent, axis=1, keepdims=True)
        bent = np.divide(bent, lengths, out=np.zeros_like(bent), where=lengths > 0)
        return np.concatenate([bent, -bent])

    def fit_bends(self) -> None:
        """Take a first function through the points, if that costs little; its norm is the scale."""
        U = self.bend_neurons()
        for sign in (1.0, -1.0):
            self.add(U, np.full(len(U), sign))
        if len(self.Z) * self.A.size <= _MOST_OPERATIONS:
            weights = np.linalg.lstsq(self.A, self.rows.target, rcond=None)[0]
            self._correct_weights(weights, np.arange(len(weights)))
            self.level = self.t
            self._restart(self.even_dual())

    def _keep_if_better(self, t: float, weights: np.ndarray) -> None:
        """Correct the weights that the linear program found."""
        if not t > 0:  # it broke down, or had no time
            return self._restart(self.even_dual())
        self.level = t
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
        # Neurons of the search may not tell all samples apart.
        U = np.concatenate([self.U, self.bend_neurons()])
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

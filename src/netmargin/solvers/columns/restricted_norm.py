"""The least norm over the neurons found so far: an elastic program, whose weights are corrected
in float64 until they reach the targets.
"""

import numpy as np
from scipy.linalg import qr

from ..pricing.local import features, weighted_sums
from .elastic_program import ElasticProgram

_FIRST_SLACK_COST, _LARGEST_SLACK_COST, _SLACK_COST_FACTOR = 10.0, 1e12, 10.0
"""Slack costs: dual weights of samples that lie apart are of order 10; of samples 1e-12 apart,
1e12.
"""
NO_SLACK = 1e-8
"""A sum of slacks that the tolerances of the linear program (1e-10 a row) may leave."""
_MOST_COLUMNS, _KEPT_COLUMNS = 6000, 2000
"""Beyond the first, or 8 for each sample, the neurons of least value are dropped, to the second, or
3 for each sample.
"""
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


class RestrictedNorm:
    """The least norm over given neurons at which they take given values.

    The best function has neurons U (k, D) with weights `alphas` (k,) and reaches the targets to
    1e-7; its `norm`, sum |alphas|, is inf where there is no such function yet.
    """

    def __init__(self, Z: np.ndarray, target: np.ndarray):
        self.Z, self.target = Z, target
        self.neurons, self._signs = np.zeros((0, Z.shape[1])), np.zeros(0)
        self._A = np.zeros((len(Z), 0))
        self.U, self.alphas, self.norm = self.neurons, np.zeros(0), np.inf
        self._slack_cost = _FIRST_SLACK_COST
        self._program = ElasticProgram(target, _FIRST_SLACK_COST)

    def add(self, U: np.ndarray, dual: np.ndarray) -> None:
        """Add neurons, each with the output sign that pays at these dual weights."""
        if not len(U):
            return
        signs = np.where(weighted_sums(self.Z, dual, U) >= 0, 1.0, -1.0)
        A = features(self.Z, U)
        self._program.add(signs * A)
        # All at once, so that they fit each other wherever Ctrl-C arrives.
        self.neurons, self._signs, self._A = (
            np.concatenate([self.neurons, U]),
            np.concatenate([self._signs, signs]),
            np.hstack([self._A, A]),
        )

    def solve(self, dual: np.ndarray, deadline: float) -> tuple[float, np.ndarray]:
        """Solve the elastic program, and correct its weights where no slack is left; returns the
        sum of slacks and the dual weights (n,). Neurons of least value at `dual` are dropped first
        if they are many.
        """
        if len(self._signs) > max(_MOST_COLUMNS, 8 * len(self.Z)):
            self._drop_idle(dual)
        weights, slack, dual = self._program.solve(deadline)
        if slack <= NO_SLACK:
            used = np.flatnonzero(weights > _DUST * weights.sum())
            self._correct_weights(self._signs[used] * weights[used], used)
        return slack, dual

    def raise_slack_cost(self) -> bool:
        """Let slacks grow dearer, if they may."""
        if self._slack_cost >= _LARGEST_SLACK_COST:
            return False
        self._slack_cost *= _SLACK_COST_FACTOR
        self._program.change_slack_cost(self._slack_cost)
        return True

    def largest_response(self, dual: np.ndarray) -> float:
        """The largest response of a neuron to these dual weights."""
        return float(np.abs(self._A.T @ dual).max(initial=0.0))

    def fit_all(self) -> None:
        """Take any function through the points, where there is none yet and time allows it."""
        if self.norm == np.inf and len(self.Z) * self._A.size <= _MOST_OPERATIONS_AT_END:
            weights = np.linalg.lstsq(self._A, self.target, rcond=None)[0]
            self._correct_weights(weights, np.arange(len(weights)))

    def _drop_idle(self, dual: np.ndarray) -> None:
        """Begin a smaller linear program without the neurons of least value."""
        values = self._signs * (self._A.T @ dual)
        kept = np.sort(np.argsort(-values, kind="stable")[: max(_KEPT_COLUMNS, 3 * len(self.Z))])
        self.neurons, self._signs, self._A = (
            self.neurons[kept],
            self._signs[kept],
            self._A[:, kept],
        )
        self._program = ElasticProgram(self.target, self._slack_cost)
        self._program.add(self._signs * self._A)

    def _correct_weights(self, alphas: np.ndarray, used: np.ndarray) -> None:
        """Correct the weights (k,) of these neurons until they reach the targets to rounding; keep
        them if their norm is the least so far.
        """
        if not len(alphas) or np.abs(alphas).sum() * (1 - _WORTH_CORRECTING) >= self.norm:
            return
        A = self._A[:, used]
        for rank in _RANKS:
            corrected = alphas
            for _ in range(_CORRECTIONS):
                corrected = (
                    corrected + np.linalg.lstsq(A, self.target - A @ corrected, rcond=rank)[0]
                )
            missed, norm = (
                float(np.abs(self.target - A @ corrected).max()),
                float(np.abs(corrected).sum()),
            )
            last = rank is None
            if missed <= (_NEARLY_REACHED if last else _REACHED * max(norm, 1.0)):
                if norm < self.norm:
                    self.U, self.alphas, self.norm = self.neurons[used], corrected, norm
                return

    def bound_exactly(self, rows: np.ndarray, values: np.ndarray, hidden: float) -> float:
        """At least the least norm of a function that takes the values at the rows in exact
        arithmetic: that of the function found and of a correction, of what that misses too at most.

        Some neurons have features A with an inverse X up to rounding, E = A X - 1. Their weights
        X (1 + E)^-1 r take values r, and sum to at most |X| |r| / (1 - |E|) in sums of columns.
        Rows (n, D) and values (n,) are Z and target times some lengths of 1/2 and more, without
        their rounding; `hidden` is the most by which the values are off besides.
        """
        (n, D), dtype, eps = rows.shape, np.longdouble, float(np.finfo(float).eps)
        # Neurons of the search may not tell all samples apart; these bend at each.
        bent = np.random.default_rng(0).normal(size=(n, D))
        bent -= (bent * self.Z).sum(1, keepdims=True) * self.Z
        lengths = np.linalg.norm(bent, axis=1, keepdims=True)
        bent = np.divide(bent, lengths, out=np.zeros_like(bent), where=lengths > 0)
        U = np.concatenate([self.neurons, bent, -bent])
        U = U[qr(np.maximum(rows @ U.T, 0.0), mode="r", pivoting=True)[1][:n]]
        A, one = np.maximum(rows @ U.T, 0.0), np.eye(n)
        X = np.linalg.pinv(A)
        sizes = (np.abs(rows) @ np.abs(U).T + _UNDERFLOW) @ np.abs(X)
        # A sum of D products is known to D + 2 ulps of its terms, and one of n such to n + 2 more;
        # what is computed from them to far less than the factor 2.
        defect = 2 * float((np.abs(A @ X - one) + (n + D + 8) * eps * (sizes + one)).sum(0).max())
        if not defect < 1:
            return np.inf
        U, weights = np.concatenate([self.U, U]), np.concatenate([self.alphas, np.zeros(n)])
        features = np.maximum(rows.astype(dtype) @ U.astype(dtype).T, 0.0)
        missed = values - features @ weights.astype(dtype)
        for _ in range(_CORRECTIONS):
            weights[-n:] += X @ missed.astype(float)
            missed = values - features @ weights.astype(dtype)
        sizes = (np.abs(rows) @ np.abs(U).T + _UNDERFLOW) @ np.abs(weights) + np.abs(values)
        rest = np.abs(missed) + (len(U) + D + 8) * np.finfo(dtype).eps * sizes + hidden
        norm = np.abs(weights).sum() + np.abs(X).sum(0).max() * rest.sum() / (1 - defect)
        # Neurons have length 1 to rounding.
        return float(norm * np.linalg.norm(U, axis=1).max() * (1 + (len(U) + D + 8) * eps))

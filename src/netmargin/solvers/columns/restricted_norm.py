"""The least norm over the neurons found so far: an elastic program, whose weights are corrected
in float64 until they reach the targets.
"""

import numpy as np

from ..pricing.local import weighted_sums
from .elastic_program import ElasticProgram

_FIRST_SLACK_COST, LARGEST_SLACK_COST, SLACK_COST_FACTOR = 10.0, 1e12, 10.0
"""Slack costs: dual weights of samples that lie apart are of order 10; of samples 1e-12 apart,
1e12.
"""
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


class RestrictedNorm:
    """The least norm over given neurons at which they take given values.

    Attributes
    ----------
    U : ndarray of shape (k, D)
        Neurons of the best function.
    alphas : ndarray of shape (k,)
        Their weights.
    norm : float
        sum |alphas|, at which the targets are reached to 1e-7, recomputed in float64; inf if there
        is no such function yet.
    """

    def __init__(self, Z: np.ndarray, target: np.ndarray):
        self.Z, self.target = Z, target
        self._neurons, self._signs, self._A = (
            np.zeros((0, Z.shape[1])),
            np.zeros(0),
            np.zeros((len(Z), 0)),
        )
        self.U, self.alphas, self.norm = self._neurons, np.zeros(0), np.inf
        self._slack_cost, self._program = (
            _FIRST_SLACK_COST,
            ElasticProgram(target, _FIRST_SLACK_COST),
        )

    def _add(self, U: np.ndarray, dual: np.ndarray) -> None:
        """Add neurons, each with the output sign that pays at these dual weights."""
        if not len(U):
            return
        signs = np.where(weighted_sums(self.Z, dual, U) >= 0, 1.0, -1.0)
        A = np.maximum(self.Z @ U.T, 0.0)
        self._program.add(signs * A)
        # All at once, so that they fit each other wherever Ctrl-C arrives.
        self._neurons, self._signs, self._A = (
            np.concatenate([self._neurons, U]),
            np.concatenate([self._signs, signs]),
            np.hstack([self._A, A]),
        )

    def _drop_idle(self, dual: np.ndarray) -> None:
        """Begin a smaller linear program without the neurons of least value, if they are many."""
        if len(self._signs) <= max(_MOST_COLUMNS, 8 * len(self.Z)):
            return
        values = self._signs * (self._A.T @ dual)
        kept = np.sort(np.argsort(-values, kind="stable")[: max(_KEPT_COLUMNS, 3 * len(self.Z))])
        self._neurons, self._signs, self._A = (
            self._neurons[kept],
            self._signs[kept],
            self._A[:, kept],
        )
        self._program = ElasticProgram(self.target, self._slack_cost)
        self._program.add(self._signs * self._A)

    def _correct_weights(self, alphas: np.ndarray, U: np.ndarray, A: np.ndarray) -> None:
        """Correct weights (k,) until they reach the targets to rounding; keep them if their norm is
        the least so far.
        """
        if not len(alphas) or np.abs(alphas).sum() * (1 - _WORTH_CORRECTING) >= self.norm:
            return
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
                    self.U, self.alphas, self.norm = U, corrected, norm
                return

"""The squared loss with a price on the variation norm as a problem of column generation."""

import numpy as np

from .engine import Patience
from .logistic_problem import _PATIENCE, _PROGRESS, _RELATIVE_ROUNDING, LogisticProblem
from .options import Options

_UNEXPLAINED = 0.01
"""Part of the mean square of y to which the tolerance refers where nothing is to be proved: at a
tolerance of 1e-2, R^2 is then within 1e-4 of what search believes to be possible.
"""


class SquaredProblem(LogisticProblem):
    """The search of `LogisticProblem` for mean_n (f(z_n) - y_n)^2 / 2 + cost sum alphas.

    The dual weights are the residuals p: mean_n (p_n y_n - p_n^2 / 2) is a lower bound where no
    neuron has |mean_n p_n relu(u . z_n)| above the cost.
    """

    def __init__(self, Z: np.ndarray, y: np.ndarray, cost: float, options: Options):
        # The residuals have signs of their own: in place of labels there are ones.
        super().__init__(Z, np.ones(len(y)), cost, options, 1)
        self._target = y
        self.objective = float((y**2).mean()) / 2
        self._enough = _UNEXPLAINED * options.tol * self.objective * (options.pricing == "local")
        self._patience = Patience(_PATIENCE, _PROGRESS * options.tol)
        self._patience.count_round(self.objective)

    def select(self, found: np.ndarray) -> np.ndarray | None:
        """All of them, as long as the objective falls; where values are all but interpolated, and
        nothing is to be proved, as long as it falls by what can be seen in predictions.
        """
        learned = self.objective - self._searched_bound() <= self._enough
        return None if learned else super().select(found)

    def _slopes(self) -> np.ndarray:
        return self._target - self.A @ self.alphas

    def _prices(self) -> np.ndarray:
        return self._slopes() / len(self._target)

    def _scale(self, p: np.ndarray, largest: float) -> float:
        """The best factor of p with which no neuron is worth more than its cost."""
        square = float(p @ p)
        best = float(p @ self._target) / square if square > 0 else 0.0
        return min(max(best, 0.0), self._cost / largest if largest > 0 else np.inf)

    def _bound(self, p: np.ndarray, largest: float) -> float:
        p = self._scale(p, largest) * p
        # The terms may cancel, so that rounding is relative to their sizes.
        hidden = _RELATIVE_ROUNDING * (np.abs(p * self._target) + p**2).mean()
        return float((p * self._target - p**2 / 2).mean() - hidden)

    def _offer(self, p: np.ndarray, largest: float, proof: str) -> None:
        largest = largest * (1 + _RELATIVE_ROUNDING)
        bound = self._bound(p, largest)
        if bound > self.lower:
            self.lower, self.dual, self.proof = bound, self._scale(p, largest) * p, proof

    def _expand_objective(
        self, used: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        A, p = self.A[:, used], self._target - self.A @ alphas
        return self._cost - A.T @ p / len(p), A / np.sqrt(len(p))

    def _value(self, alphas: np.ndarray) -> float:
        residuals = self._target - self.A @ alphas
        return float((residuals**2).mean()) / 2 + self._cost * float(alphas.sum())

"""The method of multipliers (Rockafellar 1976): smooth losses in place of those with corners."""

from collections.abc import Callable

import numpy as np

from .losses import QuadraticLoss

_FIRST_WIDTH, _LAST_WIDTH, _NARROWER = 1.0, 0.1, 0.7
"""The part of the target over which a hinge is rounded, first and last, and its factor a round:
what is narrower is too stiff to slide along, and multipliers move what is left to its place.
"""
_VIOLATION, _VIOLATION_OF_MANY, _FASTEST = 0.2, 0.05, 2.0
"""The typical violation of a constraint that its multiplier pays for, in units of the target, for
margins and for many values, and the most by which that price changes in a round. Stiffer ones leave
gaps of .4 for margins of 100,000 samples. Values of five neurons, 63 to 835 samples, took .36 to .9
of the time on nine sets of twelve, and longer on three.
"""
_MISSED, _PATIENCE = 1.3, 15
"""Multipliers of constraints are learned once no neuron is worth more than this times its cost, or
after so many rounds. Learned each round, before there are neurons to keep the constraints, they
grow without end: three teachers' hard margins of 2,100 samples had gaps of .24 to .35 after 40
rounds, and have gaps of .12 to .17.
"""


class Multipliers:
    """The smooth losses of the rounds, one after the other, of a loss with corners."""

    def __init__(
        self, exact: QuadraticLoss, largest: Callable[[np.ndarray], float], many: bool
    ) -> None:
        """`largest` gives the largest value of a neuron at C (n, K); `many` is for many values."""
        self._violation = _VIOLATION_OF_MANY if many else _VIOLATION
        self._exact, self._width, target = exact, _FIRST_WIDTH, exact.target
        self.capped = not exact.hard
        # Those of f = 0, where they are known. Contradictions may cancel each other to 0.
        even = target / (largest(exact.labels.combine(target)) or 1.0)
        p = exact.high if self.capped else even
        self._size, self._rounds = _mean_size(target), 0
        self._price = self._suit(p)
        self.loss = exact.smoothed(p, self._price)

    def learn_late(self, p: np.ndarray, largest: float) -> None:
        """Take multipliers p (n, R) if no neuron is worth much more than it costs, or at last."""
        self._rounds += 1
        if self.capped or largest <= _MISSED or self._rounds >= _PATIENCE:
            self.learn(p)

    def learn(self, p: np.ndarray) -> None:
        """Take multipliers p (n, R)."""
        self._rounds, self._width = 0, max(_LAST_WIDTH, _NARROWER * self._width)
        self._price = np.clip(self._suit(p), self._price / _FASTEST, self._price * _FASTEST)
        self.loss = self._exact.smoothed(p, self._price)

    def _suit(self, p: np.ndarray) -> np.ndarray | float:
        """The curvature of the smooth loss, (n, 1) or one for all, that suits multipliers p."""
        high, size = self._exact.high, self._violation * self._size
        return high.max(1, keepdims=True) / self._width if self.capped else _mean_size(p) / size


def _mean_size(values: np.ndarray) -> float:
    """The mean size of those that are not 0, or 1 if all are."""
    return float(np.abs(values[values != 0]).mean()) if values.any() else 1.0

"""Losses of outputs f (n,), as the problem of least loss and norm uses them: they know nothing of
neurons or solvers.
"""

from typing import Protocol

import numpy as np
import torch
from scipy.special import expit, xlog1py, xlogy

from ...losses import Logistic

ROUNDING = 1e-12
"""Covers the rounding of the mean of the terms of a bound, and of the scale by which dual weights
are made feasible: some 1e-16 per sample.
"""


class Loss(Protocol):
    """A convex loss, the mean of n terms; dual weights p (n,) are slopes of its terms."""

    def mean(self, f: np.ndarray) -> float:
        """The mean loss."""

    def slopes(self, f: np.ndarray) -> np.ndarray:
        """How fast each term falls with its output: the dual weights that belong to f."""

    def curvatures(self, f: np.ndarray) -> np.ndarray:
        """The second derivative of each term."""

    def scale(self, p: np.ndarray, most: float) -> float:
        """The factor up to `most` with which weights p prove the most."""

    def conjugate(self, p: np.ndarray) -> float:
        """At most the least of mean loss + mean_i p_i f_i over all outputs, in float64."""


def log_mean_loss(q: np.ndarray) -> float:
    """Natural log of the mean logistic loss at labelled outputs q, without overflow."""
    return Logistic().log_sum(torch.from_numpy(q)) - float(np.log(len(q)))


class LogisticLoss:
    """mean_i log(1 + exp(-y_i f_i)): its dual is the binary entropy of |p_i|, in nats."""

    def __init__(self, y: np.ndarray):
        self._y = y

    def mean(self, f: np.ndarray) -> float:
        return float(np.exp(log_mean_loss(self._y * f)))

    def slopes(self, f: np.ndarray) -> np.ndarray:
        return self._y * expit(-self._y * f)

    def curvatures(self, f: np.ndarray) -> np.ndarray:
        p = expit(-self._y * f)
        return p * (1 - p)

    def scale(self, p: np.ndarray, most: float) -> float:
        return min(1.0, most)

    def conjugate(self, p: np.ndarray) -> float:
        p = np.abs(p)
        # Where p is small, 1 - p has lost it, but its logarithm need not.
        entropy = -float((xlogy(p, p) + xlog1py(1 - p, -p)).mean())
        return entropy * (1 - ROUNDING)


class SquaredLoss:
    """mean_i (f_i - y_i)^2 / 2: its dual weights are residuals."""

    def __init__(self, y: np.ndarray):
        self._y = y

    def mean(self, f: np.ndarray) -> float:
        return float(((self._y - f) ** 2).mean()) / 2

    def slopes(self, f: np.ndarray) -> np.ndarray:
        return self._y - f

    def curvatures(self, f: np.ndarray) -> np.ndarray:
        return np.ones(len(f))

    def scale(self, p: np.ndarray, most: float) -> float:
        square = float(p @ p)
        best = float(p @ self._y) / square if square > 0 else 0.0
        return min(max(best, 0.0), most)

    def conjugate(self, p: np.ndarray) -> float:
        # The terms may cancel, so that rounding is relative to their sizes.
        hidden = ROUNDING * (np.abs(p * self._y) + p**2).mean()
        return float((p * self._y - p**2 / 2).mean() - hidden)

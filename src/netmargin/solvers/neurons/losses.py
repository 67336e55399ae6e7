"""Losses of outputs F (n, K), sums over samples, as the problems over neurons use them: they know
neither neurons nor solvers.

The dual of min sum_j |A_j| + loss(F) is the largest `bound` of coefficients C (n, K), minus the
gradient of the loss at the optimum, at which no neuron has a value |sum_n phi(w . z_n) C_n| > 1.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import entr, logsumexp, softmax

from .labels import Labels, Rivals, Signs, Values

_NEAR = 0.7
"""Samples that miss their target margin by more than minus this count as near: a round moves few
margins by more, and what it moves is seen at its end.
"""
_ROUNDING = 1e-12
"""The most by which weights are off, relative to the largest that are allowed."""


class Loss(Protocol):
    """A convex loss of the outputs of n samples."""

    @property
    def labels(self) -> Labels:
        """Their labels, which say how many outputs there are."""

    def value(self, F: np.ndarray) -> float:
        """The loss; infinite where outputs are not allowed."""

    def slopes(self, F: np.ndarray) -> np.ndarray:
        """Minus its gradient (n, K)."""

    def curvatures(self, F: np.ndarray) -> np.ndarray:
        """The second derivative of each sample (n,), of losses of one output."""

    def bound(self, C: np.ndarray) -> float:
        """The least value(F) + sum(C F) over all F: minus the conjugate at -C."""

    def scale(self, C: np.ndarray, most: float) -> float:
        """The factor of C up to `most` with the largest bound."""

    def near(self, F: np.ndarray) -> np.ndarray:
        """The samples (n,) that have slopes, or may soon."""

    def take(self, rows) -> "Loss":
        """The loss of these samples, an index or a slice."""


@dataclass(frozen=True)
class QuadraticLoss:
    """max over low <= p <= high of sum p (target - margins) - (p - centre)^2 / 2 cost.

    With `cost` infinite this is a hinge, or a constraint; else its square. A centre is that of the
    method of multipliers (Rockafellar 1976), in which p are the multipliers.
    """

    labels: Labels
    target: np.ndarray  # (n, R), with 0 for own classes
    low: float  # 0 for margins that may be larger than their target, -inf for values
    high: np.ndarray  # (n, R), 0 for own classes
    cost: np.ndarray  # (n, 1)
    centre: np.ndarray  # (n, R)

    @property
    def exact(self) -> bool:
        """Whether the loss has corners, so that it is to be smoothed first."""
        return bool(np.isinf(self.cost).all())

    def value(self, F: np.ndarray) -> float:
        short = self.target - self.labels.margins(F)
        if self.exact:
            bent = np.where(short > 0, self.high, self.low) * np.where(short == 0, 1.0, short)
            return float(np.where(short == 0, 0.0, bent).sum())
        p = self._weigh(short)
        return float((p * short - (p - self.centre) ** 2 / (2 * self.cost)).sum())

    def slopes(self, F: np.ndarray) -> np.ndarray:
        return self.labels.combine(self.multipliers(F))

    def multipliers(self, F: np.ndarray) -> np.ndarray:
        """The p (n, R) of the maximum."""
        return self._weigh(self.target - self.labels.margins(F))

    def curvatures(self, F: np.ndarray) -> np.ndarray:
        p = self.multipliers(F)
        return (self.cost * ((p > self.low) & (p < self.high)))[:, 0]

    def bound(self, C: np.ndarray) -> float:
        p = self.labels.split(C)
        if ((p < self.low) | (p > self.high * (1 + _ROUNDING))).any():
            return -np.inf
        away = p - self.centre  # multiplied only once it is divided: it may be huge
        return float((p * self.target - away * (away / (2 * self.cost))).sum())

    def scale(self, C: np.ndarray, most: float) -> float:
        p = self.labels.split(C)
        square = float((p * (p / self.cost)).sum())
        gain = float((p * (self.target + self.centre / self.cost)).sum())
        best = gain / square if square > 0 else np.inf
        room = np.divide(self.high, p, out=np.full(p.shape, np.inf), where=p > 0).min()
        return max(0.0, min(best, most, float(room)))

    def near(self, F: np.ndarray) -> np.ndarray:
        short = self.target - self.labels.margins(F) + self.centre / self.cost
        return ((short > -_NEAR) & (self.high > 0)).any(1) | (self.low < 0)

    def take(self, rows) -> "QuadraticLoss":
        parts = {name: getattr(self, name)[rows] for name in ("target", "high", "cost", "centre")}
        return replace(self, labels=self.labels.take(rows), **parts)

    def smoothed(self, centre: np.ndarray, cost: np.ndarray | float) -> "QuadraticLoss":
        """A loss below this one that is smooth, and equal where multipliers are `centre`."""
        return replace(self, centre=centre, cost=np.full_like(self.cost, cost))

    def _weigh(self, short: np.ndarray) -> np.ndarray:
        return np.clip(self.centre + self.cost * short, self.low, self.high)


@dataclass(frozen=True)
class LogisticLoss:
    """sum_n cost_n log(1 + sum of exp(-margin)), the cross-entropy; its bound is the entropy of the
    classes, in nats.
    """

    labels: Signs | Rivals
    cost: np.ndarray  # (n, 1)

    def value(self, F: np.ndarray) -> float:
        return float((self.cost[:, 0] * logsumexp(self._rise(F), axis=1)).sum())

    def slopes(self, F: np.ndarray) -> np.ndarray:
        return self.labels.combine(self.cost * softmax(self._rise(F), axis=1)[:, 1:])

    def curvatures(self, F: np.ndarray) -> np.ndarray:
        return self.cost[:, 0] * softmax(self._rise(F), axis=1).prod(1)

    def bound(self, C: np.ndarray) -> float:
        q = self.labels.split(C) / self.cost
        q = np.column_stack([1 - q.sum(1), q])
        # A probability that is 0 may be off by its rounding.
        if (q < -_ROUNDING).any():
            return -np.inf
        return float((self.cost * entr(np.maximum(q, 0.0))).sum())

    def scale(self, C: np.ndarray, most: float) -> float:
        return min(1.0, most)

    def near(self, F: np.ndarray) -> np.ndarray:
        return np.ones(len(F), bool)

    def take(self, rows) -> "LogisticLoss":
        return LogisticLoss(self.labels.take(rows), self.cost[rows])

    def _rise(self, F: np.ndarray) -> np.ndarray:
        """0 for the own class, and minus the margins over the rivals."""
        rises = np.where(self.labels.wanted > 0, -self.labels.margins(F), -np.inf)
        return np.column_stack([np.zeros(len(F)), rises])


def hinge_loss(labels: Signs | Rivals, cost: np.ndarray) -> QuadraticLoss:
    """sum of cost_n max(0, 1 - margin); a hard margin where cost (n,) is infinite."""
    wanted = labels.wanted
    high = np.where(wanted > 0, cost[:, None], 0.0)
    exact = np.full((len(cost), 1), np.inf)
    return QuadraticLoss(labels, wanted, 0.0, high, exact, np.zeros_like(wanted))


def squared_hinge_loss(labels: Signs | Rivals, cost: np.ndarray) -> QuadraticLoss:
    """sum of cost_n max(0, 1 - margin)^2 / 2."""
    wanted = labels.wanted
    high = np.where(wanted > 0, np.inf, 0.0)
    return QuadraticLoss(labels, wanted, 0.0, high, cost[:, None], np.zeros_like(wanted))


def squared_loss(Y: np.ndarray, cost: np.ndarray) -> QuadraticLoss:
    """sum of cost_n |F_n - Y_n|^2 / 2; the constraint F = Y where cost (n,) is infinite."""
    high = np.full_like(Y, np.inf)
    return QuadraticLoss(Values(Y.shape[1]), Y, -np.inf, high, cost[:, None], np.zeros_like(Y))

"""Losses of outputs F (n, K), sums over samples, as the problems over neurons use them: they know
neither neurons nor solvers.

`value` is the loss, infinite where outputs are not allowed, `slopes` minus its gradient (n, K), and
`curvatures` the second derivative (n,) of each sample, of one output; `near` are the samples (n,)
that have slopes, or may soon, and `take` keeps the loss of some, an index or a slice.

The dual of min sum_j |A_j| + loss(F) is the largest `bound` of coefficients C (n, K), minus the
gradient of the loss at the optimum, at which no neuron has a value |sum_n phi(w . z_n) C_n| > 1. It
is at most the least value(F) + sum(C F) over all F, which is minus the conjugate at -C, and `scale`
is the factor of C up to `most` with the largest one.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr, xlog1py

from ...core.matrices import Floats
from .labels import Labels, Rivals, Signs, Values

_NEAR = 0.7
"""Samples whose margin exceeds its target by less are near: a round moves few margins by more."""
ROUNDING = 1e-12
"""The most by which weights are off, relative to the largest that are allowed."""
_LOST = 1e-14
"""The most by which a sum of a million terms is off, relative to their sizes: 40 roundings."""


@dataclass(frozen=True)
class QuadraticLoss:
    """max over low <= p <= high of sum p (target - margins) - (p - centre)^2 / 2 cost.

    With `cost` infinite this is a hinge, or a constraint; else its square. A centre is that of the
    method of multipliers (Rockafellar 1976), in which p are the multipliers.
    """

    labels: Labels
    target: Floats  # (n, R), with 0 for own classes
    low: float  # 0 for margins that may be larger than their target, -inf for values
    high: Floats  # (n, R), 0 for own classes
    cost: Floats  # (n, 1)
    centre: Floats  # (n, R)

    @property
    def exact(self) -> bool:
        """Whether the loss has corners, so that it is to be smoothed first."""
        return bool(np.isinf(self.cost).all())

    @property
    def hard(self) -> bool:
        """Whether it is a constraint, whose multipliers have no bound."""
        return self.exact and bool(np.isinf(self.high).any())

    def value(self, F: Floats) -> float:
        short = self.target - self.labels.margins(F)
        if self.exact:
            bent = np.where(short > 0, self.high, self.low) * np.where(short == 0, 1.0, short)
            return float(np.where(short == 0, 0.0, bent).sum())
        p = self._weigh(short)
        return float((p * short - (p - self.centre) ** 2 / (2 * self.cost)).sum())

    def slopes(self, F: Floats) -> Floats:
        return self.labels.combine(self.multipliers(F))

    def multipliers(self, F: Floats) -> Floats:
        """The p (n, R) of the maximum."""
        return self._weigh(self.target - self.labels.margins(F))

    def curvatures(self, F: Floats) -> Floats:
        p = self.multipliers(F)
        return (self.cost * ((p > self.low) & (p < self.high)))[:, 0]

    def bound(self, C: Floats) -> float:
        p = self.labels.split(C)
        if ((p < self.low) | (p > self.high * (1 + ROUNDING))).any():
            return -np.inf
        away = p - self.centre  # multiplied only once it is divided: it may be huge
        gain, loss = p * self.target, away * (away / (2 * self.cost))
        return float((gain - loss).sum() - _LOST * (np.abs(gain) + loss).sum())

    def scale(self, C: Floats, most: float) -> float:
        p = self.labels.split(C)
        square = float((p * (p / self.cost)).sum())
        gain = float((p * (self.target + self.centre / self.cost)).sum())
        best = gain / square if square > 0 else np.inf
        room = np.divide(self.high, p, out=np.full(p.shape, np.inf), where=p > 0).min()
        return max(0.0, min(best, most, float(room)))

    def near(self, F: Floats) -> np.ndarray:
        short = self.target - self.labels.margins(F) + self.centre / self.cost
        near: np.ndarray = np.any((short > -_NEAR) & (self.high > 0), axis=1)
        return near | (self.low < 0)

    def take(self, rows: Any) -> "QuadraticLoss":
        parts = {name: getattr(self, name)[rows] for name in ("target", "high", "cost", "centre")}
        return replace(self, labels=self.labels.take(rows), **parts)

    def smoothed(self, centre: Floats, cost: Floats | float) -> "QuadraticLoss":
        """A loss below this one that is smooth, and equal where multipliers are `centre`."""
        return replace(self, centre=centre, cost=np.full_like(self.cost, cost))

    def _weigh(self, short: Floats) -> Floats:
        return np.clip(self.centre + self.cost * short, self.low, self.high)


@dataclass(frozen=True)
class LogisticLoss:
    """sum_n cost_n log(1 + sum exp(-margin)), the cross-entropy; its bound is entropy in nats."""

    labels: Signs | Rivals
    cost: Floats  # (n, 1)

    def value(self, F: Floats) -> float:
        return float((self.cost[:, 0] * self._lose(F)[1]).sum())

    def slopes(self, F: Floats) -> Floats:
        rises, lost = self._lose(F)
        return self.labels.combine(self.cost * np.exp(rises - lost[:, None]))

    def curvatures(self, F: Floats) -> Floats:
        rises, lost = self._lose(F)
        return self.cost[:, 0] * np.exp(rises[:, 0] - 2 * lost)

    def bound(self, C: Floats) -> float:
        q = self.labels.split(C) / self.cost
        total = q.sum(1)
        # A probability that is 0 may be off by its rounding.
        if (q < -ROUNDING).any() or (total > 1 + ROUNDING).any():
            return -np.inf
        total = np.minimum(total, 1.0)
        # Where the total is small, 1 - total has lost it, but its logarithm need not.
        entropy = entr(np.maximum(q, 0.0)).sum(1) - xlog1py(1 - total, -total)
        return float((self.cost[:, 0] * entropy).sum() * (1 - _LOST))

    def scale(self, C: Floats, most: float) -> float:
        return min(1.0, most)

    def near(self, F: Floats) -> np.ndarray:
        return np.ones(len(F), bool)

    def take(self, rows: Any) -> "LogisticLoss":
        return LogisticLoss(self.labels.take(rows), self.cost[rows])

    def _lose(self, F: Floats) -> tuple[Floats, Floats]:
        """Minus the margins (n, R) over the rivals, and the losses (n,) without their cost."""
        rises = np.where(self.labels.wanted > 0, -self.labels.margins(F), -np.inf)
        return rises, np.logaddexp.reduce(rises, axis=1, initial=0.0)


Loss = QuadraticLoss | LogisticLoss


def hinge_loss(labels: Signs | Rivals, cost: Floats) -> QuadraticLoss:
    """sum of cost_n max(0, 1 - margin); a hard margin where cost (n,) is infinite."""
    wanted = labels.wanted
    high = np.where(wanted > 0, cost[:, None], 0.0)
    exact = np.full((len(cost), 1), np.inf)
    return QuadraticLoss(labels, wanted, 0.0, high, exact, np.zeros_like(wanted))


def squared_hinge_loss(labels: Signs | Rivals, cost: Floats) -> QuadraticLoss:
    """sum of cost_n max(0, 1 - margin)^2 / 2."""
    wanted = labels.wanted
    high = np.where(wanted > 0, np.inf, 0.0)
    return QuadraticLoss(labels, wanted, 0.0, high, cost[:, None], np.zeros_like(wanted))


def squared_loss(Y: Floats, cost: Floats) -> QuadraticLoss:
    """sum of cost_n |F_n - Y_n|^2 / 2; the constraint F = Y where cost (n,) is infinite."""
    high = np.full_like(Y, np.inf)
    return QuadraticLoss(Values(Y.shape[1]), Y, -np.inf, high, cost[:, None], np.zeros_like(Y))

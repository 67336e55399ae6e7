"""The result of pricing, and the collection of the best directions on the way to it."""

from dataclasses import dataclass

import numpy as np

from ...core.saved_records import Record
from ..neurons.activations import Activation
from ..neurons.samples import respond
from ..neurons.search import select_distinct

_BLOCK = 256
"""Candidates that are evaluated at once: few, because the first ones often beat all the others."""
_DUPLICATES = 8
"""Directions compared for each one returned: a vertex is met once on every plane through it."""


@dataclass(frozen=True)
class Pricing(Record):
    """Neurons of large value, and a bound of the value of all neurons."""

    directions: np.ndarray  # (k, D): unit directions u
    values: np.ndarray  # (k,): sum_i c_i phi(u . z_i) there, largest absolute value first
    upper_bound: float  # of the absolute value over the whole sphere, proved
    proof: str  # how, in words


class BestDirections:
    """The directions of largest absolute value so far; only what could beat them is evaluated."""

    def __init__(self, Z: np.ndarray, c: np.ndarray, count: int, power: int) -> None:
        self._Z, self._c, self._count, self._power = Z, c, count, power
        self.best = 0.0
        self._directions, self._values = Z[:0], np.zeros(0)

    def offer(self, directions: np.ndarray, values: np.ndarray) -> None:
        """Take unit directions (k, D) whose values (k,) are known."""
        size = np.abs(values)
        top = np.argpartition(-size, min(self._count, len(size)) - 1)[: self._count]
        directions = np.concatenate([self._directions, directions[top]])
        values = np.concatenate([self._values, values[top]])
        kept = np.argsort(-np.abs(values), kind="stable")[: _DUPLICATES * self._count]
        self._directions, self._values = directions[kept], values[kept]
        self.best = max(self.best, size[top].max())

    def evaluate(self, directions: np.ndarray) -> np.ndarray:
        """Take unit directions (k, D) whose values are not known, and return these (k,)."""
        values = respond(self._Z, self._c, directions, Activation(power=self._power))
        self.offer(directions, values)
        return values

    def consider(self, v: np.ndarray, bounds: np.ndarray, blur: float, steepness: float) -> float:
        """Evaluate candidates v / |v|, v (k, D), whose bounds (k,) could beat the best.

        Returns what the sum is at most at the true ones, where v and bounds are off by up to `blur`
        and the sum changes by up to `steepness` per radian.
        """
        open_ = np.flatnonzero(bounds > self.best)
        open_ = open_[np.argsort(-bounds[open_], kind="stable")]
        reached = 0.0
        for start in range(0, len(open_), _BLOCK):
            block = open_[start : start + _BLOCK]
            if bounds[block[0]] <= self.best:
                break
            values = self.evaluate(v[block] / np.linalg.norm(v[block], axis=1, keepdims=True))
            # A critical value of a quadratic form is known to `blur` wherever its vector is.
            moved = steepness * blur / bounds[block] if self._power == 1 else blur
            most = np.minimum(bounds[block] + blur, np.abs(values) + moved)
            reached = max(reached, float(most.max()))
        return reached

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """The kept directions, largest value first, without near-duplicates."""
        return select_distinct(self._directions, self._values, self._count)

"""What several claims of the paper share: its name, and populations on the line."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...solvers import ReLUMeasure

PAPER = "Chizat and Bach 2020"
"""The paper's name, as its claims cite it."""


@dataclass(frozen=True)
class Intervals:
    """A population as (A4) asks for: uniform on intervals of the line whose labels alternate."""

    ends: np.ndarray  # (k, 2), increasing

    @classmethod
    def drawn(cls, random: np.random.Generator, count: int) -> "Intervals":
        """Draw intervals and gaps of lengths that differ by a factor of 3 at most, on [-1, 1]."""
        ends = np.cumsum(np.append(0.0, random.uniform(1, 3, 2 * count - 1)))
        return cls((2 * ends / ends[-1] - 1).reshape(count, 2))

    def draw(self, n: int, seed: Any) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples (n, 1) and their labels."""
        random, lengths = np.random.default_rng(seed), np.ptp(self.ends, 1)
        index = random.choice(len(self.ends), n, p=lengths / lengths.sum())
        X = self.ends[index, :1] + lengths[index, None] * random.random((n, 1))
        return X, self.label(X)

    def label(self, X: np.ndarray) -> np.ndarray:
        """The labels of points (n, 1) of the support, (n,)."""
        return 1 - 2 * (np.searchsorted(self.ends[:, 0], X[:, 0], side="right") % 2)

    @property
    def corners(self) -> np.ndarray:
        """The ends of all intervals, (2 k, 1)."""
        return self.ends.reshape(-1, 1)

    def margin(self, measure: ReLUMeasure) -> float:
        """The margin of a ReLU net on the whole support: it is linear between ends and kinks."""
        slopes, offsets = measure.atoms[:, :1], measure.atoms[:, 1:2]
        kinks = -offsets[slopes != 0] / slopes[slopes != 0]
        inside = ((self.ends[:, 0] < kinks[:, None]) & (kinks[:, None] < self.ends[:, 1])).any(1)
        X = np.concatenate([self.corners, kinks[inside, None]])
        return measure.normalized_margin(X, self.label(X))

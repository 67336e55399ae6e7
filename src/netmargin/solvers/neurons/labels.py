"""How labels turn outputs F (n, K) of nets into margins (n, R), a linear map of each sample.

`margins` is the map, `combine` its transpose: the coefficients C (n, K) with sum(C F) = sum(p
margins(F)) for weights p (n, R). `split` finds these again, `take` keeps samples by index or slice.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.matrices import Floats


@dataclass(frozen=True)
class Values:
    """Each output is a margin: of regression."""

    outputs: int = 1

    def margins(self, F: Floats) -> Floats:
        return F

    combine = split = margins

    def take(self, rows: Any) -> "Values":
        return self


@dataclass(frozen=True)
class Signs:
    """y (n, 1) of two classes, -1 and +1: the margin is y f."""

    y: np.ndarray
    outputs = 1

    @property
    def wanted(self) -> Floats:
        """1 for each margin that is to be positive."""
        return np.ones_like(self.y, dtype=float)

    def margins(self, F: Floats) -> Floats:
        return self.y * F

    combine = split = margins

    def take(self, rows: Any) -> "Signs":
        return Signs(self.y[rows])


@dataclass(frozen=True)
class Rivals:
    """y (n,) in 0 .. K - 1: the margins are F_y - F_k over K columns, of which the own one is 0."""

    y: np.ndarray
    outputs: int

    @property
    def wanted(self) -> Floats:
        """1 for each margin that is to be positive, 0 for that over the own class."""
        return 1 - np.eye(self.outputs)[self.y, :]

    def margins(self, F: Floats) -> Floats:
        return np.take_along_axis(F, self.y[:, None], 1) - F

    def combine(self, p: Floats) -> Floats:
        C = -p
        C[np.arange(len(p)), self.y] += p.sum(1)
        return C

    def split(self, C: Floats) -> Floats:
        p = -C
        p[np.arange(len(p)), self.y] = 0.0
        return p

    def take(self, rows: Any) -> "Rivals":
        return Rivals(self.y[rows], self.outputs)


Labels = Values | Signs | Rivals


def least_margin(labels: Labels, F: Floats) -> float:
    """The least margin that outputs F (n, K) have over a rival."""
    assert not isinstance(labels, Values)
    return float(labels.margins(F)[labels.wanted > 0].min())

"""A kernel matrix of samples, in units in which nothing overflows, and the rounding of what it is
multiplied by.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core.records import short_repr
from ..core.saved_records import Record

_UNIT_RANGE = (1e-60, 1e60)
"""Largest entries that are kept as they are: fourth powers of such numbers are within float64."""
_SLACK = 4
"""Roundings of a sum of n products in float64 are at most n + 4 of its machine precision."""
_ROWS_AT_ONCE = 64
"""Rows that are widened at once: 20 MB of extended numbers for 20,000 samples."""


@dataclass(frozen=True)
class KernelMatrix(Record):
    """A positive semidefinite kernel matrix, scale * values.

    Attributes
    ----------
    values : ndarray, shape (n, n)
        float64, or float32 where `compute` is given.
    scale : float
        The unit of the values.
    compute : callable, optional
        Of V (n, k), the product of the kernel and V in float64, for values that are less exact.
    """

    values: np.ndarray
    scale: float = 1.0
    compute: Callable[[np.ndarray], np.ndarray] | None = None

    __repr__ = short_repr

    @classmethod
    def of(cls, K: np.ndarray) -> Self:
        """The matrix K (n, n), float64; a scaled copy of it where its entries are huge or tiny."""
        scale = float(np.diagonal(K).max())  # the largest entry of all, where K is what it must be
        if scale <= 0 or _UNIT_RANGE[0] <= scale <= _UNIT_RANGE[1]:
            return cls(K)
        return cls(K / scale, scale)

    @property
    def diagonal(self) -> np.ndarray:
        """The squared lengths (n,) of the features, in units of `scale`."""
        return np.maximum(np.diagonal(self.values).astype(np.float64), 0.0)

    @property
    def largest(self) -> float:
        """The largest entry in size, in units of `scale`: it is on the diagonal."""
        return float(self.diagonal.max())

    def multiply(self, V: np.ndarray) -> np.ndarray:
        """The product (n, k) with V (n, k), in float64 and in units of `scale`."""
        return self.values @ V if self.compute is None else self.compute(V) / self.scale

    def bound_rounding(self, V: np.ndarray, precision: float) -> np.ndarray:
        """Bound the rounding of each entry of the product with V (n, k), in numbers of this machine
        precision: |K_ij| <= sqrt(K_ii K_jj).
        """
        lengths = np.sqrt(self.diagonal)
        terms = (len(lengths) + _SLACK) * precision
        return terms * lengths[:, None] * (lengths @ np.abs(V))

    def multiply_extended(self, v: np.ndarray) -> np.ndarray:
        """The product (n,) with v (n,) in the longest floats of this machine, without BLAS: a
        hundred times slower, and 2,000 times more exact where these are longer than float64.
        """
        wide = v.astype(np.longdouble)
        rows = range(0, len(v), _ROWS_AT_ONCE)
        return np.concatenate([self.values[i : i + _ROWS_AT_ONCE] @ wide for i in rows])

    def labelled(self, y: np.ndarray) -> np.ndarray:
        """The matrix yy' * K (n, n), in units of `scale`."""
        return y[:, None] * self.values * y[None, :]

"""A kernel matrix of samples, in units in which nothing overflows, and the rounding of what it is
multiplied by.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core.records import short_repr
from ..core.saved_records import Record
from .extended import multiply_extended

_UNIT_RANGE = (1e-60, 1e60)
"""Largest entries that are kept as they are: fourth powers of such numbers are within float64."""
_SLACK = 4
"""Roundings of a sum of n products in float64 are at most n + 4 of its machine precision."""
_EXTENDED = 2000
"""Samples up to which products are recomputed in longer floats where float64 proves too little: .1
s for 2,000.
"""
_EPS = float(np.finfo(float).eps)


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
    exact : bool
        Whether the values are the kernel to the last digit, as those that a caller gives: what is
        computed from inputs is rounded by more than longer floats could tell.
    """

    values: np.ndarray
    scale: float = 1.0
    compute: Callable[[np.ndarray], np.ndarray] | None = None
    exact: bool = False

    __repr__ = short_repr

    @classmethod
    def of(cls, K: np.ndarray, *, exact: bool = False) -> Self:
        """The matrix K (n, n), float64; a scaled copy of it where its entries are huge or tiny."""
        scale = float(np.diagonal(K).max())  # the largest entry of all, where K is what it must be
        if scale <= 0 or _UNIT_RANGE[0] <= scale <= _UNIT_RANGE[1]:
            return cls(K, exact=exact)
        # A power of 4: neither it nor its root rounds what is divided by it.
        scale = float(4.0 ** np.floor(np.log2(scale) / 2))
        values = K / scale
        # Entries that underflow are lost.
        return cls(values, scale, exact=exact and np.array_equal(values * scale, K))

    @property
    def diagonal(self) -> np.ndarray:
        """The squared lengths (n,) of the features, in units of `scale`."""
        return np.maximum(np.diagonal(self.values).astype(np.float64), 0.0)

    @property
    def lengths(self) -> np.ndarray:
        """The lengths (n,) of the features, in units of the root of `scale`."""
        return np.sqrt(self.diagonal)

    @property
    def largest(self) -> float:
        """The largest entry in size, in units of `scale`: it is on the diagonal."""
        return float(self.diagonal.max())

    @property
    def affords_extended(self) -> bool:
        """Whether `multiply_extended` is for this matrix: exact, and of few samples."""
        return self.exact and len(self.values) <= _EXTENDED

    def multiply(self, V: np.ndarray) -> np.ndarray:
        """The product (n, k) with V (n, k), in float64 and in units of `scale`."""
        return self.values @ V if self.compute is None else self.compute(V) / self.scale

    def bound_rounding(self, V: np.ndarray) -> np.ndarray:
        """Bound the rounding of each entry (n, k) of `multiply` of V (n, k)."""
        return (len(V) + _SLACK) * _EPS * self._bound_terms(V)

    def _bound_terms(self, V: np.ndarray) -> np.ndarray:
        """Bound sum_j |K_ij V_jk| (n, k): |K_ij| <= sqrt(K_ii K_jj)."""
        return self.lengths[:, None] * (self.lengths @ np.abs(V))

    def multiply_extended(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The product (n,) with v (n,) as if in numbers of twice the digits of float64, rounded to
        the longest floats of this machine, and bounds (n,) of its errors. A hundred times slower.
        """
        return multiply_extended(self.values, v)

    def labelled(self, y: np.ndarray) -> np.ndarray:
        """The matrix yy' * K (n, n), in units of `scale`."""
        return y[:, None] * self.values * y[None, :]

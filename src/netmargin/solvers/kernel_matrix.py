"""A kernel matrix of samples, in units in which nothing overflows, and the rounding of its sums."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core.matrices import EPS, Floats
from ..core.saved_records import Record

_UNIT_RANGE = (1e-60, 1e60)
"""Largest entries that are kept as they are: fourth powers of such numbers are within float64."""
_LEAST_EXPONENT = -500
"""Units are at least 4 to this: the least float times 2^74, so that all digits of entries stay."""
_EXTENDED = 2000
"""Samples up to which products are redone in longer floats where float64 does not do: .1 s."""


def bound_sums(count: int, entry_error: float = 0.0) -> float:
    """Bound what a sum of `count` terms K_ij v_j is off by, in units of K_ii^(1/2) sum_j K_jj^(1/2)
    |v_j|, or v'K v, in units of the square of that last sum; 1 plus it covers a root of these too.

    Each entry is off by up to `entry_error` (K_ii K_jj)^(1/2). A sum of n products is off by n / 2
    machine precisions, so v'K v by n, and 4 are left for the roundings of weights, norms and roots.
    """
    return (count + 4) * EPS + entry_error


@dataclass(frozen=True)
class KernelMatrix(Record):
    """A positive semidefinite kernel matrix, scale * values (n, n)."""

    values: np.ndarray  # float64, or float32 where there is `compute`
    scale: float = 1.0
    # Of V (n, k), the product of the kernel and V in float64.
    compute: Callable[[np.ndarray], np.ndarray] | None = None
    # Whether the values are the kernel to the last digit, as those that a caller gives: what is
    # computed from inputs is rounded by more than longer floats could tell.
    exact: bool = False
    # What an entry K_ij, also one of `compute`, is off by, relative to the root of K_ii K_jj.
    entry_error: float = 0.0

    @classmethod
    def of(cls, K: np.ndarray, *, exact: bool = False, entry_error: float = 0.0) -> Self:
        """The matrix K (n, n), float64; a scaled copy of it where its entries are huge or tiny."""
        scale = float(np.diagonal(K).max())  # the largest entry of all, where K is what it must be
        if scale <= 0 or _UNIT_RANGE[0] <= scale <= _UNIT_RANGE[1]:
            return cls(K, exact=exact, entry_error=entry_error)
        # A power of 4: it and its root round nothing; costs times a smaller one would be rounded.
        scale = float(4.0 ** max(np.floor(np.log2(scale) / 2), _LEAST_EXPONENT))
        values = K / scale
        # Entries that underflow are lost.
        exact = exact and np.array_equal(values * scale, K)
        # A sample keeps a length, by which the rounding of its outputs is bounded.
        least = np.where(np.diagonal(K) > 0, np.finfo(float).tiny, 0.0)
        np.fill_diagonal(values, np.maximum(np.diagonal(values), least))
        return cls(values, scale, exact=exact, entry_error=entry_error)

    @property
    def diagonal(self) -> Floats:
        """The squared lengths (n,) of the features, in units of `scale`."""
        return np.maximum(np.diagonal(self.values).astype(np.float64), 0.0)

    @property
    def lengths(self) -> Floats:
        """The lengths (n,) of the features, in units of the root of `scale`."""
        return np.sqrt(self.diagonal)

    @property
    def affords_extended(self) -> bool:
        """Whether `multiply_extended` is for this matrix: exact, and of few samples."""
        return self.exact and len(self.values) <= _EXTENDED

    def multiply(self, V: np.ndarray) -> np.ndarray:
        """The product (n, k) with V (n, k), in float64 and in units of `scale`."""
        return self.values @ V if self.compute is None else self.compute(V) / self.scale

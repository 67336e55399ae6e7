"""Products as if in numbers of twice the digits of float64, with bounds of their errors."""

from typing import Any

import numpy as np

from ..core.matrices import EPS

_HALVES = 2.0**27 + 1
"""Splits the 53 digits of float64 into two halves, whose products are exact (Dekker 1971)."""
_ROWS = 1 << 18
"""Entries of a matrix that are multiplied at once: arrays of 2 MB."""


def multiply_exactly(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The product and its rounding, exact where nothing overflows or is below 1e-290."""
    product = x * y
    (a, b), (c, d) = _split(x), _split(y)
    return product, ((a * c - product) + a * d + b * c) + b * d


def multiply_extended(A: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The product (m,) of A (m, n) and v (n,), in the longest floats of this machine, and bounds
    (m,) of its errors.

    Source: Ogita, Rump, Oishi 2005, Accurate Sum and Dot Product, Algorithm 5.3, by halves.
    """
    used = np.flatnonzero(v)
    A, v = (A, v) if len(used) == len(v) else (A[:, used], v[used])
    outputs, errors = np.zeros(len(A), np.longdouble), np.zeros(len(A))
    rows = max(_ROWS // max(len(v), 1), 1)
    for start in range(0, len(A) if len(v) else 0, rows):
        part = slice(start, start + rows)
        outputs[part], errors[part] = _sum(*multiply_exactly(A[part], v))
        # What underflows is off by the least float, in a split of both factors by 2^28 of it.
        errors[part] += np.count_nonzero(A[part], axis=1) * 2.0**-1040
    return outputs, errors


def _sum(terms: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums over the last axis of terms and their roundings, and bounds of the errors."""
    # Twice the sum covers that of the exact products. Each addition of roundings rounds anew, by
    # the square of the machine precision.
    depth = terms.shape[-1].bit_length() + 4
    errors = 2 * (depth * EPS) ** 2 * np.abs(terms).sum(-1)
    while terms.shape[-1] > 1:
        half = (terms.shape[-1] + 1) // 2
        first, second = terms[..., :half].copy(), terms[..., half:]
        roundings, count = low[..., :half].copy(), second.shape[-1]
        a = first[..., :count]
        total = a + second
        part = total - a
        roundings[..., :count] += low[..., half:] + ((a - (total - part)) + (second - part))
        first[..., :count] = total
        terms, low = first, roundings
    total = terms[..., 0].astype(np.longdouble) + low[..., 0]
    return total, errors + 2 * float(np.finfo(np.longdouble).eps) * np.abs(total).astype(float)


def round_down(value: Any) -> float:
    """The largest float64 up to a longer float."""
    rounded = float(value)
    return float(np.nextafter(rounded, -np.inf)) if np.longdouble(rounded) > value else rounded


def round_up(value: Any) -> float:
    """The least float64 from a longer float on."""
    return -round_down(-value)


def _split(x: Any) -> Any:
    """Two numbers of half the digits each, whose sum is x."""
    scaled = _HALVES * x
    high = scaled - (scaled - x)
    return high, x - high

"""Floats as exact numbers: whole numbers times a power of two, and linear programs over them."""

import math
from fractions import Fraction

import numpy as np

SLACK = Fraction(1, 2**46)
"""Ends of brackets may err by 64 units in the last of their own digits: a norm, a square root and a
change of units are rounded. What cancels is not excused: the slack is relative to the end itself.
"""
TINY = Fraction(1, 2**1068)
"""Below the normal numbers of float64 a last digit is 2^-1074, however small the number."""


class NotFiniteError(ValueError):
    """An answer holds NaN or infinity where it states a number."""


def finite(array) -> np.ndarray:
    """Numbers of an answer as an array. Raises NotFiniteError."""
    array = np.asarray(array, dtype=float)
    if not np.isfinite(array).all():
        raise NotFiniteError(f"the answer holds {array[~np.isfinite(array)][0]}")
    return array


def whole(array) -> tuple[np.ndarray, int]:
    """Python integers W, as an array of objects, and an exponent e: the array is W * 2^e exactly."""
    array = finite(array)
    ratios = [number.as_integer_ratio() for number in array.reshape(-1).tolist()]
    shift = max((q.bit_length() - 1 for _, q in ratios), default=0)
    common = [p << (shift - q.bit_length() + 1) for p, q in ratios]
    trailing = min(((p & -p).bit_length() - 1 for p in common if p), default=0)
    found = np.empty(len(common), dtype=object)
    found[:] = [p >> trailing for p in common]
    return found.reshape(array.shape), trailing - shift


def power_of_two(exponent: int) -> Fraction:
    """2^exponent exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def exact(array) -> np.ndarray:
    """The floats of an array as an array of fractions."""
    array = finite(array)
    found = np.empty(array.size, dtype=object)
    found[:] = [Fraction(number) for number in array.reshape(-1).tolist()]
    return found.reshape(array.shape)


def shown(number) -> str:
    """A fraction in 12 digits, however large or small it is."""
    if not number:
        return "0"
    sign, number = ("-" if number < 0 else ""), abs(Fraction(number))
    exponent = len(str(number.numerator)) - len(str(number.denominator))
    return f"{sign}{float(number / Fraction(10) ** exponent):.12g}e{exponent:+d}"


def root(square: Fraction) -> Fraction:
    """A square root to 40 digits, rounded down, for messages and mild comparisons."""
    if square <= 0:
        return Fraction(0)
    shift = max(0, 280 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    inside = (square.numerator << shift) // square.denominator
    return Fraction(math.isqrt(inside), 1 << (shift // 2))


def exceeds(left: Fraction, right: Fraction, square: Fraction = Fraction(1)) -> bool:
    """Whether left > right / sqrt(square) by more than the slack, for square > 0."""
    left, right = Fraction(left), Fraction(right)
    left = left / (1 + SLACK) if left > 0 else left * (1 + SLACK)
    left -= TINY
    if left <= 0 < right or left < 0 <= right:
        return False
    if right <= 0 < left or right < 0 <= left:
        return True
    larger = left**2 * square > right**2
    return larger if left > 0 else left**2 * square < right**2


def separate(rows: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Decide by exact linear programming whether some w has rows @ w > 0 (Gordan's alternative).

    Returns (w, None), or (None, p) with p >= 0, p not 0 and p @ rows = 0; fractions both.
    """
    n, d = rows.shape
    # Samples and features may be divided by anything positive: small numbers are quick.
    by_row = np.array([math.gcd(*row) or 1 for row in rows.tolist()], dtype=object)
    A = rows // by_row[:, None]
    by_column = np.array([math.gcd(*column) or 1 for column in A.T.tolist()], dtype=object)
    A = A // by_column
    # Phase one of the simplex method for p: A' p = 0, sum p = 1. The last row holds reduced costs.
    m = d + 1
    table = np.zeros((m + 1, n + m + 1), dtype=object)
    table[:d, :n], table[d, :n], table[d, -1] = A.T, 1, 1
    table[:m, n : n + m] = np.eye(m, dtype=int).astype(object)
    table[m] = -table[:m].sum(0)
    table[m, n : n + m] = 0
    basis, unit = list(range(n, n + m)), 1
    while (entering := next((j for j in range(n) if table[m, j] < 0), None)) is not None:
        # Bland's rule; fractions without a fraction: all entries are over `unit`.
        ready = [i for i in range(m) if table[i, entering] > 0]
        leaving = min(ready, key=lambda i: (Fraction(table[i, -1], table[i, entering]), basis[i]))
        pivot, row = table[leaving, entering], table[leaving].copy()
        table = (table * pivot - np.multiply.outer(table[:, entering], row)) // unit
        table[leaving], basis[leaving], unit = row, entering, pivot
    if table[m, -1] == 0:
        weights = np.array([Fraction(0)] * n, dtype=object)
        for i, j in enumerate(basis):
            if j < n:
                weights[j] = Fraction(table[i, -1], unit) / by_row[j]
        return None, weights
    dual = [1 - Fraction(table[m, n + i], unit) for i in range(d)]
    return np.array([-w / c for w, c in zip(dual, by_column.tolist(), strict=True)], object), None


def float_separator(rows: np.ndarray) -> np.ndarray | None:
    """Weights in float64 with rows @ w > 0 exactly, if rounding leaves those of `separate` right."""
    w, _ = separate(rows)
    if w is None:
        return None
    largest = max(abs(part) for part in w)
    rounded = np.array([float(part / largest) for part in w])
    return rounded if min((rows @ whole(rounded)[0]).tolist()) > 0 else None

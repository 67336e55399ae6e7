"""Steps of two samples as loops over numbers, which numba compiles.

Source: Steinwart, Hush, Scovel 2011, Training SVMs without offset.
"""

import numpy as np
from numba import njit

_BLOCK = 64
"""Gains per block of the search for the largest: as many as a few vector instructions compare."""
_LEAST_CURVATURE = 1e-6
"""The part of the curvature of two samples that counts at least: below, it is rounding."""
_GAPS_PER_PASS = 16
"""The gap is looked at so many times in as many steps as there are samples: 1 to 2% of the time."""
_LOOSE = {"reassoc", "nnan", "nsz", "contract", "arcp"}
"""What the compiler may do to sums, so that they take vector instructions; infinite caps stay."""


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def find_largest(values: np.ndarray) -> int:
    """The index of the largest of `values`, one of which at least is not negative."""
    size = len(values)
    best, block = -1.0, 0
    for start in range(0, size, _BLOCK):
        largest = -1.0
        for j in range(start, min(start + _BLOCK, size)):
            largest = max(largest, values[j])
        if largest > best:
            best, block = largest, start
    for j in range(block, min(block + _BLOCK, size)):
        if values[j] == best:
            return j
    return block


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def clip(value: float, low: float, high: float) -> float:
    """The number in [low, high] next to `value`."""
    return min(max(value, low), high)


@njit(cache=True, nogil=True)
def solve_two(q: float, u: float, v: float, box: tuple) -> tuple:
    """The steps (s, t) in a box that minimize (s^2 + 2 q s t + t^2) / 2 - u s - v t."""
    s_low, s_high, t_low, t_high = box
    determinant = 1.0 - q * q
    if determinant > _LEAST_CURVATURE**2:
        s, t = (u - q * v) / determinant, (v - q * u) / determinant
        if s_low <= s <= s_high and t_low <= t <= t_high:
            return s, t
    # A step of the first alone, unless one to an edge of the box is better.
    best_s, best_t, best = clip(u, s_low, s_high), 0.0, 0.0
    for edge in range(4):
        if edge < 2:
            s = s_low if edge == 0 else s_high
            t = clip(v - q * s, t_low, t_high)
        else:
            t = t_low if edge == 2 else t_high
            s = clip(u - q * t, s_low, s_high)
        if np.isinf(s) or np.isinf(t):
            continue
        value = 0.5 * (s * s + 2 * q * s * t + t * t) - u * s - v * t
        if value < best:
            best_s, best_t, best = s, t, value
    return best_s, best_t


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def take_steps(K, y, a, g, caps, diagonal, hard, tol, budget):
    """Descend until the gap of these samples is at most `tol`, or `budget` steps are taken.

    `a` (m,) and `g` (m,), the weights and 1 - y_n f(x_n), are changed in place; K (m, m) is the
    kernel of the samples, `caps` (m,) their largest weights and `diagonal` its diagonal, above 0.
    Returns the number of steps that were taken, `budget` where the gap is still larger.
    """
    # In units of the lengths of the features the diagonal is 1. Several short loops over few
    # arrays, as compilers make vector instructions of no others.
    size = len(a)
    every = size // _GAPS_PER_PASS + 1
    lengths = np.sqrt(diagonal)
    signs, slacks = y / lengths, g / lengths
    low, high = -a * lengths, (caps - a) * lengths
    gains = np.empty(size)
    for step in range(budget + 1):
        if step % every == 0 or step == budget:
            for j in range(size):
                a[j] = -low[j] / lengths[j] if high[j] > 0 else caps[j]
                g[j] = slacks[j] * lengths[j]
            if step == budget or measure_gap(a, g, caps, hard) <= tol:
                return step
        for j in range(size):
            d = clip(slacks[j], low[j], high[j])
            gains[j] = d * (2 * slacks[j] - d)
        i = find_largest(gains)
        row, sign = K[i], signs[i]
        first = clip(slacks[i], low[i], high[i])
        for j in range(size):
            # What a step of j gains after that of i, in the curvature that i leaves it.
            q = sign * (signs[j] * row[j])
            rest = slacks[j] - first * q
            d = clip(rest, low[j], high[j])
            gains[j] = d * (2 * rest - d) / max(1.0 - q * q, _LEAST_CURVATURE)
        gains[i] = -1.0
        k = find_largest(gains)
        q = sign * signs[k] * row[k]
        box = (low[i], high[i], low[k], high[k])
        s, t = solve_two(q, slacks[i], slacks[k], box) if size > 1 else (first, 0.0)
        low[i], high[i] = low[i] - s, high[i] - s
        low[k], high[k] = low[k] - t, high[k] - t
        other, s, t = K[k], s * sign, t * signs[k]
        for j in range(size):
            slacks[j] -= signs[j] * (s * row[j] + t * other[j])
    return budget


@njit(cache=True, nogil=True, fastmath=_LOOSE)
def measure_gap(a, g, caps, hard):
    """The relative gap of weights (m,), that these samples alone would leave."""
    total, square, excess, least = 0.0, 0.0, 0.0, np.inf
    for j in range(len(a)):
        total += a[j]
        square += a[j] * (1.0 - g[j])
        if not hard:
            excess += caps[j] * max(g[j], 0.0)
        least = min(least, 1.0 - g[j])
    if hard:
        return 1.0 - least * total / square if square > 0 else 1.0
    primal = 0.5 * square + excess
    if least > 0:  # scaled up, f has no hinge losses
        primal = min(primal, 0.5 * square / (least * least))
    return (primal - (total - 0.5 * square)) / primal if primal > 0 else 0.0


@njit(cache=True, nogil=True)
def copy_part(K, chosen, part):
    """Write the rows and columns `chosen` (m,) of K (n, n) into `part` (m, m), which may round."""
    for i in range(len(chosen)):
        row = K[chosen[i]]
        for j in range(len(chosen)):
            part[i, j] = row[chosen[j]]

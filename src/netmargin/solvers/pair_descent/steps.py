"""Steps of two samples. Where numba is installed (the extra `fast`) all is compiled; where not,
loops over the samples are replaced by their forms in whole arrays of numpy.

Source: Steinwart, Hush, Scovel 2011, Training SVMs without offset.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

try:
    from numba import njit
except ImportError:
    njit = None

from . import numpy_loops

_BLOCK = 64
"""Gains per block of the search for the largest: as many as a few vector instructions compare."""
_LEAST_CURVATURE = 1e-6
"""The part of the curvature of two samples that counts at least: below, it is rounding."""
_GAPS_PER_PASS = 16
"""The gap is measured so many times in as many steps as there are samples: 1 to 2% of the time."""
_LOOSE = {"reassoc", "nnan", "nsz", "contract", "arcp"}
"""What the compiler may do to sums, so that they take vector instructions; infinite caps stay."""


def _make_fast(fastmath: Iterable[str] = ()) -> Callable[..., Any]:
    """Compile a function; without numba, take that of its name in `numpy_loops`, if any."""
    if njit is None:
        return lambda function: getattr(numpy_loops, function.__name__.lstrip("_"), function)
    return njit(cache=True, nogil=True, fastmath=set(fastmath))


@_make_fast(_LOOSE)
def _find_largest(values):
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


@_make_fast(_LOOSE)
def _find_first(slacks, low, high, gains):
    """The sample whose step alone gains most; `gains` (m,) is written over."""
    for j in range(len(slacks)):
        d = min(max(slacks[j], low[j]), high[j])
        gains[j] = d * (2 * slacks[j] - d)
    return _find_largest(gains)


@_make_fast(_LOOSE)
def _find_second(slacks, low, high, signs, row, i, first, least_curvature, gains):
    """The sample whose step gains most after the step `first` of sample i, of kernel `row`."""
    sign = signs[i]
    for j in range(len(slacks)):
        q = sign * (signs[j] * row[j])
        rest = slacks[j] - first * q
        d = min(max(rest, low[j]), high[j])
        gains[j] = d * (2 * rest - d) / max(1.0 - q * q, least_curvature)
    gains[i] = -1.0
    return _find_largest(gains)


@_make_fast(_LOOSE)
def _move_slacks(slacks, signs, s, row, t, other):
    """Change the slacks by steps s and t along two rows of the kernel."""
    for j in range(len(slacks)):
        slacks[j] -= signs[j] * (s * row[j] + t * other[j])


@_make_fast()
def solve_two(q, u, v, box):
    """The steps (s, t) in a box that minimize (s^2 + 2 q s t + t^2) / 2 - u s - v t."""
    s_low, s_high, t_low, t_high = box
    determinant = 1.0 - q * q
    if determinant > _LEAST_CURVATURE**2:
        s, t = (u - q * v) / determinant, (v - q * u) / determinant
        if s_low <= s <= s_high and t_low <= t <= t_high:
            return s, t
    # A step of the first alone, unless one to an edge of the box is better.
    best_s, best_t, best = min(max(u, s_low), s_high), 0.0, 0.0
    for edge in range(4):
        if edge < 2:
            s = s_low if edge == 0 else s_high
            t = min(max(v - q * s, t_low), t_high)
        else:
            t = t_low if edge == 2 else t_high
            s = min(max(u - q * t, s_low), s_high)
        if math.isinf(s) or math.isinf(t):
            continue
        value = 0.5 * (s * s + 2 * q * s * t + t * t) - u * s - v * t
        if value < best:
            best_s, best_t, best = s, t, value
    return best_s, best_t


@_make_fast(_LOOSE)
def measure_gap(a, g, caps, hard):
    """The relative gap of weights (m,) that these samples alone would leave."""
    total, square, least = a.sum(), (a * (1.0 - g)).sum(), 1.0 - g.max()
    if hard:
        return 1.0 - least * total / square if square > 0 else 1.0
    primal = 0.5 * square + (caps * np.maximum(g, 0.0)).sum()
    if least > 0:  # scaled up, f has no hinge losses
        primal = min(primal, 0.5 * square / (least * least))
    return (primal - (total - 0.5 * square)) / primal if primal > 0 else 0.0


@_make_fast(_LOOSE)
def take_steps(K, y, a, g, caps, diagonal, hard, tol, budget):
    """Descend until the gap of these samples is at most `tol`, or `budget` steps are taken.

    `a` (m,) and `g` (m,), the weights and 1 - y_n f(x_n), are changed in place; K (m, m) is the
    kernel of the samples, `caps` (m,) their largest weights and `diagonal` its diagonal, above 0.
    Returns the number of steps that were taken, `budget` where the gap is still larger.
    """
    # In units of the lengths of the features the diagonal is 1.
    every = len(a) // _GAPS_PER_PASS + 1
    lengths = np.sqrt(diagonal)
    signs, slacks = y / lengths, g / lengths
    low, high = -a * lengths, (caps - a) * lengths
    gains = np.empty(len(a))
    for step in range(budget + 1):
        if step % every == 0 or step == budget:
            a[:], g[:] = np.where(high > 0, -low / lengths, caps), slacks * lengths
            if step == budget or measure_gap(a, g, caps, hard) <= tol:
                return step
        i = _find_first(slacks, low, high, gains)
        row, first = K[i], min(max(slacks[i], low[i]), high[i])
        k = _find_second(slacks, low, high, signs, row, i, first, _LEAST_CURVATURE, gains)
        s, t = first, 0.0
        if len(a) > 1:
            q = signs[i] * signs[k] * row[k]
            s, t = solve_two(q, slacks[i], slacks[k], (low[i], high[i], low[k], high[k]))
        low[i], high[i] = low[i] - s, high[i] - s
        low[k], high[k] = low[k] - t, high[k] - t
        _move_slacks(slacks, signs, s * signs[i], row, t * signs[k], K[k])
    return budget

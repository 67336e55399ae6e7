"""Rounds of steps on the samples that still move, each followed by the outputs of all."""

import math
import time

import numpy as np

from .newton import take_newton_step

_FIRST_GAP = 0.3
"""Gap to which all samples descend before some are left out: above, it is open which stay."""
_IDLE = 0.1
"""A sample at a bound is left out if its output is this, or ten gaps, beyond 1: few move again."""
_SINGLE_GAP = 1e-4
"""Gap down to which copies are in float32, whose rounding is 1e-7: half the memory and time."""
_COPIED = 0.7
"""Part of the samples up to which the kernel of moving ones is copied: shorter rows repay it."""
_PART_OF_GAP = 0.01
"""Part of the gap of all samples to which those that move descend before slacks are renewed."""
_STEPS_PER_SAMPLE = 6
"""Steps for each sample in a round, before Newton's method: at C = 1 a problem takes 1 to 3."""
_NEWTON_STEPS = 4
"""Newton steps in a round: each leaves at least one sample at a bound, or ends the search."""
_POLISHED = 300
"""Samples between bounds up to which one more Newton step, of a millisecond, is always taken: small
problems are solved to the last digits, so that equal problems have equal solutions.
"""
_ENTRIES_AT_ONCE = 20_000_000
"""Entries of the kernel per call of the loop, some 20 ms: the clock and Ctrl-C are seen then."""
_ROWS_AT_ONCE = 256
"""Rows of the kernel that are copied at once to renew outputs: 40 MB for 20,000 samples."""
_ROUNDS = 60
"""Rounds after which it ends: problems that end at all took at most 12."""
_NOTHING = 1e-12
"""A squared margin below this, relative to the features, is rounding: steps err by 1e-16 n."""
_SHORTEST = 1e-290
"""Squared lengths of features up to this count as 0: their inverse overflows when squared."""


Part = tuple[np.ndarray, np.ndarray]
"""Samples by number and their kernel."""
_NOTHING_COPIED: Part = (np.zeros(0, dtype=int), np.zeros((0, 0)))


class Descent:
    """The weights a of the samples and their slacks g = 1 - y_n f(x_n), f = sum_n y_n a_n k(x_n, .)

    Arguments are those of `descend`; `start` (n,) are weights to begin with.
    """

    def __init__(self, K: np.ndarray, y: np.ndarray, caps: np.ndarray, start: np.ndarray):
        from . import steps  # numba is loaded by the first who descends

        self._K, self._y, self._caps = K, y, caps
        self._steps = steps
        self._copied: Part = _NOTHING_COPIED
        self._hard = math.isinf(caps.max())
        self._diagonal = np.diagonal(K).astype(np.float64)
        self.a: np.ndarray = np.clip(start, 0.0, caps)
        # Where a kernel is 0, f is 0 whatever the weight is: a hinge loss of 1.
        self._moves = self._diagonal > _SHORTEST
        self.a[~self._moves] = 0.0 if self._hard else caps[~self._moves]
        self._g = np.ones(len(y))
        if self.a.any():
            self._g -= y * (K @ (y * self.a).astype(K.dtype))

    @property
    def gap(self) -> float:
        """The relative gap between what the weights attain and what they prove."""
        return float(self._steps.measure_gap(self.a, self._g, self._caps, self._hard))

    @property
    def is_out_of_reach(self) -> bool:
        """Whether steps cannot tell the hard margin from 0."""
        if not self._hard or not self.a.any():
            return False
        square = float(self.a @ (1.0 - self._g))
        size = float(self.a @ np.sqrt(self._diagonal))
        return square <= _NOTHING * size * size

    def advance(self, gap: float, tol: float, deadline: float) -> None:
        """One round: choose the samples that move, move them, and renew the slacks of all."""
        first = gap > _FIRST_GAP and not self.a.any()
        goal = _FIRST_GAP if first else max(tol / 2, _PART_OF_GAP * gap)
        # Idle are those at a bound and pressed against it.
        beyond = _IDLE * max(1.0, 10 * gap)
        at_cap = (self.a >= self._caps) & (self._g > beyond)
        idle = np.where(self.a > 0, at_cap, self._g < -beyond)
        moving = np.flatnonzero(self._moves & (first | ~idle))
        moving, part = self._choose_moving(moving, goal)
        before = self.a[moving]
        self.a[moving] = self._move(part, moving, goal, deadline)
        changes = self._y[moving] * (self.a[moving] - before)
        changed = np.flatnonzero(changes)
        for start in range(0, len(changed), _ROWS_AT_ONCE):
            rows = changed[start : start + _ROWS_AT_ONCE]
            self._g -= self._y * (changes[rows].astype(self._K.dtype) @ self._K[moving[rows]])

    def _choose_moving(self, moving: np.ndarray, goal: float) -> Part:
        """The samples to move, or somewhat more where that saves a copy, and their kernel."""
        if len(moving) >= _COPIED * len(self.a):
            moving = np.flatnonzero(self._moves)
        if len(moving) == len(self.a):
            return moving, self._K
        last, part = self._copied
        dtype = self._K.dtype if goal < _SINGLE_GAP else np.dtype(np.float32)
        fits = len(moving) >= _COPIED * len(last) and part.dtype in (dtype, self._K.dtype)
        if not (fits and np.isin(moving, last, assume_unique=True).all()):
            self._copied = last, part = _NOTHING_COPIED  # before there is another one
            part = np.empty((len(moving), len(moving)), dtype)
            _copy_part(self._K, moving, part)
            self._copied = moving, part
        return self._copied

    def _move(self, K: np.ndarray, moving: np.ndarray, goal: float, deadline: float) -> np.ndarray:
        """The weights of the samples `moving`, with kernel K, after their steps."""
        a, g = self.a.take(moving), self._g.take(moving)
        y, caps, diagonal = self._y[moving], self._caps[moving], self._diagonal[moving]
        left = _STEPS_PER_SAMPLE * len(moving)
        at_once = max(_ENTRIES_AT_ONCE // len(moving), 64)
        while left > 0 and time.monotonic() < deadline:
            budget = min(left, at_once)
            taken = self._steps.take_steps(K, y, a, g, caps, diagonal, self._hard, goal, budget)
            if taken < budget:
                break
            left -= taken
        else:
            for _ in range(_NEWTON_STEPS):
                if (
                    self._steps.measure_gap(a, g, caps, self._hard) <= goal
                    or time.monotonic() >= deadline
                ):
                    break
                if not take_newton_step(K, y, a, g, caps):
                    break
        return a

    def polish(self) -> None:
        """One Newton step more where it costs next to nothing."""
        if np.count_nonzero((self.a > 0) & (self.a < self._caps)) <= _POLISHED:
            take_newton_step(self._K, self._y, self.a, self._g, self._caps)


def _copy_part(K: np.ndarray, chosen: np.ndarray, part: np.ndarray) -> None:
    """Write the rows and columns `chosen` (m,) of K (n, n) into `part` (m, m), which may round."""
    for row, i in zip(part, chosen, strict=True):
        row[:] = K[i].take(chosen)


def descend(
    K: np.ndarray,
    y: np.ndarray,
    caps: np.ndarray,
    weights: np.ndarray,
    *,
    tol: float,
    deadline: float = math.inf,
) -> float:
    """Minimize a'(yy' * K)a / 2 - sum a over 0 <= a <= caps.

    K (n, n) is a symmetric positive semidefinite kernel matrix, C-contiguous, float32 or float64; y
    (n,) are labels -1.0 and +1.0; `caps` (n,) the largest weights, all infinite for a hard margin,
    which need not exist. `weights` (n,) are those to begin with, for instance 0, and afterwards the
    best that were found, at Ctrl-C too. It ends at a relative gap of `tol`, or at `deadline`, a
    moment of `time.monotonic`. Returns the relative gap of the weights, up to the rounding of K; it
    may be above `tol`.

    Source: Steinwart, Hush, Scovel 2011, for the steps of two samples.
    """
    state = Descent(K, y, caps, weights)
    weights[:], best = state.a, state.gap
    for _ in range(_ROUNDS):
        gap = state.gap
        if gap <= tol or state.is_out_of_reach or time.monotonic() >= deadline:
            break
        state.advance(gap, tol, deadline)
        if state.gap < best or state.is_out_of_reach:
            weights[:], best = state.a, state.gap
    if best <= tol:
        state.polish()
        if state.gap < best:
            weights[:], best = state.a, state.gap
    return best

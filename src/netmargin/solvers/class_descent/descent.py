"""Passes over the samples that still gain, each ten followed by the best step in their span."""

import functools
import importlib
import math
import time
from collections.abc import Callable

import numpy as np

_PART_OF_MEAN = 0.1
"""Samples whose part of the gap is below this part of the mean are left out of a pass: all of them
together hold a tenth of it.
"""
_PASSES = 10
"""Passes between two steps in their span: 5 took 1.5 times as long on digits at C = 100, 20 as long
as 10.
"""
_SINGULAR = 1e-10
"""Directions of the span with less than this part of its curvature are left out: passes repeat."""
_ROUNDS = 300
"""Rounds after which it ends: digits take 5 at C = 1 to a gap of 1e-3, 20 at C = 100."""
_SAMPLES_AT_ONCE = 200
"""Samples of a pass between two looks at the clock: some 10 ms for 20,000 samples."""
_ROWS_AT_ONCE = 256
"""Rows of the kernel that are copied at once where outputs are renewed: 40 MB for 20,000 samples.
"""
_NOTHING = 1e-12
"""A squared bound of the margin below this, relative to the largest feature, is 0 to float64."""
_GROWTH = 1e-15
"""A round in which the dual objective grows by no more than this part of it is rounding."""


@functools.cache
def load_steps() -> tuple[Callable, Callable]:
    """The functions `take_pass` and `project`; numba is loaded by the first who descends."""
    passes = importlib.import_module(".passes", __package__)
    return passes.take_pass, passes.project


class ClassDescent:
    """The weights A (k, n) of the samples and the outputs F = A K (k, n) of the classes.

    Arguments are those of `descend_classes`.
    """

    def __init__(self, K: np.ndarray, labels: np.ndarray, caps: np.ndarray, start: np.ndarray):
        self._K, self._labels, self._caps = K, labels, caps
        self._diagonal = np.diagonal(K).astype(np.float64)
        self._hard = math.isinf(caps.max())
        self._own = (labels, np.arange(len(labels)))
        self._take_pass, self._project = load_steps()
        self.A = start.copy()
        self.renew_outputs()

    def renew_outputs(self) -> None:
        """Compute the outputs anew: steps add up their roundings."""
        self.F = self._multiply(self.A)

    def _multiply(self, V: np.ndarray) -> np.ndarray:
        """V K (k, n) for V (k, n), of which few columns are not 0."""
        product, used = np.zeros(V.shape), np.flatnonzero(V.any(0))
        for start in range(0, len(used), _ROWS_AT_ONCE):
            rows = used[start : start + _ROWS_AT_ONCE]
            product += V[:, rows].astype(self._K.dtype) @ self._K[rows]
        return product

    @property
    def dual(self) -> float:
        """The dual objective."""
        return float(self.A[self._own].sum() - 0.5 * np.einsum("kn,kn->", self.A, self.F))

    def measure_gap(self) -> tuple[float, np.ndarray]:
        """The relative gap, and the parts (n,) of it that the samples hold."""
        others = self.F.copy()
        others[self._own] = -np.inf
        margins = self.F[self._own] - others.max(0)
        gained, squares = self.A[self._own], np.einsum("kn,kn->n", self.A, self.F)
        square, total, least = float(squares.sum()), float(gained.sum()), float(margins.min())
        hinges = np.maximum(1 - margins, 0.0)
        # No sample will have much more than the largest has: with a huge or infinite cap, all but
        # the worst would be left out of a pass.
        expected = 2.0 * gained.max() or 1.0
        parts = squares - gained + np.minimum(self._caps, expected) * hinges
        if self._hard:
            gap = 1.0 - least * total / square if square > 0 else 1.0
            return gap, parts
        primal = 0.5 * square + float(self._caps @ hinges)
        if least > 0:  # scaled up, f has no hinge losses
            primal = min(primal, 0.5 * square / least**2)
        gap = (primal - (total - 0.5 * square)) / primal if primal > 0 else 0.0
        return gap, parts

    @property
    def proves_nothing(self) -> bool:
        """Whether the weights of a hard margin prove that it is 0 to float64."""
        total = float(self.A[self._own].sum())
        if not self._hard or total == 0:
            return False
        square = float(np.einsum("kn,kn->", self.A, self.F))
        return square <= _NOTHING * self._diagonal.max() * total**2

    def take_pass(self, parts: np.ndarray, deadline: float) -> None:
        """A step of each sample that holds a part of the gap, the largest first."""
        order = np.argsort(-parts, kind="stable")
        # Where a kernel is 0, f is 0 whatever the weights are.
        worth = (parts[order] > _PART_OF_MEAN * parts.mean()) & (self._diagonal[order] > 0)
        order = order[worth]
        for start in range(0, len(order), _SAMPLES_AT_ONCE):
            if time.monotonic() >= deadline:
                return
            some = order[start : start + _SAMPLES_AT_ONCE]
            self._take_pass(self._K, self._labels, self.A, self.F, self._caps, self._diagonal, some)

    def step_in_span(self, changes: list[np.ndarray], outputs: list[np.ndarray]) -> None:
        """Go to the best weights in the span of what passes changed, with the outputs of these, or
        as far towards them as is allowed and gains.
        """
        slopes = -self.F
        slopes[self._own] += 1.0
        U, V = (np.array([v.ravel() for v in part]) for part in (changes, outputs))
        curvature = 0.5 * (U @ V.T + V @ U.T)
        factors = np.linalg.pinv(curvature, rcond=_SINGULAR, hermitian=True) @ (U @ slopes.ravel())
        target = self.A + (factors @ U).reshape(self.A.shape)
        moved = np.flatnonzero((target != self.A).any(0))
        self._project(self._labels, target, self._caps, moved)
        change = target - self.A
        output = self._multiply(change)
        slope, bend = float(np.sum(slopes * change)), float(np.sum(change * output))
        if slope <= 0:
            return
        part = min(1.0, slope / bend) if bend > 0 else 1.0
        # To the last digit, so that a weight at its bound counts as there.
        self.A = target if part == 1.0 else self.A + part * change
        self.F = self.F + part * output


def descend_classes(
    K: np.ndarray,
    labels: np.ndarray,
    caps: np.ndarray,
    weights: np.ndarray,
    *,
    tol: float,
    deadline: float = math.inf,
) -> float:
    """Minimize sum_k A_k'K A_k / 2 - sum_n A_(y_n)n over weights A whose columns sum to 0, with
    A_kn <= 0 for k other than y_n and A_(y_n)n <= caps_n.

    Parameters
    ----------
    K : ndarray, shape (n, n)
        Symmetric positive semidefinite kernel matrix, C-contiguous, float32 or float64.
    labels : ndarray of int, shape (n,)
        Classes y_n by number.
    caps : ndarray, shape (n,)
        The largest weights; all infinite for a hard margin, which need not exist.
    weights : ndarray, shape (k, n)
        Weights to begin with, for instance 0; afterwards the best that were found, at Ctrl-C too.
    tol : float
        The relative gap at which it ends.
    deadline : float, default infinity
        The moment of `time.monotonic` at which it ends.

    Returns
    -------
    float
        The relative gap of these weights, up to the rounding of K; it may be above `tol`.

    Source: Crammer and Singer 2001; Keerthi et al. 2008 for descent by samples.
    """
    state, best = ClassDescent(K, labels, caps, weights), math.inf
    for _ in range(_ROUNDS):
        began = state.dual
        changes, outputs = [], []
        for _ in range(_PASSES):
            gap, parts = state.measure_gap()
            if gap < best:
                weights[:], best = state.A, gap
            if gap <= tol or state.proves_nothing or time.monotonic() >= deadline:
                if state.proves_nothing:
                    weights[:] = state.A
                return best
            A, F = state.A.copy(), state.F.copy()
            state.take_pass(parts, deadline)
            changes.append(state.A - A)
            outputs.append(state.F - F)
        state.step_in_span(changes, outputs)
        state.renew_outputs()
        if state.dual - began <= _GROWTH * abs(began):
            break
    return best

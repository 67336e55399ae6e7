"""The weights >= 0 of given neurons at the least loss plus their sum, by Newton's method."""

import time

import clarabel
import numpy as np
from scipy import sparse

from ...core.cone_program import minimize
from ..neurons.losses import Loss

_STEPS = 20
"""Newton's method converges in some ten steps; more are a sign of rounding."""
_STEP_LENGTHS = 0.5 ** np.arange(12.0)
"""Lengths tried in a line search; a step that needs less than 1/2000 of it is lost to rounding."""
_RELATIVE_DECREASE = 1e-14
"""A step that lowers the objective by less has reached the rounding of float64 sums."""
_DUST = (1e-9, 1e-6, 1e-4)
"""Weights below these parts of the largest are dropped, in turn, before the last refinement: an
interior point leaves dust on every neuron.
"""
_RANK = 1e-12
"""Singular values that count as 0 in Newton's equations, relative to the largest: nearly equal
neurons must not get huge steps of opposite signs.
"""
_GONE = 1e-12
"""A weight below this part of the largest is 0 to the rounding of the step that led to it."""


class Objective:
    """Loss + sum alphas over weights alphas (k,) of neurons with outputs A (n, k)."""

    def __init__(self, A: np.ndarray, loss: Loss):
        self.A, self._loss = A, loss

    def value(self, alphas: np.ndarray) -> float:
        """The objective at these weights, in float64."""
        return self._loss.value((self.A @ alphas)[:, None]) + float(alphas.sum())

    def expand(self, alphas: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient (k,) in the weights in use, and a root (n, k) of the Hessian."""
        A, F = self.A[:, used], (self.A @ alphas)[:, None]
        return 1 - A.T @ self._loss.slopes(F)[:, 0], np.sqrt(self._loss.curvatures(F))[:, None] * A


def optimize_weights(objective: Objective, alphas: np.ndarray, deadline: float):
    """Yield weights near the optimum, from `alphas` (k,) on, by quadratic programs."""
    k = len(alphas)
    for _ in range(_STEPS):
        slope, roots = objective.expand(alphas, np.arange(k))
        # In units of the total weight the solver's tolerances mean the same for all of them.
        size = max(float(alphas.sum()), 1.0)
        roots = roots * np.sqrt(size)
        found, _ = minimize(
            slope - roots.T @ (roots @ alphas) / size,
            -sparse.identity(k),
            np.zeros(k),
            [clarabel.NonnegativeConeT(k)],
            quadratic=sparse.csc_matrix(roots.T @ roots),
            tol=1e-10,
            deadline=deadline,
        )
        step, before = np.maximum(found, 0.0) * size - alphas, objective.value(alphas)
        tried = (alphas + length * step for length in _STEP_LENGTHS)
        better = next((moved for moved in tried if objective.value(moved) < before), None)
        if better is None:
            break
        alphas = better
        decrease = before - objective.value(alphas)
        if decrease <= _RELATIVE_DECREASE * before or time.monotonic() > deadline:
            break
    # The interior point has the neurons, a refinement without the dust has the digits.
    for threshold in _DUST:
        large = alphas > threshold * alphas.max(initial=0.0)
        yield _refine_weights(objective, np.where(large, alphas, 0.0))


def _refine_weights(objective: Objective, alphas: np.ndarray) -> np.ndarray:
    """Newton's method over the neurons that have weight; one whose weight falls to 0 leaves."""
    for _ in range(_STEPS):
        used = np.flatnonzero(alphas)
        slope, roots = objective.expand(alphas, used)
        step = np.linalg.lstsq(roots.T @ roots, -slope, rcond=_RANK)[0]
        falls = step < 0
        length = min(1.0, (-alphas[used] / np.where(falls, step, -1.0))[falls].min(initial=1.0))
        moved = np.zeros_like(alphas)
        moved[used] = np.maximum(alphas[used] + length * step, 0.0)
        moved[moved <= _GONE * moved.max(initial=0.0)] = 0.0
        if not np.isfinite(moved).all() or objective.value(moved) > objective.value(alphas):
            break
        alphas = moved
    return alphas

"""Wasserstein gradient flow of the smooth margin as seen on the sphere."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.special import logsumexp
from torch import Tensor

from ...core.matrices import SolverData, binary_data
from ...core.records import Shown
from ...errors import ArgumentError, DataError
from ...losses import Exponential
from ...nets.model import with_gradients
from ...result import Status
from ...solvers.solution import ReLUMeasure
from ...twolayer.smooth_margin import sample_weights
from ._features import FeatureMeasure, as_tensor, find_moving

_LARGEST_LOG_MASS = 300.0
"""Masses above e^300 enter as e^300: the least margin alone counts, and outputs could overflow."""


@dataclass(frozen=True)
class ProjectedFlow(Shown):
    """The measures nu_t at K times, normalized to probabilities nu_bar_t."""

    times: np.ndarray  # those that were reached, (K,)
    margins: np.ndarray  # min_n y_n int phi(., x_n) d nu_bar_t, (K,)
    log_masses: np.ndarray  # log nu_t(sphere), (K,)
    duals: np.ndarray  # grad S, of sum 1, (K, n)
    measures: list[Any]  # nu_bar_t of the kind of the start, particles in its order
    status: Status


@with_gradients
def projected_flow(
    start: ReLUMeasure | FeatureMeasure,
    X: Any,
    y: Any,
    *,
    times: Sequence[float],
    rtol: float = 1e-6,
    max_evaluations: int = 100_000,
) -> ProjectedFlow:
    """Follow Wasserstein gradient flow of the smooth margin on the sphere.

    d nu_t / dt = -div(grad J' nu_t) + 4 J' nu_t, J'(theta) = sum_n grad_n S y_n phi(theta, x_n),
    S = -log sum_n exp(-q_n), from nu_0 = `start`: the directions and log masses of gradient ascent
    dw_j / dt = m grad_j S. In (12) J' is that of nu_t, not of nu_bar_t as printed. The mass grows
    like exp(4 gamma t), so this is for the beginning; `train_both_layers` goes further. What stops
    early warns, but for Ctrl-C, and returns the times so far. `start` holds ReLUs, or a feature of
    your own. Chizat and Bach 2020, (11) and (12).
    """
    data = binary_data(X, y, bias=start.bias)
    t = np.asarray(times, dtype=np.float64)
    if t.ndim != 1 or not len(t) or t[0] < 0 or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ArgumentError("times must be increasing, finite numbers from 0 on")
    if isinstance(start, FeatureMeasure):
        start.check(data.Z)
    elif start.atoms.shape[1] != data.Z.shape[1] + 1:
        raise DataError(
            f"start must have atoms of dimension {data.Z.shape[1] + 1} for these inputs; got"
            f" {start.atoms.shape}"
        )
    if not start.weights.sum() > 0:
        raise DataError("start must have mass: all its weights are 0.")
    # Particles without mass have no log mass, and never get any.
    used = start.weights > 0
    start = replace(start, atoms=start.atoms[used], weights=start.weights[used])
    field = _FlowField(data, start, max_evaluations)
    state = field.start()
    rows, reached, now, status = [], [], 0.0, Status.FINISHED
    try:
        for time in t:
            if time > now:
                found = solve_ivp(field, (now, time), state, method="DOP853", rtol=rtol, atol=rtol)
                state, now = found.y[:, -1], float(found.t[-1])
                status = Status.FINISHED if found.success else Status.STALLED
            if status is Status.STALLED:
                break
            rows.append(field.row(state))
            reached.append(now)
    except TimeoutError:
        status = Status.EVALUATION_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    if status in (Status.STALLED, Status.EVALUATION_LIMIT):
        by = "steps below the precision of t"
        if status is Status.EVALUATION_LIMIT:
            by = f"max_evaluations = {max_evaluations}"
        warnings.warn(
            f"stopped by {by} between t = {now:.6g} and {time:.6g}; the times so far are returned."
            " Large masses, large inputs and kinks of ReLU take small steps: raise max_evaluations"
            " or rtol, scale X, or use train_both_layers.",
            UserWarning,
            stacklevel=3,  # at the call of projected_flow
        )
    # How far the integration came is worth a record, and at the start the only one.
    if status is not Status.FINISHED and (not reached or now > reached[-1]):
        rows.append(field.row(state))
        reached.append(now)
    *numbers, measures = zip(*rows, strict=True)
    margins, log_masses, duals = map(np.array, numbers)
    return ProjectedFlow(np.array(reached), margins, log_masses, duals, list(measures), status)


class _FlowField:
    """The velocity of unit directions and of log masses; TimeoutError after `most` calls."""

    def __init__(self, data: SolverData, start: ReLUMeasure | FeatureMeasure, most: int) -> None:
        self._Z, self._labels = map(as_tensor, (data.Z, data.y))
        self._left = most
        self._measure, (self._feature, self._atoms) = start, find_moving(start)

    def start(self) -> np.ndarray:
        """The state at time 0: directions of the particles, and logs of their masses."""
        sizes = np.linalg.norm(self._atoms, axis=1)
        return np.append(
            self._atoms / sizes[:, None], np.log(self._measure.weights) + 2 * np.log(sizes)
        )

    def __call__(self, t: float, state: np.ndarray) -> np.ndarray:
        if not self._left:
            raise TimeoutError
        self._left -= 1
        theta, _, features, p = self._unpack_state(state)
        J = features @ (p * self._labels)
        (gradient,) = torch.autograd.grad(J.sum(), theta)
        theta, J = theta.detach(), J.detach()
        # By Euler's theorem the radial part of the gradient is 2 J' theta.
        return torch.cat([(gradient - 2 * J[:, None] * theta).flatten(), 4 * J]).numpy()

    def row(
        self, state: np.ndarray
    ) -> tuple[float, float, np.ndarray, ReLUMeasure | FeatureMeasure]:
        """Margin, log mass, dual weights and probability measure of a state."""
        theta, log_masses, features, p = self._unpack_state(state)
        log_mass = float(logsumexp(log_masses))
        weights = np.exp(log_masses - log_mass)
        atoms = np.column_stack([theta.detach(), self._measure.atoms[:, theta.shape[1] :]])
        q = self._labels * (as_tensor(weights) @ features)
        measure = replace(self._measure, atoms=atoms, weights=weights / weights.sum())
        return q.min().item(), log_mass, p.numpy(), measure

    def _unpack_state(self, state: np.ndarray) -> tuple[Tensor, np.ndarray, Tensor, Tensor]:
        """Unit directions, log masses, features (N, n) of the directions, sample weights."""
        count = len(self._atoms)
        drifted, log_masses = state[:-count].reshape(count, -1), state[-count:]
        # Integration drifts off the sphere.
        theta = as_tensor(drifted / np.linalg.norm(drifted, axis=1, keepdims=True))
        theta.requires_grad_()
        features = self._feature(theta, self._Z)
        largest = log_masses.max()
        masses = np.exp(log_masses - largest + min(largest, _LARGEST_LOG_MASS))
        q = self._labels * (as_tensor(masses) @ features.detach())
        return theta, log_masses, features, sample_weights(-q[None], Exponential())[0]

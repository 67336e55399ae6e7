"""Wasserstein gradient flow of the smooth margin as seen on the sphere."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.integrate import solve_ivp

from ...core.matrices import SolverData, binary_data
from ...core.records import short_repr
from ...errors import ArgumentError, DataError
from ...losses import Loss
from ...result import Status
from ...solvers.solution import ReLUMeasure
from ...twolayer.smooth_margin import margin_loss, sample_weights

_LARGEST_LOG_MASS = 300.0
"""Masses above e^300 enter as e^300: the weights of the samples are then those of the least margin
alone, and larger outputs could overflow.
"""


@dataclass(frozen=True)
class ProjectedFlow:
    """The measures nu_t at K times, normalized to probabilities nu_bar_t."""

    times: np.ndarray  # those that were reached, (K,)
    margins: np.ndarray  # min_n y_n int phi(., x_n) d nu_bar_t, (K,)
    log_masses: np.ndarray  # log nu_t(sphere), (K,)
    duals: np.ndarray  # grad S, of sum 1, (K, n)
    measures: list[ReLUMeasure]  # nu_bar_t, particles in the order of the start
    status: Status

    __repr__ = short_repr


def projected_flow(
    start: ReLUMeasure,
    X,
    y,
    *,
    times: Sequence[float],
    loss: Loss | None = None,
    rtol: float = 1e-6,
    max_evaluations: int = 100_000,
) -> ProjectedFlow:
    """Follow Wasserstein gradient flow of the smooth margin on the sphere.

    d nu_t / dt = -div(grad J' nu_t) + 4 J' nu_t, J'(theta) = sum_n grad_n S y_n phi(theta, x_n),
    S = -log sum_n l(q_n), from nu_0 = `start`: the directions and log masses of gradient ascent
    dw_j / dt = m grad_j S. In (12) J' is that of nu_t, not of nu_bar_t as printed. The mass grows
    like exp(4 gamma t), so this is for the beginning; `train_both_layers` goes further. What stops
    early warns, but for Ctrl-C, and returns the times so far. Chizat and Bach 2020, (11) and (12).
    """
    data, loss = binary_data(X, y, bias=start.bias), margin_loss(loss)
    t = np.asarray(times, dtype=np.float64)
    if t.ndim != 1 or not len(t) or t[0] < 0 or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ArgumentError("times must be increasing, finite numbers from 0 on")
    if start.slope:
        raise DataError("start must be a measure of ReLUs; its slope below 0 is not 0.")
    if not start.mass > 0 or start.atoms.shape[1] != data.Z.shape[1] + 1:
        raise DataError(
            f"start must have mass, and atoms of dimension {data.Z.shape[1] + 1} for these inputs;"
            f" got {start.atoms.shape}"
        )
    # Particles without mass have no log mass, and never get any.
    used = start.weights > 0
    field = _FlowField(data, start.atoms[used], start.power, loss, max_evaluations)
    directions = start.atoms[used][:, : field.moving].ravel()
    state = np.concatenate([directions, np.log(start.weights[used])])
    rows, reached, now, status = [], [], 0.0, Status.FINISHED
    try:
        for time in t:
            if time > now:
                found = solve_ivp(field, (now, time), state, method="DOP853", rtol=rtol, atol=rtol)
                state, now = found.y[:, -1], float(found.t[-1])
                status = Status.FINISHED if found.success else Status.STALLED
            if status is Status.STALLED:
                break
            rows.append(field.row(state, start.bias))
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
            stacklevel=2,
        )
    # How far the integration came is worth a record, and at the start the only one.
    if status is not Status.FINISHED and (not reached or now > reached[-1]):
        rows.append(field.row(state, start.bias))
        reached.append(now)
    *numbers, measures = zip(*rows, strict=True)
    margins, log_masses, duals = map(np.array, numbers)
    return ProjectedFlow(np.array(reached), margins, log_masses, duals, list(measures), status)


class _FlowField:
    """The velocity of unit directions and of log masses; TimeoutError after `most` calls."""

    def __init__(self, data: SolverData, atoms: np.ndarray, power: int, loss: Loss, most: int):
        self._data, self._power, self._loss, self._left = data, power, loss, most
        self._signs = atoms[:, -1]
        self.moving = atoms.shape[1] if power == 1 else atoms.shape[1] - 1

    def __call__(self, t: float, state: np.ndarray) -> np.ndarray:
        if not self._left:
            raise TimeoutError
        self._left -= 1
        theta, _, z, b, p = self._unpack_state(state)
        v = p * self._data.y
        slopes = z > 0 if self._power == 1 else 2 * z
        gradient = b[:, None] * (slopes @ (v[:, None] * self._data.Z))
        if self._power == 1:
            gradient = np.column_stack([gradient, z @ v])
        J = b * (z**self._power @ v)
        # By Euler's theorem the radial part of the gradient is 2 J' theta.
        return np.concatenate([(gradient - 2 * J[:, None] * theta).ravel(), 4 * J])

    def row(self, state: np.ndarray, bias: bool) -> tuple[float, float, np.ndarray, ReLUMeasure]:
        """Margin, log mass, dual weights and probability measure of a state."""
        theta, log_masses, z, b, p = self._unpack_state(state)
        largest = log_masses.max()
        shares = np.exp(log_masses - largest)
        log_mass = float(largest + math.log(shares.sum()))
        atoms = theta if self._power == 1 else np.column_stack([theta, self._signs])
        weights = shares / shares.sum()
        measure = ReLUMeasure(atoms=atoms, weights=weights, bias=bias, power=self._power)
        q = self._data.y * ((weights * b) @ z**self._power)
        return float(q.min()), log_mass, p, measure

    def _unpack_state(
        self, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Unit directions, log masses, activations (N, n), output weights, sample weights."""
        count = len(self._signs)
        theta, log_masses = state[:-count].reshape(count, self.moving), state[-count:]
        # Integration drifts off the sphere.
        theta = theta / np.linalg.norm(theta, axis=1, keepdims=True)
        a, b = (theta[:, :-1], theta[:, -1]) if self._power == 1 else (theta, self._signs)
        z = np.maximum(a @ self._data.Z.T, 0.0)
        largest = log_masses.max()
        masses = np.exp(log_masses - largest + min(largest, _LARGEST_LOG_MASS))
        q = self._data.y * ((masses * b) @ z**self._power)
        p = sample_weights(torch.from_numpy(-q)[None], self._loss)[0].numpy()
        return theta, log_masses, z, b, p

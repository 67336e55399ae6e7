"""Nets that keep the constraints of a loss: moved to where they do, and scaled for the rest."""

from typing import TypeGuard

import numpy as np

from .labels import Signs, least_margin
from .losses import Loss, QuadraticLoss
from .samples import Samples

_RAISES, _DAMPING = 6, 1e-4
"""Steps that raise margins below 1, and the part of the mean curvature that keeps them short: steps
without it cross kinks and lead nowhere, and ten times as much leaves a third of the way.
"""
_EQUAL = 1e-9
"""Values within this part of the largest are those that were asked for."""
_MOST_NEAR = 5000
"""Samples near their margin up to which these are raised: their matrix takes 200 MB."""
_FEW = 1000
"""Samples up to which there may be a neuron along each: least squares over them take a second."""
_MOVES, _MOVING_WORK, _NEARER = 12, 1e9, 0.5
"""Gauss-Newton steps towards values that are asked for, multiplications of one up to which they are
taken (a tenth of a second), and the part of what was missed that a step has to leave at most.
"""
_TINY = 1e-300
"""Keeps samples of length 0 from dividing by 0."""


def asks_for_values(loss: Loss) -> TypeGuard[QuadraticLoss]:
    """Whether its constraints are the values of all outputs."""
    return isinstance(loss, QuadraticLoss) and loss.hard and loss.low == -np.inf


def keep_constraints(
    samples: Samples, W: np.ndarray, A: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Neurons W (k, D) with outputs A (k, K) that keep the constraints of the loss, as near as can
    be, and the objective, infinite where they do not.
    """
    loss = samples.loss
    if asks_for_values(loss):
        W, A, missed = _take_values(samples, loss.target, W, A)
        rest = 0.0 if missed <= _EQUAL else np.inf
    elif isinstance(loss, QuadraticLoss) and loss.hard:
        least = least_margin(loss.labels, samples.outputs(W, A))
        A, rest = (A / least, 0.0) if least > 0 else (A, np.inf)
    else:
        rest = loss.value(samples.outputs(W, A))
    return W, A, float(np.linalg.norm(A, axis=1).sum()) + rest


def raise_margins(samples: Samples, W: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neurons and outputs nearby whose margins are at least nearly 1, where that costs less than to
    scale all outputs; for hard margins of one output. Others are returned as they were given.

    Each step is the shortest that lifts short margins to 1 and leaves others near 1 as they are.
    """
    loss, phi = samples.loss, samples.activation
    hard = isinstance(loss, QuadraticLoss) and loss.hard
    if not (hard and isinstance(loss.labels, Signs) and len(W)):
        return W, A
    given, y = (W, A), loss.labels.y[:, 0]
    for _ in range(_RAISES):
        short = 1 - y * samples.outputs(W, A)[:, 0]
        near = short > -short.max()
        if not 0 < near.sum() <= _MOST_NEAR:
            break
        Z, t = samples.Z[near], samples.Z[near] @ W.T
        features, slopes = phi.feature(t), phi.derivative(t) * A[:, 0]
        kernel = features @ features.T + (Z @ Z.T) * (slopes @ slopes.T)
        size = np.diag(kernel).mean()
        if not 0 < size < np.inf:
            break
        kernel[np.diag_indices_from(kernel)] += _DAMPING * size
        lifts = np.linalg.solve(kernel, y[near] * np.maximum(short[near], 0.0))
        U, b = W + (slopes * lifts[:, None]).T @ Z, A + features.T @ lifts[:, None]
        lengths = np.linalg.norm(U, axis=1, keepdims=True)
        W, A = U / np.maximum(lengths, _TINY), b * lengths**phi.power
    nets = given, (W, A)
    return min(nets, key=lambda net: keep_constraints(samples, *net)[2])


def _take_values(
    samples: Samples, values: np.ndarray, W: np.ndarray, A: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The net with these values, as near as can be, and the part that it still misses."""
    W, A = _move_to_values(samples, values, W, A)
    along = samples.Z / np.maximum(np.linalg.norm(samples.Z, axis=1, keepdims=True), _TINY)
    off = _measure_missed(samples, values, W, A)
    # Least squares over its neurons, then over those along samples, which tell all apart.
    for extra in (along[:0], along, -along):
        if off <= _EQUAL or (len(extra) and len(values) > _FEW):
            break
        W = np.concatenate([W, extra])
        A = np.concatenate([A, np.zeros((len(extra), A.shape[1]))])
        missed = values - samples.outputs(W, A)
        A = A + np.linalg.lstsq(samples.features(W), missed, rcond=None)[0]
        off = _measure_missed(samples, values, W, A)
    return W, A, off


def _move_to_values(
    samples: Samples, values: np.ndarray, W: np.ndarray, A: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The net nearest by that attains the values, by Gauss-Newton steps, or the given one."""
    (k, D), (n, K) = W.shape, values.shape
    sizes = n * K, k * (D + K)
    if not k or sizes[0] * sizes[1] * min(sizes) > _MOVING_WORK:
        return W, A
    given, missed = (W, A), _measure_missed(samples, values, W, A)
    for _ in range(_MOVES):
        if missed <= _EQUAL:
            return W, A
        t = samples.Z @ W.T
        bent = np.einsum("nj,jc,nd->ncjd", samples.activation.derivative(t), A, samples.Z)
        features = np.einsum("nj,cb->ncjb", samples.activation.feature(t), np.eye(K))
        changes = np.concatenate([bent, features], axis=3).reshape(sizes)
        rest = (values - samples.outputs(W, A)).ravel()
        step = np.linalg.lstsq(changes, rest, rcond=None)[0].reshape(k, D + K)
        lengths = np.linalg.norm(W + step[:, :D], axis=1, keepdims=True)
        W = (W + step[:, :D]) / np.maximum(lengths, _TINY)
        A = (A + step[:, D:]) * lengths**samples.activation.power
        before, missed = missed, _measure_missed(samples, values, W, A)
        if not missed <= _NEARER * before:
            break
    return (W, A) if missed <= _EQUAL else given


def _measure_missed(samples: Samples, values: np.ndarray, W: np.ndarray, A: np.ndarray) -> float:
    """The largest difference of the outputs from the values, in units of the largest value."""
    return float(np.abs(samples.outputs(W, A) - values).max() / (np.abs(values).max() or 1.0))

"""Heuristic pricing in any dimension: local maxima of |sum_i c_i phi(u . z_i)| on the sphere,
batched over starts.

It proves nothing. Ascent along gradients finds the region of a maximum but halts on the concave
kinks (samples with u . z_i = 0 that pull a neuron there), where maxima of the sums usually lie; a
Newton method on smoothed kinks then finishes the best ones.
"""

import math
import time

import numpy as np

from ..neurons.activations import RELU, Activation

# Nothing here is proved: these numbers trade time for the maxima that are found, set by trial.

_SETTLED, _SETTLED_AT_LEAST, _SETTLED_WORK = 24, 4, 400
"""Directions that Newton's method finishes, and the least number of them: a step costs about n D^2
per direction, so that only 400 / D are taken in high dimensions.
"""
_NEWTON_STEPS, _SMOOTHING = 20, (0.1, 1e-7)
"""Newton steps, and relative widths of the smoothed kinks, from the first to the last of them: wide
enough to leave a kink, then so narrow that the maximum is found to half the digits of float64.
"""
_ENTRIES_AT_ONCE = 50_000_000
"""Entries of the Newton matrices that are built at once: 400 MB."""
_STEEPEST = 1e11
"""Largest curvature of a kink: beyond it, linear systems lose all digits (1e16 in float64)."""
_TINY = 1e-300
"""Keeps what is 0 from dividing by 0."""
_LONGER, _SHORTER, _SHORTEST = 1.5, 0.5, 1e-4
"""Factors of the step length after a success and a failure, and the length at which ascent ends. On
two problems of 60 samples in 8 dimensions other factors (1.1 to 2, 0.25 to 0.8) and lengths (1e-2,
1e-7) led to margins that were smaller by up to 0.7%.
"""
_LEAST_GAIN = 1e-9
"""Ascent ends where a step gains less than this part: Newton's method is faster from there."""
_SAME_DIRECTION = 1e-10
"""Directions whose cosine is this close to 1 count as one: they are 1e-5 apart."""


def price_locally(
    Z: np.ndarray,
    c: np.ndarray,
    starts: np.ndarray,
    *,
    count: int,
    activation: Activation = RELU,
    steps: int = 30,
    deadline: float = math.inf,
) -> tuple[np.ndarray, np.ndarray]:
    """Find up to `count` distinct unit directions, shape (k, D), largest absolute value first, with
    their values (k,), by local search from `starts` (m, D) up to the deadline (time.monotonic).
    """
    U, values = select_distinct(*_ascend(Z, c, _unit(starts), activation, steps, deadline), count)
    if activation.kink:
        best = min(_SETTLED, max(_SETTLED_AT_LEAST, _SETTLED_WORK // Z.shape[1]))
        signs = np.where(values[:best] >= 0, 1.0, -1.0)
        settled = _refine_directions(Z, c, U[:best], signs, activation, deadline)
        U = np.concatenate([U, settled])
        U, values = select_distinct(U, weighted_sums(Z, c, U, activation), count)
    return U, values


def draw_starts(Z: np.ndarray, random: np.random.Generator, *, samples: int, normal: int):
    """Unit directions (k, D) to search from: the samples Z and their opposites, or a random
    `samples` of these, where local maxima are near, and `normal` ones, which reach everywhere else.
    """
    rays = np.concatenate([Z, -Z])
    if len(rays) > samples:
        rays = rays[random.choice(len(rays), samples, replace=False)]
    return unit_rows(np.concatenate([rays, random.normal(size=(normal, Z.shape[1]))]))


def unit_rows(U: np.ndarray) -> np.ndarray:
    """The rows of U (m, D) that have a direction, at length 1."""
    lengths = np.linalg.norm(U, axis=1)
    kept = (lengths > 0) & (lengths < np.inf)
    return U[kept] / lengths[kept, None]


def weighted_sums(
    Z: np.ndarray, c: np.ndarray, U: np.ndarray, activation: Activation = RELU
) -> np.ndarray:
    """The sums sum_i c_i phi(u . z_i), shape (k,), for each row u of U (k, D)."""
    return activation.feature(U @ Z.T) @ c


def select_distinct(U: np.ndarray, values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Select the `count` directions of largest absolute value, without near-duplicates."""
    chosen: list[int] = []
    free = np.ones(len(U), dtype=bool)
    # A stable order makes the result the same on every machine where values tie.
    for index in np.argsort(-np.abs(values), kind="stable").tolist():
        if len(chosen) == count:
            break
        if free[index]:
            chosen.append(index)
            free &= U @ U[index] < 1 - _SAME_DIRECTION
    return U[chosen], values[chosen]


def _ascend(
    Z, c, U: np.ndarray, activation: Activation, steps: int, deadline: float
) -> tuple[np.ndarray, np.ndarray]:
    """Ascend along gradients from unit directions U (m, D), each with a step length of its own."""
    products = U @ Z.T
    values = activation.feature(products) @ c
    signs, step = np.where(values >= 0, 1.0, -1.0), np.ones(len(U))
    # Directions that have arrived are left out of the products, which take all the time.
    live = np.arange(len(U))
    weighted = c[:, None] * Z
    for _ in range(steps):
        slopes = activation.derivative(products[live])
        gradient = _unit(signs[live, None] * (slopes @ weighted))
        # On a cell the maximum is at the normalized gradient (power 1): step towards it, less far
        # where that does not help.
        moved = _unit(U[live] + step[live, None] * (gradient - U[live]))
        moved_products = moved @ Z.T
        moved_values = activation.feature(moved_products) @ c
        gain = signs[live] * (moved_values - values[live])
        better = gain > 0
        to = live[better]
        U[to], values[to] = moved[better], moved_values[better]
        products[to] = moved_products[better]
        step[live] = np.where(better, np.minimum(1.0, _LONGER * step[live]), _SHORTER * step[live])
        gains = gain > _LEAST_GAIN * np.abs(values[live])
        live = live[np.where(better, gains, step[live] > _SHORTEST)]
        if not len(live) or time.monotonic() > deadline:
            break
    return U, values


def _refine_directions(
    Z, c, U: np.ndarray, signs: np.ndarray, activation: Activation, deadline: float
) -> np.ndarray:
    """Move directions into the kinks where maxima lie, by majorizing and minimizing: convex terms
    are linearized, concave |t| are replaced by t^2 / 2h + h / 2, h = |t| smoothed ever less. Each
    step is a linear system: the maximum on the sphere is that of f(u) - |u|^2 / 2 up to scale.
    """
    D, lengths = Z.shape[1], np.linalg.norm(Z, axis=1)
    signed = signs[:, None] * c
    kinks, slope = activation.kink * signed, activation.slope
    convex, concave = np.where(kinks > 0, signed, 0.0), np.where(kinks > 0, 0.0, signed)
    bends = np.maximum(-0.5 * kinks, 0.0)
    best, best_values = U.copy(), signs * weighted_sums(Z, c, U, activation)
    U = U * np.abs(best_values)[:, None]
    batch = max(1, _ENTRIES_AT_ONCE // (len(Z) * D))
    # A narrow kink holds whatever comes near it; smoothing that shrinks lets directions leave.
    for smoothing in np.geomspace(*_SMOOTHING, _NEWTON_STEPS):
        if time.monotonic() > deadline:
            break
        products = U @ Z.T
        linear = np.where(products > 0, convex, slope * convex) @ Z
        linear += activation.line * concave @ Z
        smooth = np.sqrt(
            products**2 + (smoothing * np.linalg.norm(U, axis=1, keepdims=True) * lengths) ** 2
        )
        curvature = bends / np.maximum(smooth, np.maximum(bends / _STEEPEST, _TINY))
        for start in range(0, len(U), batch):
            part = slice(start, start + batch)
            quadratic = np.matmul((curvature[part, :, None] * Z).transpose(0, 2, 1), Z) + np.eye(D)
            U[part] = np.linalg.solve(quadratic, linear[part, :, None])[:, :, 0]
        on_sphere = _unit(U)
        values = signs * weighted_sums(Z, c, on_sphere, activation)
        # A step may lead downhill while the smoothing is wide: the best ones are kept.
        better = values > best_values
        best[better], best_values[better] = on_sphere[better], values[better]
    return best


def _unit(U: np.ndarray) -> np.ndarray:
    """Scale rows to length 1; rows of length 0 stay 0."""
    return U / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), _TINY)

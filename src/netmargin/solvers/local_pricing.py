"""Heuristic pricing in any dimension: ascent of |sum_i c_i relu(u . z_i)| on the sphere from many starts, batched."""

import numpy as np

_STEPS = 60


def price_locally(Z: np.ndarray, c: np.ndarray, starts: np.ndarray, *, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Up to `count` distinct unit directions, shape (k, D), with their values; finds local maxima and proves nothing."""
    U = starts / np.linalg.norm(starts, axis=1, keepdims=True)
    values = np.maximum(U @ Z.T, 0.0) @ c
    signs = np.where(values >= 0, 1.0, -1.0)
    step = np.full(len(U), 1.0)
    for _ in range(_STEPS):
        gradient = signs[:, None] * ((U @ Z.T > 0) * c) @ Z
        norm = np.linalg.norm(gradient, axis=1, keepdims=True)
        # On a cell the maximum is at the normalized gradient: step towards it, less far where that does not help.
        target = U + step[:, None] * (gradient / np.maximum(norm, 1e-300) - U)
        moved = target / np.maximum(np.linalg.norm(target, axis=1, keepdims=True), 1e-300)
        moved_values = np.maximum(moved @ Z.T, 0.0) @ c
        better = signs * moved_values > signs * values
        U[better], values[better] = moved[better], moved_values[better]
        step = np.where(better, np.minimum(1.0, 1.5 * step), 0.5 * step)
    chosen: list[int] = []
    for index in np.argsort(-np.abs(values), kind="stable"):
        if len(chosen) == count:
            break
        if not chosen or (U[chosen] @ U[index]).max() < 1 - 1e-10:
            chosen.append(int(index))
    return U[chosen], values[chosen]

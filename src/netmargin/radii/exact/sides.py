"""Symmetric 2 x 2 matrices on the two sides of every unit, as triples (11, 12, 22)."""

import numpy as np

from .inequality import LINEAR, OUTPUT, OUTPUT_SQUARE, PRODUCT, SQUARE
from .region_relaxation import Relaxation, widened

SYMMETRIC = np.array([1.0, 2.0, 1.0])
"""Weights of the entries in the inner product of symmetric 2 x 2 matrices."""


def map_sides(relaxation: Relaxation) -> tuple[np.ndarray, np.ndarray]:
    """The 2 x 2 matrices of the sides as affine functions of (theta, tau, kappa).

    Returns the linear part, (U, 2, 3, 8), and the constant one, (U, 2, 3); a closed side is the
    unit matrix.
    """
    s, o = relaxation.slope, relaxation.offset
    linear = np.zeros((*s.shape, 3, 8))
    linear[..., 1, LINEAR] = -1
    linear[..., 0, OUTPUT], linear[..., 1, OUTPUT] = -2 * o, -s
    linear[..., 2, SQUARE] = -1
    linear[..., 1, PRODUCT], linear[..., 2, PRODUCT] = -o, -2 * s
    linear[..., 0, OUTPUT_SQUARE] = -(o**2)
    linear[..., 1, OUTPUT_SQUARE], linear[..., 2, OUTPUT_SQUARE] = -s * o, -(s**2)
    linear[..., 0, 5] = -2
    weight = relaxation.weight[:, None]
    constant = np.stack([2 * weight * o, weight * s, 0 * o], 2)
    # In coordinates where the side is [-1, 1]: a side as narrow as 1e-8 would leave no digits.
    low, high = widened(relaxation)
    middle, half = (low + high)[..., None] / 2, (high - low)[..., None] / 2
    parts = np.concatenate([linear, constant[..., None]], 3)
    first = parts[..., 0, :] + 2 * middle * parts[..., 1, :] + middle**2 * parts[..., 2, :]
    mixed = half * (parts[..., 1, :] + middle * parts[..., 2, :])
    parts = np.stack([first, mixed, half**2 * parts[..., 2, :]], 2)
    linear, constant = parts[..., :-1], parts[..., -1]
    for side in (0, 1):  # kappa (y - l)(u - y), with kappa in the same units
        linear[:, side, 0, 6 + side], linear[:, side, 2, 6 + side] = -2, 2
    linear[~relaxation.open] = 0
    constant[~relaxation.open] = [1.0, 0.0, 1.0]
    return linear, constant


def invert_sides(a: np.ndarray) -> np.ndarray:
    """Invert matrices, (..., 3)."""
    determinant = a[..., 0] * a[..., 2] - a[..., 1] ** 2
    return np.stack([a[..., 2], -a[..., 1], a[..., 0]], -1) / determinant[..., None]


def multiply_sides(x: np.ndarray, r: np.ndarray) -> np.ndarray:
    """tr(E_a X E_c R) for the basis E of symmetric 2 x 2 matrices, (..., 3, 3)."""
    x1, x2, x3 = x[..., 0], x[..., 1], x[..., 2]
    r1, r2, r3 = r[..., 0], r[..., 1], r[..., 2]
    a, b, c = x1 * r2 + x2 * r1, x2 * r2, x3 * r2 + x2 * r3
    middle = 2 * b + x3 * r1 + x1 * r3
    parts = [x1 * r1, a, b, a, middle, c, b, c, x3 * r3]
    return np.stack(parts, -1).reshape(*x1.shape, 3, 3)


def twist_sides(x: np.ndarray, change: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """The symmetric part of X dS S^-1."""
    x1, x2, x3 = x[..., 0], x[..., 1], x[..., 2]
    c1, c2, c3 = change[..., 0], change[..., 1], change[..., 2]
    r1, r2, r3 = inverse[..., 0], inverse[..., 1], inverse[..., 2]
    p11, p12 = x1 * c1 + x2 * c2, x1 * c2 + x2 * c3
    p21, p22 = x2 * c1 + x3 * c2, x2 * c2 + x3 * c3
    q12, q21 = p11 * r2 + p12 * r3, p21 * r1 + p22 * r2
    return np.stack([p11 * r1 + p12 * r2, (q12 + q21) / 2, p21 * r2 + p22 * r3], -1)


def least_of_sides(inverse: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The least eigenvalue of S^-1 dS, for 2 x 2 matrices."""
    trace = (inverse * change * SYMMETRIC).sum(-1)
    determinant = (inverse[..., 0] * inverse[..., 2] - inverse[..., 1] ** 2) * (
        change[..., 0] * change[..., 2] - change[..., 1] ** 2
    )
    return trace / 2 - np.sqrt(np.maximum(trace**2 / 4 - determinant, 0.0))

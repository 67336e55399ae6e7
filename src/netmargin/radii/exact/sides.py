"""Symmetric 2 x 2 matrices on the two sides of every unit: quadratic forms of (1, y)."""

import numpy as np

from ...core.matrices import Floats
from .inequality import LINEAR, OUTPUT, OUTPUT_SQUARE, PRODUCT, SQUARE
from .region_relaxation import Relaxation

_WIDEN = 1e-9
"""Share of a unit's reach by which intervals are widened at each end: one of width 0 would leave
the barrier no interior. Exact bounds use the intervals as they are.
"""


def map_sides(relaxation: Relaxation) -> tuple[Floats, Floats]:
    """The matrices of the sides as affine functions of (theta, tau, kappa).

    Returns the linear part, (U, 8, 2, 2, 2), and the constant one, (U, 2, 2, 2); a closed side is
    the unit matrix. The coordinates are those where the side is [-1, 1]: one as narrow as 1e-8
    would leave no digits.
    """
    low, high = relaxation.low - _WIDEN, relaxation.high + _WIDEN
    one = np.array([1.0, 0.0])
    y = np.stack([(low + high) / 2, (high - low) / 2], -1)
    t = relaxation.slope[..., None] * y + relaxation.offset[..., None] * one
    linear = np.zeros((len(y), 8, 2, 2, 2))
    linear[:, LINEAR], linear[:, OUTPUT] = -_pair(one, y), -_pair(one, t)
    linear[:, SQUARE], linear[:, PRODUCT] = -_pair(y, y) / 2, -_pair(y, t)
    linear[:, OUTPUT_SQUARE], linear[:, 5] = -_pair(t, t) / 2, -_pair(one, one)
    for side in (0, 1):  # kappa (y - l)(u - y), with kappa in the same units
        linear[:, 6 + side, side] = [[-2, 0], [0, 2]]
    constant = relaxation.weight[:, None, None, None] * _pair(one, t)
    linear *= relaxation.open[:, None, :, None, None]
    constant[~relaxation.open] = np.eye(2)
    return linear, constant


def _pair(f: Floats, g: Floats) -> Floats:
    """The matrix M with v M v'/2 = (f . v)(g . v)."""
    product = f[..., :, None] * g[..., None, :]
    return product + product.swapaxes(-1, -2)


def invert_sides(a: Floats) -> Floats:
    """Inverses of symmetric matrices."""
    adjugate = np.array([[1.0, -1.0], [-1.0, 1.0]]) * a[..., ::-1, ::-1]
    return adjugate / _determinants(a)[..., None, None]


def twist_sides(x: Floats, change: Floats, inverse: Floats) -> Floats:
    """The symmetric part of X dS S^-1."""
    product = x @ change @ inverse
    return (product + product.swapaxes(-1, -2)) / 2


def least_of_sides(inverse: Floats, change: Floats) -> Floats:
    """The least eigenvalue of S^-1 dS."""
    half: Floats = (inverse * change).sum((-1, -2)) / 2
    determinant = _determinants(inverse) * _determinants(change)
    return -np.sqrt(np.maximum(half**2 - determinant, 0.0)) + half


def _determinants(a: Floats) -> Floats:
    """Determinants of symmetric matrices."""
    return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] ** 2

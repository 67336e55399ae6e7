"""Points on one line share a hyperplane u . z = 0; points on one ray share a term of the sums."""

import numpy as np

from ...core.matrices import EPS, split_lengths
from ..neurons.activations import RELU, Activation

PARALLEL = 1e-11
"""Directions closer than this count as one: some ten thousand times the rounding of unit vectors.
By how much the sums can differ for that is added to bounds.
"""
_TINY = float(np.finfo(float).tiny)
"""The smallest normal number of float64."""


class Rays:
    """The distinct directions among points: phi(u . (a z)) = a^power phi(u . z) for a > 0."""

    def __init__(self, Z: np.ndarray, power: int = 1) -> None:
        self._power = power
        normals, line, side, self._neglected = find_lines(Z)
        self._lengths = split_lengths(Z)[0]
        # A key for each ray: the hyperplane and the side of it, or -1 for points at 0.
        keys, self._ray = np.unique(
            np.where(line >= 0, 2 * line + (side < 0), -1), return_inverse=True
        )
        self.directions = np.array(
            [np.zeros(Z.shape[1]) if k < 0 else normals[k // 2] * (1 - 2 * (k % 2)) for k in keys]
        )

    def neglected(self, c: np.ndarray) -> float:
        """The most by which a sum differs because nearly parallel points count as parallel."""
        moved = bound_moves(self._neglected, self._lengths, self._power)
        # A sum of n terms >= 0 is rounded by less than n ulps; 1e-12 covers thousands of them.
        return float(np.abs(c) @ moved) * (1 + 1e-12)

    def merge(self, c: np.ndarray) -> np.ndarray:
        """Coefficients of the directions, from the coefficients c (n,) of the points."""
        return np.bincount(
            self._ray, weights=c * self._lengths**self._power, minlength=len(self.directions)
        )


def bound_moves(moved: np.ndarray, lengths: np.ndarray, power: int) -> np.ndarray:
    """The most that relu(u . z)^power changes for points of these lengths that are moved so far."""
    return moved if power == 1 else moved * (2 * lengths + moved)


def find_lines(
    Z: np.ndarray, *, within: float = PARALLEL
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Find the distinct hyperplanes u . z = 0 of samples Z (n, D); directions closer than `within`
    count as one. Returns their unit normals (m, D), and for each sample, shape (n,), its hyperplane
    (-1 for z = 0), the side it points to (-1 or 1), and how far it was moved onto that normal.
    """
    norms, units = split_lengths(Z)
    line, side, moved = np.full(len(Z), -1), np.ones(len(Z)), np.zeros(len(Z))
    normals, count = np.empty_like(Z), 0
    # One by one, so that points are compared with normals that stay: nearness is not transitive.
    for i in np.flatnonzero(Z.any(1)):
        direction = units[i]
        if count:
            cosines = normals[:count] @ direction
            k = int(np.argmax(np.abs(cosines)))
            distance = np.linalg.norm(direction - np.sign(cosines[k]) * normals[k])
            if distance < within:
                line[i], side[i], moved[i] = k, np.sign(cosines[k]), distance * norms[i]
                continue
        line[i] = count
        normals[count] = direction
        count += 1
    return normals[:count].copy(), line, side, moved


def as_relu_sum(
    Z: np.ndarray, c: np.ndarray, activation: Activation
) -> tuple[np.ndarray, np.ndarray]:
    """Points and coefficients for which sum_i c_i relu(u . z_i) is the sum of c_i phi(u . z_i), phi
    of power 1, up to rounding (`bound_rounding`).

    phi(t) = (1 - slope) relu(t) + slope t, and all linear terms together are relu(t) - relu(-t) of
    one more point.
    """
    if activation.slope == 0:
        return Z, c
    length, direction = split_lengths(activation.slope * (c @ Z)[None])
    return (
        np.concatenate([Z, direction, -direction]),
        np.concatenate([(1 - activation.slope) * c, length, -length]),
    )


def bound_rounding(c: np.ndarray, Z: np.ndarray, activation: Activation = RELU) -> float:
    """The most that float64 can take off a bound of |sum_i c_i phi(u . z_i)| over the unit sphere
    for coefficients c (n,) and points Z (n, D).

    Each of about n + D operations on the sum is off by at most half an ulp of its absolute terms,
    |c_i| |z_i|^power. So is every coefficient, by up to n ulps where points on one ray are merged,
    and every point, by up to D + 8 ulps of its length: inputs that were divided by a length,
    coordinates in an orthonormal basis. What falls below the normal range of float64 is lost, once
    for each product. The linear part of phi, |slope| times the size, counts four times: its sum is
    rounded, has two terms (`as_relu_sum`), and is taken off the others.
    """
    n, D = Z.shape
    size = float(np.abs(c) @ split_lengths(Z)[0] ** activation.power)
    size *= 1 + 4 * abs(activation.slope)
    return float(4 * (n + D + 32) * EPS * size + n * D * _TINY)

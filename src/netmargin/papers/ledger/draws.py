"""Random instances of several claims: points with labels, directions, and features of both."""

import numpy as np

from .trial import Trial

BLOCKS = 100
"""The number of instances of a trial: 105 trials examine more than 10,000."""
NEURONS = 24
"""Random directions, several times the at most 5 samples: few instances lack full rank."""


def draw_points(random: np.random.Generator, n: int, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Draw normal points (n, d), with labels in {-1, 1} that have nothing to do with them."""
    return random.normal(size=(n, d)), random.choice([-1, 1], n)


def draw_directions(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw unit vectors along the last axis of an array of this shape, uniform on the sphere."""
    U = random.normal(size=shape)
    U /= np.linalg.norm(U, axis=-1, keepdims=True)
    return U


def draw_blobs(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two classes in four blobs of the plane, of which opposite ones have the same label."""
    # A sample in each blob at least, so that no linear classifier separates them.
    corner = np.append(np.arange(4), random.integers(4, size=n - 4))
    X = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])[corner] + 0.3 * random.uniform(-1, 1, (n, 2))
    return X, 1 - 2 * (corner % 2)


def draw_signed(trial: Trial) -> np.ndarray:
    """Draw y_n relu(u_j . x_n), (B, n, k), of rank n; n from 1 to 5, in 2 to 4 dimensions."""
    random, n, d = trial.random, 1 + trial.number % 5, 2 + trial.number // 5 % 3
    X, U = random.normal(size=(BLOCKS, n, d)), draw_directions(random, BLOCKS, NEURONS, d)
    y = random.choice([-1.0, 1.0], (BLOCKS, n, 1))
    signed: np.ndarray = y * np.maximum(X @ U.transpose(0, 2, 1), 0)
    # Nearly dependent rows would make the linear programs ill conditioned.
    return signed[np.linalg.svd(signed, compute_uv=False)[:, -1] > 0.05, ...]

"""The data of Chizat and Bach (2020), Section 7, shared by the benchmarks: k x k disks with random labels, and noise dimensions."""

import numpy as np


def clusters(n: int = 256, d: int = 15, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Disks of radius 1 / (3k - 1) at steps of 3 / (3k - 1) in the first two coordinates, uniform noise in [-1/2, 1/2] in the others."""
    random = np.random.default_rng(seed)
    labels = random.choice([-1.0, 1.0], (k, k))
    disk = random.integers(k, size=(n, 2))
    angle, radius = random.uniform(0, 2 * np.pi, n), np.sqrt(random.uniform(0, 1, n)) / (3 * k - 1)
    centre = -0.5 + 1 / (3 * k - 1) + 3 * disk / (3 * k - 1)
    plane = centre + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.hstack([plane, random.uniform(-0.5, 0.5, (n, d - 2))]), labels[disk[:, 0], disk[:, 1]]

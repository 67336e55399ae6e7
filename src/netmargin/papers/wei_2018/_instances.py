"""The two papers' names, and the small data sets on which several of their claims are examined."""

import numpy as np
import torch

from ... import datasets

W18, W19 = "Wei et al. 2018", "Wei et al. 2019"


def _line(x: list[float], y: list[int]):
    """Points on a line with their labels."""
    return torch.tensor(x, dtype=torch.float64)[:, None], torch.tensor(y)


def _circle(n: int):
    """Points at equal angles on the unit circle, with alternating labels."""
    angle, y = 2 * np.pi * np.arange(n) / n, 1 - 2 * (np.arange(n) % 2)
    return torch.tensor(np.column_stack([np.cos(angle), np.sin(angle)])), torch.tensor(y)


# Sets whose exact minimizer at lambda = 1e-12 is itself within 1% of the max margin.
PATHS = {
    "two pairs on a line": lambda: _line([-2.0, -1.0, 1.0, 2.0], [1, 1, -1, -1]),
    "inside and outside": lambda: _line([-3.0, -1.0, 1.0, 3.0], [-1, 1, 1, -1]),
    "square": lambda: datasets.parity(2, 2),
    "hexagon": lambda: _circle(6),
    "XOR with noise": lambda: datasets.gaussian_xor(20, 2),
}

"""Data sets as pairs (X, y) of tensors. Images: X float32 in [0, 1], y int64 class indices.
Distributions of the papers: X float64, y int64 in {-1, +1}.
"""

from .cifar10 import cifar10
from .digits import digits
from .distributions import (
    alternating,
    clusters,
    gaussian_xor,
    hypercube,
    parity,
    parity_margin,
    teacher,
    teacher_net,
)
from .mnist import mnist

BY_NAME = {"digits": digits, "mnist": mnist, "cifar10": cifar10}

__all__ = [
    "BY_NAME",
    "alternating",
    "cifar10",
    "clusters",
    "digits",
    "gaussian_xor",
    "hypercube",
    "mnist",
    "parity",
    "parity_margin",
    "teacher",
    "teacher_net",
]

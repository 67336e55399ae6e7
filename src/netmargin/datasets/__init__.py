"""Data sets as pairs (X, y) of tensors. Images: X float32 in [0, 1], y int64 class indices.
Distributions of the papers: X float64, y int64 in {-1, +1}.
"""

from .cifar10 import cifar10
from .digits import digits
from .distributions import alternating, clusters, gaussian_xor, hypercube
from .mnist import mnist
from .parity import parity, parity_margin
from .teacher import teacher, teacher_net

BY_NAME = {"digits": digits, "mnist": mnist, "cifar10": cifar10}
"""The data sets that recipes and the command line name by a word."""

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

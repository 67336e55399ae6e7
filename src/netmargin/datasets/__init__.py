"""Data sets as pairs (X, y) of tensors: X float32 in [0, 1], y int64 class indices."""

from .cifar10 import cifar10
from .digits import digits
from .mnist import mnist

BY_NAME = {"digits": digits, "mnist": mnist, "cifar10": cifar10}

__all__ = ["BY_NAME", "cifar10", "digits", "mnist"]

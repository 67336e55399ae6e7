"""Minimizers of loss plus a weak penalty, and how weak suffices."""

from .following import RegularizationPath
from .path import interpolation_path, regularization_path
from .weak import WeakRegularization, weak_regularization

__all__ = [
    "RegularizationPath",
    "WeakRegularization",
    "interpolation_path",
    "regularization_path",
    "weak_regularization",
]

"""Minimizers of loss plus a weak penalty, and how weak suffices."""

from .following import RegularizationPath
from .path import regularization_path
from .weak import WeakRegularization, weak_regularization

__all__ = ["RegularizationPath", "WeakRegularization", "regularization_path", "weak_regularization"]

"""Convex references: the best margins that nets can have, each with a judged value and a proved bound."""

from .f1 import f1_max_margin
from .solution import VariationNormSolution

__all__ = ["VariationNormSolution", "f1_max_margin"]

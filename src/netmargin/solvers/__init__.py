"""Convex references: the best margins that nets can have, each with a judged value and a proved bound."""

from .f1 import f1_max_margin, f1_soft_margin
from .kernel import KernelSolution, f2_max_margin, kernel_max_margin, ntk_max_margin
from .linear import LinearSolution, linear_max_margin
from .solution import SoftVariationNormSolution, VariationNormSolution

__all__ = [
    "KernelSolution",
    "LinearSolution",
    "SoftVariationNormSolution",
    "VariationNormSolution",
    "f1_max_margin",
    "f1_soft_margin",
    "f2_max_margin",
    "kernel_max_margin",
    "linear_max_margin",
    "ntk_max_margin",
]

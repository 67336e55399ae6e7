"""Convex references: the best margins of nets, recomputed in float64, with proved bounds."""

from ..core.public import guard
from .f1 import f1_max_margin, f1_soft_margin
from .hard_kernel import KernelSolution
from .interpolation import KernelInterpolation, MeasureInterpolation, min_norm_interpolation
from .kernel import f2_max_margin, kernel_max_margin, ntk_max_margin
from .linear import LinearSolution, linear_max_margin

# Behind the regressor, and not public by itself; files of its solutions are read through here.
from .regularized import SquaredVariationNormSolution as SquaredVariationNormSolution, f1_logistic
from .soft_kernel import SoftKernelSolution, kernel_soft_margin
from .solution import (
    LogisticVariationNormSolution,
    ReLUMeasure,
    SoftVariationNormSolution,
    VariationNormSolution,
)
from .two_layer_fit import fit_two_layer_net
from .two_layer_net import TwoLayerFit

__all__ = [
    "KernelInterpolation",
    "KernelSolution",
    "LinearSolution",
    "LogisticVariationNormSolution",
    "MeasureInterpolation",
    "ReLUMeasure",
    "SoftKernelSolution",
    "SoftVariationNormSolution",
    "TwoLayerFit",
    "VariationNormSolution",
    "f1_logistic",
    "f1_max_margin",
    "f1_soft_margin",
    "f2_max_margin",
    "fit_two_layer_net",
    "kernel_max_margin",
    "kernel_soft_margin",
    "linear_max_margin",
    "min_norm_interpolation",
    "ntk_max_margin",
]
guard(globals())

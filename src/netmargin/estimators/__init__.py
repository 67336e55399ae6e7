"""The max-margin solvers with the interface of scikit-learn."""

from ..core.public import guard
from .kernel_classifiers import NTKClassifier, ReLUKernelClassifier
from .regressor import VariationNormRegressor
from .variation_norm import VariationNormClassifier

__all__ = [
    "NTKClassifier",
    "ReLUKernelClassifier",
    "VariationNormClassifier",
    "VariationNormRegressor",
]
guard(globals())

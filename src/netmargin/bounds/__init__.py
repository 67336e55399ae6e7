"""Generalization bounds: each returns its terms, says what it assumes, and when it is vacuous."""

from ..core.public import guard
from .best_share import BestShare, share_of_best
from .bound import Bound, margin_bound
from .interclass import InterclassDistance, interclass_bound, interclass_distance
from .networks import deep_bound, kernel_bound, two_layer_bound
from .rademacher import Rademacher, kernel_ball, variation_ball
from .regression import regression_bound, truncated_squares

__all__ = [
    "BestShare",
    "Bound",
    "InterclassDistance",
    "Rademacher",
    "deep_bound",
    "interclass_bound",
    "interclass_distance",
    "kernel_ball",
    "kernel_bound",
    "margin_bound",
    "regression_bound",
    "share_of_best",
    "truncated_squares",
    "two_layer_bound",
    "variation_ball",
]
guard(globals())

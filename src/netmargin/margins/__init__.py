"""Margins of a net on data, and every normalization of them."""

from .compare import compare
from .comparison import Comparison, Difference
from .input_margins import InputMargins, input_margins
from .measurement import make_report, measure
from .normalization import normalizing_homogeneity
from .of_outputs import margins, score_gaps
from .report import NEAR_SUPPORT, MarginReport

__all__ = [
    "NEAR_SUPPORT",
    "Comparison",
    "Difference",
    "InputMargins",
    "MarginReport",
    "compare",
    "input_margins",
    "make_report",
    "margins",
    "measure",
    "normalizing_homogeneity",
    "score_gaps",
]

"""Margins of a net on data, and every normalization of them."""

from .input_margins import InputMargins, input_margins
from .measurement import measure
from .normalization import normalizing_homogeneity, norms
from .of_outputs import margins, score_gaps
from .report import NEAR_SUPPORT, MarginReport

__all__ = [
    "NEAR_SUPPORT",
    "InputMargins",
    "MarginReport",
    "input_margins",
    "margins",
    "measure",
    "normalizing_homogeneity",
    "norms",
    "score_gaps",
]

"""Margins of a net on data, and every normalization of them."""

from .measurement import measure
from .normalization import normalizing_homogeneity, norms
from .of_outputs import margins, score_gaps, soft_margins
from .report import NEAR_SUPPORT, MarginReport

__all__ = [
    "NEAR_SUPPORT",
    "MarginReport",
    "margins",
    "measure",
    "normalizing_homogeneity",
    "norms",
    "score_gaps",
    "soft_margins",
]

"""Margins of a net on data, and every normalization of them."""

from ..core.public import guard
from .compare import compare
from .comparison import Comparison, Difference
from .input_margins import InputMargins, input_margins
from .measurement import (
    make_report as make_report,
    measure,
    measure_margins as measure_margins,
    measure_scores as measure_scores,
)

# For the other packages, and not public: what a report of margins is made of.
from .near_answers import Groups as Groups
from .normalization import normalizing_homogeneity as normalizing_homogeneity
from .of_outputs import margins as margins, score_gaps as score_gaps, soft_margins as soft_margins
from .report import NEAR_SUPPORT, MarginReport

__all__ = [
    "NEAR_SUPPORT",
    "Comparison",
    "Difference",
    "InputMargins",
    "MarginReport",
    "compare",
    "input_margins",
    "measure",
]
guard(globals())

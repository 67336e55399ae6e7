"""Margins of a net on data, and every normalization of them."""

from .measurement import measure

# For the other rooms, and not public: what a report of margins is made of.
from .normalization import normalizing_homogeneity as normalizing_homogeneity
from .normalization import norms as norms
from .of_outputs import margins as margins
from .of_outputs import score_gaps as score_gaps
from .of_outputs import soft_margins as soft_margins
from .report import NEAR_SUPPORT, MarginReport

__all__ = ["NEAR_SUPPORT", "MarginReport", "measure"]

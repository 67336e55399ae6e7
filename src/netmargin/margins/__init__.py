"""Margins of a net on data, and every normalization of them."""

from .measurement import measure
from .report import NEAR_SUPPORT, MarginReport

__all__ = ["NEAR_SUPPORT", "MarginReport", "measure"]

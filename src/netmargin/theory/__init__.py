"""The ledger: every claim of the five papers as a function that looks for violations of it."""

from . import lyu_li, wei
from .claim import CLAIMS, Claim, Entry, Finding, Trial

__all__ = ["CLAIMS", "Claim", "Entry", "Finding", "Trial", "lyu_li", "wei"]

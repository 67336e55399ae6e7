"""The ledger: every claim of the five papers as a function that looks for violations of it."""

from . import chizat_bach, lyu_li, two_homogeneity, wei
from .claim import CLAIMS, Claim, Entry, Finding, Trial

__all__ = ["CLAIMS", "Claim", "Entry", "Finding", "Trial", "chizat_bach", "lyu_li", "two_homogeneity", "wei"]

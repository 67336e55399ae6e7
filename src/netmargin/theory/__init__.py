"""The ledger: every claim of the five papers as a function that looks for violations of it."""

from . import lyu_li, wei, chizat_bach, two_homogeneity  # noqa: F401, I001 (claims are registered in the order of the papers)
from .claim import CLAIMS, Claim, Entry, Finding, Trial
from .ledger import Ledger, verify

__all__ = ["CLAIMS", "Claim", "Entry", "Finding", "Ledger", "Trial", "verify"]

"""The ledger: claims of the five papers, each a function that looks for violations of it.

The claims themselves lie in the folders of their papers, `netmargin.papers`.
"""

from .papers.ledger.claim import CLAIMS, Claim, Entry, load_claims
from .papers.ledger.trial import Finding, Trial
from .papers.ledger.verification import Ledger, verify

load_claims()

__all__ = ["CLAIMS", "Claim", "Entry", "Finding", "Ledger", "Trial", "verify"]

"""Certificates as the small tables of notebooks."""

from decimal import ROUND_FLOOR

from ..core.notebook_tables import Certainty, NotebookTable, describe_in_notebook, number
from .certificate import KKTCertificate


@describe_in_notebook.register
def describe_certificate(found: KKTCertificate) -> NotebookTable:
    """How far the net is from a KKT point, with the bound that is proved, and what it rests on."""
    least = number(found.epsilon_lower / found.norm, ROUND_FLOOR)
    heaviest = ", ".join(map(str, found.support[:6].tolist()))
    rows = (
        ("relative epsilon (0: a KKT point)", (number(found.relative_epsilon), Certainty.MEASURED)),
        ("no multipliers give less than", (least, Certainty.PROVED)),
        ("delta", (number(found.delta), Certainty.MEASURED)),
        ("samples with a weight", f"{len(found.support):,} of {found.samples:,}"),
        ("the heaviest", heaviest),
        ("completeness", str(found.completeness)),
        ("status", str(found.status)),
    )
    return NotebookTable("Certificate of a max-margin point", rows)

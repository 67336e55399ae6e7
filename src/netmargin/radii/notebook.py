"""Radii as the small tables of notebooks."""

from decimal import ROUND_FLOOR

import numpy as np

from ..core.notebook_tables import Cell, Certainty, NotebookTable, describe_in_notebook, number
from ..nets.probabilities import show_warning
from .report import RobustnessReport


@describe_in_notebook.register
def describe_radii(found: RobustnessReport) -> NotebookTable:
    """The medians of what is proved and of what was found."""
    rows: list[tuple[Cell, ...]] = [("right", (f"{found.accuracy:.2%}", Certainty.MEASURED))]
    if found.no_lower:
        rows.append(("no radius is proved", found.no_lower))
    else:
        middle = number(float(np.median(found.lower)), ROUND_FLOOR)
        rows.append(("no smaller change flips half of them", (middle, Certainty.PROVED)))
    if found.attacks:
        middle = number(float(np.median(found.upper)))
        rows.append(("a change found that flips half of them", (middle, Certainty.MEASURED)))
        rows.append(("not flipped by any attack", f"{found.not_found:,} of {found.n:,}"))
    rows.append(("status", str(found.status)))
    return NotebookTable(f"Radii of {found.n:,} samples", rows, notes=show_warning(found.warning))

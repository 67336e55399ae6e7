"""A picture of several nets on the same data: what compares them, and beside it what does not."""

import math
from pathlib import Path

from ..core.arguments import check_instance
from ..margins import Comparison
from .style import BOTH, OTHER, OUTPUT, open_canvas, open_folder, save_drawings

_ROW_HEIGHT = 0.32
"""Inches for each net: a line of text."""


def draw_comparison(comparison: Comparison, folder: str | Path) -> list[Path]:
    """Draw several nets side by side: the error with its 95% interval, z, input margins.

    Written is comparison as PNG and PDF. Of input margins, where they were measured, there are the
    quantiles from 10 to 50%, with a circle at 25%; they are estimates, and dashed.

    Parameters
    ----------
    comparison : Comparison
        What `netmargin.compare` returned.
    folder : str or Path
        Folder for the picture, made where it is not there.

    Returns
    -------
    list of Path
        The PNG file.

    Raises
    ------
    ArgumentError
        If `comparison` is something else, or `folder` is no path.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> nets = {f"width {m}": nm.models.mlp([64, m, 10]) for m in (8, 32)}
    >>> X, y = nm.datasets.digits(limit=60)
    >>> found = nm.compare(nets, (X[:40], y[:40]), (X[40:], y[40:]), progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in nm.figures.draw_comparison(found, folder)]
    ['comparison.png']

    Source: beyond the papers.
    """
    check_instance("comparison", comparison, Comparison, "what netmargin.compare returns")
    folder = open_folder(folder)
    table = comparison.frame()
    panels = []
    shown, kind = comparison.reports[0], table.columns[0][0]
    panels += [
        (f"error on {shown.n} {kind} samples", kind, ("error from", "error", "error to"), OUTPUT),
        (f"z on {kind} samples (larger is better)", kind, ("z", "z", "z"), BOTH),
    ]
    near = "training" if comparison.training else kind
    if (near, "input margin 25%") in table.columns:
        columns = ("input margin 10%", "input margin 25%", "input margin 50%")
        panels.append((f"estimated input margin, {near}", near, columns, OTHER))
    height = 1.2 + _ROW_HEIGHT * len(comparison.names)
    figure, axes = open_canvas(len(panels), width=3.6, height=height)
    for axis, (title, data, columns, colour) in zip(axes[0], panels, strict=True):
        rows = table[data][list(columns)].astype(float).to_numpy()
        # Estimates are dashed, with open marks: by shape too they are no measurements.
        estimated = columns[0].startswith("input margin")
        line, inside = ("--", "white") if estimated else ("-", colour)
        for place, (low, middle, high) in enumerate(rows):
            if all(map(math.isfinite, (low, middle, high))):
                axis.plot([low, high], [place, place], line, color=colour, linewidth=2)
                axis.plot([middle], [place], "o", color=colour, markerfacecolor=inside)
        axis.set(title=title, ylim=(len(rows) - 0.5, -0.5))
        axis.set_yticks(range(len(rows)), comparison.names if axis is axes[0][0] else [])
        axis.grid(axis="x", alpha=0.3)
    return save_drawings({"comparison": figure}, folder)

"""The drawing kit: one size, one palette of colours with a meaning, one way to save."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arguments import check_path
from ..core.files import make_folder, write_atomically

BOTH, OUTPUT, EXACT, OTHER = "#0072b2", "#d55e00", "#222222", "#009e73"
"""Training both layers, or the net; the output layer or the kernel; exact optima; a third method
(Okabe and Ito's palette, which colour-blind readers can tell apart).
"""

_DOTS_PER_INCH = 120  # sharp on a page, and still well under 200 KB


def open_canvas(columns: int = 1, rows: int = 1, *, width: float = 4.2, height: float = 3.2):
    """A matplotlib figure and its axes as an array of shape (rows, columns).

    matplotlib is imported here, because it takes half a second that only those who draw should wait
    for.
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = drawn.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
    return drawn, axes


def open_row(columns: int = 1):
    """A figure and a list of `columns` axes side by side, with a grid and whole numbers below: for
    what is drawn over epochs.
    """
    drawn, axes = open_canvas(columns, width=4.8, height=3.4)
    for axis in axes[0]:
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.ticklabel_format(axis="y", scilimits=(-3, 4))
        axis.grid(alpha=0.3)
    return drawn, axes[0]


def open_folder(folder: str | Path) -> Path:
    """The folder as a path, made where it is not there: before minutes of work whose pictures could
    not be kept.

    Raises ArgumentError where it is no path, CheckpointError where no file can be written there.
    """
    path = check_path("folder", folder)
    make_folder(path)
    return path


def save_drawings(drawings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write each matplotlib figure as NAME.png and NAME.pdf, whole or not at all, and return the
    paths of the PNG files.

    Raises CheckpointError where the folder cannot be written to.
    """
    for name, drawn in drawings.items():
        for ending in ("png", "pdf"):
            picture = io.BytesIO()
            drawn.savefig(picture, format=ending, dpi=_DOTS_PER_INCH)
            write_atomically(folder / f"{name}.{ending}", picture.getvalue())
    return [folder / f"{name}.png" for name in drawings]


def draw_band(axis, x: Sequence[float], values: np.ndarray, *, colour: str, label: str) -> None:
    """A thin line for each run, `values` of shape (runs, len(x)), and a thick one for their
    mean.
    """
    axis.plot(x, np.asarray(values).T, color=colour, linewidth=0.5, alpha=0.3)
    axis.plot(
        x,
        np.mean(values, axis=0),
        color=colour,
        linewidth=2.2,
        marker="o",
        markersize=3,
        label=label,
    )


def draw_samples(axis, X: np.ndarray, y: np.ndarray) -> None:
    """Two classes, y in {-1, +1}, by their first two coordinates."""
    for label, colour, marker in ((1, BOTH, "+"), (-1, OUTPUT, "_")):
        axis.scatter(
            *np.asarray(X)[np.asarray(y) == label, :2].T,
            s=16,
            color=colour,
            marker=marker,
            linewidth=1.2,
        )

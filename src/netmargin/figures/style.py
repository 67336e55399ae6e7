"""The drawing kit: one size, one palette of colours with a meaning, one way to save."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arguments import check_path
from ..core.files import make_folder, write_atomically
from ..core.records import printable

BOTH, OUTPUT, EXACT, OTHER = "#0072b2", "#d55e00", "#222222", "#009e73"
"""Training both layers, or the net; the output layer or the kernel; exact optima; a third method
(Okabe and Ito's palette, which colour-blind readers can tell apart).
"""

_DOTS_PER_INCH = 120
"""Sharp on a page, and still well under 200 KB."""


def open_canvas(
    columns: int = 1, rows: int = 1, *, width: float = 4.2, height: float = 3.2, **axes: Any
) -> Any:
    """A matplotlib figure and its axes, such as `projection="3d"`, of shape (rows, columns)."""
    from matplotlib.figure import Figure  # late: only those who draw wait half a second for it

    # Not pyplot, which looks for a display and keeps every figure alive until it is closed.
    drawn = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = drawn.subplots(rows, columns, squeeze=False, subplot_kw=axes)
    for axis in grid.ravel():
        axis.spines[["top", "right"]].set_visible(False)
    return drawn, grid


def draw_gallery(
    images: Iterable[Any],
    titles: Sequence[str],
    head: str,
    *,
    rows: int = 4,
    columns: int = 10,
    height: float,
    size: int = 7,
) -> Any:
    """A figure of images in rows, as many as there are titles, with the titles above them."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(9.0, height), layout="constrained")
    axes = drawn.subplots(rows, columns).ravel()
    for axis in axes:
        axis.axis("off")
    for axis, image, title in zip(axes, images, titles, strict=False):
        axis.imshow(np.asarray(image), cmap="gray_r")
        axis.set_title(title, fontsize=size)
    drawn.suptitle(head, fontsize=size + 2)
    return drawn


def open_row(columns: int = 1) -> Any:
    """A figure and axes side by side for what is drawn over epochs: a grid, whole numbers below."""
    drawn, axes = open_canvas(columns, width=4.8, height=3.4)
    for axis in axes[0]:
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.ticklabel_format(axis="y", scilimits=(-3, 4))
        axis.grid(alpha=0.3)
    return drawn, axes[0]


def open_folder(folder: str | Path) -> Path:
    """The folder as a path, made where it is not there. Raises ArgumentError, CheckpointError."""
    path = check_path("folder", folder)
    make_folder(path)
    return path


def save_drawings(drawings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write each matplotlib figure as NAME.png and NAME.pdf, whole or not at all; return the paths
    of the former. Raises CheckpointError where the folder cannot be written to.
    """
    from matplotlib.text import Text

    for name, drawn in drawings.items():
        for text in drawn.findobj(Text):  # names of files, which matplotlib refuses to draw
            text.set_text(printable(text.get_text()))
        for ending in ("png", "pdf"):
            # Into memory first, so that an interrupted drawing leaves the picture before it whole.
            picture = io.BytesIO()
            drawn.savefig(picture, format=ending, dpi=_DOTS_PER_INCH)
            drawn.set_layout_engine("none")  # laid out once: half of the time of a gallery
            write_atomically(folder / f"{name}.{ending}", picture.getvalue())
    return [folder / f"{name}.png" for name in drawings]


def draw_band(
    axis: Any, x: Sequence[float], values: np.ndarray, *, colour: str, label: str
) -> None:
    """Draw a thin line for each run and a thick one for their mean; `values` is (runs, len(x))."""
    axis.plot(x, np.asarray(values).T, color=colour, linewidth=0.5, alpha=0.3)
    mean = np.mean(values, axis=0)
    axis.plot(x, mean, "o-", color=colour, linewidth=2.2, markersize=3, label=label)


def draw_samples(axis: Any, X: Any, y: Any) -> None:
    """Draw two classes, y in {-1, +1}, by their first two coordinates."""
    for label, colour, marker in ((1, BOTH, "+"), (-1, OUTPUT, "_")):
        points = np.asarray(X)[np.asarray(y) == label, :2].T
        axis.scatter(*points, s=16, color=colour, marker=marker, linewidth=1.2)

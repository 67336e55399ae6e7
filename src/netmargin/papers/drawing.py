"""What the figures have in common: size, colours of meaning, axes."""

from collections.abc import Sequence

import numpy as np

BOTH, OUTPUT, EXACT, OTHER = "#0072b2", "#d55e00", "#222222", "#009e73"
"""Training both layers or the net; the output layer or the kernel; exact optima; a third method."""


def canvas(columns: int = 1, rows: int = 1, *, width: float = 4.2, height: float = 3.2):
    """A matplotlib figure and its axes, (rows, columns)."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = drawn.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
    return drawn, axes


def band(axis, x: Sequence[float], values: np.ndarray, *, colour: str, label: str) -> None:
    """A thin line per run, (runs, len(x)), and a thick one for their mean."""
    axis.plot(x, np.asarray(values).T, color=colour, linewidth=0.5, alpha=0.3)
    axis.plot(x, np.mean(values, axis=0), color=colour, linewidth=2.2, marker="o", markersize=3, label=label)


def samples(axis, X: np.ndarray, y: np.ndarray) -> None:
    """Two classes by their first two coordinates."""
    for label, colour, marker in ((1, BOTH, "+"), (-1, OUTPUT, "_")):
        axis.scatter(*np.asarray(X)[np.asarray(y) == label, :2].T, s=16, color=colour, marker=marker, linewidth=1.2)

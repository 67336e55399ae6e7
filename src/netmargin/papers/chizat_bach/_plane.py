"""Classifiers of the plane, on a grid over the square that holds the samples."""

from typing import Any

import numpy as np

from ...figures.style import EXACT, draw_samples
from ..gallery.figure import Row


def list_points(count: int) -> np.ndarray:
    """List the points of a regular grid on the square, (count^2, 2)."""
    ticks = np.linspace(-0.5, 0.5, count)
    return np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2)


def round_values(values: np.ndarray) -> list[float]:
    """Values on the grid as a row keeps them: relative to the largest, to four digits."""
    return list(map(float, np.round(values / (np.abs(values).max() or 1.0), 4)))


def draw_classifier(
    axis: Any, row: Row, values: list[float], dashed: list[float] | None = None
) -> None:
    """Draw the regions of a classifier, the boundary of another one dashed, and the samples."""
    grids = [np.array(v) for v in (values, dashed) if v is not None]
    count = round(len(values) ** 0.5)
    ticks, colours = np.linspace(-0.5, 0.5, count), ["#f6cdb4", "#ffffff", "#bcd9ec"]
    signs = np.sign(grids[0]).reshape(count, count)
    axis.contourf(ticks, ticks, signs, levels=[-1.5, -0.5, 0.5, 1.5], colors=colours)
    for grid, style in zip(grids, ("-", "--"), strict=False):
        if grid.min() < 0 < grid.max():
            line = {"colors": EXACT, "linewidths": 1.2, "linestyles": style}
            axis.contour(ticks, ticks, grid.reshape(count, count), levels=[0.0], **line)
    draw_samples(axis, row["X"], row["y"])
    axis.set(xlim=(-0.5, 0.5), ylim=(-0.5, 0.5), xticks=[], yticks=[], aspect="equal")

"""Pictures of samples: points by their first two coordinates, or images."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..core.arguments import check_instance
from ..core.batches import Arrays, open_data
from ..errors import DataError

if TYPE_CHECKING:
    pass
from .style import BOTH, OUTPUT, open_folder, open_row, save_drawings


def check_samples(X, y) -> Arrays:
    samples = open_data((X, y))
    if not isinstance(samples, Arrays):
        raise DataError("X and y must be arrays, of inputs and of labels.")
    return samples


def draw_data(X, y, folder: str | Path, *, title: str = "data") -> list[Path]:
    """Write the samples: on a line for one coordinate, else by their first two, as PNG and PDF, or
    as pictures for images; returns the PNG path.
    """
    check_instance("title", title, str, 'text, such as "clusters"')
    samples, folder = check_samples(X, y), open_folder(folder)
    return save_drawings({"data": _samples(samples.X, samples.y, title)}, folder)


def _samples(X: Tensor, y: Tensor, title: str):
    images = as_images(X) if X.ndim > 2 or y.unique().numel() > 2 else None
    if images is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 4), layout="constrained")
        for axis, image, label in zip(figure.subplots(4, 10).ravel(), images, y, strict=False):
            axis.imshow(image, cmap="gray_r")
            axis.set_title(int(label), fontsize=7)
        for axis in figure.axes:
            axis.axis("off")
        figure.suptitle(title)
        return figure
    figure, (axis,) = open_row()
    for label, colour, marker in zip(y.unique().tolist(), (BOTH, OUTPUT), ("s", "o"), strict=False):
        points = X[y == label].reshape(-1, X.shape[1])
        height = points[:, 1] if X.shape[1] > 1 else torch.full((len(points),), float(label))
        axis.scatter(
            points[:, 0], height, s=14, color=colour, marker=marker, alpha=0.7, label=f"y = {label}"
        )
    axis.set(xlabel="$x_1$", ylabel="$x_2$" if X.shape[1] > 1 else "y", title=title)
    if X.shape[1] > 1:
        axis.set_aspect("equal", adjustable="datalim")
    axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def as_images(X) -> Tensor | None:
    """(N, height, width) for images of one or three channels, or vectors of square length; None for
    other data.
    """
    X = torch.as_tensor(X).detach().cpu().float()
    if X.ndim == 4 and X.shape[1] in (1, 3):
        return X[:, 0] if X.shape[1] == 1 else X.movedim(1, -1)
    side = math.isqrt(X.shape[1]) if X.ndim == 2 else 0
    return X.reshape(-1, side, side) if side > 3 and side**2 == X.shape[1] else None

"""Pictures of samples: points by their first two coordinates, or images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..core.arguments import check_instance
from ..errors import DataError
from ..nets.arrays import Arrays
from ..nets.data import open_data
from ..nets.images import as_images
from ..nets.labels import ClassNames
from .style import BOTH, OUTPUT, draw_gallery, open_folder, open_row, save_drawings


def check_samples(X: Any, y: Any) -> Arrays:
    """The pair (X, y) as checked tensors. Raises DataError."""
    samples = open_data((X, y))
    if not isinstance(samples, Arrays):
        raise DataError("X and y must be arrays, of inputs and of labels.")
    if samples.X.ndim < 2:
        raise DataError(f"X must hold one row for each sample; got shape {tuple(samples.X.shape)}")
    return samples


def draw_data(
    X: Any,
    y: Any,
    folder: str | Path,
    *,
    title: str = "data",
    class_names: Sequence[str] | None = None,
) -> list[Path]:
    """Draw samples: points by their first two coordinates, or a gallery of images.

    Written is data as PNG and PDF. Inputs of one coordinate are drawn over their labels; images are
    inputs of shape (n, channels, height, width), or vectors of square length without negative
    values and with several classes.

    Parameters
    ----------
    X : array_like, shape (n, d) or (n, channels, height, width)
        Inputs.
    y : array_like, shape (n,)
        Labels.
    folder : str or Path
        Folder for the pictures, made where it is not there.
    title : str, default "data"
        What stands above the picture.
    class_names : sequence of str or None, default None
        Names of the classes in the order of their indices, in place of numbers.

    Returns
    -------
    list of Path
        The PNG file.

    Raises
    ------
    ArgumentError
        If `title` is no text, `folder` no path or `class_names` no list of names.
    DataError
        If X and y cannot be used.
    CheckpointError
        If the folder cannot be written to; this holds for all of `netmargin.figures`.

    Examples
    --------
    >>> import tempfile, netmargin as nm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in nm.figures.draw_data(*nm.datasets.clusters(20, 2), folder)]
    ['data.png']

    Beyond the papers.
    """
    check_instance("title", title, str, 'text, such as "clusters"')
    names = ClassNames(class_names)
    samples, folder = check_samples(X, y), open_folder(folder)
    X, y = samples.X, samples.y
    # Vectors of square length are taken for images only where there are several classes: digits,
    # not points of the plane with a label of two values.
    images = as_images(X) if X.ndim > 2 or y.unique().numel() > 2 else None
    if images is None:
        figure = _draw_points(samples, title, names)
    else:
        figure = draw_gallery(images, [names.of(label) for label in y[:40]], title, height=4.0)
    return save_drawings({"data": figure}, folder)


def _draw_points(samples: Arrays, title: str, names: ClassNames) -> Any:
    """Points by their first two coordinates, or by the only one and the label."""
    X, y = samples.X, samples.y
    figure, (axis,) = open_row()
    for label, colour, marker in zip(y.unique().tolist(), (BOTH, OUTPUT), ("s", "o"), strict=False):
        points = X[y == label].reshape(-1, X.shape[1])
        height = points[:, 1] if X.shape[1] > 1 else torch.full_like(points[:, 0], float(label))
        called = names.of(label) if names.names else f"y = {label}"
        axis.scatter(
            points[:, 0], height, s=14, color=colour, marker=marker, alpha=0.7, label=called
        )
    axis.set(xlabel="$x_1$", ylabel="$x_2$" if X.shape[1] > 1 else "y", title=title)
    if X.shape[1] > 1:
        axis.set_aspect("equal", adjustable="datalim")
    axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure

"""Pictures of the few neurons of a sparse net, for data whose features have names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arguments import check_count, check_instance
from ..errors import ArgumentError
from ..solvers.solution import ReLUMeasure
from ..solvers.two_layer_net import TwoLayerFit
from .style import BOTH, OUTPUT, open_canvas, open_folder, save_drawings

_ROW_HEIGHT = 0.28
"""Inches for a neuron: two lines of text do not touch."""
_COLUMN_WIDTH = 0.3
"""Inches for a feature, whose name stands upright below it."""


def draw_neurons(
    net: Any,
    folder: str | Path,
    *,
    feature_names: Sequence[str] | None = None,
    count: int = 20,
    title: str = "neurons",
) -> list[Path]:
    """Draw what each neuron of a two-layer ReLU net looks at, and how much it adds to the score.

    f(x) = sum_j c_j relu(u_j . x~) with |u_j| = 1: a row for each neuron, the largest |c_j| first;
    its bar is c_j, and its cells are u_j, a column for each feature and one for the bias. Written
    is neurons as PNG and PDF.

    Parameters
    ----------
    net : TwoLayerFit or ReLUMeasure
        A solution of the variation norm, for instance `solutions_[0]` of a
        `VariationNormClassifier`; of ReLUs, not of their squares.
    folder : str or Path
        Folder for the pictures, made where it is not there.
    feature_names : sequence of str or None, default None
        Names of the features in the order of the columns; numbers by default.
    count : int, default 20
        Neurons to draw, at most; the title says how many there are.
    title : str, default "neurons"
        What stands above the picture.

    Returns
    -------
    list of Path
        The PNG file, or one for each of several outputs.

    Raises
    ------
    ArgumentError
        If `net` is no such net or has no neurons, there are more or fewer names than features, or
        another argument cannot be used.

    Examples
    --------
    >>> import tempfile, netmargin as nm
    >>> X, y = [[1, 1], [-1, -1], [1, -1], [-1, 1]], [1, 1, -1, -1]
    >>> xor = nm.estimators.VariationNormClassifier(C=None).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = nm.figures.draw_neurons(xor.solutions_[0], folder, feature_names=["a", "b"])
    ...     [path.name for path in paths]
    ['neurons.png']

    Beyond the papers.
    """
    check_instance("net", net, (TwoLayerFit, ReLUMeasure), "a solution of the variation norm")
    check_instance("title", title, str, 'text, such as "breast cancer"')
    count = check_count("count", count)
    units, outputs = _read_neurons(net)
    inputs = units.shape[1] - net.bias
    names = list(range(inputs)) if feature_names is None else list(feature_names)
    if len(names) != inputs:
        raise ArgumentError(
            f"feature_names must have {inputs} names, one for each column; got {len(names)}"
        )
    labels = [str(name) for name in names] + ["bias"] * net.bias
    folder, figures = open_folder(folder), {}
    squared = 2 * np.linalg.norm(outputs, axis=1).sum()
    for index, column in enumerate(outputs.T):
        order = np.argsort(-np.abs(column), kind="stable")[:count]
        head = f"{title}: {len(order)} of {len(column)} neurons, ||theta||^2 = {squared:.3g}"
        several = f", output {index}" * (outputs.shape[1] > 1)
        figure = _draw_rows(column[order], units[order], labels, head + several)
        figures[f"neurons{several and f'-{index}'}"] = figure
    return save_drawings(figures, folder)


def _read_neurons(net: Any) -> tuple[np.ndarray, np.ndarray]:
    """First-layer weights (k, D) of length 1, and outputs (k, K)."""
    relu = net.power == 1 and getattr(net, "slope", 0) == 0
    if isinstance(net, TwoLayerFit):
        units, outputs = net.neurons, net.outputs
    else:
        sizes = np.linalg.norm(net.atoms[:, :-1], axis=1, keepdims=True)
        outputs = net.weights[:, None] * net.atoms[:, -1:] * sizes
        units = net.atoms[:, :-1] / np.where(sizes > 0, sizes, 1.0)
    if not (relu and len(units)):
        raise ArgumentError("net must have neurons, of ReLUs: it has none, or other activations.")
    return units, outputs


def _draw_rows(outputs: np.ndarray, units: np.ndarray, labels: list[str], head: str) -> Any:
    """Bars of outputs (m,) beside cells of units (m, D)."""
    width = 1.6 + _COLUMN_WIDTH * len(labels)
    drawn, axes = open_canvas(2, width=width / 2 + 1, height=1.8 + _ROW_HEIGHT * len(outputs))
    bars, cells = axes[0]
    grid = bars.get_gridspec()
    grid.set_width_ratios([1.6, _COLUMN_WIDTH * len(labels)])
    rows = np.arange(len(outputs))
    bars.barh(rows, outputs, color=np.where(outputs > 0, BOTH, OUTPUT))
    bars.axvline(0, color="#222222", linewidth=0.8)
    bars.set(ylim=(len(rows) - 0.5, -0.5), xlabel="adds to the score", ylabel="neuron")
    bars.set_yticks(rows, [str(row + 1) for row in rows])
    largest = float(np.abs(units).max())
    image = cells.imshow(units, cmap="PuOr", vmin=-largest, vmax=largest, aspect="auto")
    cells.set(ylim=(len(rows) - 0.5, -0.5), yticks=[])
    cells.set_xticks(np.arange(len(labels)), labels, rotation=90, fontsize=8)
    drawn.colorbar(image, ax=cells, label="weight")
    drawn.suptitle(head, fontsize=10)
    return drawn

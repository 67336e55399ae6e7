"""Pictures of wide two-layer nets in training: margins over steps, classifiers of the plane."""

from pathlib import Path
from typing import Any

import numpy as np

from ..core.arguments import check_instance, check_number
from ..twolayer import TwoLayerRuns
from .samples import check_samples
from .style import BOTH, OUTPUT, open_folder, open_row, save_drawings


def draw_two_layer_runs(
    runs: TwoLayerRuns,
    X: Any,
    y: Any,
    folder: str | Path,
    *,
    optimum: float | None = None,
) -> list[Path]:
    """Draw the margins of wide two-layer nets over steps, and for data in the plane classifiers.

    Written are two_layer_margins and, for d = 2, the classifiers of the first run at its snapshots;
    each as PNG and PDF.

    Parameters
    ----------
    runs : TwoLayerRuns
        What `netmargin.twolayer.train_both_layers` returned.
    X, y, folder
        The samples, and the folder, as for `draw_certificate`.
    optimum : float, optional
        gamma_1, drawn as a line above the margins.

    Returns
    -------
    list of Path
        The PNG files.

    Raises
    ------
    ArgumentError
        If `runs` is something else, or `folder` is no path.
    DataError
        If X and y cannot be used.

    Examples
    --------
    >>> import tempfile, netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> runs = nm.twolayer.train_both_layers(X, y, width=50, steps=100, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in nm.figures.draw_two_layer_runs(runs, X, y, folder)]
    ['two_layer_margins.png', 'classifiers.png']

    Source: Chizat and Bach 2020, Figures 1 and 2 (d).
    """
    check_instance("runs", runs, TwoLayerRuns, "what netmargin.twolayer.train_both_layers returns")
    optimum = check_number("optimum", optimum, optional=True)
    samples, folder = check_samples(X, y), open_folder(folder)
    X, y = samples.X.cpu().numpy(), samples.y.cpu().numpy()
    drawn = {"two_layer_margins": _draw_margins(runs, optimum)}
    if X.shape[1] == 2:
        drawn["classifiers"] = _draw_classifiers(runs, X, y)
    return save_drawings(drawn, folder)


def _draw_margins(runs: TwoLayerRuns, optimum: float | None) -> Any:
    """Margins of all runs over steps, on a logarithmic axis."""
    figure, (axis,) = open_row()
    axis.set_xscale("log")
    later = runs.times > 0  # the start has no place on a logarithmic axis
    count = runs.margins.shape[1]
    faint = max(0.25, 1 / count)
    axis.plot(runs.times[later], runs.margins[later], color=BOTH, linewidth=1.0, alpha=faint)
    # One line without points, so that the legend has one entry for all runs, not faint.
    axis.plot([], [], color=BOTH, label=f"{count} runs" if count > 1 else "the net")
    if optimum is not None:
        label = rf"best possible, $\gamma_1$ = {optimum:.4g}"
        axis.axhline(optimum, color=OUTPUT, linestyle="--", label=label)
    # Margins of the first steps are far below 0, and would press all others into one line.
    axis.set_ylim(bottom=min(0.0, float(np.median(runs.margins[later]))))
    axis.set(xlabel="step", ylabel=r"margin / mean$_j\,|w_j|^2$")
    axis.legend(frameon=False, loc="center left")
    return figure


def _draw_classifiers(runs: TwoLayerRuns, X: np.ndarray, y: np.ndarray) -> Any:
    """The outputs of the first run over the plane at its snapshots, with zero lines and samples."""
    figure, axes = open_row(len(runs.snapshots))
    figure.set_size_inches(3.2 * len(runs.snapshots), 3.4)
    low, high = X.min(0) - 0.15 * np.ptp(X, 0), X.max(0) + 0.15 * np.ptp(X, 0)
    first, second = np.meshgrid(*np.linspace(low, high, 201).T)
    points = np.column_stack([first.ravel(), second.ravel()])
    for axis, snapshot in zip(axes, runs.snapshots, strict=True):
        values = snapshot.measures[0].decision_function(points).reshape(first.shape)
        # A net that is 0 up to rounding, such as a paired one at its start, has no zero line.
        values[np.abs(values) < 1e-12 * np.abs(points).max()] = 0.0
        largest = np.abs(values).max() or 1.0
        # The same range to both sides, so that white is 0.
        levels = np.linspace(-largest, largest, 21)
        axis.contourf(first, second, values, levels=levels, cmap="RdBu_r", alpha=0.6)
        if values.min() < 0 < values.max():
            axis.contour(first, second, values, levels=[0.0], colors="black", linewidths=1.2)
        for sign, colour, marker in ((1, "#b2182b", "o"), (-1, "#2166ac", "s")):
            axis.scatter(*X[(y > 0) == (sign > 0)].T, s=9, color=colour, marker=marker)
        margin = runs.margins[runs.times == snapshot.time, 0].item()
        axis.set_title(f"step {snapshot.time}: margin {margin:.3g}")
        axis.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
        axis.grid(visible=False)
    return figure

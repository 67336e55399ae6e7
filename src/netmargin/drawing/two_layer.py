"""Pictures of wide two-layer nets in training: margins over steps, classifiers of the plane."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arguments import check_count, check_instance, check_number

if TYPE_CHECKING:
    from ..twolayer import TwoLayerRuns
from .data import check_samples
from .style import BOTH, OUTPUT, open_folder, open_row, save_drawings


def draw_two_layer_runs(
    runs: "TwoLayerRuns", X, y, folder: str | Path, *, optimum: float | None = None, run: int = 0
) -> list[Path]:
    """Write the margins of all runs, beside the best possible one where it is given, and for data
    in the plane the classifiers of one run at its snapshots; PNG and PDF; returns the PNG paths.
    """
    from ..twolayer import TwoLayerRuns

    check_instance(
        "runs",
        runs,
        TwoLayerRuns,
        "the TwoLayerRuns that netmargin.twolayer.train_both_layers returns",
    )
    optimum = check_number("optimum", optimum, optional=True)
    run = check_count("run", run, at_least=0, at_most=runs.margins.shape[1] - 1)
    samples, folder = check_samples(X, y), open_folder(folder)
    X, y = samples.X.cpu().numpy(), samples.y.cpu().numpy()
    drawn = {"two_layer_margins": _two_layer_margins(runs, optimum)}
    if X.shape[1] == 2:
        drawn["classifiers"] = _classifiers(runs, X, y, run)
    return save_drawings(drawn, folder)


def _two_layer_margins(runs: "TwoLayerRuns", optimum: float | None):
    figure, (axis,) = open_row()
    axis.set_xscale("log")
    later = runs.times > 0
    axis.plot(
        runs.times[later],
        runs.margins[later],
        color=BOTH,
        linewidth=1.0,
        alpha=max(0.25, 1 / runs.margins.shape[1]),
    )
    axis.plot(
        [],
        [],
        color=BOTH,
        label=f"{runs.margins.shape[1]} runs" if runs.margins.shape[1] > 1 else "the net",
    )
    if optimum is not None:
        axis.axhline(
            optimum,
            color=OUTPUT,
            linestyle="--",
            label=rf"best possible, $\gamma_1$ = {optimum:.4g}",
        )
    axis.set_ylim(bottom=min(0.0, float(np.median(runs.margins[later]))))
    axis.set(xlabel="step", ylabel=r"margin / mean$_j\,|w_j|^2$")
    axis.legend(frameon=False, loc="center left")
    return figure


def _classifiers(runs: "TwoLayerRuns", X: np.ndarray, y: np.ndarray, run: int):
    figure, axes = open_row(len(runs.snapshots))
    figure.set_size_inches(3.2 * len(runs.snapshots), 3.4)
    low, high = X.min(0) - 0.15 * np.ptp(X, 0), X.max(0) + 0.15 * np.ptp(X, 0)
    first, second = np.meshgrid(
        np.linspace(low[0], high[0], 201), np.linspace(low[1], high[1], 201)
    )
    points = np.column_stack([first.ravel(), second.ravel()])
    for axis, snapshot in zip(axes, runs.snapshots, strict=True):
        values = snapshot.measures[run].decision_function(points).reshape(first.shape)
        values[np.abs(values) < 1e-12 * np.abs(points).max()] = (
            0.0  # a net that is 0 up to rounding
        )
        largest = np.abs(values).max() or 1.0
        axis.contourf(
            first,
            second,
            values,
            levels=np.linspace(-largest, largest, 21),
            cmap="RdBu_r",
            alpha=0.6,
        )
        if values.min() < 0 < values.max():
            axis.contour(first, second, values, levels=[0.0], colors="black", linewidths=1.2)
        for sign, colour, marker in ((1, "#b2182b", "o"), (-1, "#2166ac", "s")):
            axis.scatter(*X[(y > 0) == (sign > 0)].T, s=9, color=colour, marker=marker)
        margin = runs.margins[runs.times == snapshot.time, run].item()
        axis.set(
            title=f"step {snapshot.time}: margin {margin:.3g}",
            aspect="equal",
            xlabel="$x_1$",
            ylabel="$x_2$",
        )
        axis.grid(visible=False)
    return figure

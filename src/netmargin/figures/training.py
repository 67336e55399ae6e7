"""Pictures of a training run: its loss, its normalized margins, its margins at the end."""

import math
from pathlib import Path
from typing import Any

from ..core.arguments import check_instance
from ..errors import ArgumentError
from ..margins import MarginReport
from ..margins.quantiles import LEVEL_NAMES, quantiles
from ..training import History
from .style import BOTH, OTHER, OUTPUT, open_folder, open_row, save_drawings

# Columns of a history, and how the paper writes them.
_MARGIN_LABELS = {
    "normalized_margin": r"$q_{\min}/\|\theta\|^L$",
    "smoothed_margin": r"smoothed, $\ell^{-1}(\mathcal{L})/\|\theta\|^L$",
    "layer_normalized_margin": r"$q_{\min}/\prod_i\|W_i\|^{k_i}$",
    "quasi_normalized_margin": r"$q_{\min} e^{-a^*}$",
    "quasi_smoothed_margin": r"smoothed, $\ell^{-1}(\mathcal{L}) e^{-a^*}$",
}
_EQUAL = 1e-9
"""Relative difference below which two normalized margins are drawn once."""


def draw_run(history: History, report: MarginReport, folder: str | Path) -> list[Path]:
    """Draw the loss and the normalized margins of a training run, and its margins at the end.

    Written are loss, margins and histogram, each as PNG and PDF.

    Parameters
    ----------
    history : History
        What `netmargin.train` returned, with at least one epoch.
    report : MarginReport
        What `netmargin.measure` returned for the net at the end.
    folder : str or Path
        Folder for the pictures, made where it is not there.

    Returns
    -------
    list of Path
        The PNG files.

    Raises
    ------
    ArgumentError
        If `history` or `report` is something else, the history is empty, or `folder` is no path.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> net, data = nm.models.mlp([64, 16, 10]), nm.datasets.digits(limit=40)
    >>> history = nm.train(net, data, until=nm.Epochs(20), progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in nm.figures.draw_run(history, nm.measure(net, data), folder)]
    ['loss.png', 'margins.png', 'histogram.png']

    Source: Lyu and Li 2019, Figure 1, for loss and margins.
    """
    check_instance("history", history, History, "what netmargin.train returns")
    check_instance("report", report, MarginReport, "what netmargin.measure returns")
    folder = open_folder(folder)
    if not len(history):
        raise ArgumentError("history holds no epochs, so there is nothing to draw. Train first.")
    drawn = {
        "loss": _draw_loss(history),
        "margins": _draw_margins(history),
        "histogram": _draw_histogram(report),
    }
    return save_drawings(drawn, folder)


def _draw_loss(history: History) -> Any:
    """The mean loss over epochs, with the epoch from which on all samples are correct."""
    figure, (axis,) = open_row()
    axis.plot(history.column("epoch"), history.column("log10_mean_loss"), color=BOTH)
    if (first := history.separated) is not None:
        label = f"from epoch {first} on all samples are correct"
        axis.axvline(first, color="0.4", linestyle=":", label=label)
        axis.legend(frameon=False)
    axis.set(xlabel="epoch", ylabel=r"$\log_{10}$ of the mean training loss", title="Training loss")
    return figure


def _draw_margins(history: History) -> Any:
    """Normalized margins over epochs: by the norm of all parameters, and by those of layers.

    Where biases are left out by these, a third picture counts them.
    """
    panels: list[tuple[str, tuple[str, ...]]] = [
        ("Normalized by the norm of the parameters", ("normalized_margin", "smoothed_margin")),
        ("Normalized by the product of layer norms", ("layer_normalized_margin",)),
    ]
    if any(map(_counts_more, history.rows)):
        quasi = ("quasi_normalized_margin", "quasi_smoothed_margin")
        panels.append(("With every bias counted (quasi-homogeneous)", quasi))
    figure, axes = open_row(len(panels))
    for axis, (title, names) in zip(axes, panels, strict=True):
        # Before the net separates the data there is no positive margin to draw.
        rows = [row for row in history.rows if _is_separated(row) and row.get(names[0]) is not None]
        colours = (BOTH, OUTPUT) if len(names) == 2 else (OTHER,)
        for name, colour in zip(names, colours, strict=True):
            epochs, margins = [row["epoch"] for row in rows], [row[name] for row in rows]
            axis.plot(epochs, margins, color=colour, label=_MARGIN_LABELS[name], linewidth=1.2)
        axis.set(xlabel="epoch", ylabel="margin", title=title)
        axis.set_ylim(bottom=0)
        if rows:
            axis.legend(frameon=False, loc="lower right")
        else:
            none = "no margin to show: the net is not homogeneous\nor did not separate the data"
            middle = {"ha": "center", "va": "center", "transform": axis.transAxes}
            axis.text(0.5, 0.5, none, **middle)
    return figure


def _is_separated(row: dict[str, Any]) -> bool:
    """Whether the loss proves that all samples are right: its smoothed margin is positive."""
    names = ("smoothed_margin", "quasi_smoothed_margin")
    return any(row.get(name) is not None and row[name] > 0 for name in names)


def _counts_more(row: dict[str, Any]) -> bool:
    """Whether the quasi-homogeneous margin exists, and is another than the normalized one."""
    # Histories of earlier versions have no such column.
    quasi, plain = row.get("quasi_normalized_margin"), row.get("normalized_margin")
    return quasi is not None and (plain is None or abs(quasi - plain) > _EQUAL * abs(plain))


def _draw_histogram(report: MarginReport) -> Any:
    """The margins of all samples at the end, and their distances to the boundary if measured."""
    distances = None if report.input_margins is None else report.input_margins.distances
    figure, axes = open_row(1 if distances is None else 2)
    axes[0].hist(report.q.numpy(), bins=60, color=BOTH, alpha=0.85)
    axes[0].axvline(report.q_min, color=OUTPUT, label=rf"$q_{{\min}}$ = {report.q_min:.4g}")
    axes[0].legend(frameon=False)
    title = f"Margins of {report.n} samples"
    axes[0].set(xlabel="margin $q_n$ (not normalized)", ylabel="number of samples", title=title)
    if distances is not None:
        finite = distances[distances.isfinite()]
        # An estimate has a dashed outline, as everywhere.
        shape = {"histtype": "stepfilled", "edgecolor": OTHER, "linestyle": "--"}
        axes[1].hist(finite.numpy(), bins=60, facecolor=f"{OTHER}40", **shape)
        for name, value in zip(LEVEL_NAMES, quantiles(distances), strict=True):
            if math.isfinite(value):
                style = "--" if name == "25%" else ":"
                axes[1].axvline(value, color=OUTPUT, linestyle=style, label=f"{name}: {value:.4g}")
        axes[1].legend(frameon=False)
        axes[1].set(
            xlabel="estimated distance to the boundary (first order)",
            ylabel="number of samples",
            title=f"Input margins of {len(finite)} samples",
        )
    return figure

"""Pictures of a training run: its loss, its normalized margins, the histogram of the margins at its
end.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.arguments import check_instance
from ..errors import ArgumentError
from ..margins import MarginReport
from ..training import History

if TYPE_CHECKING:
    pass
from .style import BOTH, OTHER, OUTPUT, open_folder, open_row, save_drawings

_MARGINS = {
    "normalized_margin": r"$q_{\min}/\|\theta\|^L$",
    "smoothed_margin": r"smoothed, $\ell^{-1}(\mathcal{L})/\|\theta\|^L$",
    "layer_normalized_margin": r"$q_{\min}/\prod_i\|W_i\|^{k_i}$",
}


def draw_run(history: History, report: MarginReport, folder: str | Path) -> list[Path]:
    """Write loss, margins and histogram of a run into `folder`, each as PNG and PDF; returns the
    PNG paths.
    """
    check_instance("history", history, History, "the History that netmargin.train returns")
    check_instance(
        "report", report, MarginReport, "the MarginReport that netmargin.measure returns"
    )
    folder = open_folder(folder)
    if not len(history):
        raise ArgumentError("history holds no epochs, so there is nothing to draw. Train first.")
    drawn = {
        "loss": _loss(history),
        "margins": _normalized_margins(history),
        "histogram": _histogram(report),
    }
    return save_drawings(drawn, folder)


def _loss(history: History):
    figure, (axis,) = open_row()
    axis.plot(history.column("epoch"), history.column("log10_mean_loss"), color=BOTH)
    separated = next((row["epoch"] for row in history.rows if row["q_min"] > 0), None)
    if separated is not None:
        axis.axvline(
            separated, color="0.4", linestyle=":", label=f"all samples correct (epoch {separated})"
        )
        axis.legend(frameon=False)
    axis.set(xlabel="epoch", ylabel=r"$\log_{10}$ of the mean training loss", title="Training loss")
    return figure


def _normalized_margins(history: History):
    rows = [
        row
        for row in history.rows
        if row["smoothed_margin"] is not None and row["smoothed_margin"] > 0
    ]
    epochs = [row["epoch"] for row in rows]
    figure, (left, right) = open_row(2)
    for axis, names in (
        (left, ("normalized_margin", "smoothed_margin")),
        (right, ("layer_normalized_margin",)),
    ):
        for name, colour in zip(names, (BOTH, OUTPUT) if axis is left else (OTHER,), strict=True):
            axis.plot(
                epochs,
                [row[name] for row in rows],
                color=colour,
                label=_MARGINS[name],
                linewidth=1.2,
            )
        axis.set(xlabel="epoch", ylabel="margin")
        axis.set_ylim(bottom=0)
        if rows:
            axis.legend(frameon=False, loc="lower right")
        else:
            axis.text(
                0.5,
                0.5,
                "no margin to show: the net is not homogeneous\nor did not separate the data",
                ha="center",
                va="center",
                transform=axis.transAxes,
            )
    left.set_title("Normalized by the norm of the parameters")
    right.set_title("Normalized by the product of layer norms")
    return figure


def _histogram(report: MarginReport):
    figure, (axis,) = open_row()
    axis.hist(report.q.numpy(), bins=60, color=BOTH, alpha=0.85)
    axis.axvline(report.q_min, color=OUTPUT, label=rf"$q_{{\min}}$ = {report.q_min:.4g}")
    axis.legend(frameon=False)
    axis.set(
        xlabel="margin $q_n$ (not normalized)",
        ylabel="number of samples",
        title=f"Margins of {report.n} samples",
    )
    return figure

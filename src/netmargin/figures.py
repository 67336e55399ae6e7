"""Figures of a training run, as PNG and PDF files."""

from pathlib import Path

from .margins import MarginReport
from .training import History

_MARGINS = {
    "normalized_margin": r"$q_{\min}/\|\theta\|^L$",
    "smoothed_margin": r"smoothed, $\ell^{-1}(\mathcal{L})/\|\theta\|^L$",
    "layer_normalized_margin": r"$q_{\min}/\prod_i\|W_i\|^{k_i}$",
}
_BLUE, _ORANGE, _GREEN = "#0072b2", "#d55e00", "#009e73"


def draw_run(history: History, report: MarginReport, folder: str | Path) -> list[Path]:
    """Write loss, margins and histogram of a run into `folder`, each as PNG and PDF; returns the PNG paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"loss": _loss(history), "margins": _normalized_margins(history), "histogram": _histogram(report)}
    for name, figure in drawn.items():
        for ending in ("png", "pdf"):
            figure.savefig(folder / f"{name}.{ending}", dpi=130)
    return [folder / f"{name}.png" for name in drawn]


def _figure(columns: int = 1):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8 * columns, 3.4), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for axis in axes:
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.ticklabel_format(axis="y", scilimits=(-3, 4))
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _loss(history: History):
    figure, (axis,) = _figure()
    axis.plot(history.column("epoch"), history.column("log10_mean_loss"), color=_BLUE)
    separated = next((row["epoch"] for row in history.rows if row["q_min"] > 0), None)
    if separated is not None:
        axis.axvline(separated, color="0.4", linestyle=":", label=f"all samples correct (epoch {separated})")
        axis.legend(frameon=False)
    axis.set(xlabel="epoch", ylabel=r"$\log_{10}$ of the mean training loss", title="Training loss")
    return figure


def _normalized_margins(history: History):
    rows = [row for row in history.rows if row["smoothed_margin"] is not None and row["smoothed_margin"] > 0]
    epochs = [row["epoch"] for row in rows]
    figure, (left, right) = _figure(2)
    for axis, names in ((left, ("normalized_margin", "smoothed_margin")), (right, ("layer_normalized_margin",))):
        for name, colour in zip(names, (_BLUE, _ORANGE) if axis is left else (_GREEN,), strict=True):
            axis.plot(epochs, [row[name] for row in rows], color=colour, label=_MARGINS[name], linewidth=1.2)
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
    figure, (axis,) = _figure()
    axis.hist(report.q.numpy(), bins=60, color=_BLUE, alpha=0.85)
    axis.axvline(report.q_min, color=_ORANGE, label=rf"$q_{{\min}}$ = {report.q_min:.4g}")
    axis.legend(frameon=False)
    axis.set(xlabel="margin $q_n$ (not normalized)", ylabel="number of samples", title=f"Margins of {report.n} samples")
    return figure

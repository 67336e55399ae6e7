"""Pictures of a training run: its loss, its normalized margins, its margins at the end."""

from pathlib import Path

from ..core.arguments import check_instance
from ..errors import ArgumentError
from ..margins import MarginReport
from ..training import History
from .style import BOTH, OTHER, OUTPUT, open_folder, open_row, save_drawings

# Columns of a history, and how the paper writes them.
_MARGIN_LABELS = {
    "normalized_margin": r"$q_{\min}/\|\theta\|^L$",
    "smoothed_margin": r"smoothed, $\ell^{-1}(\mathcal{L})/\|\theta\|^L$",
    "layer_normalized_margin": r"$q_{\min}/\prod_i\|W_i\|^{k_i}$",
}


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
    CheckpointError
        If the folder cannot be written to.

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
    check_instance("history", history, History, "the History that netmargin.train returns")
    check_instance(
        "report", report, MarginReport, "the MarginReport that netmargin.measure returns"
    )
    folder = open_folder(folder)
    if not len(history):
        raise ArgumentError("history holds no epochs, so there is nothing to draw. Train first.")
    drawn = {
        "loss": _draw_loss(history),
        "margins": _draw_margins(history),
        "histogram": _draw_histogram(report),
    }
    return save_drawings(drawn, folder)


def _draw_loss(history: History):
    """The mean loss over epochs, with the epoch from which on all samples are correct."""
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


def _draw_margins(history: History):
    """Normalized margins over epochs: by the norm of all parameters, and by those of layers."""
    # Before the net separates the data there is no positive margin to draw.
    rows = [
        row
        for row in history.rows
        if row["smoothed_margin"] is not None and row["smoothed_margin"] > 0
    ]
    epochs = [row["epoch"] for row in rows]
    figure, (left, right) = open_row(2)
    for axis, names, colours in (
        (left, ("normalized_margin", "smoothed_margin"), (BOTH, OUTPUT)),
        (right, ("layer_normalized_margin",), (OTHER,)),
    ):
        for name, colour in zip(names, colours, strict=True):
            axis.plot(
                epochs,
                [row[name] for row in rows],
                color=colour,
                label=_MARGIN_LABELS[name],
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


def _draw_histogram(report: MarginReport):
    """The margins of all samples at the end."""
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

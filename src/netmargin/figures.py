"""Figures of training runs and certificates, as PNG and PDF files.

They are written into a folder, which is made if it does not exist; CheckpointError where that fails, ArgumentError or DataError for
what cannot be drawn.
"""

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .arguments import check_count, check_instance, check_number, check_path
from .batches import Arrays, open_data
from .errors import ArgumentError, DataError
from .margins import MarginReport
from .training import History
from .training.checkpoint import make_folder, write_atomically

if TYPE_CHECKING:
    from .kkt import KKTCertificate
    from .l2_robustness import RobustnessReport
    from .twolayer import TwoLayerRuns

_MARGINS = {
    "normalized_margin": r"$q_{\min}/\|\theta\|^L$",
    "smoothed_margin": r"smoothed, $\ell^{-1}(\mathcal{L})/\|\theta\|^L$",
    "layer_normalized_margin": r"$q_{\min}/\prod_i\|W_i\|^{k_i}$",
}
_BLUE, _ORANGE, _GREEN = "#0072b2", "#d55e00", "#009e73"


def _writable(folder: str | Path) -> Path:
    path = check_path("folder", folder)
    make_folder(path)
    return path


def _arrays(X, y) -> Arrays:
    samples = open_data((X, y))
    if not isinstance(samples, Arrays):
        raise DataError("X and y must be arrays, of inputs and of labels.")
    return samples


def _save(drawn: dict[str, Any], folder: Path) -> list[Path]:
    """Each as PNG and PDF; the PNG paths. Raises CheckpointError where they cannot be written."""
    for name, figure in drawn.items():
        for ending in ("png", "pdf"):
            picture = io.BytesIO()
            figure.savefig(picture, format=ending, dpi=130)
            write_atomically(folder / f"{name}.{ending}", picture.getvalue())
    return [folder / f"{name}.png" for name in drawn]


def draw_run(history: History, report: MarginReport, folder: str | Path) -> list[Path]:
    """Write loss, margins and histogram of a run into `folder`, each as PNG and PDF; returns the PNG paths."""
    check_instance("history", history, History, "the History that netmargin.train returns")
    check_instance("report", report, MarginReport, "the MarginReport that netmargin.measure returns")
    folder = _writable(folder)
    if not len(history):
        raise ArgumentError("history holds no epochs, so there is nothing to draw. Train first.")
    drawn = {"loss": _loss(history), "margins": _normalized_margins(history), "histogram": _histogram(report)}
    return _save(drawn, folder)


def draw_data(X, y, folder: str | Path, *, title: str = "data") -> list[Path]:
    """Write the samples: on a line for one coordinate, else by their first two, as PNG and PDF, or as pictures for images; returns the PNG path."""
    check_instance("title", title, str, 'text, such as "clusters"')
    samples, folder = _arrays(X, y), _writable(folder)
    return _save({"data": _samples(samples.X, samples.y, title)}, folder)


def _samples(X: Tensor, y: Tensor, title: str):
    images = _as_images(X) if X.ndim > 2 or y.unique().numel() > 2 else None
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
    figure, (axis,) = _figure()
    for label, colour, marker in zip(y.unique().tolist(), (_BLUE, _ORANGE), ("s", "o"), strict=False):
        points = X[y == label].reshape(-1, X.shape[1])
        height = points[:, 1] if X.shape[1] > 1 else torch.full((len(points),), float(label))
        axis.scatter(points[:, 0], height, s=14, color=colour, marker=marker, alpha=0.7, label=f"y = {label}")
    axis.set(xlabel="$x_1$", ylabel="$x_2$" if X.shape[1] > 1 else "y", title=title)
    if X.shape[1] > 1:
        axis.set_aspect("equal", adjustable="datalim")
    axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def draw_robustness(reports: "dict[str, RobustnessReport]", folder: str | Path) -> list[Path]:
    """Write robust accuracy over epsilon, for reports by name, as PNG and PDF: attacked (solid) and certified (dashed); returns the PNG path."""
    from .l2_robustness import RobustnessReport

    check_instance("reports", reports, dict, "a dict of reports by name, such as {'net': netmargin.robustness(net, data)}")
    for name, report in reports.items():
        check_instance(f"reports[{name!r}]", report, RobustnessReport, "the RobustnessReport that netmargin.robustness returns")
    if not reports:
        raise ArgumentError("reports holds no report, so there is nothing to draw.")
    folder = _writable(folder)
    figure, (axis,) = _figure()
    most = max(report.largest for report in reports.values())
    for index, (name, report) in enumerate(reports.items()):
        curve, colour = report.curve(np.linspace(0, 1.02 * most, 301)), f"C{index}"
        label = f"{name}, " if name else ""
        if report.attacks:
            axis.plot(curve["epsilon"], 100 * curve["attacked"], color=colour, label=f"{label}attacked")
        if not report.no_lower:
            axis.plot(curve["epsilon"], 100 * curve["certified"], color=colour, linestyle="--", label=f"{label}certified")
    axis.set(xlabel=r"$\epsilon$ (L2)", ylabel="robust accuracy in %", title="samples that no change of size epsilon turns")
    axis.legend(frameon=False)
    return _save({"robustness": figure}, folder)


def draw_certificate(certificate: "KKTCertificate", X, y, folder: str | Path) -> list[Path]:
    """Write the trade-off curve and, where samples are square images, the heaviest support vectors; PNG and PDF; returns the PNG paths."""
    from .kkt import KKTCertificate

    check_instance("certificate", certificate, KKTCertificate, "the KKTCertificate that netmargin.certify returns")
    samples, folder = _arrays(X, y), _writable(folder)
    if len(samples) != certificate.samples:
        raise DataError(f"The certificate is about {certificate.samples} samples; X holds {len(samples)}. Pass the same data.")
    drawn = {"trade_off": _trade_off(certificate)}
    images = _as_images(samples.X)
    if images is not None:
        drawn["support"] = _support(certificate, images, samples.y)
    return _save(drawn, folder)


def draw_two_layer_runs(
    runs: "TwoLayerRuns", X, y, folder: str | Path, *, optimum: float | None = None, run: int = 0
) -> list[Path]:
    """Write the margins of all runs, beside the best possible one where it is given, and for data in the plane the classifiers of one run at its snapshots; PNG
    and PDF; returns the PNG paths.
    """
    from .twolayer import TwoLayerRuns

    check_instance("runs", runs, TwoLayerRuns, "the TwoLayerRuns that netmargin.twolayer.train_both_layers returns")
    optimum = check_number("optimum", optimum, optional=True)
    run = check_count("run", run, at_least=0, at_most=runs.margins.shape[1] - 1)
    samples, folder = _arrays(X, y), _writable(folder)
    X, y = samples.X.cpu().numpy(), samples.y.cpu().numpy()
    drawn = {"two_layer_margins": _two_layer_margins(runs, optimum)}
    if X.shape[1] == 2:
        drawn["classifiers"] = _classifiers(runs, X, y, run)
    return _save(drawn, folder)


def _two_layer_margins(runs: "TwoLayerRuns", optimum: float | None):
    figure, (axis,) = _figure()
    axis.set_xscale("log")
    later = runs.times > 0
    axis.plot(runs.times[later], runs.margins[later], color=_BLUE, linewidth=1.0, alpha=max(0.25, 1 / runs.margins.shape[1]))
    axis.plot([], [], color=_BLUE, label=f"{runs.margins.shape[1]} runs" if runs.margins.shape[1] > 1 else "the net")
    if optimum is not None:
        axis.axhline(optimum, color=_ORANGE, linestyle="--", label=rf"best possible, $\gamma_1$ = {optimum:.4g}")
    axis.set_ylim(bottom=min(0.0, float(np.median(runs.margins[later]))))
    axis.set(xlabel="step", ylabel=r"margin / mean$_j\,|w_j|^2$")
    axis.legend(frameon=False, loc="center left")
    return figure


def _classifiers(runs: "TwoLayerRuns", X: np.ndarray, y: np.ndarray, run: int):
    figure, axes = _figure(len(runs.snapshots))
    figure.set_size_inches(3.2 * len(runs.snapshots), 3.4)
    low, high = X.min(0) - 0.15 * np.ptp(X, 0), X.max(0) + 0.15 * np.ptp(X, 0)
    first, second = np.meshgrid(np.linspace(low[0], high[0], 201), np.linspace(low[1], high[1], 201))
    points = np.column_stack([first.ravel(), second.ravel()])
    for axis, snapshot in zip(axes, runs.snapshots, strict=True):
        values = snapshot.measures[run].decision_function(points).reshape(first.shape)
        values[np.abs(values) < 1e-12 * np.abs(points).max()] = 0.0  # a net that is 0 up to rounding
        largest = np.abs(values).max() or 1.0
        axis.contourf(first, second, values, levels=np.linspace(-largest, largest, 21), cmap="RdBu_r", alpha=0.6)
        if values.min() < 0 < values.max():
            axis.contour(first, second, values, levels=[0.0], colors="black", linewidths=1.2)
        for sign, colour, marker in ((1, "#b2182b", "o"), (-1, "#2166ac", "s")):
            axis.scatter(*X[(y > 0) == (sign > 0)].T, s=9, color=colour, marker=marker)
        margin = runs.margins[runs.times == snapshot.time, run].item()
        axis.set(title=f"step {snapshot.time}: margin {margin:.3g}", aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
        axis.grid(visible=False)
    return figure


def _trade_off(certificate: "KKTCertificate"):
    figure, (axis,) = _figure()
    deltas, epsilons = certificate.curve()
    axis.plot(deltas, epsilons / certificate.norm, color=_BLUE, marker="o", markersize=3, label="best multipliers")
    axis.plot(
        certificate.loss_delta,
        certificate.loss_epsilon / certificate.norm,
        "s",
        color=_ORANGE,
        label="the loss's multipliers (Lemma C.8)",
    )
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set(xlabel=r"$\delta = \max\ \lambda (s - 1)$", ylabel=r"$\epsilon\ /\ \|\tilde\theta\|$")
    axis.legend(frameon=False)
    return figure


def _as_images(X) -> Tensor | None:
    """(N, height, width) for images of one or three channels, or vectors of square length; None for other data."""
    X = torch.as_tensor(X).detach().cpu().float()
    if X.ndim == 4 and X.shape[1] in (1, 3):
        return X[:, 0] if X.shape[1] == 1 else X.movedim(1, -1)
    side = math.isqrt(X.shape[1]) if X.ndim == 2 else 0
    return X.reshape(-1, side, side) if side > 3 and side**2 == X.shape[1] else None


def _support(certificate: "KKTCertificate", images: Tensor, y, rows: int = 4, columns: int = 10):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.9 * columns, 1.25 * rows), layout="constrained")
    share: dict[int, float] = {}
    rival: dict[int, int] = {}
    for (sample, other), weight in zip(certificate.constraints.tolist(), certificate.multipliers.tolist(), strict=True):
        share[sample] = share.get(sample, 0.0) + weight
        rival.setdefault(sample, other)
    total, axes = sum(share.values()), figure.subplots(rows, columns).ravel()
    heaviest = sorted(share, key=lambda n: -share[n])[: rows * columns]
    for axis, sample in zip(axes, heaviest, strict=False):
        axis.imshow(images[sample], cmap="gray_r")
        against = f" | {rival[sample]}" if rival[sample] >= 0 else ""
        axis.set_title(f"{int(y[sample])}{against}\n{100 * share[sample] / total:.1f}%", fontsize=7)
    for axis in axes:
        axis.axis("off")
    figure.suptitle(f"The heaviest of {len(share)} support vectors: label | rival class, share of the multipliers", fontsize=9)
    return figure


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

"""Pictures of a KKT certificate: its trade-off curve and its heaviest support vectors."""

from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from ..core.arguments import check_instance
from ..errors import DataError

if TYPE_CHECKING:
    from ..kkt import KKTCertificate
from .data import as_images, check_samples
from .style import BOTH, OUTPUT, open_folder, open_row, save_drawings


def draw_certificate(certificate: "KKTCertificate", X, y, folder: str | Path) -> list[Path]:
    """Write the trade-off curve and, where samples are square images, the heaviest support vectors;
    PNG and PDF; returns the PNG paths.
    """
    from ..kkt import KKTCertificate

    check_instance(
        "certificate",
        certificate,
        KKTCertificate,
        "the KKTCertificate that netmargin.certify returns",
    )
    samples, folder = check_samples(X, y), open_folder(folder)
    if len(samples) != certificate.samples:
        raise DataError(
            f"The certificate is about {certificate.samples} samples; X holds {len(samples)}. Pass"
            " the same data."
        )
    drawn = {"trade_off": _trade_off(certificate)}
    images = as_images(samples.X)
    if images is not None:
        drawn["support"] = _support(certificate, images, samples.y)
    return save_drawings(drawn, folder)


def _trade_off(certificate: "KKTCertificate"):
    figure, (axis,) = open_row()
    deltas, epsilons = certificate.curve()
    axis.plot(
        deltas,
        epsilons / certificate.norm,
        color=BOTH,
        marker="o",
        markersize=3,
        label="best multipliers",
    )
    axis.plot(
        certificate.loss_delta,
        certificate.loss_epsilon / certificate.norm,
        "s",
        color=OUTPUT,
        label="the loss's multipliers (Lemma C.8)",
    )
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set(xlabel=r"$\delta = \max\ \lambda (s - 1)$", ylabel=r"$\epsilon\ /\ \|\tilde\theta\|$")
    axis.legend(frameon=False)
    return figure


def _support(certificate: "KKTCertificate", images: Tensor, y, rows: int = 4, columns: int = 10):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.9 * columns, 1.25 * rows), layout="constrained")
    share: dict[int, float] = {}
    rival: dict[int, int] = {}
    for (sample, other), weight in zip(
        certificate.constraints.tolist(), certificate.multipliers.tolist(), strict=True
    ):
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
    figure.suptitle(
        f"The heaviest of {len(share)} support vectors: label | rival class, share of the"
        " multipliers",
        fontsize=9,
    )
    return figure

"""Pictures of a KKT certificate: its trade-off curve and its heaviest support vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from ..core.arguments import check_instance
from ..errors import DataError
from ..kkt import KKTCertificate
from ..nets.images import as_images
from ..nets.labels import ClassNames
from .samples import check_samples
from .style import BOTH, OUTPUT, draw_gallery, open_folder, open_row, save_drawings

_SHOWN = 40
"""Support vectors that are drawn: four rows of ten."""


def draw_certificate(
    certificate: KKTCertificate,
    X: Any,
    y: Any,
    folder: str | Path,
    *,
    class_names: Sequence[str] | None = None,
) -> list[Path]:
    """Draw the trade-off curve of a KKT certificate and its heaviest support vectors.

    Written are trade_off and, where samples are square images, support; each as PNG and PDF.

    Parameters
    ----------
    certificate : KKTCertificate
        What `netmargin.certify` returned.
    X, y : array_like, shape (n, ...) and (n,)
        The samples that it is about.
    folder : str or Path
        Folder for the pictures, made where it is not there.
    class_names : sequence of str or None, default None
        Names of the classes in the order of their indices, in place of numbers.

    Returns
    -------
    list of Path
        The PNG files.

    Raises
    ------
    ArgumentError
        If `certificate` is no certificate, `folder` no path or `class_names` no list of names.
    DataError
        If X and y cannot be used or are not as many as the certificate's samples.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> net, data = nm.models.mlp([64, 16, 10]), nm.datasets.digits(limit=10)
    >>> _ = nm.train(net, data, until=nm.LogLossBelow(-1), progress=False)
    >>> certificate = nm.certify(net, data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in nm.figures.draw_certificate(certificate, *data, folder)]
    ['trade_off.png', 'support.png']

    Source: Lyu and Li 2019, Definition C.6 and Lemma C.8.
    """
    check_instance("certificate", certificate, KKTCertificate, "what netmargin.certify returns")
    names = ClassNames(class_names)
    samples, folder = check_samples(X, y), open_folder(folder)
    if len(samples) != certificate.samples:
        raise DataError(
            f"The certificate is about {certificate.samples} samples, but X holds {len(samples)}."
        )
    drawn = {"trade_off": _draw_trade_off(certificate)}
    images = as_images(samples.X)
    if images is not None:
        drawn["support"] = _draw_support(certificate, images, samples.y, names)
    return save_drawings(drawn, folder)


def _draw_trade_off(certificate: KKTCertificate) -> Any:
    """Relative epsilon over delta, with the point that the loss's own multipliers reach."""
    figure, (axis,) = open_row()
    deltas, epsilons = certificate.curve()
    best, of_loss = epsilons / certificate.norm, certificate.relative_loss_epsilon
    axis.plot(deltas, best, "o-", color=BOTH, markersize=3, label="best multipliers")
    label = "the loss's multipliers (Lemma C.8)"
    axis.plot(certificate.loss_delta, of_loss, "s", color=OUTPUT, label=label)
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set(xlabel=r"$\delta = \max\ \lambda (s - 1)$", ylabel=r"$\epsilon\ /\ \|\tilde\theta\|$")
    axis.legend(frameon=False)
    return figure


def _draw_support(certificate: KKTCertificate, images: Tensor, y: Tensor, names: ClassNames) -> Any:
    """The samples with the largest multipliers as images, heaviest first."""
    shares: dict[int, float] = {}
    rivals: dict[int, int] = {}
    weights = certificate.multipliers.tolist()
    for (sample, rival), weight in zip(certificate.constraints.tolist(), weights, strict=True):
        # With several classes a sample has a constraint for each rival; shown is the first.
        shares[sample] = shares.get(sample, 0.0) + weight
        rivals.setdefault(sample, rival)
    heaviest = sorted(shares, key=lambda sample: -shares[sample])[:_SHOWN]
    titles = []
    for sample in heaviest:
        # Binary constraints have no rival class and hold -1.
        against = f" | {names.of(rivals[sample])}" if rivals[sample] >= 0 else ""
        share = 100 * shares[sample] / sum(shares.values())
        titles.append(f"{names.of(y[sample].item())}{against}\n{share:.1f}%")
    head = f"The heaviest of {len(shares)} support vectors: label | rival class, share of all"
    return draw_gallery(images[heaviest], titles, head, height=5.0)

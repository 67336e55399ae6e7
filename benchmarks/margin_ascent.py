"""`maximize_margin` against loss-based training: the margin reached, and the gradients it took.

Gradient evaluations are counted as samples times passes.
"""

import time

import torch

import netmargin as nm
from netmargin.models import mlp, mnist_cnn


def main() -> None:
    """Compare an MLP on digits with 1,000 epochs, and the MNIST CNN with 100.

    The MLP is 64-256-256-10; the CNN gets 2,000 images, and needs NETMARGIN_DATA.
    """
    digits = nm.datasets.digits()
    torch.manual_seed(0)
    baseline = _train("digits, MLP 256-256", mlp([64, 256, 256, 10]), digits, 1000)
    torch.manual_seed(0)
    _ascend(mlp([64, 256, 256, 10]), digits, baseline, radius=1e-3)
    torch.manual_seed(0)
    smooth = mlp([64, 64, 10], power=2)
    started = time.perf_counter()
    ascent = nm.maximize_margin(smooth, digits, multiplier_steps=24, iterations=400, progress=False)
    print(
        "digits, squared-ReLU net 64-64-10: relative epsilon"
        f" {ascent.certificate.relative_epsilon:.1e} at radius 0 in"
        f" {time.perf_counter() - started:.0f} s (target at most 1e-4)",
        flush=True,
    )
    try:
        images = nm.datasets.mnist("train", limit=2000)
    except nm.DataError as error:
        print(f"MNIST CNN left out: {error}")
        return
    torch.manual_seed(0)
    baseline = _train("MNIST CNN, 2,000 images", mnist_cnn(), images, 100)
    torch.manual_seed(0)
    net = mnist_cnn()
    separated = nm.train(net, images, until=nm.Separated(), lr=nm.ConstantLR(0.1), progress=False)
    _ascend(
        net,
        images,
        baseline,
        before=separated.rows[-1]["gradient_samples"],
        temperatures=(0.1,),
        iterations=66,
    )


def _train(title: str, net: torch.nn.Module, data, epochs: int) -> dict:
    """Train on the loss; the last row of the history."""
    row = nm.train(net, data, until=nm.Epochs(epochs), progress=False).rows[-1]
    print(
        f"{title}: {epochs} loss-based epochs: margin {row['layer_normalized_margin']:.4g},"
        f" {row['gradient_samples']:,} sample gradients"
    )
    return row


def _ascend(net: torch.nn.Module, data, baseline: dict, before: int = 0, **options) -> None:
    """Ascend the margin, and print it after each temperature relative to the baseline."""
    started = time.perf_counter()
    ascent = nm.maximize_margin(net, data, progress=False, **options)
    for row in ascent.rows:
        margin, spent = row["layer_normalized_margin"], before + row["gradient_samples"]
        print(
            f"  ascent: margin {margin:.4g}, ratio"
            f" {margin / baseline['layer_normalized_margin']:.2f}, with"
            f" {spent / baseline['gradient_samples']:.3f} of the evaluations",
            flush=True,
        )
    certificate = ascent.certificate
    print(
        f"  {time.perf_counter() - started:.0f} s with the certificate: relative epsilon"
        f" {certificate.relative_epsilon:.3f}, {certificate.relative_radius_epsilon:.3f} within"
        f" radius {certificate.radius:g}",
        flush=True,
    )

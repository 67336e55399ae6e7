"""`measure` over 10,000 MNIST images against a bare forward pass."""

import torch

import netmargin as nm
from netmargin.models import mnist_cnn

from .runner import compare


def main() -> None:
    """Measure MNIST's test images where they are, else random ones of their shape.

    The forward pass takes the batches that `measure` takes.
    """
    torch.manual_seed(0)
    try:
        X, y = nm.datasets.mnist("test")
    except nm.DataError:
        X, y = torch.rand(10_000, 1, 28, 28), torch.arange(10_000) % 10
    model = mnist_cnn()

    def peer() -> None:
        with torch.no_grad():
            for batch in X.split(200):
                model(batch)

    compare(
        "measure, 10,000 images, MNIST CNN",
        lambda: nm.measure(model, (X, y)),
        peer,
        "a bare forward pass",
        repeats=12,
        target=1.1,
    )

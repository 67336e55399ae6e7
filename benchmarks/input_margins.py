"""Input margins against attacked radii: do they rank images alike, and what do plain scores do?"""

import time
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr

import netmargin as nm
from netmargin.models import mlp, mnist_cnn


class Compared(NamedTuple):
    """Rank correlations with the attacked radius by the kind of margin, the median input margin
    over the radius, CPU seconds of input margins and of radii, correct images and all.
    """

    ranks: dict[str, float]
    over_radius: float
    seconds: float
    radius_seconds: float
    correct: int
    images: int


def main() -> None:
    """Compare on 100 MNIST test images, for a max-pool CNN and for nets where scores fail.

    Printed are rank correlations with the radii that attacks find, and medians.
    """
    try:
        train, test = load_images()
    except nm.DataError as error:
        print(f"left out: {error}")
        return
    _print("max-pool CNN", compare(train_cnn(train), test))
    # A net that sees no contrast, on images that differ in it: scores cannot tell a faint image,
    # which a small change turns, from a strong one.
    torch.manual_seed(0)
    blind = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.LayerNorm(784, eps=1e-12), *mlp([784, 100, 10])
    )
    X, y = test
    nm.train(
        blind, train, until=nm.Epochs(8), lr=nm.ConstantLR(0.05), batch_size=100, progress=False
    )
    contrast = torch.logspace(-1, 0, len(X))[torch.randperm(len(X))].reshape(-1, 1, 1, 1)
    _print("net blind to contrast, contrasts 0.1 to 1", compare(blind, (contrast * X, y)))


def load_images():
    """2,000 images of MNIST to train on, and 100 test images; raises DataError without them."""
    return nm.datasets.mnist("train", limit=2000), nm.datasets.mnist("test", limit=100)


def train_cnn(train) -> torch.nn.Module:
    """A small CNN with max-pools, trained for eight epochs."""
    torch.manual_seed(0)
    cnn = mnist_cnn(channels=(8, 16), hidden=64)
    nm.train(cnn, train, until=nm.Epochs(8), lr=nm.ConstantLR(0.1), batch_size=100, progress=False)
    return cnn


def compare(net: torch.nn.Module, data) -> Compared:
    """Input margins and attacked radii of a net."""
    started = time.process_time()
    found = nm.input_margins(net, data, progress=False)
    middle = time.process_time()
    radii = nm.robustness(net, data, progress=False)
    ended = time.process_time()
    right = radii.q > 0
    upper = radii.upper[right]
    ranks = {
        name: float(spearmanr(values[right], upper).statistic)
        for name, values in (
            ("input margin", found.distances.numpy()),
            ("relative input margin", found.relative.numpy()),
            ("score margin", found.q.numpy()),
        )
    }
    return Compared(
        ranks,
        float(np.median(found.distances.numpy()[right] / upper)),
        middle - started,
        ended - middle,
        int(right.sum()),
        len(right),
    )


def _print(title: str, found: Compared) -> None:
    print(
        f"{title}: {found.correct} of {found.images} correct;"
        " rank correlation with the attacked radius: "
        + ", ".join(f"{name} {value:.3f}" for name, value in found.ranks.items())
        + f"; median input margin {found.over_radius:.2f} times the attacked radius"
        f" ({found.seconds:.2f} s against {found.radius_seconds:.1f} s)",
        flush=True,
    )

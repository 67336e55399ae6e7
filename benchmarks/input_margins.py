"""Input margins against attacked radii: do they rank images alike, and what do plain scores do?"""

import time

import numpy as np
import torch
from scipy.stats import spearmanr

import netmargin as nm
from netmargin.models import mlp, mnist_cnn


def main() -> None:
    """Compare on 100 MNIST test images, for a max-pool CNN and for nets where scores fail.

    Printed are rank correlations with the radii that attacks find, and medians.
    """
    try:
        train, test = (
            nm.datasets.mnist(split, limit=n) for split, n in (("train", 2000), ("test", 100))
        )
    except nm.DataError as error:
        print(f"left out: {error}")
        return
    torch.manual_seed(0)
    cnn = mnist_cnn(channels=(8, 16), hidden=64)
    nm.train(cnn, train, until=nm.Epochs(8), lr=nm.ConstantLR(0.1), batch_size=100, progress=False)
    _compare("max-pool CNN", cnn, test)
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
    _compare("net blind to contrast, contrasts 0.1 to 1", blind, (contrast * X, y))


def _compare(title: str, net: torch.nn.Module, data) -> None:
    started = time.process_time()
    found = nm.input_margins(net, data, progress=False)
    middle = time.process_time()
    radii = nm.robustness(net, data, progress=False)
    ended = time.process_time()
    right = radii.q > 0
    upper = radii.upper[right]
    rank = {
        name: spearmanr(values[right], upper).statistic
        for name, values in (
            ("input margin", found.distances.numpy()),
            ("relative input margin", found.relative.numpy()),
            ("score margin", found.q.numpy()),
        )
    }
    print(
        f"{title}: {right.sum()} of {len(right)} correct;"
        " rank correlation with the attacked radius: "
        + ", ".join(f"{name} {value:.3f}" for name, value in rank.items())
        + f"; median input margin {np.median(found.distances.numpy()[right] / upper):.2f} times the"
        f" attacked radius ({middle - started:.1f} s against {ended - middle:.1f} s)",
        flush=True,
    )


if __name__ == "__main__":
    main()

"""The nets whose radii are compared, trained with fixed seeds in seconds, and 100 test images."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

import netmargin as nm

Split = tuple[Tensor, Tensor]
IMAGES = 100
_SEED = 0


@dataclass(frozen=True)
class Trained:
    """A trained net in float64, and the first test images that it classifies correctly.

    Attributes
    ----------
    name : str
        The widths of its layers.
    net : torch.nn.Sequential
        The net.
    X : float64 tensor, (n, ...)
        Images.
    y : int64 tensor, (n,)
        Their classes.
    """

    name: str
    net: nn.Sequential
    X: Tensor
    y: Tensor


def split_digits() -> tuple[Split, Split]:
    """1,300 of the digits for training, and the others."""
    X, y = nm.datasets.digits()
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(_SEED))
    train, test = order[:1300], order[1300:]
    return (X[train], y[train]), (X[test], y[test])


def split_mnist() -> tuple[Split, Split]:
    """10,000 training images and 300 test images of MNIST."""
    return nm.datasets.mnist("train", limit=10_000), nm.datasets.mnist("test", limit=300)


def make_mlp(*widths: int) -> nn.Sequential:
    """A fully connected ReLU net with biases."""
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def make_cnn() -> nn.Sequential:
    """Two convolutions with max-pools, and two dense layers."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


NETS: dict[str, tuple[Callable[[], nn.Sequential], Callable[[], tuple[Split, Split]], int]] = {
    "digits 64-64-10": (lambda: make_mlp(64, 64, 10), split_digits, 60),
    "digits 64-128-64-10": (lambda: make_mlp(64, 128, 64, 10), split_digits, 60),
    "MNIST 784-100-10": (lambda: make_mlp(784, 100, 10), split_mnist, 10),
    "MNIST 784-256-256-10": (lambda: make_mlp(784, 256, 256, 10), split_mnist, 8),
    "MNIST max-pool CNN": (make_cnn, split_mnist, 4),
}
"""Each net, its data, and its epochs: all classify more than 96% of the test images correctly."""


def train_net(name: str) -> Trained:
    """Train one of NETS by Adam; raises DataError where its images cannot be read."""
    make, load, epochs = NETS[name]
    (X, y), (test, labels) = load()
    torch.manual_seed(_SEED)
    net, X = make(), X.float()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(epochs):
        for part in torch.randperm(len(y)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X[part]), y[part]).backward()
            optimizer.step()
    net, test = net.double().eval().requires_grad_(False), test.double()
    with torch.no_grad():
        right = net(test).argmax(1) == labels
    return Trained(name, net, test[right][:IMAGES], labels[right][:IMAGES])

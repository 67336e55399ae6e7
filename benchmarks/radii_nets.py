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
ROBUST = {
    "digits 64-64-10, robust": "digits 64-64-10",
    "digits 64-128-64-10, robust": "digits 64-128-64-10",
    "MNIST 784-100-10, robust": "MNIST 784-100-10",
}
"""Nets of NETS, trained on the worst inputs that descents find (Madry et al. 2018)."""
_ROBUST_RADIUS, _ROBUST_STEPS = 1.0, 7
"""The radius in which those are searched, and the steps: each goes a quarter of the radius."""


def perturb(net: nn.Module, X: Tensor, y: Tensor) -> Tensor:
    """Inputs of large loss within the radius of robust training, by projected gradient ascent."""
    d = torch.zeros_like(X).flatten(1)
    for _ in range(_ROBUST_STEPS):
        d.requires_grad_(True)
        loss = nn.functional.cross_entropy(net(X + d.reshape_as(X)), y, reduction="sum")
        (slope,) = torch.autograd.grad(loss, d)
        d = d.detach() + _ROBUST_RADIUS / 4 * nn.functional.normalize(slope, dim=1)
        d = d / (d.norm(dim=1, keepdim=True) / _ROBUST_RADIUS).clamp(min=1)
    return X + d.reshape_as(X)


def train_net(name: str, *, images: int = IMAGES) -> Trained:
    """Train one of NETS or ROBUST by Adam; raises DataError where its images cannot be read."""
    make, load, epochs = NETS[ROBUST.get(name, name)]
    (X, y), (test, labels) = load()
    torch.manual_seed(_SEED)
    net, X = make(), X.float()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(epochs):
        for part in torch.randperm(len(y)).split(64):
            inputs = perturb(net, X[part], y[part]) if name in ROBUST else X[part]
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs), y[part]).backward()
            optimizer.step()
    net, test = net.double().eval().requires_grad_(False), test.double()
    with torch.no_grad():
        right = net(test).argmax(1) == labels
    return Trained(name, net, test[right][:images], labels[right][:images])

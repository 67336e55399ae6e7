"""A step on the relative loss against the same step on F.cross_entropy.

The net is the MNIST CNN of Lyu and Li (2019).
"""

import torch
from torch.nn import functional as F

from netmargin.losses import CrossEntropy
from netmargin.models import mnist_cnn
from netmargin.training.relative_loss import descend

from .runner import compare


def main() -> None:
    """Compare steps on a batch of 100, as in the paper."""
    torch.manual_seed(0)
    model, x, y = mnist_cnn(), torch.rand(100, 1, 28, 28), torch.arange(100) % 10
    optimizer, loss = torch.optim.SGD(model.parameters(), lr=1e-6), CrossEntropy()

    def peer() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def ours() -> None:
        descend(model, x, y, loss=loss, log_scale=0.0, rate=1e-6)

    compare(
        "training step, MNIST CNN, batch 100",
        ours,
        peer,
        "F.cross_entropy and SGD",
        repeats=60,
        target=1.05,
    )

"""Epochs and tries of `train` against those of a plain loop that measures loss, margins and norm.

One thread. Nets, a plain loop and two rules take turns; the ratio is that of the least times.
"""

import copy
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import netmargin as nm
from netmargin.training import LearningRate, StoppingRule

_ROUNDS = 20


class Case(NamedTuple):
    """A net and its data, epochs in a round, and the ratios of an epoch and a try to reach."""

    name: str
    model: nn.Module
    X: Tensor
    y: Tensor
    batch_size: int
    epochs: int
    targets: tuple[float, float]


class Clock(StoppingRule):
    """Stop after some accepted epochs, and read the clock after each."""

    def __init__(self, epochs: int):
        self.epochs, self.ticks = epochs, list[float]()

    def reached(self, rows: list[dict]) -> str | None:
        """A word once the epochs are over."""
        self.ticks.append(time.process_time())
        return "over" if len(rows) > self.epochs else None


def main() -> None:
    """Print times and ratios of all cases."""
    torch.set_num_threads(1)
    for case in make_cases():
        times = compare(case)
        plain, constant, tried = (1e3 * least for least in times)
        print(
            f"{case.name}: plain loop {plain:.3f} ms an epoch; train {constant:.3f} ="
            f" {constant / plain:.2f} times (target at most {case.targets[0]}), by the rate that"
            f" follows the loss {tried:.3f} a try = {tried / plain:.2f} times (at most"
            f" {case.targets[1]})",
            flush=True,
        )


def make_cases() -> list[Case]:
    """Sixty points in ten dimensions at once, digits, wide random inputs, and a small CNN."""
    torch.manual_seed(0)
    digits = nm.datasets.digits(limit=500)
    mlp, cnn = nm.models.mlp, nm.models.mnist_cnn
    wide, images = torch.randn(1000, 784), torch.rand(300, 1, 28, 28)
    ten = torch.arange(1000) % 10
    small = torch.randn(60, 10), torch.arange(60) % 3
    return [
        Case("60 x 10, all at once", mlp([10, 20, 3]), *small, 60, 40, (2.1, 1.9)),
        Case("500 digits by 100", mlp([64, 32, 10]), *digits, 100, 10, (1.7, 1.7)),
        Case("1,000 x 784 by 100", mlp([784, 100, 10]), wide, ten, 100, 4, (1.3, 1.3)),
        Case("300 images by 100, CNN", cnn(channels=(8, 16), hidden=128), images, ten[:300], 100,
             2, (1.1, 1.1)),
    ]  # fmt: skip


def compare(case: Case) -> list[float]:
    """The least seconds of an epoch of the plain loop, an epoch of `train`, and a try."""
    ways: list[Callable[[Case], float]] = [
        time_plain_epochs,
        lambda case: time_tries(case, nm.ConstantLR(0.01)),
        lambda case: time_tries(case, nm.LossBasedLR()),
    ]
    for way in ways:  # first calls load libraries and allocate memory
        way(case)
    rounds = [[way(case) for way in ways] for _ in range(_ROUNDS)]
    return [min(column) for column in zip(*rounds, strict=True)]


def time_tries(case: Case, lr: LearningRate) -> float:
    """Seconds for each try of a run, accepted or not."""
    clock = Clock(case.epochs)
    history = nm.train(
        copy.deepcopy(case.model),
        (case.X, case.y),
        until=clock,
        lr=lr,
        batch_size=case.batch_size,
        progress=False,
    )
    return (clock.ticks[-1] - clock.ticks[0]) / sum(history.column("attempts"))


def time_plain_epochs(case: Case) -> float:
    """Seconds for each epoch of SGD, and for the loss, the least margin and the norm after it."""
    model, X, y = copy.deepcopy(case.model), case.X, case.y
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    start = time.process_time()
    for _ in range(case.epochs):
        for rows in torch.randperm(len(X)).split(case.batch_size):
            optimizer.zero_grad()
            F.cross_entropy(model(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            outputs = torch.cat([model(x) for x in X.split(200)])
            others = outputs.scatter(1, y[:, None], -torch.inf).amax(1)
            (outputs.gather(1, y[:, None])[:, 0] - others).min().item()
            F.cross_entropy(outputs.double(), y).item()
            sum(p.double().square().sum() for p in model.parameters()).sqrt().item()
    return (time.process_time() - start) / case.epochs

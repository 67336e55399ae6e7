"""Steps of training both layers against the same by torch autograd and by NumPy.

With m 1000, n 256, d 15, float32; then many seeds against one by one, and the margins reached.
"""

import time

import numpy as np
import torch

import netmargin as nm
from netmargin.datasets import clusters

from .runner import compare

_STEPS = 500
"""So many steps that starting up does not count, and few enough to repeat them."""


def main() -> None:
    """Time steps alone and side by side, then train as Chizat and Bach (2020), Section 7."""
    X, y = (part.numpy() for part in clusters())
    Z = np.hstack([X, np.ones((len(X), 1))]).astype(np.float32)
    labels = y.astype(np.float32)
    peers = {
        "torch autograd": (_autograd(torch.from_numpy(Z), torch.from_numpy(labels)), 1 / 3),
        "NumPy": (_numpy(Z, labels), 1.0),
        "its two matrix products alone": (_products(torch.from_numpy(Z)), 1.0),
    }
    for name, (peer, target) in peers.items():
        compare(
            f"{_STEPS} steps of both layers, m 1000",
            lambda: _train(X, y, 1000, (0,)),
            peer,
            name,
            repeats=9,
            target=target,
        )
    for width, target in ((32, 1 / 5), (1000, 1.0)):
        compare(
            f"{_STEPS} steps of 20 seeds side by side, m {width}",
            lambda width=width: _train(X, y, width, range(20)),
            lambda width=width: [_train(X, y, width, (seed,)) for seed in range(20)],
            "20 runs one after the other",
            repeats=5,
            target=target,
        )
    optimum = nm.solvers.f1_max_margin(X, y)
    for width, seeds in ((8, 10), (32, 10), (128, 10), (1024, 10)):
        started = time.perf_counter()
        runs = nm.twolayer.train_both_layers(
            X, y, width=width, steps=50_000, seeds=range(seeds), progress=False
        )
        print(
            f"clusters, m {width}, {seeds} seeds, 50,000 steps in"
            f" {time.perf_counter() - started:.0f} s: best margins {runs.best.mean():.6f} in the"
            f" mean, {runs.best.min():.6f} at least, of at most {optimum.upper_bound:.6f} (target:"
            " means rise, and within 5% for m 1024)",
            flush=True,
        )


def _train(X: np.ndarray, y: np.ndarray, width: int, seeds) -> None:
    """Take the steps by `train_both_layers`."""
    nm.twolayer.train_both_layers(
        X, y, width=width, steps=_STEPS, seeds=seeds, records=1, progress=False
    )


def _products(Z: torch.Tensor):
    """The two matrix products of a step, which no implementation can do without."""
    a, z, pull = (
        torch.randn(1000, Z.shape[1]),
        torch.empty(1000, len(Z)),
        torch.empty(1000, Z.shape[1]),
    )

    def run() -> None:
        for _ in range(_STEPS):
            torch.mm(a, Z.T, out=z)
            torch.mm(z, Z, out=pull)

    return run


def _autograd(Z: torch.Tensor, y: torch.Tensor):
    """The same steps with gradients by torch autograd."""

    def run() -> None:
        a, b = (
            torch.randn(1000, Z.shape[1], requires_grad=True),
            torch.randn(1000, requires_grad=True),
        )
        for t in range(_STEPS):
            F = torch.logsumexp(-y * ((Z @ a.T).relu() @ b / 1000), 0)
            moved = torch.autograd.grad(F, (a, b))
            with torch.no_grad():
                a.sub_(moved[0], alpha=500 / (t + 1) ** 0.5)
                b.sub_(moved[1], alpha=500 / (t + 1) ** 0.5)

    return run


def _numpy(Z: np.ndarray, y: np.ndarray):
    """The same steps with gradients by hand in NumPy."""

    def run() -> None:
        random = np.random.default_rng(0)
        a, b = (
            random.normal(size=(1000, Z.shape[1])).astype(np.float32),
            random.normal(size=1000).astype(np.float32),
        )
        for t in range(_STEPS):
            H = np.maximum(Z @ a.T, 0)
            q = y * (H @ b) / 1000
            p = np.exp(q.min() - q)
            v = y * p / p.sum()
            a, b = (
                a + 0.5 / (t + 1) ** 0.5 * b[:, None] * (((H > 0) * v[:, None]).T @ Z),
                b + 0.5 / (t + 1) ** 0.5 * (v @ H),
            )

    return run

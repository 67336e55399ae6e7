"""A step of training both layers (m 1000, n 256, d 15, float32) against the same step by torch autograd and by NumPy; and the margin it reaches."""

import time

import numpy as np
import torch

import netmargin as nm

from .clusters import clusters
from .runner import compare

_STEPS = 200


def main() -> None:
    """Times steps, then trains m = 1024 for 50,000 steps on the clusters of Chizat and Bach (2020), Section 7."""
    X, y = clusters()
    Z = np.hstack([X, np.ones((len(X), 1))]).astype(np.float32)
    labels = y.astype(np.float32)
    peers = {"torch autograd": _autograd(torch.from_numpy(Z), torch.from_numpy(labels)), "NumPy": _numpy(Z, labels)}
    for name, peer in peers.items():
        compare(
            f"{_STEPS} steps of both layers",
            lambda: nm.twolayer.train_both_layers(X, y, width=1000, steps=_STEPS, records=1, progress=False),
            peer,
            name,
            repeats=9,
            target=1 / 3 if name == "torch autograd" else 1.0,
        )
    optimum = nm.solvers.f1_max_margin(X, y)
    started = time.perf_counter()
    runs = nm.twolayer.train_both_layers(X, y, width=1024, steps=50_000, progress=False)
    print(
        f"clusters, m 1024, 50,000 steps in {time.perf_counter() - started:.0f} s: best margin {runs.best[0]:.6f} of at most "
        f"{optimum.upper_bound:.6f}; best known {optimum.margin:.6f} (target: within 5%)",
        flush=True,
    )


def _autograd(Z: torch.Tensor, y: torch.Tensor):
    def run() -> None:
        a, b = torch.randn(1000, Z.shape[1], requires_grad=True), torch.randn(1000, requires_grad=True)
        for t in range(_STEPS):
            F = torch.logsumexp(-y * ((Z @ a.T).relu() @ b / 1000), 0)
            moved = torch.autograd.grad(F, (a, b))
            with torch.no_grad():
                a.sub_(moved[0], alpha=500 / (t + 1) ** 0.5)
                b.sub_(moved[1], alpha=500 / (t + 1) ** 0.5)

    return run


def _numpy(Z: np.ndarray, y: np.ndarray):
    def run() -> None:
        random = np.random.default_rng(0)
        a, b = random.normal(size=(1000, Z.shape[1])).astype(np.float32), random.normal(size=1000).astype(np.float32)
        for t in range(_STEPS):
            H = np.maximum(Z @ a.T, 0)
            q = y * (H @ b) / 1000
            p = np.exp(q.min() - q)
            v = y * p / p.sum()
            a, b = a + 0.5 / (t + 1) ** 0.5 * b[:, None] * (((H > 0) * v[:, None]).T @ Z), b + 0.5 / (t + 1) ** 0.5 * (v @ H)

    return run

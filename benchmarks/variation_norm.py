"""`f1_max_margin` against 50,000 steps of gradient ascent on a net of 1,000 units.

The data are those of Chizat and Bach (2020), Section 7. All seconds are of CPU of one core, so that
other programs do not matter.
"""

import time

import numpy as np
import torch

from netmargin.datasets import clusters
from netmargin.solvers import f1_max_margin

from .clock import clock_of_process

STEPS, UNITS = 50_000, 1000
"""The steps and the neurons of the peer, as in the paper."""
SHARES = (1 / 10, 1 / 50)
"""Parts of the time of the peer, in which its margin is to be reached."""


def main() -> None:
    """Compare margins for three draws of the data: in parts of the time of the peer, and when ours
    searches until its local gap is 1e-3.
    """
    torch.set_num_threads(1)
    with clock_of_process():
        for seed in range(3):
            X, y = (part.numpy() for part in clusters(seed=seed))
            reached, seconds = time_ascent(X, y)
            print(
                f"clusters k 3, d 15, n 256, seed {seed}: margin {reached:.7f} after {STEPS:,}"
                f" gradient steps in {seconds:.1f} s",
                flush=True,
            )
            for share in SHARES:
                start = time.process_time()
                quick = f1_max_margin(X, y, pricing="local", time_limit=share * seconds)
                print(
                    f"  in 1/{1 / share:.0f} of that, {time.process_time() - start:.2f} s:"
                    f" {quick.margin:.7f}, {quick.margin / reached:.4f} times its margin",
                    flush=True,
                )
            ours = f1_max_margin(X, y, tol=1e-3, pricing="local", time_limit=seconds)
            print(
                f"  in {ours.seconds:.2f} s: {ours.margin:.7f} (local gap {ours.local_gap:.1e})",
                flush=True,
            )


def time_ascent(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The margin that the peer reaches, and its CPU seconds."""
    start = time.process_time()
    reached = ascend(X, y)
    return reached, time.process_time() - start


def ascend(X: np.ndarray, y: np.ndarray) -> float:
    """The best normalized margin along ascent of the smooth margin -log mean exp(-margins).

    Steps are 0.5 / sqrt(t + 1), in float32, with all samples.
    """
    torch.manual_seed(0)
    Z = torch.tensor(np.column_stack([X, np.ones(len(X))]), dtype=torch.float32)
    labels = torch.tensor(y, dtype=torch.float32)
    A = torch.nn.functional.normalize(torch.randn(UNITS, Z.shape[1]))
    b = torch.sign(torch.randn(UNITS))
    best = 0.0
    for step in range(STEPS):
        hidden = torch.relu_(Z @ A.T)
        margins = labels * (hidden @ b) / UNITS
        weights = torch.softmax(-margins, 0) * labels
        gradient_b = hidden.T @ weights
        gradient_A = hidden.sign_().mul_(weights[:, None]).T @ Z
        rate = 0.5 / (step + 1) ** 0.5
        A, b = A + rate * b[:, None] * gradient_A, b + rate * gradient_b
        if step % 500 == 499:
            mass = (A.double().square().sum() + b.double().square().sum()) / UNITS
            outputs = torch.relu(Z.double() @ A.double().T) @ b.double() / UNITS
            best = max(best, float((labels * outputs).min() / mass))
    return best

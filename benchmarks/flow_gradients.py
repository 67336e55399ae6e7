"""Gradients that the exact flow of a ReLU net takes, and those of an adaptive solver without kinks.

The net is 5-20-1 without biases on 20 random points with random labels and the exponential loss,
followed up to time 10. The peer is scipy's Dormand-Prince pair with a relative tolerance of 1e-5,
which shortens its steps wherever the flow slides along a kink.
"""

from typing import NamedTuple

import numpy as np
import torch
from scipy.integrate import solve_ivp

import netmargin as nm
from netmargin.losses import Exponential

_TIME = 10.0


class Followed(NamedTuple):
    """Gradients of the exact flow, those of kinks and its error; the peer's, and how far apart the
    ends are.
    """

    gradients: int
    of_kinks: int
    error: float
    of_peer: int
    apart: float


def main() -> None:
    """Print gradients and the distance of the ends."""
    found = follow_both()
    print(
        f"gradient flow of a ReLU net to time {_TIME:g}: {found.gradients:,} gradients and"
        f" {found.of_kinks:,} of kinks, error {found.error:.1e} (of step halving), against"
        f" {found.of_peer:,} gradients of RK45; the ends are {found.apart:.1e} apart",
        flush=True,
    )


def follow_both() -> Followed:
    """Follow the flow both ways, some ten seconds."""
    torch.manual_seed(0)
    net = nm.models.mlp([5, 20, 1], bias="none").double()
    random = torch.Generator().manual_seed(0)
    X = torch.randn(20, 5, generator=random, dtype=torch.float64)
    y = 1 - 2 * (torch.rand(20, generator=random) < 0.5).long()
    flow = nm.gradient_flow(
        net, (X, y), time=_TIME, loss=Exponential(), rtol=1e-7, estimate_error=True, progress=False
    )
    ends = np.concatenate([flow.final[name].numpy().ravel() for name, _ in net.named_parameters()])
    start = np.concatenate([weights.detach().numpy().ravel() for weights in net.parameters()])
    # Steps of the peer that are far too long overflow, and are tried again.
    with np.errstate(over="ignore", invalid="ignore"):
        peer = solve_ivp(
            lambda _, theta: _descend(theta, X.numpy(), y.numpy()),
            (0.0, _TIME),
            start,
            method="RK45",
            rtol=1e-5,
            atol=1e-8,
        )
    apart = float(np.abs(peer.y[:, -1] - ends).max())
    return Followed(flow.evaluations, flow.normal_evaluations, flow.error, peer.nfev, apart)


def _descend(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Minus the gradient of sum exp(-y f(x)), f(x) = b . relu(W x), with weights theta = (W, b)."""
    d = X.shape[1]
    units = len(theta) // (d + 1)
    W, b = theta[: units * d].reshape(units, d), theta[units * d :]
    hidden = np.maximum(X @ W.T, 0)
    back = y * np.exp(-y * (hidden @ b))
    to_hidden = back[:, None] * b * (hidden > 0)
    return np.concatenate([(to_hidden.T @ X).ravel(), hidden.T @ back])

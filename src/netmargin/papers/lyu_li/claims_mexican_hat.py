"""The claim of Lyu and Li 2019 on a flow whose direction has no limit: the Mexican hat."""

import torch
from torch import Tensor

from ..ledger.claim import claim
from ..ledger.trial import Finding, Trial
from ._instances import PAPER


@claim(
    "lyu-li/mexican-hat",
    "on phi = 1 / (1 - r^2) the flow of the homogeneous Mexican hat stays on it, with C(r) = 4 r^4"
    " / (4 r^4 + (1 - r^2)^3): so its direction circles and never converges",
    source=f"{PAPER}, Theorem I.1 (exponent 3, not 4)",
    hypotheses=(
        "0.05 < r < 0.9, any L, q_n = h for all n; invariance of the curve, pointwise; that r tends"
        " to 1 is not checked"
    ),
    tolerance=1e-9,
    because="d psi / dt relative to the two terms that cancel in it",
    trials=(2, 40),
    sharpen="identity",
)
def mexican_hat(trial: Trial, *, exponent: int = 3) -> Finding:
    random = trial.torch_random
    shares = [torch.rand(256, generator=random, dtype=torch.float64) for _ in range(2)]
    rho = torch.exp(torch.randn(256, generator=random, dtype=torch.float64))
    worst = _measure_turning(0.05 + 0.85 * shares[0], 0.5 + 4 * shares[1], rho, exponent)
    return Finding.of(worst, "256 points of the curve, L from 0.5 to 4.5")


def _measure_turning(r: Tensor, L: Tensor, rho: Tensor, exponent: int) -> Tensor:
    """|d psi / dt| relative to its terms at psi = 0, by derivatives of h in (x, y, z)."""
    phi = 1 / (1 - r**2)
    theta = torch.stack([r * torch.cos(phi), r * torch.sin(phi), torch.sqrt(1 - r**2)]) * rho
    theta.requires_grad_(True)
    size = theta.square().sum(0).sqrt()
    u, v = theta[0] / size, theta[1] / size
    s = u**2 + v**2
    C = 4 * s**2 / (4 * s**2 + (1 - s) ** exponent)
    psi = torch.atan2(v, u) - 1 / (1 - s)
    h = size**L * (1 - torch.exp(-1 / (1 - s)) * (1 - C * torch.sin(psi)))
    (velocity,) = torch.autograd.grad(h.sum(), theta, retain_graph=True)
    (around,) = torch.autograd.grad(torch.atan2(v, u).sum(), theta, retain_graph=True)
    (outwards,) = torch.autograd.grad((1 / (1 - s)).sum(), theta)
    turn, out = (around * velocity).sum(0), (outwards * velocity).sum(0)
    return (turn - out).abs() / (turn.abs() + out.abs())


@mexican_hat.printed("C(r) = 4 r^4 / (4 r^4 + (1 - r^2)^4)")
def _() -> Finding:
    one = torch.ones(1, dtype=torch.float64)
    turning = _measure_turning(one / 2, one, one, 4)
    return Finding.of(turning, "r = 1/2, psi = 0, L = 1: d psi / dt is not 0")

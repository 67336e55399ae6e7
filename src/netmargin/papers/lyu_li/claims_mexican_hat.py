"""The claim of Lyu and Li 2019 on a flow whose direction has no limit: the Mexican hat."""

import torch
from torch import Tensor

from ..ledger.claim import claim
from ..ledger.trial import Finding, Trial
from ._instances import PAPER


@claim(
    "lyu-li/mexican-hat",
    "on phi = 1 / (1 - r^2) the flow of the homogeneous Mexican hat stays on it, with C(r) = 4 r^4"
    " / (4 r^4 + (1 - r^2)^3), and dr / dt > 0 there, so that r tends to 1, as no r < 1 stops it:"
    " its direction circles and never converges",
    source=f"{PAPER}, Theorem I.1 (exponent 3, not 4)",
    hypotheses=(
        "0.05 < r < 0.9, any L, q_n = h for all n; pointwise, dr / dt by the formula -(1 - r^2)"
        " df / dr too"
    ),
    tolerance=1e-9,
    because="d psi / dt relative to the two terms that cancel in it, dr / dt to its formula",
    trials=(2, 40),
    sharpen="identity",
)
def mexican_hat(trial: Trial, *, exponent: int = 3, speed: float = 1.0) -> Finding:
    random = trial.torch_random
    shares = [torch.rand(256, generator=random, dtype=torch.float64) for _ in range(2)]
    rho = torch.exp(torch.randn(256, generator=random, dtype=torch.float64))
    r, L = 0.05 + 0.85 * shares[0], 0.5 + 4 * shares[1]
    turning, out = _measure_turning(r, L, rho, exponent)
    # Outwards by d(1 / (1 - r^2)) / dt = 2 r / (1 - r^2)^2 dr / dt, of -df / dr = 2 r (1 - C) / (1
    # - r^2)^2 e^{-1 / (1 - r^2)}; all of it is positive.
    away = 1 - r**2
    rise = 4 * r**2 / away**3 * torch.exp(-1 / away) * away**3 / (4 * r**4 + away**3)
    off = (out / (speed * rho ** (L - 2) * rise) - 1).abs()
    worst = torch.maximum(turning, off)
    return Finding.of(worst, "256 points of the curve, L from 0.5 to 4.5")


def _measure_turning(r: Tensor, L: Tensor, rho: Tensor, exponent: int) -> tuple[Tensor, Tensor]:
    """|d psi / dt| relative to its terms at psi = 0, by derivatives of h; d(1 / (1 - r^2)) / dt."""
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
    return (turn - out).abs() / (turn.abs() + out.abs()), out


@mexican_hat.printed("C(r) = 4 r^4 / (4 r^4 + (1 - r^2)^4)")
def _() -> Finding:
    one = torch.ones(1, dtype=torch.float64)
    turning, _ = _measure_turning(one / 2, one, one, 4)
    return Finding.of(turning, "r = 1/2, psi = 0, L = 1: d psi / dt is not 0")


@mexican_hat.printed("Appendix I: df/dv = (v / r) df/dr + (v / u^2) df/dphi")
def _() -> Finding:
    u, v = torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True).unbind()
    slope = torch.autograd.grad(torch.atan2(v, u), v)[0]  # f = phi
    return Finding.of(abs(v / u**2 - slope).item(), f"f = phi at (u, v) = (2, 1): {slope:g}")

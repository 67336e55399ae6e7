"""Nets and runs on which several claims of The Ubiquity of 2-Homogeneity (2024) are examined."""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.special import expit, log_expit, xlogy
from torch import Tensor, nn

from ...core.logspace import log_softplus, neg_log_expm1_exp
from ..ledger.trial import Trial
from ._normalized_nets import AttentionFeatures, NormalizedNet, NormalizedReLU

PAPER = "The Ubiquity of 2-Homogeneity 2024"

BATCH = 64
"""The number of random parameters of a trial: enough that the 160 to 320 trials of a full run
examine more than 10,000 instances, few enough for one tensor program.
"""


class Fixed(nn.Module):
    """Features F(x) = x without parameters."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the input itself."""
        return x


# Each kind of inner net with its number of inputs. The nets are small, as a trial evaluates BATCH
# copies of one at once.
INNER: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "one fixed feature": (Fixed, 1),
    "normalized ReLU": (lambda: NormalizedReLU(4, 6), 4),
    "LayerNorm": (
        lambda: nn.Sequential(
            nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.LayerNorm(5, elementwise_affine=False)
        ),
        4,
    ),
    "transformer": (lambda: AttentionFeatures(2, 2, 6), 4),
    "RMSNorm": (
        lambda: nn.Sequential(
            nn.Linear(4, 5),
            nn.Tanh(),
            nn.Linear(5, 5),
            nn.RMSNorm(5, eps=1e-5, elementwise_affine=False),
        ),
        4,
    ),
}


def draw_stacked_nets(trial: Trial) -> tuple[str, NormalizedNet, dict[str, Tensor], Tensor, Tensor]:
    """Draw a net at 64 random parameters with |a_j| = |b_j|, and samples that are labelled by
    each of them.
    """
    kind = list(INNER)[trial.number % len(INNER)]
    build, inputs = INNER[kind]
    random = trial.torch_random
    inner = build().double()
    x = torch.randn(1 + trial.number // 5 % 4, inputs, generator=random, dtype=torch.float64)
    net = NormalizedNet(inner, inner(x).shape[1], seed=trial.number)
    theta = {
        n: torch.randn(BATCH, *p.shape, generator=random, dtype=torch.float64)
        for n, p in net.named_parameters()
    }
    theta["a"] = theta["a"] * torch.exp(
        torch.randn(BATCH, 1, generator=random, dtype=torch.float64)
    )
    theta["b"] = theta["a"].abs() * torch.sign(theta["b"])
    theta = {n: p.requires_grad_(True) for n, p in theta.items()}
    with torch.no_grad():
        y = torch.sign(stacked_scores(net, theta, x))
    return kind, net, theta, x, y


def stacked_scores(net: nn.Module, theta: dict[str, Tensor], x: Tensor) -> Tensor:
    """Scores of the net at every one of the stacked parameters, (B, N)."""
    return torch.func.vmap(lambda p: torch.func.functional_call(net, p, (x,))[:, 0])(theta)


def stacked_log_loss(q: Tensor) -> Tensor:
    """Log of the summed logistic loss of margins (B, N): (B,)."""
    return torch.logsumexp(log_softplus(-q), 1)


def run_mirror_flow(
    z: Callable[[float], np.ndarray],
    u0: np.ndarray,
    times,
    reference: np.ndarray,
    linear: bool = False,
) -> dict[str, np.ndarray]:
    """Integrate d ln u / ds = -grad f_s(u), and the integrals that the lemmas bound.

    f_s = 2 L_s, the mean logistic loss of <u, z_i(s)>, or <u, mean z(s)> where `linear`. Returns u
    and the integrals at the times.
    """
    m = len(u0)

    def rates(s: float, state: np.ndarray) -> np.ndarray:
        """The derivatives of ln u and of the four integrals."""
        u, zs = np.exp(state[:m]), z(s)
        if linear:
            c = zs.mean(0)
            return np.concatenate([-c, [c @ u, c @ reference, 0.0, 0.0]])
        q, r = zs @ u, zs @ reference
        slopes = expit(-q)
        losses = -log_expit(q)
        psi = neg_log_expm1_exp(
            torch.tensor(math.log(max(losses.sum(), 1e-300)), dtype=torch.float64)
        ).item()
        return np.concatenate(
            [
                2 * slopes @ zs / len(q),
                [2 * losses.mean(), -2 * log_expit(r).mean(), slopes.mean(), expit(-psi) / len(q)],
            ]
        )

    run = solve_ivp(
        rates,
        (0, times[-1]),
        np.append(np.log(u0), np.zeros(4)),
        "LSODA",
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    y = run.y
    return {
        "u": np.exp(y[:m]).T,
        "f_u": y[m],
        "f_reference": y[m + 1],
        "G": y[m + 2],
        "xi": y[m + 3],
    }


def kl_divergence(v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """D(v, u) = sum v ln(v / u) - v + u, over the last axis."""
    return (xlogy(v, v / u) - v + u).sum(-1)


def scale_to_unit(Z: np.ndarray) -> np.ndarray:
    """Divide features by their largest absolute value."""
    return Z / np.abs(Z).max()

"""Nets and runs on which several claims of The Ubiquity of 2-Homogeneity (2024) are examined."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.special import expit, kl_div, log_expit
from torch import Tensor, nn

from ...core.logspace import neg_log_expm1_exp
from ...losses import Logistic
from ...radii.layers import Scaled
from ..ledger.draws import draw_directions
from ..ledger.points import BATCH, log_loss, stacked_outputs
from ..ledger.trial import Trial
from ._normalized_nets import FEATURES, NormalizedNet, NormalizedReLU

PAPER = "The Ubiquity of 2-Homogeneity 2024"


# Kinds of inner nets; small, as a trial evaluates BATCH copies of one at once.
WIDTHS = {
    "one fixed feature": 1,
    "normalized ReLU": 6,
    "LayerNorm": 5,
    "transformer": 6,
    "RMSNorm": 5,
}


def draw_stacked_nets(trial: Trial) -> tuple[str, NormalizedNet, dict[str, Tensor], Tensor, Tensor]:
    """Draw a net at 64 parameters with |a_j| = |b_j|, and samples that each of them labels."""
    kind, width = list(WIDTHS.items())[trial.number % len(WIDTHS)]

    def normal(*shape: int) -> Tensor:
        return torch.tensor(trial.random.normal(size=shape))

    inner = FEATURES[kind](width).double() if kind in FEATURES else nn.Identity()
    x = normal(1 + trial.number // 5 % 4, 4 if kind in FEATURES else 1)
    net = NormalizedNet(inner, width, seed=trial.number)
    theta = {n: normal(BATCH, *p.shape) for n, p in net.named_parameters()}
    theta["a"] = theta["a"] * torch.exp(normal(BATCH, 1))
    theta["b"] = theta["a"].abs() * torch.sign(theta["b"])
    theta = {n: p.requires_grad_(True) for n, p in theta.items()}
    with torch.no_grad():
        y = torch.sign(stacked_outputs(net, theta, x)[..., 0])
    return kind, net, theta, x, y


def stacked_log_loss(net: nn.Module, theta: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Log of the summed logistic loss at every one of the stacked parameters: (B,)."""
    return log_loss(Logistic(), y * stacked_outputs(net, theta, x)[..., 0])


class MovingFeatures:
    """Signed features z_i = y_i beta . F(x_i; V) of a net (4), as functions of a flat V."""

    def __init__(self, net: NormalizedNet, x: Tensor, y: Tensor) -> None:
        self.net, self.data, self._inner, self._x = net, (x, y), net.inner, x
        self._signs = y.double()[:, None] * torch.sign(net.balanced_product())
        self._sizes = {name: p.shape for name, p in net.inner.named_parameters()}
        self.V = nn.utils.parameters_to_vector(net.inner.parameters()).detach().numpy()
        self.u = net.balanced_product().abs().numpy()
        # ReLUs slide along kinks, where higher orders and smaller errors take a thousand times the
        # steps. A tenth of this error moves the margins of parities by 10% at most.
        kinks = isinstance(net.inner, NormalizedReLU)
        self.integrator = ("RK23", 1e-2) if kinks else ("LSODA", 1e-7)

    def at(self, V: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The features (n, m) at V, and the gradient in V of a weighted sum of them."""
        flat = torch.tensor(V, requires_grad=True)
        theta = self._named(flat)
        z = torch.func.functional_call(self._inner, theta, (self._x,)) * self._signs

        def pull(weights: np.ndarray) -> np.ndarray:
            """The gradient in V of the sum of the features with these weights."""
            return torch.autograd.grad(z, flat, torch.tensor(weights))[0].numpy()

        return z.detach().numpy(), pull

    def states(self, run: dict[str, np.ndarray]) -> list[dict[str, Tensor]]:
        """The parameters of the inner net along a flow, as `early_margin` takes them."""
        named = (self._named(torch.tensor(V)) for V in run["V"])
        return [{f"inner.{name}": v for name, v in theta.items()} for theta in named]

    def _named(self, flat: Tensor) -> dict[str, Tensor]:
        """A flat V as parameters by name."""
        parts = flat.split([shape.numel() for shape in self._sizes.values()])
        named = zip(self._sizes.items(), parts, strict=True)
        return {name: part.reshape(shape) for (name, shape), part in named}


def draw_moving_features(
    random: np.random.Generator, kind: str, n: int, width: int = 6
) -> MovingFeatures:
    """Draw features of n labelled unit vectors, with |z| <= 1, and signs that help most samples."""
    inner = FEATURES[kind](width).double()
    for v in inner.parameters():
        v.data = torch.tensor(random.normal(size=v.shape))
    x = torch.tensor(draw_directions(random, n, 4))
    y = torch.tensor(random.choice([-1, 1], n))
    with torch.no_grad():
        features = inner(x)
    if kind != "normalized ReLU":  # a normalization bounds the square sum by the width
        inner = nn.Sequential(
            inner, Scaled(torch.tensor(width**-0.5, dtype=torch.float64), torch.zeros(()))
        )
    net = NormalizedNet(inner, width)
    u = torch.tensor(random.dirichlet(np.ones(width)))
    # A feature that helps no sample more than it harms others is turned round.
    signs = torch.sign((y[:, None] * features).sum(0))
    net.a.data, net.b.data = u.sqrt(), u.sqrt() * torch.where(signs == 0, 1.0, signs)
    return MovingFeatures(net, x, y)


def run_mirror_flow(
    z: Callable[[float], np.ndarray] | MovingFeatures,
    u0: np.ndarray,
    times: Any,
    reference: np.ndarray,
    linear: bool = False,
    mirror: tuple[np.ufunc, np.ufunc] = (np.log, np.exp),
) -> dict[str, np.ndarray]:
    """Integrate d ln u / ds = -grad f_s(u), and the integrals that the lemmas bound; f_s = 2 L_s,
    the mean logistic loss of <u, z_i(s)>, or <u, mean z(s)> where `linear`. V of moving features
    follows dV / ds = -grad_V L. `mirror` replaces ln and exp.
    """
    m, V0, (method, rtol) = len(u0), np.zeros(0), ("LSODA", 1e-10)
    if isinstance(z, MovingFeatures):
        V0, (method, rtol) = z.V, z.integrator

    def features(s: float, V: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The features at s, or at V where they move, and a pull on V."""
        return z.at(V) if isinstance(z, MovingFeatures) else (z(s), lambda weights: V)

    def rates(s: float, state: np.ndarray) -> np.ndarray:
        """The derivatives of ln u, of the four integrals and of V."""
        u = mirror[1](state[:m])
        zs, pull = features(s, state[m + 4 :])
        if linear:
            c = zs.mean(0)
            return np.concatenate([-c, [c @ u, c @ reference, 0.0, 0.0], V0])
        q, r = zs @ u, zs @ reference
        slopes, losses = expit(-q), -log_expit(q)
        total = torch.tensor(math.log(max(losses.sum(), 1e-300)), dtype=torch.float64)
        psi = neg_log_expm1_exp(total).item()
        integrals = [2 * losses.mean(), -2 * log_expit(r).mean(), slopes.mean()]
        integrals.append(expit(-psi) / len(q))
        moved = pull(slopes[:, None] * u / len(q))
        return np.concatenate([2 * slopes @ zs / len(q), integrals, moved])

    start = np.concatenate([mirror[0](u0), np.zeros(4), V0])
    options = {"rtol": rtol, "atol": rtol / 100}
    # A step that is so long that u overflows is rejected.
    with np.errstate(over="ignore", invalid="ignore"):
        y = solve_ivp(rates, (0, times[-1]), start, method, t_eval=times, **options).y
    names, V = ("f_u", "f_reference", "G", "xi"), y[m + 4 :].T
    run = {"u": mirror[1](y[:m]).T, "V": V} | dict(zip(names, y[m : m + 4], strict=True))
    return run | {"z": np.stack([features(*at)[0] for at in zip(times, V, strict=True)])}


def kl_divergence(v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """D(v, u) = sum v ln(v / u) - v + u, over the last axis."""
    apart: np.ndarray = kl_div(v, u).sum(-1)
    return apart

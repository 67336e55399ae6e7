"""Claims of Lyu and Li 2019 on gradient descent, and the rates of loss and norm."""

import math
import operator
from fractions import Fraction

import numpy as np
import torch
from scipy.integrate import simpson
from scipy.optimize import brentq
from torch import Tensor, nn

from ...flow.gradient_descent import gradient_descent
from ...flow.theory_rate import SmoothnessBounds, TheoryRate
from ..ledger.claim import claim
from ..ledger.regression import slope
from ..ledger.trial import Finding, Trial
from ._instances import PAPER, move_near_optimum, run_flow, start_separated

_SMALL_CHANGE = 1e-5
"""Change of log 1/Loss below which that of phi is its slope halfway times the change, to 1e-10; the
difference of two values of phi, some 1e-15 apart by rounding, is as good above it.
"""
_RATE = TheoryRate(-3.0, 0.2, 3.0, SmoothnessBounds(0.4, 1.2, 4.0))
"""A rate from log 1/Loss = 3, log rho = 0.2 with L = 3, at which printed forms fail."""


def _start_descent(trial: Trial) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """Cubed ReLUs and points; every other loss is .3 to .99, where phi' stays for long."""
    net, (x, y) = start_separated(trial, power=3, width=4)
    if trial.number == 0 or trial.number % 2:
        return net, (x, y)
    target = 0.3 + 0.69 * torch.rand(1, generator=trial.torch_random).item()
    with torch.no_grad():
        q = (y * net(x)[:, 0]).numpy()
        times = brentq(lambda t: float(np.exp(-t * q).sum()) - target, 0.0, 100.0 / q.min())
        for p in net.parameters():
            p.mul_(times**0.25)  # of order 4
    return net, (x, y)


@claim(
    "lyu-li/gd-monotone",
    "gradient descent with rates up to H(Loss) never lets gamma^ fall, and gamma^ < gamma~ <= the"
    " normalized margin",
    source=f"{PAPER}, Theorem 4.2, Lemma E.1 and Theorem E.2",
    hypotheses=(
        "(S1) C^2 net (cubed ReLUs), exponential loss below 1, (S5) with proved bounds B_0,"
        " B_1, B_2; every other start with a summed loss of .3 to .99"
    ),
    tolerance=1e-10,
    because="rounding of log Loss, log rho and phi, and of differences of neighbours",
    trials=(3, 12),
)
def gd_monotone(trial: Trial, *, relative: float = 1.0) -> Finding:
    # Cubed ReLUs are the lowest power with a second derivative that is continuous, as (S1) asks.
    net, (x, y) = _start_descent(trial)
    bounds = SmoothnessBounds.of_layers(x, 3)
    history = gradient_descent(net, (x, y), steps=100, rate=bounds, relative=relative)
    # Missing where the loss is above 1, which counts as a violation.
    log_gamma = np.array([row.get("log_gamma_hat", -math.inf) for row in history.rows])
    smoothed, hard = map(np.array, map(history.column, ("smoothed_margin", "normalized_margin")))
    falls = np.where(np.isfinite(log_gamma[1:]), log_gamma[:-1] - log_gamma[1:], math.inf)
    right = smoothed > 0
    below = np.where(right, log_gamma - np.log(np.where(right, smoothed, 1.0)), math.inf)
    where, rose = f"cubed ReLUs, {len(x)} points, 100 steps", log_gamma[-1] - log_gamma[0]
    criteria = [*falls, *below, *(smoothed / hard - 1)]
    return Finding.of_one(criteria, where, f"log gamma^ rose by {rose:.3g}")


@gd_monotone.printed("(20): e^{I(Loss)} < 0")
def _() -> Finding:
    return Finding.of(
        math.exp(_RATE.phi(-5.0)) / 5.0,
        "L = 3, log 1/Loss = 5 after 3: e^I is gamma^ / gamma~, positive, and below 1",
    )


@gd_monotone.printed("phi(x) >= log log 1/x (proof of (P1))")
def _() -> Finding:
    off = math.log(5.0) - _RATE.phi(-5.0)
    return Finding.of(off, "L = 3, log 1/Loss = 5 after 3: phi is below log 5")


@claim(
    "lyu-li/gd-key-lemma",
    "along every step, theta(t + a) = theta(t) - a eta grad Loss: (P1) gamma~ > gamma^(t_0); (P2) 2"
    " L a eta nu < rho(t + a)^2 - rho(t)^2 < 2 L a eta nu (1 + lambda mu); (P3) Loss falls by at"
    " least a eta (1 - mu) |grad|^2; (P4) log gamma^ rises by at least rho^2 / (L nu^2) |tangential"
    " grad|^2 log(rho(t + a) / rho(t)), whose sum over steps is (22)",
    source=f"{PAPER}, Lemma E.7 and (22)",
    hypotheses=(
        "(S1), (S5), exponential loss below 1; cubed ReLUs, steps from eta = H(Loss); every other"
        " start with a summed loss of .3 to .99"
    ),
    tolerance=1e-7,
    because=(
        "differences of neighbouring values of log rho and phi, relative to their changes; those of"
        " the margins, however small, are taken in rationals"
    ),
    trials=(3, 20),
)
def gd_key_lemma(
    trial: Trial, *, relative: float = 1.0, growth: float = 1.0, factor: float = 1.0
) -> Finding:
    net, (x, y) = _start_descent(trial)
    theta = nn.utils.parameters_to_vector(net.parameters()).detach()

    def evaluated(point: Tensor) -> tuple[float, Tensor, Tensor]:
        """Evaluate log Loss, its gradient and the margins at a vector of parameters."""
        nn.utils.vector_to_parameters(point, net.parameters())
        q = y * net(x)[:, 0]
        log = torch.logsumexp(-q, 0)
        gradient = torch.autograd.grad(log, list(net.parameters()))
        return log.item(), nn.utils.parameters_to_vector(gradient), q.detach()

    log, gradient, q = evaluated(theta)
    L = 4.0
    rule = TheoryRate(log, theta.norm().log().item(), L, SmoothnessBounds.of_layers(x, 3))
    first, violations = rule.log_gamma_hat(log, theta.norm().log().item()), []
    for _ in range(12):
        loss, rho2 = math.exp(log), theta.square().sum().item()
        eta, mu = relative * math.exp(rule.log_rate(log)), rule.mu(log)
        lam = loss * (-log) ** (1 - 2 / L) / (L * math.exp(rule.log_kappa(log)))
        slope_ = loss * gradient
        nu = (torch.exp(-q) * q).sum().item()
        square = slope_.square().sum().item()
        tangential = square - (theta @ slope_).item() ** 2 / rho2
        # The lemma is about every point of a step, not only its end.
        for a in (0.25, 0.5, 1.0):
            step = -a * eta * slope_
            # Where the summed loss begins near 1, steps are as small as 1e-26.
            pairs = zip(*(_exact_margins(theta, s, x, y) for s in (step, 0 * step)), strict=True)
            gains = torch.tensor([float(b - a) for b, a in pairs], dtype=torch.float64)
            change = torch.log1p(torch.softmax(-q, 0) @ torch.expm1(-gains)).item()
            log_a = log + change
            # Small differences of large numbers, from the step itself.
            grown = (2 * theta @ step + step.square().sum()).item()
            expected = growth * 2 * L * a * eta * nu
            rise = 0.5 * math.log1p(grown / rho2)
            gamma = phi = -math.inf
            if log_a < 0:
                gamma = rule.log_gamma_hat(min(log_a, log), 0.5 * math.log(rho2 + grown))
                phi = _change_phi(rule, log, change)
            promised = factor * rho2 / (L * nu**2) * tangential * rise
            falls = a * eta * (1 - mu) * square / loss
            violations += [
                first - gamma - 1e-9,
                1 - grown / expected,
                grown / (expected * (1 + lam * mu)) - 1,
                1 - -math.expm1(change) / falls,
                (promised - (phi - L * rise)) / (abs(phi) + L * rise),
            ]
        theta = theta - eta * slope_
        log, gradient, q = evaluated(theta)
        if not log < 0:
            break
    worst = np.reshape(violations, (-1, 15)).max(1)
    return Finding.of(worst, f"cubed ReLUs, {len(x)} points, steps of three parts")


def _exact_margins(theta: Tensor, step: Tensor, x: Tensor, y: Tensor) -> list[Fraction]:
    """The margins of a two-layer net of cubed ReLUs at theta + step, in rationals."""
    pairs = zip(theta.tolist(), step.tolist(), strict=True)
    moved = [Fraction(t) + Fraction(s) for t, s in pairs]
    d = x.shape[1]
    width = len(moved) // (d + 1)
    rows, output = [moved[d * j : d * (j + 1)] for j in range(width)], moved[d * width :]
    margins = []
    for point, label in zip(x.tolist(), y.tolist(), strict=True):
        point = [Fraction(value) for value in point]
        inner = [sum(map(operator.mul, row, point)) for row in rows]
        margins.append(label * sum(a * max(v, 0) ** 3 for a, v in zip(output, inner, strict=True)))
    return margins


def _change_phi(rule: TheoryRate, log_loss: float, change: float) -> float:
    """The change of phi where log Loss changes."""
    if change < -_SMALL_CHANGE:
        return rule.phi(log_loss + change) - rule.phi(log_loss)
    return -change * rule.slope_of_phi(log_loss + change / 2)


@gd_key_lemma.printed("rho^-2 <= gamma^_0^{2/L} (log 1/Loss)^{-2/L} (proof of Lemma E.9)")
def _() -> Finding:
    bound = math.exp(2 / 3 * _RATE.log_gamma_hat(-3.0, 0.2)) * 3.0 ** (-2 / 3)
    return Finding.of(
        math.exp(-0.4) - bound,
        "the start itself, L = 3, log rho = 0.2, log 1/Loss = 3: rho^-2 is the larger, as gamma~ >"
        " gamma^",
    )


@claim(
    "lyu-li/rates",
    "L^2 gamma~_0^{2/L} t <= G(1/Loss) <= B_1^2 gamma~_0^{2/L-2} t at every time t, G(z) = int (log"
    " u)^{2/L-2} du from 1/Loss_0; so Loss = Theta(1 / (t (log t)^{2-2/L})) and rho = Theta((log"
    " t)^{1/L})",
    source=(
        f"{PAPER}, Theorems 4.3 and A.10, Lemma B.6 and the proof of A.10 for the exponential loss"
    ),
    hypotheses=(
        "exponential loss, Loss_0 < 1, L = 1, 2, 3 in turn, first where both bounds are attained,"
        " then from 10% noise on a margin ascent, so that gamma~ has nearly settled; exponents by"
        " regression over log t from 100 to 700, 95% intervals within 0.2 of the claim"
    ),
    tolerance=1e-5,
    because=(
        "error of the integrator (1e-6 a step) where the bounds are attained, relative in log t"
    ),
    trials=(3, 9),
)
def rates(
    trial: Trial, *, lower: float = 1.0, upper: float = 1.0, exponent: float = 0.0
) -> Finding:
    L = 1 + trial.number % 3
    net, (x, y) = start_separated(trial, power=L - 1, samples=4 if trial.number else 1, width=4)
    if trial.number:
        move_near_optimum(net, x, y, trial, order=L, noise=0.1)
    else:  # along one sample both bounds are attained
        with torch.no_grad():
            next(net.parameters()).copy_(1.2 * y * x / x.square().sum())
    flow = run_flow(net, (x, y), -300.0, rtol=1e-6)
    rows, p = [flow.rows[0], *flow.rows[1 :: max(len(flow.rows) // 200, 1)]], 2 - 2 / L
    gamma, depth = rows[0]["smoothed_margin"], np.array([-row["log_loss"] for row in rows[1:]])
    log_t = np.array([row["log_time"] for row in rows[1:]])
    # G by Simpson's rule in w = log u, over the last 60: what lies below is e^-60 of it.
    v = [np.linspace(max(-rows[0]["log_loss"], d - 60), d, 4001) for d in depth]
    log_G = np.array(
        [d + math.log(simpson(np.exp(w - d) * w**-p, x=w)) for d, w in zip(depth, v, strict=True)]
    )
    B_1 = SmoothnessBounds.of_layers(x, 2).gradient if L == 3 else x.norm(dim=1).max().item()
    below = math.log(lower * L**2 * gamma ** (2 / L)) + log_t - log_G
    above = log_G - math.log(upper * B_1**2 * gamma ** (2 / L - 2)) - log_t
    late = log_t > 100  # exponents are those of the limit; early times bend the lines
    lines = depth - log_t, np.log([r["norm"] for r in rows[1:]])
    fits = [slope(np.log(log_t[late]), line[late]) for line in lines]
    off = [fits[0].off(p + exponent) - 0.2, fits[1].off(1 / L + exponent) - 0.2]
    measured = (
        f"L = {L}: Loss ~ 1 / (t log(t)^{fits[0].value:.3f} +- {fits[0].error:.3f}) (claim"
        f" {p:.3f}), rho ~ log(t)^{fits[1].value:.3f} (claim {1 / L:.3f})"
    )
    relative = [(gap / log_t)[log_t > 0] for gap in (below, above)]
    where = f"flow to log10-loss -300, L = {L}"
    return Finding.of_one(np.concatenate([*relative, off]), where, measured)

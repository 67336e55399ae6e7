"""Claims of Lyu and Li 2019 on gradient descent: its margins, rates and limits."""

import math
import operator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...core import logspace
from ...flow.gradient_descent import gradient_descent
from ...flow.theory_rate import SmoothnessBounds, TheoryRate
from ...kkt import tangent_svm
from ..ledger.claim import claim
from ..ledger.regression import slope
from ..ledger.trial import Finding, Trial, excess
from ._instances import EXPONENTIAL, PAPER, Start, find_kkt_points, log_growth

_SMALL_CHANGE = 1e-5
"""Changes of log 1/Loss below which phi's slope halfway, and above differences, err by 1e-10."""
_RATE = TheoryRate(-3.0, 0.2, 3.0, SmoothnessBounds(0.4, 1.2, 4.0))
"""A rate from log 1/Loss = 3, log rho = 0.2 with L = 3, at which printed forms fail."""


def _start_descent(trial: Trial) -> Start:
    """Cubed ReLUs and points; every other loss is .3 to .99, where phi' stays for long."""
    start, small = Start.drawn(trial, power=3, width=4), trial.number == 0 or trial.number % 2
    start.scale_to(-trial.random.uniform(1.2, 2.0) if small else -trial.random.uniform(0.01, 1.2))
    return start


def _start_opposed(trial: Trial) -> Start:
    """A linear net between two points, where too large a step gains one margin for the other."""
    apart, depth = trial.random.uniform((1.5, 3.0), (3.0, 10.0))
    x = torch.tensor([[1.0, apart], [1.0, -apart]], dtype=torch.float64)
    net = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 0.1]]))
    start = Start(net, x, torch.ones(2), 1.0, SmoothnessBounds.of_layers(x, 1, 1))
    start.scale_to(-depth)
    return start


@claim(
    "lyu-li/gd-monotone",
    "gradient descent with rates up to H(Loss) never lets gamma^ fall, and gamma^ < gamma~ <= the"
    " normalized margin",
    source=f"{PAPER}, Theorem 4.2, Lemma E.1 and Theorem E.2",
    hypotheses=(
        "(S1) C^2 nets, exponential loss below 1, (S5) with proved bounds B_0, B_1, B_2: cubed"
        " ReLUs, every other start with a summed loss of .3 to .99, and linear nets between two"
        " nearly opposite points, where the rate notices most"
    ),
    tolerance=1e-10,
    because="rounding of log Loss, log rho and phi, and of differences of neighbours",
    trials=(3, 12),
    sharpen={"relative": 1},
)
def gd_monotone(trial: Trial, *, relative: float = 1.0) -> Finding:
    # Cubed ReLUs are the lowest power with a second derivative that is continuous, as (S1) asks.
    start = _start_opposed(trial) if trial.number % 2 else _start_descent(trial)
    history = gradient_descent(
        start.net, start.data, steps=100, rate=start.bounds, relative=relative
    )
    # Missing where the loss is above 1, which counts as a violation.
    log_gamma = np.array([row.get("log_gamma_hat", -math.inf) for row in history.rows])
    smoothed, hard = map(np.array, map(history.column, ("smoothed_margin", "normalized_margin")))
    falls = np.where(np.isfinite(log_gamma[1:]), log_gamma[:-1] - log_gamma[1:], math.inf)
    right = smoothed > 0
    below = np.where(right, log_gamma - np.log(np.where(right, smoothed, 1.0)), math.inf)
    rose = log_gamma[-1] - log_gamma[0]
    where = f"L = {start.order:g}, {len(start.x)} points, 100 steps"
    criteria = [*falls, *below, *excess(smoothed, hard)]
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
    " grad|^2 log(rho(t + a) / rho(t)), whose sum over steps is (22); E(Loss) >="
    " (1/2) L^2 gamma^_0^{2/L} sum of eta, E(x) = int_x^{Loss_0} du / min{u^2 (log 1/u)^{2-2/L},"
    " its value at Loss_0}",
    source=f"{PAPER}, Lemmas E.7, E.8 and E.9, (22)",
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
    sharpen={"relative": 1, "growth": 1, "factor": 1, "speed": 1},
)
def gd_key_lemma(
    trial: Trial,
    *,
    relative: float = 1.0,
    growth: float = 1.0,
    factor: float = 1.0,
    speed: float = 1.0,
) -> Finding:
    start = _start_descent(trial)
    (x, y), state, L = start.data, start.state(), start.order
    rule = TheoryRate(state.log_loss, state.log_rho, L, start.bounds)
    first, violations = rule.log_gamma_hat(state.log_loss, state.log_rho), []

    def log_square(log: float) -> float:
        return 2 * log + (2 - 2 / L) * math.log(-log)

    E_0, E, spent = log_square(state.log_loss), 0.0, 0.0
    for _ in range(12):
        theta, log, q = state.theta, state.log_loss, state.q
        loss, rho2 = math.exp(log), theta.square().sum().item()
        eta, mu = relative * math.exp(rule.log_rate(log)), rule.mu(log)
        lam = loss * (-log) ** (1 - 2 / L) / (L * math.exp(rule.log_kappa(log)))
        slope_, nu = -loss * state.velocity, (torch.exp(-q) * q).sum().item()
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
            apart = step.square().sum().item()
            grown = 2 * (theta @ step).item() + apart
            expected = growth * 2 * L * a * eta * nu
            rise = 0.5 * math.log1p(grown / rho2)
            gamma = phi = -math.inf
            if log_a < 0:
                gamma = rule.log_gamma_hat(min(log_a, log), 0.5 * math.log(rho2 + grown))
                phi = rule.phi(log_a) - rule.phi(log)
                if change > -_SMALL_CHANGE:
                    phi = -change * rule.slope_of_phi(log + change / 2)
            promised = factor * rho2 / (L * nu**2) * tangential * rise
            falls = a * eta * (1 - mu) * square / loss
            violations += [
                first - gamma - 1e-9,
                # As |step|^2 is what they differ by; 1e-6 of them is far above rounding.
                (expected - grown) / (apart + 1e-6 * abs(expected)),
                excess(grown, expected * (1 + lam * mu)),
                1 - -math.expm1(change) / falls,
                (promised - (phi - L * rise)) / (abs(phi) + L * rise),
            ]
        # Of Lemma E.9, by the value halfway; where the loss begins near 1 the minimum is E_0.
        halfway = min(log_square(log + min(change, 0) / 2), E_0)
        E, spent = E - math.expm1(change) * math.exp(log - halfway), spent + eta
        violations.append(excess(speed * L**2 / 2 * math.exp(2 / L * first) * spent, E))
        nn.utils.vector_to_parameters(theta - eta * slope_, start.net.parameters())
        state = start.state()
        # A step that is far too long may end at a loss that is no float.
        if not -600 < state.log_loss < 0:
            break
    worst = np.reshape(violations, (-1, 16)).max(1)
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


@gd_key_lemma.printed("rho^-2 <= gamma^_0^{2/L} (log 1/Loss)^{-2/L} (proof of Lemma E.9)")
def _() -> Finding:
    bound = math.exp(2 / 3 * _RATE.log_gamma_hat(-3.0, 0.2)) * 3.0 ** (-2 / 3)
    return Finding.of(
        math.exp(-0.4) - bound,
        "the start itself, L = 3, log rho = 0.2, log 1/Loss = 3: rho^-2 is the larger, as gamma~ >"
        " gamma^",
    )


@gd_key_lemma.printed("nu = sum_n e^{q_n} q_n (proof of (P2), Lemma E.8)")
def _() -> Finding:
    theta = torch.tensor(2.0, requires_grad=True)
    slope = torch.autograd.grad(torch.exp(-theta), theta)[0]  # q = theta, L = 1
    nu = -(theta * slope).item()
    return Finding.of(2 * math.exp(2) - nu, f"q = theta = 2: <theta, -grad Loss> / L = {nu:.3f}")


_DESCENTS = ((0, 1, 1), (3, 2, 4), (0, 2, 4), (0, 1, 4), (0, 3, 4))
"""Powers of ReLUs (0: linear layers), layers and samples, where the constants of (S5) are mild."""


class Descent(NamedTuple):
    """A run of gradient descent from near the optimum, at H(Loss) or at a constant rate."""

    start: Start  # at the end
    weights: tuple[Tensor, Tensor]  # at the beginning and at the end
    constant: bool
    depth: np.ndarray  # log 1/Loss, as all that follows before each step, and after the last one
    log_rho: np.ndarray
    log_time: np.ndarray  # of T, the sum of rates so far
    log_rate: np.ndarray
    log_gamma: np.ndarray  # of gamma^
    gap: np.ndarray  # q_min - log 1/Loss
    beta: np.ndarray
    epsilon: np.ndarray  # with delta those of Lemma C.8's multipliers
    delta: np.ndarray
    turn: np.ndarray  # change of the direction in the last step


def _descend(trial: Trial, settled: bool) -> Descent:
    """Descend from log 1/Loss = 20 to 120 or further, or 3000 steps at the least H from 3 on."""
    power, layers, samples = _DESCENTS[trial.number % len(_DESCENTS)]
    start = Start.drawn(trial, power=power, layers=layers, samples=samples, width=3, spread=0.4)
    if settled or samples > 1:
        start.move_near_optimum(trial, 0.1 if settled else 0.3)
    constant = trial.number % 3 == 2
    start.scale_to(-3.0 if constant else -20.0)
    state, log_time, turn, rows = start.state(), -math.inf, 0.0, []
    first, L = state, start.order
    rule = TheoryRate(state.log_loss, state.log_rho, L, start.bounds)
    # Of log 1/Loss = u from the start on, H is smallest at u = 3 - 2 / L, or at the start.
    least = rule.log_rate(min(state.log_loss, 2 / L - 3))
    while True:
        log_rate = least if constant else rule.log_rate(state.log_loss)
        log_gamma = rule.log_gamma_hat(state.log_loss, state.log_rho)
        known = -state.log_loss, state.log_rho, log_time, log_rate, log_gamma
        gap = state.q.min().item() + state.log_loss
        rows.append((*known, gap, state.beta, state.epsilon, state.delta, turn))
        end = 120 if settled or state.beta > 0.99 else 160  # 1 - beta may still be large at 120
        if state.log_loss < -end or len(rows) > (3000 if constant else 8000):
            break
        before = state.theta
        theta = before + math.exp(log_rate + state.log_loss) * state.velocity
        nn.utils.vector_to_parameters(theta, start.net.parameters())
        state, log_time = start.state(), logspace.log_add(log_time, log_rate)
        turn = (theta / theta.norm() - before / before.norm()).norm().item()
    return Descent(start, (first.theta, state.theta), constant, *np.array(rows).T)


@claim(
    "lyu-li/gd-rates",
    "with T the sum of rates E(Loss) >= (1/2) L^2 gamma^_0^{2/L} T, E(x) = int_x^{Loss_0} du / (u^2"
    " (log 1/u)^{2-2/L}), and each step lowers the loss by (1/2) L^2 gamma^_0^{2/L} to (3/2) B_1^2"
    " gamma^_0^{2/L-2} times eta Loss^2 (log 1/Loss)^{2-2/L}; so Loss = Theta(1 / (T (log"
    " T)^{2-2/L})) and rho = Theta((log T)^{1/L}) tend to 0 and infinity, and gamma^ to the"
    " normalized margin: log(gammabar / gamma^) <= log(1 + log N / u) + u_0 (1 / u + 1 / (2 L"
    " u^2)), u = log 1/Loss",
    source=f"{PAPER}, Theorems 4.3, E.2 (3) and E.5, Lemmas E.1 (b) and E.9 with their proofs",
    hypotheses=(
        "(S1), exponential loss; linear nets of 1 to 3 layers and cubed ReLUs from 10% noise on a"
        " margin ascent, so that the margin has nearly settled, unit inputs; eta = H(Loss) from log"
        " 1/Loss = 20 to 120, exponents by regression over log T from 40, 95% intervals within 0.2"
        " of the claim; every third run at a constant rate that (S5) allows, 3000 steps from log"
        " 1/Loss = 3"
    ),
    tolerance=1e-7,
    because="differences of neighbouring values of log Loss, relative to the promises",
    trials=(3, 10),
    ascent=0,
)
def gd_rates(
    trial: Trial,
    *,
    lower: float = 1.0,
    upper: float = 1.0,
    exponent: float = 0.0,
    approach: float = 1.0,
) -> Finding:
    run, picked = _descend(trial, settled=True), slice(1, None, 50)
    L, N, B_1 = run.start.order, len(run.start.x), run.start.bounds.gradient
    u, p, log_gamma = run.depth, 2 - 2 / run.start.order, run.log_gamma[0]
    log_least = math.log(lower * L**2 / 2) + 2 / L * log_gamma
    log_most = math.log(upper * 1.5 * B_1**2) + (2 / L - 2) * log_gamma
    step = (run.log_rate - u + p * np.log(u))[:-1]
    log_fall = np.log(-np.expm1(-np.diff(u)))
    log_E = log_growth(EXPONENTIAL, L, u[0], u[picked])
    promised = np.log1p(math.log(N) / u) + u[0] * (1 / u + 1 / (2 * L * u**2))
    far = np.log(u + run.gap) - L * run.log_rho - run.log_gamma
    ratios = [
        np.exp(log_least + step - log_fall),
        np.exp(log_fall - log_most - step),
        np.exp(log_least + run.log_time[picked] - log_E),
        1 + excess(np.abs(far), approach * promised),
    ]
    criteria, measured = np.concatenate(ratios) - 1, ""
    if not run.constant:
        late = run.log_time > 40
        lines = (u - run.log_time)[late], run.log_rho[late]
        fits = [slope(np.log(run.log_time[late]), line) for line in lines]
        off = [fits[0].off(p + exponent) - 0.2, fits[1].off(1 / L + exponent) - 0.2]
        criteria = np.append(criteria, off)
        measured = (
            f"Loss ~ 1 / (T log(T)^{fits[0].value:.3f} +- {fits[0].error:.3f}) (claim {p:.3f}), rho"
            f" ~ log(T)^{fits[1].value:.3f} (claim {1 / L:.3f}), log gamma^ rose by"
            f" {run.log_gamma[-1] - run.log_gamma[0]:.3g}"
        )
    most = [float(ratio.max()) for ratio in ratios]
    room = {"lower": 1 / max(most[0], most[2]), "upper": 1 / most[1], "approach": 1 / most[3]}
    return Finding.of_one(criteria, _name(run), measured, **room)


def _name(run: Descent) -> str:
    """A run in words."""
    kind = "constant rate" if run.constant else "eta = H(Loss)"
    return f"{len(run.start.x)} samples, L = {run.start.order:g}, {len(run.depth)} steps, {kind}"


@claim(
    "lyu-li/gd-limit",
    "every limit point of the direction of gradient descent is that of a KKT point, which solves"
    " the support vector machine of its tangent kernel: epsilon tends to 0, beta and the cosine to"
    " 1; |theta^(t + 1) - theta^(t)| <= (B_1 rho(t + 1) / (L gamma~ rho) + 1) log(rho(t + 1) /"
    " rho); the sum of (beta^-2 - 1) log(rho(t + 1) / rho) from t_1 to t_2 is at most (1/L)"
    " log(gamma^_2 / gamma^_1); and within log rho in (r, r + Delta) it passes an (epsilon,"
    " delta)-KKT point",
    source=(
        f"{PAPER}, Theorems 4.4, E.3 and E.4 (r, Delta, C_0, C_1, C_2 as in kkt-finite-time with"
        " gamma^ for gamma~), Lemma E.10, (22) and Corollary 4.5"
    ),
    hypotheses=(
        "runs as in gd-rates, from 30% noise, with one sample from any start; trends from log"
        " 1/Loss = 20 to 120, to 160 or 8000 steps where 1 - beta is above 0.01: epsilon falls by"
        " 1.5, 1 - beta and 1 - cosine by 2; epsilon from 0.5 to 1.2 of C_1, t_0 at log 1/Loss ="
        " 20, 40, 60"
    ),
    tolerance=1e-6,
    because="differences of neighbouring directions, relative to their bounds",
    trials=(3, 10),
    ascent=0,
)
def gd_limit(
    trial: Trial, *, turn: float = 1.0, angle: float = 1.0, epsilon: float = 1.0, falls: float = 1.0
) -> Finding:
    run = _descend(trial, settled=False)
    start, L, N, steps = run.start, run.start.order, len(run.start.x), np.diff(run.log_rho)
    gamma = run.depth / np.exp(L * run.log_rho)
    turns = (start.bounds.gradient / (L * gamma[:-1]) * np.exp(steps) + 1) * steps
    criteria = list(excess(run.turn[1:], turn * turns))
    room = {"turn": 1 / (1 + max(criteria))}
    sums = np.append(0.0, np.cumsum((run.beta[:-1] ** -2.0 - 1) * steps))
    random = trial.random
    for i, j in (np.sort(random.choice(len(sums), 2, replace=False)) for _ in range(100)):
        bound = angle * (run.log_gamma[j] - run.log_gamma[i]) / L
        criteria.append(excess(sums[j] - sums[i], bound))
    room["angle"] = 1 / (1 + max(criteria[-100:]))
    if N > 1 and not run.constant:
        seen = (run.depth, run.log_rho, run.log_gamma, run.epsilon, run.delta)
        shares = (1.2, 1.0, 0.8, 0.6, 0.5)
        criteria += find_kkt_points(start, seen, (20.0, 40.0, 60.0), shares, epsilon=epsilon)
        cosines = []
        for theta in run.weights:
            nn.utils.vector_to_parameters(theta, start.net.parameters())
            cosines.append(tangent_svm(start.net, start.data).cosine)
        trends = (1.5, run.epsilon), (2.0, 1 - run.beta), (2.0, 1 - np.array(cosines))
        criteria += [falls * least * off[-1] / off[0] - 1 for least, off in trends]
    measured = f"epsilon {run.epsilon[0]:.2g} -> {run.epsilon[-1]:.2g}"
    return Finding.of_one(criteria, _name(run), measured, **room)

"""Claims of Lyu and Li 2019 on the limit: KKT points, and the tangent kernel's support vectors."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...kkt import certify, tangent_svm
from ...losses import CrossEntropy, Exponential, Logistic, Loss
from ...solvers import f1_max_margin
from ...training.stopping import StoppingRule
from ..ledger.claim import claim
from ..ledger.draws import draw_directions
from ..ledger.trial import Finding, Trial
from ._instances import (
    EXPONENTIAL,
    LOSSES,
    PAPER,
    ROUNDING,
    SEPARATED,
    Start,
    examine_points,
    find_kkt_points,
    has_flow,
    run_flow,
    run_relu_flow,
)

_SHARES = (1.2, 0.8, 0.6, 0.4, 0.3, 0.2)
"""Epsilon of Theorem A.9 in units of C_1; the theorem takes any below sqrt(3/2)."""
_LATE_FLOWS: tuple[tuple[dict[str, Any], Loss, dict[str, Any]], ...] = (
    ({"power": 2, "width": 3}, EXPONENTIAL, {}),
    ({"power": 1, "width": 4}, Logistic(), {"radius": 1e-3}),
    ({"power": 2, "width": 3, "outputs": 3}, CrossEntropy(), {"norm": "layers"}),
    ({"power": 1, "width": 4, "layers": 3}, EXPONENTIAL, {"radius": 1e-3}),
    ({"power": 2, "width": 3}, Exponential(3), {}),
)
"""Nets with their losses, and how they are certified: ReLU nets end on kinks."""


class _Aligned(StoppingRule):
    """Stop once 1 - beta is below 0.025 where log10-loss is below -300."""

    def reached(self, rows: list[dict[str, Any]]) -> str | None:
        deep = rows[-1]["log10_mean_loss"] < -300
        return "1 - beta fell below 0.025" if deep and rows[-1]["alignment"] > 0.975 else None


class LateFlow(NamedTuple):
    """A flow from near a KKT point, seen at log10-loss -3 and at its end."""

    start: Start
    weights: list[dict[str, Tensor]]
    betas: list[float]  # of the velocity of least norm, on kinks too
    loss: Loss
    options: dict[str, Any]
    slow: float  # epsilon falls like a power of q_min, itself a root of log 1/Loss for e^{-q^3}
    where: str


@functools.cache  # two claims look at the same flows, which take most of their time
def _flow_late(trial: Trial, rates: float) -> LateFlow:
    """A flow of one kind, which is no gradient flow for `rates` != 1."""
    shape, loss, options = _LATE_FLOWS[trial.number % len(_LATE_FLOWS)]
    start = Start.drawn(trial, loss=loss, **shape)
    start.move_near_optimum(trial, 0.3, loss)
    metric = (lambda p: {"0.weight": torch.full_like(p["0.weight"], rates)}) if rates != 1 else None
    # 1 - beta falls like a power of log 1/Loss: not all starts are near at the same loss.
    rules = [_Aligned()]
    flow = run_flow(start, -1000, loss, rules=rules, rtol=1e-5, levels=[-3], metric=metric)
    early, late = next(row for row in flow.rows if row["log10_mean_loss"] < -3), flow.rows[-1]
    slow = 0.4 if loss.name == "exponential-cubic" else 1.0
    depth = f"flow to log10-loss {late['log10_mean_loss']:.0f}"
    where = f"{loss.name} loss, net with {shape}, 6 points, {depth}"
    weights, betas = [flow.states[-3], flow.final], [row["alignment"] for row in (early, late)]
    return LateFlow(start, weights, betas, loss, options, slow, where)


@claim(
    "lyu-li/kkt-limit",
    "every limit point of the direction of gradient flow is that of a KKT point: epsilon tends to 0"
    " and beta to 1",
    source=f"{PAPER}, Theorems 4.4 and A.8, for classes and layers Appendices F and G",
    hypotheses=(
        "squared ReLUs and ReLUs of two and three layers, these with gradients within a radius of"
        " 1e-3; exponential, logistic, e^{-q^3}, cross-entropy of three classes with layer norms;"
        " from 30% noise on a margin ascent, since epsilon falls like a small power of log 1/Loss;"
        " a trend from log10-loss -3 to -300, or where 1 - beta is above 0.025 to -1000"
    ),
    tolerance=0.0,
    because=(
        "epsilon falls by 2.5 at least, 1 - beta by 10 and to 0.03, for e^{-q^3} the 0.4th power of"
        " these factors: that counts as holding"
    ),
    trials=(1, 5),
    sharpen="trend",
)
def kkt_limit(trial: Trial, *, rates: float = 1.0) -> Finding:
    flow = _flow_late(trial, rates)
    epsilons = []
    for weights in flow.weights:
        net, data = flow.start.load(weights)
        found = certify(net, data, loss=flow.loss, progress=False, **flow.options)
        epsilons.append(found.relative_radius_epsilon)
    (first, last), off = epsilons, [1 - beta for beta in flow.betas]
    measured = f"relative epsilon {first:.2g} -> {last:.2g}, 1 - beta {off[0]:.2g} -> {off[1]:.2g}"
    falls = [2.5**flow.slow * last / first - 1, 10**flow.slow * off[1] / off[0] - 1]
    return Finding.of_one([*falls, off[1] - 0.03], flow.where, measured)


@claim(
    "lyu-li/kkt-lemma",
    "theta / q_min^{1/L} is an (epsilon, delta)-KKT point with epsilon = sqrt(2 (1 - beta)) /"
    " gamma~^{1/L} and delta = (N - 1) F / (e L gamma~^{2/L} g(log 1/Loss)^p), F = 1 for e^{-q^p}"
    " and e^Loss for log(1 + e^{-q^p})",
    source=(
        f"{PAPER}, Lemma C.8 with its own multipliers and the tight constant (C_2 = 2 e N K^2 .. is"
        " valid, and loose by more than e^2)"
    ),
    hypotheses=f"{SEPARATED}; exponential, logistic, e^{{-q^3}}, log(1 + e^{{-q^3}}); pointwise",
    tolerance=1e-9,
    because=ROUNDING,
    trials=(14, 220),
    sharpen={"epsilon": -1, "delta": -1},
)
def kkt_lemma(trial: Trial, *, epsilon: float = 1.0, delta: float = 1.0) -> Finding:
    loss = LOSSES[trial.number % 4]
    points, at, where = examine_points(trial, loss)
    L, q = points.order, points.gaps().detach()[..., 0]
    length, rho = at["square"].sqrt(), at["rho2"].sqrt()
    smallest = q.amin(1)
    scale = smallest ** (-2 / L)
    smoothed = loss.g(at["x"])
    gamma = smoothed / rho**L
    weights = torch.exp(loss.log_slope(q) + at["x"][:, None])  # -l'(q_n) / Loss
    found_delta = scale * rho / length * (weights * (q - smallest[:, None])).sum(1)
    # theta~ - sum lambda_n h_n, lambda_n the proof's: sum lambda_n h_n = q_min^{-1/L} rho d / |d|,
    # d = d theta / dt.
    residual = {
        n: p.detach() - (rho / length).reshape(-1, *[1] * (p.dim() - 1)) * at["descent " + n]
        for n, p in points.theta.items()
    }
    found_epsilon = scale * points.inner(residual, residual)
    bound_epsilon = 2 * (1 - at["radial"] / (rho * length)).clamp(min=0) / gamma ** (2 / L)
    depth = smoothed ** getattr(loss, "power", 1)
    if isinstance(loss, Logistic):
        depth = depth / torch.exp(torch.exp(-at["x"]))
    bound_delta = (q.shape[1] - 1) / (math.e * L * gamma ** (2 / L) * depth)
    worst = torch.maximum(
        (found_epsilon - epsilon * abs(epsilon) * bound_epsilon) / (scale * at["rho2"]),
        (found_delta - delta * bound_delta) / (bound_delta + 1e-9),
    )
    return Finding.of(worst[at["keep"]], where)


@kkt_lemma.printed("x e^{-x} attains the maximum value e at x = 1")
def _() -> Finding:
    return Finding.of(math.e - math.exp(-1), "x = 1: the value is 1/e")


@claim(
    "lyu-li/kkt-finite-time",
    "for epsilon, delta small there is a time with log rho in (r, r + Delta), r = (1/L) log((C_2 /"
    " delta)^{1/p} / gamma~_0), p that of q^p in the loss, Delta = C_0 C_1^2 / (2 epsilon^2), at"
    " which theta is an (epsilon, delta)-KKT point",
    source=(
        f"{PAPER}, Theorem A.9 with C_2 tight as in kkt-lemma, C_0 = (1/L) log(gamma~_end /"
        " gamma~_0)"
    ),
    hypotheses=(
        "exponential, logistic, e^{-q^3}, log(1 + e^{-q^3}) with (B4), epsilon < sqrt(3/2) C_1,"
        " delta < C_2 / g(log 1/Loss_0)^p; ReLU and squared ReLU nets, pairs (epsilon, delta) whose"
        " window ends within the flow"
    ),
    tolerance=0.0,
    because=(
        "epsilon and delta of Lemma C.8's multipliers, recomputed at the best of 300 recorded times"
        " in the window, relative to those promised"
    ),
    trials=(2, 8),
    ascent=0,
)
def kkt_finite_time(trial: Trial, **constants: float) -> Finding:
    loss = LOSSES[trial.number // 2 % 4]
    net, L = Start.drawn(trial, power=1 + trial.number % 2, loss=loss), 2.0 + trial.number % 2
    # 300 recorded states between the start and the end: windows of the theorem span several.
    flow = run_flow(net, -200, loss, rtol=1e-4, levels=tuple(-np.geomspace(0.55, 199, 300)))
    rows = []
    for level, weights in flow.states.items():
        net.load(weights)
        # The angle of the velocity of least norm: on kinks a gradient of one side has another one.
        beta = next(r["alignment"] for r in flow.rows if r["log10_mean_loss"] < level)
        s = net.state(loss)
        smoothed = float(loss.g(torch.tensor(-s.log_loss, dtype=torch.float64)))
        depth = smoothed ** getattr(loss, "power", 1)
        log_gamma = math.log(smoothed) - L * s.log_rho
        reached = math.sqrt(2 * (1 - beta)) * math.exp(s.log_rho) * s.q.min().item() ** (-1 / L)
        rows.append((depth, s.log_rho, log_gamma, reached, s.delta * beta / s.beta))
    starts, run = (0.0, 5.0, 20.0, 80.0), tuple(np.array(rows).T)
    violations = find_kkt_points(net, run, starts, _SHARES, loss=loss, **constants)
    where = f"{loss.name} loss, flow of a net of order {L:g} to log10-loss -200, {len(rows)} states"
    room = 1 / (1 + max(violations, default=math.inf))
    return Finding.of(violations, where, both=room)


@kkt_finite_time.printed("beta^-2 - 1 < 3 implies |beta| < 1/2")
def _() -> Finding:
    return Finding.of(1.0 - 0.5, "beta = 1: beta^-2 - 1 = 0, and |beta| is above 1/2")


@claim(
    "lyu-li/angle-integral",
    "(beta^-2 - 1) d log rho <= (1/L) d log gamma~, at every point; hence some time between t_1 and"
    " t_2 has beta^-2 - 1 <= (1/L) log(gamma~_2 / gamma~_1) / log(rho_2 / rho_1)",
    source=f"{PAPER}, Lemma C.9 and Corollary C.10 (beta^-2 - 1, not beta^2 - 1)",
    hypotheses=(
        f"{SEPARATED}; pointwise, and over 100 intervals of a ReLU flow in every fifth trial"
    ),
    tolerance=1e-9,
    because=ROUNDING,
    trials=(10, 220),
    sharpen={"factor": 1},
)
def angle_integral(trial: Trial, *, factor: float = 1.0) -> Finding:
    if has_flow(trial):
        found, where = run_relu_flow(trial, ("norm", "smoothed_margin", "alignment"))
        (log_rho, log_gamma), angle = map(np.log, found[:2]), found[2] ** -2.0 - 1
        random, violations = trial.random, []
        for _ in range(100):
            # The integral holds between any two times: the least angle is at most its mean.
            i, j = np.sort(random.choice(len(angle), 2, replace=False))
            bound = (log_gamma[j] - log_gamma[i]) / (log_rho[j] - log_rho[i]) / 2
            violations.append(factor * angle[i : j + 1].min() - bound - 1e-7)
        return Finding.of_one(violations, where)
    points, at, where = examine_points(trial)
    # d log rho / dt = <theta, d theta / dt> / rho^2, all divided by the loss.
    tangent2 = at["square"] * at["rho2"] / at["radial"] ** 2 - 1
    limit = factor * points.order * tangent2 * at["radial"] / at["rho2"]
    return Finding.of(((limit - at["rate"]) / at["size"])[at["keep"]], where)


@claim(
    "lyu-li/ntk-svm",
    "at a KKT point, so in the limit, theta / L solves the support vector machine of the net's own"
    " tangent kernel, for some Clarke gradients where it is on kinks: its margin is L / ||theta~||,"
    " and the cosine is 1",
    source=f"{PAPER}, Corollary 4.5 and Lemma C.13",
    hypotheses=(
        "optimal two-layer ReLU nets of convex programs on 4 to 6 points, where epsilon and delta"
        " are certified to 1e-5 with gradients within a radius of 1e-5; the flows of kkt-limit, a"
        " trend from log10-loss -3 to their ends"
    ),
    tolerance=0.0,
    because=(
        "optima: 1 - cosine below 1e-9, margins to 1e-4; flows: 1 - cosine falls by 5 at least, for"
        " e^{-q^3} by 5^0.4, and to 0.03, and the margins agree to 5%: that counts as holding"
    ),
    trials=(1, 5),
    sharpen="trend",
)
def ntk_svm(trial: Trial, *, order_factor: float = 1.0, radius: float = 1e-5) -> Finding:
    flow, angles = _flow_late(trial, 1.0), []
    exact = _examine_optima(trial.random, order_factor, radius)
    for weights in flow.weights:
        net, data = flow.start.load(weights)
        svm = tangent_svm(net, data, **flow.options)
        angles.append(1 - svm.cosine)
    # The margin of the last state only: the corollary is about the limit.
    at_end = certify(net, data, progress=False, **flow.options)
    expected = order_factor * at_end.order / at_end.norm
    measured = (
        f"1 - cosine {angles[0]:.2g} -> {angles[1]:.2g}; margin {svm.margin:.5g} against L /"
        f" ||theta~|| = {expected:.5g}"
    )
    off = abs(svm.margin / expected - 1) - 0.05
    criteria = [5**flow.slow * angles[1] / angles[0] - 1, angles[1] - 0.03, off, *exact]
    return Finding.of_one(criteria, flow.where, measured)


def _examine_optima(random: np.random.Generator, order_factor: float, radius: float) -> list[float]:
    """Compare the machine at optimal nets, KKT points on kinks, with theta, where certified."""
    criteria: list[float] = []
    while len(criteria) < 4:  # about half of the optima are certified
        n = int(random.integers(4, 7))
        X, y = draw_directions(random, n, 3), np.where(np.arange(n) % 2, 1, -1)
        net = f1_max_margin(X, y, bias=False).to_network()
        found = certify(net, (X, y), radius=1e-5, progress=False)
        if max(found.relative_radius_epsilon, found.delta) < 1e-5:
            svm = tangent_svm(net, (X, y), radius=radius)
            ratio = svm.margin * found.norm / (order_factor * found.order)
            criteria += [1 - svm.cosine - 1e-9, abs(ratio - 1) - 1e-4]
    return criteria

"""Claims of Lyu and Li 2019 on gradient flow: the smoothed margin never falls, and why."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ...flow.theory_rate import SmoothnessBounds
from ...losses import CrossEntropy, Exponential
from ...margins import soft_margins
from ..ledger.claim import claim
from ..ledger.points import Points, inverse_slope, log_loss, separated
from ..ledger.trial import Finding, Trial, excess
from ._instances import LOSSES, PAPER, ROUNDING, SEPARATED, examine_points, has_flow, run_relu_flow

_DENSE = {
    "linear, one input": (1, 1, False),
    "ReLU 3-4 with first bias": (1, 2, True),
    "ReLU 3-4-3": (1, 3, False),
    "squared ReLU 3-4": (2, 2, False),
    "cubed ReLU 2-3": (3, 2, True),
}
"""Kinds of nets for which B_1 is known: power, layers, and whether the first one has a bias."""


@claim(
    "lyu-li/euler",
    "<theta, h> = L Phi(x; theta) for every Clarke gradient h of a net of order L, and the gradient"
    " at c theta is c^{L-1} times that at theta; so along v = theta every constraint with q_n = 1"
    " rises by L > 0, which is MFCQ",
    source=f"{PAPER}, Theorem B.2 and Corollary B.3, Definition C.2 and Lemma C.7",
    hypotheses=(
        "Phi locally Lipschitz and L-homogeneous; dense, convolutional, pooling, normalized nets;"
        " one neuron exactly at its kink in every fourth trial"
    ),
    tolerance=1e-10,
    because=ROUNDING,
    trials=(14, 170),
    sharpen="identity",
)
def euler(trial: Trial, *, order_factor: float = 1.0, less: float = 1.0) -> Finding:
    if trial.number % 4 == 3:
        return _examine_euler_at_kinks(trial, order_factor)
    points = Points.drawn(trial, samples=1)
    value = points.scores()[:, 0, 0]
    h = points.gradient(value)
    size = torch.sqrt(points.inner(points.theta, points.theta) * points.inner(h, h))
    off = (points.inner(points.theta, h) - order_factor * points.order * value).abs() / size
    c = 10 ** trial.random.uniform(-1, 1)
    scaled = {n: (c * p.detach()).requires_grad_() for n, p in points.theta.items()}
    elsewhere = replace(points, theta=scaled)
    there = elsewhere.gradient(elsewhere.scores()[:, 0, 0])
    apart = {n: there[n] - c ** (points.order - less) * h[n] for n in h}
    share = torch.sqrt(points.inner(apart, apart) / points.inner(there, there))
    return Finding.of(torch.maximum(off, share), points.setting())


def _examine_euler_at_kinks(trial: Trial, order_factor: float) -> Finding:
    """Examine a kink w_1 . x = 0, where a Clarke gradient has a_1 s x for w_1, any 0 <= s <= 1."""
    random = trial.random
    w, a, x = (random.normal(size=size) for size in ((64, 5, 3), (64, 5), (64, 3)))
    # Project w_1 onto the kink, and take for its gate any number that a Clarke gradient may hold.
    w[:, 0] -= (w[:, 0] * x).sum(1, keepdims=True) / (x**2).sum(1, keepdims=True) * x
    z = np.einsum("bjd,bd->bj", w, x)
    s = (z > 0).astype(float)
    s[:, 0] = random.random(64)
    z[:, 0] = 0.0
    value = (a * np.maximum(z, 0)).sum(1)
    inner = np.einsum("bjd,bj,bj,bd->b", w, a, s, x) + value
    size = np.sqrt((w**2).sum((1, 2)) + (a**2).sum(1))
    size *= np.linalg.norm(x, axis=1) * np.linalg.norm(a, axis=1)
    off = np.abs(inner - order_factor * 2 * value) / size
    return Finding.of(off, "two-layer ReLU net with a neuron at its kink, one sample")


@claim(
    "lyu-li/sandwich",
    "f(q_min) - log N <= log 1/Loss <= f(q_min), and q_min - g'(xi) log N <= l^-1(Loss) <= q_min"
    " for a xi in (f(q_min) - log N, f(q_min)) above f(b_f)",
    source=f"{PAPER}, Lemma A.5 (xi > f(b_f), not b_f) and Remark A.6",
    hypotheses=(
        "loss with (B3): exponential, logistic and those of q^3; summed loss below l(b_f) for the"
        " second part"
    ),
    tolerance=1e-12,
    because="logarithms of sums, relative to f(q_min) or q_min",
    trials=(8, 80),
    sharpen={"log_n": -1},
)
def sandwich(trial: Trial, *, log_n: float = 1.0) -> Finding:
    loss, random = LOSSES[trial.number % 4], trial.random
    count = 1 + trial.number // 4 % 10
    # Margins that are all equal, a fifth of them, attain the lower end; far ones the upper end.
    spread = random.exponential(size=(256, count)) * 10 ** random.uniform(-3, 1, (256, 1))
    spread *= random.random((256, 1)) < 0.8
    q = torch.tensor(10 ** random.uniform(-1, 2, (256, 1)) + spread)
    smallest, x = q.amin(1), -log_loss(loss, q)
    f, margin, room = loss.f(smallest), loss.g(x), log_n * math.log(count)
    first = torch.maximum(x - f, f - room - x) / f.abs().clamp(min=1)
    low = torch.maximum(loss.f(torch.tensor(loss.b_f, dtype=torch.float64)), f - room)
    # g' is monotone for these losses: its largest value over (low, f) is at an end.
    steepest = torch.maximum(*(inverse_slope(loss, end.clamp(min=1e-12)) for end in (low, f)))
    second = torch.maximum(margin - smallest, smallest - steepest * room - margin) / smallest
    worst = torch.maximum(first, torch.where(separated(loss, -x), second, -1.0))
    return Finding.of(worst, f"{loss.name} loss, margins of {count} samples")


@sandwich.printed("Lemma A.5 (b): a xi in (f(q_min) - log N, f(q_min)) with xi > b_f")
def _() -> Finding:
    q, b_f = torch.tensor([[0.7, 5.0]], dtype=torch.float64), 0.5
    x, f = -log_loss(Exponential(3), q).item(), 0.7**3
    largest = f if x > b_f**3 else math.inf  # xi < f(q_min); the hypothesis is log 1/Loss > f(b_f)
    return Finding.of(
        b_f - largest,
        f"loss e^{{-q^3}}, q = (0.7, 5), b_f = 0.5: log 1/Loss = {x:.3f} is above f(b_f) = 0.125,"
        f" and no xi below f(q_min) = {f:.3f} is above b_f",
    )


@claim(
    "lyu-li/smoothed-monotone",
    "the smoothed normalized margin l^-1(Loss) / rho^L of the *summed* loss never falls along"
    " gradient flow",
    source=f"{PAPER}, Theorems 4.1 and A.7",
    hypotheses=(
        f"{SEPARATED}; exponential, logistic, e^{{-q^3}}, log(1 + e^{{-q^3}}); pointwise, and along"
        " a ReLU flow in every fifth trial"
    ),
    tolerance=1e-9,
    because="pointwise rounding; the error of the integrator is 1e-9 a step",
    trials=(10, 220),
    sharpen="monotone",
)
def smoothed_monotone(trial: Trial, *, summed: bool = True, sign: float = 1.0) -> Finding:
    if has_flow(trial):
        (norm, margins), where = run_relu_flow(trial, ("norm", "smoothed_margin"), rtol=1e-9)
        margins = (margins * norm**2 + (0.0 if summed else math.log(6))) / norm**2
        return Finding.of_one(-sign * np.diff(margins) / margins[1:], where)
    _, at, where = examine_points(trial, mean=not summed)
    return Finding.of((-sign * at["rate"] / at["size"])[at["keep"]], where)


@claim(
    "lyu-li/key-lemma",
    "d/dt log gamma~ >= (1/nu) |(I - theta theta' / rho^2) d theta / dt|^2 = L (d/dt log rho)^-1 |d"
    " theta^ / dt|^2",
    source=f"{PAPER}, Lemmas 5.1 and B.1, by B.5",
    hypotheses=f"{SEPARATED}; pointwise",
    tolerance=1e-9,
    because=ROUNDING,
    trials=(12, 220),
    sharpen={"factor": 1},
)
def key_lemma(trial: Trial, *, factor: float = 1.0) -> Finding:
    _, at, where = examine_points(trial)
    return Finding.of(((factor * at["tangential"] - at["rate"]) / at["size"])[at["keep"]], where)


@claim(
    "lyu-li/norm-growth",
    "(1/2) d rho^2 / dt = L nu, nu = sum_n e^{-f(q_n)} f'(q_n) q_n",
    source=f"{PAPER}, Theorem B.4 and Corollary E.6",
    hypotheses="net locally Lipschitz and L-homogeneous; pointwise, gradients by autograd",
    tolerance=1e-9,
    because=ROUNDING,
    trials=(12, 220),
    sharpen="identity",
)
def norm_growth(trial: Trial, *, order_factor: float = 1.0) -> Finding:
    points, at, where = examine_points(trial)
    growth = order_factor * points.order * at["nu"]
    return Finding.of((at["radial"] - growth).abs() / growth, where)


@claim(
    "lyu-li/velocity",
    "|d theta / dt| <= B_1 nu / (gamma~ rho), hence |d theta^ / dt| <= (B_1 / (L gamma~)) d log rho"
    " / dt",
    source=f"{PAPER}, Lemma C.11 and (16)",
    hypotheses=(
        f"{SEPARATED}; dense nets of powers of ReLUs, for which B_1 is known; pointwise, attained"
        " by linear nets on one sample"
    ),
    tolerance=1e-9,
    because=ROUNDING,
    trials=(5, 100),
    sharpen={"factor": -1},
)
def velocity(trial: Trial, *, factor: float = 1.0) -> Finding:
    points, at, where = examine_points(trial, kinds=tuple(_DENSE))
    power, layers, bias = _DENSE[points.kind]
    x = nn.functional.pad(points.x, (0, 1), value=1.0) if bias else points.x
    B_1, rho = SmoothnessBounds.of_layers(x, power, layers).gradient, at["rho2"].sqrt()
    smoothed = LOSSES[trial.number % 4].g(at["x"])
    bound = B_1 * at["nu"] / smoothed * rho ** (points.order - 1)
    return Finding.of(excess(at["square"].sqrt(), factor * bound)[at["keep"]], where)


@claim(
    "lyu-li/margin-falls",
    "the normalized margin itself may fall along gradient flow, where the smoothed one rises: that"
    " of a linear net with one sample (1, a) and k samples (1, -a), wherever these have margins"
    " that are larger by less than log k + log((a - s) / (a + s)), -s the slope of theta",
    source=f"{PAPER}, Section 1 (that it may; the instance is ours)",
    hypotheses="exponential loss below 1, 1 < a < 3, k from 2 to 9; pointwise",
    tolerance=0.0,
    because="the sign of a rate, at points up to 0.99 of the way to where it changes",
    trials=(2, 40),
    sharpen={"share": 1},
)
def margin_falls(trial: Trial, *, share: float = 1.0) -> Finding:
    random = trial.random
    a, k, s = random.uniform(1, 3, 256), random.integers(2, 10, 256), random.uniform(0, 0.2, 256)
    limit = np.log(k) + np.log((a - s) / (a + s))
    length = share * random.uniform(0.1, 0.99, 256) * limit / (2 * a * s)
    theta = torch.tensor(np.stack([length, -s * length]), requires_grad=True)
    first, second = theta[0] + torch.tensor(a) * theta[1], theta[0] - torch.tensor(a) * theta[1]
    x = -torch.logaddexp(-first, torch.tensor(np.log(k)) - second)
    rho = theta.norm(dim=0)
    (velocity,) = torch.autograd.grad(x.sum(), theta, retain_graph=True)
    rates = [
        (torch.autograd.grad((margin / rho).sum(), theta, retain_graph=True)[0] * velocity).sum(0)
        for margin in (first, x)
    ]
    falls, rises = rates[0] * rho / first, rates[1] * rho / x
    keep = (x > 0) & (first > 0) & torch.tensor(limit > 0)
    return Finding.of(torch.maximum(falls, -rises)[keep], "256 weights between two points")


@claim(
    "lyu-li/multiclass",
    "with cross-entropy and gamma~ = -log(e^Loss - 1) / rho^L the key lemma holds, nu = sum_n sum_j"
    " e^{-s_nj} s_nj / (1 + sum_j e^{-s_nj})",
    source=f"{PAPER}, Lemma F.2 (softmax with e^{{+Phi}})",
    hypotheses="Loss < log 2 (M4), several classes; pointwise",
    tolerance=1e-9,
    because=ROUNDING,
    trials=(14, 220),
    sharpen={"factor": 1},
)
def multiclass(trial: Trial, *, factor: float = 1.0, order_factor: float = 1.0) -> Finding:
    classes = 2 + trial.number % 3
    options: dict[str, Any] = {"outputs": classes, "order_factor": order_factor}
    points, at, _ = examine_points(trial, CrossEntropy(), **options)
    identity = (at["radial"] - order_factor * points.order * at["nu"]).abs() / at["radial"]
    worst = torch.maximum((factor * at["tangential"] - at["rate"]) / at["size"], identity)
    shown = f"{points.labels.max().int() + 1} classes, {points.setting()}"
    return Finding.of(worst[at["keep"]], shown)


@multiclass.printed(
    "the softmax of Appendix F with e^{-Phi_j}: a loss below log 2 separates the data"
)
def _() -> Finding:
    points = Points.drawn(Trial(0), outputs=3, kinds=("ReLU 3-4-3",))
    with torch.no_grad():
        points.labels = points.scores().argmin(-1)
        # Of e^{-Phi} the gaps are those of -Phi.
        loss = torch.exp(log_loss(CrossEntropy(), soft_margins(-points.gaps())))
    return Finding.of(
        math.log(2) - loss,
        "3 classes, every sample labelled by its smallest score, so that all are wrong",
    )


@multiclass.printed("Appendix J.2: no input within the normalized margin has another label")
def _() -> Finding:
    W = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    margin, gap = 2 / W.norm(), W[0] - W[1]  # of scores W x at x = (1, 0)
    radius = 2 / gap.norm()
    where = f"two opposite rows: margin {margin:.3f}, distance to the boundary {radius:.3f}"
    return Finding.of((margin - radius).item(), where)


@claim(
    "lyu-li/multihomogeneous",
    "for (k_1, .., k_m)-homogeneous nets d/dt log gamma~ >= sum_i (rho_i^2 / nu) |d w_i^ / dt|^2,"
    " gamma~ = l^-1(Loss) / prod rho_i^{k_i}",
    source=(
        f"{PAPER}, Lemma G.2 (rho_i^2 / nu in place of k_i (d log rho_i / dt)^-1, which is 0/0 for"
        " scale-invariant layers)"
    ),
    hypotheses=f"{SEPARATED}, layers scaled one by one; cross-entropy of three classes too",
    tolerance=1e-9,
    because=ROUNDING,
    trials=(14, 220),
    sharpen={"factor": 1},
)
def multihomogeneous(trial: Trial, *, factor: float = 1.0, exponent_factor: float = 1.0) -> Finding:
    classes, loss = trial.number // 7 % 5 == 4, LOSSES[trial.number // 7 % 5 % 4]
    options: dict[str, Any] = {"outputs": 3} if classes else {}
    points, at, where = examine_points(trial, CrossEntropy() if classes else loss, **options)
    # gamma~ rises by g'/g |velocity|^2, and falls by the growth of each layer's norm.
    rate = size = at["up"]
    theta, tangential = points.theta, torch.zeros(())
    descent = {n: at["descent " + n] for n in theta}
    for names, k in points.groups:
        square, along = points.inner(theta, theta, names), points.inner(theta, descent, names)
        around = points.inner(descent, descent, names) - along**2 / square
        rate = rate - (exponent_factor * k) ** 2 * at["nu"] / square
        size = size + k**2 * at["nu"] / square
        tangential = tangential + around / at["nu"]
    return Finding.of(((factor * tangential - rate) / size)[at["keep"]], where)

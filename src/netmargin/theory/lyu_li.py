"""Lyu and Li 2019, *Gradient Descent Maximizes the Margin of Homogeneous Neural Networks*."""

import math

import numpy as np
import torch
from scipy.integrate import simpson
from torch import Tensor, nn

from ..kkt import certify, tangent_svm
from ..losses import CrossEntropy, Exponential, Logistic, Loss
from ..models import mlp
from ..training.gradient_descent import SmoothnessBounds, TheoryRate, gradient_descent
from ..training.gradient_flow import Trajectory, gradient_flow
from ..training.maximize_margin import maximize_margin
from ..training.stopping import LogLossBelow
from .claim import Finding, Trial, claim
from .points import Points, inverse_slope, log_loss, separated, soft_margins
from .regression import slope

PAPER = "Lyu and Li 2019"
LOSSES: tuple[Loss, ...] = (Exponential(), Logistic(), Exponential(3), Logistic(3))
SEPARATED = "summed loss below l(b_f) (B4); net locally Lipschitz and L-homogeneous (A1, A2)"
ROUNDING = "sums of at most a few hundred float64 terms, divided by the sizes of both sides"


@claim(
    "lyu-li/euler",
    "<theta, h> = L Phi(x; theta) for every Clarke gradient h of a net of order L",
    source=f"{PAPER}, Theorem B.2 and Corollary B.3",
    hypotheses="Phi locally Lipschitz and L-homogeneous; dense, convolutional, pooling, normalized nets; one neuron exactly at its kink in every fourth trial",
    tolerance=1e-10,
    because=ROUNDING,
    quick=14,
    full=170,
)
def euler(trial: Trial, *, order_factor: float = 1.0) -> Finding:
    if trial.number % 4 == 3:
        return _euler_at_kinks(trial, order_factor)
    points = Points.drawn(trial, samples=1)
    value = points.scores()[:, 0, 0]
    h = points.gradient(value)
    size = torch.sqrt(points.inner(points.theta, points.theta) * points.inner(h, h))
    return Finding.of((points.inner(points.theta, h) - order_factor * points.order * value).abs() / size, points.setting())


def _euler_at_kinks(trial: Trial, order_factor: float) -> Finding:
    """a_j relu(w_j . x) with w_1 . x = 0: the Clarke gradient has a_1 s x in the place of w_1, 0 <= s <= 1."""
    random = trial.random
    w, a, x = random.normal(size=(64, 5, 3)), random.normal(size=(64, 5)), random.normal(size=(64, 3))
    w[:, 0] -= (w[:, 0] * x).sum(1, keepdims=True) / (x**2).sum(1, keepdims=True) * x
    z = np.einsum("bjd,bd->bj", w, x)
    s = (z > 0).astype(float)
    s[:, 0] = random.random(64)
    z[:, 0] = 0.0
    inner = np.einsum("bjd,bj,bj,bd->b", w, a, s, x) + (a * np.maximum(z, 0)).sum(1)
    value = (a * np.maximum(z, 0)).sum(1)
    size = np.sqrt((w**2).sum((1, 2)) + (a**2).sum(1)) * np.linalg.norm(x, axis=1) * np.linalg.norm(a, axis=1)
    return Finding.of(np.abs(inner - order_factor * 2 * value) / size, "two-layer ReLU net with a neuron at its kink, one sample")


@claim(
    "lyu-li/sandwich",
    "f(q_min) - log N <= log 1/Loss <= f(q_min), and q_min - g'(xi) log N <= l^-1(Loss) <= q_min for a xi in (f(q_min) - log N, f(q_min)) above f(b_f)",
    source=f"{PAPER}, Lemma A.5 (xi > f(b_f), not b_f)",
    hypotheses="loss with (B3): exponential, logistic and those of q^3; summed loss below l(b_f) for the second part",
    tolerance=1e-12,
    because="logarithms of sums, relative to f(q_min) or q_min",
    quick=8,
    full=80,
)
def sandwich(trial: Trial, *, log_n: float = 1.0) -> Finding:
    loss, random = LOSSES[trial.number % 4], trial.random
    count = 1 + trial.number // 4 % 10
    spread = random.exponential(size=(256, count)) * 10 ** random.uniform(-3, 1, (256, 1)) * (random.random((256, 1)) < 0.8)
    q = torch.tensor(10 ** random.uniform(-1, 2, (256, 1)) + spread)
    smallest, x = q.amin(1), -log_loss(loss, q)
    f = loss.f(smallest)
    violations = [x - f, f - log_n * math.log(count) - x]
    deep = separated(loss, -x)
    low = torch.maximum(loss.f(torch.tensor(loss.b_f, dtype=torch.float64)), f - log_n * math.log(count))
    # g' is monotone for these losses: its largest value over (low, f) is at an end.
    steepest = torch.maximum(inverse_slope(loss, low.clamp(min=1e-12)), inverse_slope(loss, f.clamp(min=1e-12)))
    margin = loss.g(x)
    second = torch.maximum(margin - smallest, smallest - steepest * log_n * math.log(count) - margin) / smallest
    worst = torch.maximum(torch.maximum(*violations) / f.abs().clamp(min=1), torch.where(deep, second, -1.0))
    return Finding.of(worst, f"{loss.name} loss, margins of {count} samples")


@sandwich.printed("Lemma A.5 (b): a xi in (f(q_min) - log N, f(q_min)) with xi > b_f")
def _() -> Finding:
    q, b_f = torch.tensor([[0.7, 5.0]], dtype=torch.float64), 0.5
    x, f = -log_loss(Exponential(3), q).item(), 0.7**3
    largest = f if x > b_f**3 else math.inf  # xi < f(q_min); the hypothesis is log 1/Loss > f(b_f)
    return Finding.of(
        b_f - largest,
        f"loss e^{{-q^3}}, q = (0.7, 5), b_f = 0.5: log 1/Loss = {x:.3f} is above f(b_f) = 0.125, and no xi below f(q_min) = {f:.3f} is above b_f",
    )


def _pointwise(trial: Trial, loss: Loss, **options) -> tuple[Points, dict[str, Tensor]]:
    """Random separated points, and there: x = log 1/Loss, -grad log Loss in parts, ratio g'(x) / g(x), nu / Loss."""
    # Differences of f are to be exact to 1e-13: f up to 1000.
    points = Points.drawn(trial, deepest=1000.0 ** (1 / getattr(loss, "power", 1)), **options)
    gaps = points.gaps()
    cross_entropy = gaps.shape[-1] > 1
    q = soft_margins(gaps)
    logs = log_loss(loss, q)
    descent = {n: -g for n, g in points.gradient(logs).items()}
    x = -logs.detach()
    if cross_entropy:
        shares = torch.exp(torch.logsumexp(-gaps, -1) - torch.nn.functional.softplus(torch.logsumexp(-gaps, -1)) + x[:, None])
        nu = (shares * (torch.softmax(-gaps, -1) * gaps).sum(-1)).sum(1)
    else:
        nu = (torch.exp(loss.log_slope(q) + x[:, None]) * q).sum(1)
    keep = separated(loss, -x)
    found = {
        "keep": keep,
        "x": x,
        "ratio": inverse_slope(loss, x) / loss.g(x),
        "nu": nu.detach(),
        "radial": points.inner(points.theta, descent).detach(),
        "square": points.inner(descent, descent).detach(),
        "rho2": points.inner(points.theta, points.theta).detach(),
    }
    return points, found | {"descent " + n: d for n, d in descent.items()}


def _growth(at: dict[str, Tensor], order: float) -> tuple[Tensor, Tensor]:
    """d/dt log gamma~ / Loss = (g' / g) |grad|^2 / Loss^2 - L^2 nu / (Loss rho^2), and the size of its terms."""
    up, down = at["ratio"] * at["square"], order**2 * at["nu"] / at["rho2"]
    return up - down, up + down


@claim(
    "lyu-li/smoothed-monotone",
    "the smoothed normalized margin l^-1(Loss) / rho^L of the *summed* loss never falls along gradient flow",
    source=f"{PAPER}, Theorems 4.1 and A.7",
    hypotheses=f"{SEPARATED}; exponential, logistic, e^{{-q^3}}, log(1 + e^{{-q^3}}); pointwise, and along a ReLU flow in every fifth trial",
    tolerance=1e-9,
    because="pointwise rounding; the error of the integrator is 1e-9 a step",
    quick=10,
    full=220,
)
def smoothed_monotone(trial: Trial, *, summed: bool = True, sign: float = 1.0) -> Finding:
    loss = LOSSES[trial.number % 4]
    if trial.number % 5 == 4 and trial.number < 30:
        flow = _relu_flow(trial, rtol=1e-9)
        rows = [row for row in flow.rows if row["log_loss"] < 0]
        extra = 0.0 if summed else math.log(6)
        margins = np.array([(row["smoothed_margin"] * row["norm"] ** 2 + extra) / row["norm"] ** 2 for row in rows])
        return Finding.of_one(
            -sign * np.diff(margins) / margins[1:], f"flow of a two-layer ReLU net on 6 points, {len(rows)} steps"
        )
    points, at = _pointwise(trial, loss)
    if not summed:  # g(log 1/Loss + log N): that of the mean
        x = at["x"] + math.log(len(points.x))
        at["ratio"] = inverse_slope(loss, x) / loss.g(x)
    rate, size = _growth(at, points.order)
    return Finding.of((-sign * rate / size)[at["keep"]], f"{loss.name} loss, {points.setting()}")


def _relu_flow(trial: Trial, *, depth: float = -20, rtol: float = 1e-8) -> Trajectory:
    """Exponential loss, two-layer ReLU net, 6 points in the plane."""
    net, data = _start(trial, power=1)
    return gradient_flow(net, data, until=LogLossBelow(depth), loss=Exponential(), rtol=rtol, progress=False)


def _start(trial: Trial, *, power: int, samples: int = 6, width: int = 5) -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """A random net without biases, points that it labels itself, scaled to a summed exponential loss just below 1. power 0: a linear net."""
    random = trial.torch_random
    net = (mlp([3, width, 1], bias="none", power=power) if power else nn.Linear(3, 1, bias=False)).double()
    x, order = torch.zeros(0, 3, dtype=torch.float64), power + 1
    with torch.no_grad():
        for p in net.parameters():
            p.normal_(generator=random)
        while len(x) < samples:  # not too near to the boundary, or the scale that separates them is huge
            more = torch.randn(64, 3, generator=random, dtype=torch.float64)
            outputs = net(more)[:, 0].abs()
            x = torch.cat([x, more[outputs > 0.5 * outputs.median()]])[:samples]
        outputs = net(x)[:, 0]
        for p in net.parameters():
            p.mul_(((math.log(samples) + 0.2) / outputs.abs().min()) ** (1 / order))
    return net, (x, torch.where(outputs > 0, 1, -1))


@claim(
    "lyu-li/key-lemma",
    "d/dt log gamma~ >= (1/nu) |(I - theta theta' / rho^2) d theta / dt|^2 = L (d/dt log rho)^-1 |d theta^ / dt|^2",
    source=f"{PAPER}, Lemmas 5.1 and B.1",
    hypotheses=f"{SEPARATED}; pointwise",
    tolerance=1e-9,
    because=ROUNDING,
    quick=12,
    full=220,
)
def key_lemma(trial: Trial, *, factor: float = 1.0) -> Finding:
    loss = LOSSES[trial.number % 4]
    points, at = _pointwise(trial, loss)
    rate, size = _growth(at, points.order)
    tangential = (at["square"] - at["radial"] ** 2 / at["rho2"]).clamp(min=0) / at["nu"]
    return Finding.of(((factor * tangential - rate) / size)[at["keep"]], f"{loss.name} loss, {points.setting()}")


@claim(
    "lyu-li/norm-growth",
    "(1/2) d rho^2 / dt = L nu, nu = sum_n e^{-f(q_n)} f'(q_n) q_n",
    source=f"{PAPER}, Theorem B.4",
    hypotheses="net locally Lipschitz and L-homogeneous; pointwise, gradients by autograd",
    tolerance=1e-9,
    because=ROUNDING,
    quick=12,
    full=220,
)
def norm_growth(trial: Trial, *, order_factor: float = 1.0) -> Finding:
    loss = LOSSES[trial.number % 4]
    points, at = _pointwise(trial, loss)
    growth = order_factor * points.order * at["nu"]
    return Finding.of((at["radial"] - growth).abs() / growth, f"{loss.name} loss, {points.setting()}")


@claim(
    "lyu-li/multiclass",
    "with cross-entropy and gamma~ = -log(e^Loss - 1) / rho^L the key lemma holds, nu = sum_n sum_j e^{-s_nj} s_nj / (1 + sum_j e^{-s_nj})",
    source=f"{PAPER}, Lemma F.2 (softmax with e^{{+Phi}})",
    hypotheses="Loss < log 2 (M4), several classes; pointwise",
    tolerance=1e-9,
    because=ROUNDING,
    quick=14,
    full=220,
)
def multiclass(trial: Trial, *, factor: float = 1.0, order_factor: float = 1.0) -> Finding:
    points, at = _pointwise(trial, CrossEntropy(), outputs=2 + trial.number % 3)
    order = order_factor * points.order
    rate, size = _growth(at, order)
    tangential = (at["square"] - at["radial"] ** 2 / at["rho2"]).clamp(min=0) / at["nu"]
    identity = (at["radial"] - order * at["nu"]).abs() / at["radial"]
    worst = torch.maximum((factor * tangential - rate) / size, identity)
    return Finding.of(worst[at["keep"]], f"{points.labels.max().int() + 1} classes, {points.setting()}")


@multiclass.printed("the softmax of Appendix F with e^{-Phi_j}: a loss below log 2 separates the data")
def _() -> Finding:
    points = Points.drawn(Trial(0), outputs=3, kinds=("ReLU 3-4-3",))
    with torch.no_grad():
        points.labels = points.scores().argmin(-1)
        loss = torch.exp(log_loss(CrossEntropy(), soft_margins(points.gaps(), -1.0)))
    return Finding.of(math.log(2) - loss, "3 classes, every sample labelled by its smallest score, so that all are wrong")


@claim(
    "lyu-li/multihomogeneous",
    "for (k_1, .., k_m)-homogeneous nets d/dt log gamma~ >= sum_i (rho_i^2 / nu) |d w_i^ / dt|^2, gamma~ = l^-1(Loss) / prod rho_i^{k_i}",
    source=f"{PAPER}, Lemma G.2 (rho_i^2 / nu in place of k_i (d log rho_i / dt)^-1, which is 0/0 for scale-invariant layers)",
    hypotheses=f"{SEPARATED}, layers scaled one by one; pointwise",
    tolerance=1e-9,
    because=ROUNDING,
    quick=14,
    full=220,
)
def multihomogeneous(trial: Trial, *, factor: float = 1.0, exponent_factor: float = 1.0) -> Finding:
    loss = LOSSES[trial.number // 7 % 4]
    points, at = _pointwise(trial, loss)
    up, rate, tangential = at["ratio"] * at["square"], at["ratio"] * at["square"], torch.zeros(())
    descent = {n: at["descent " + n] for n in points.theta}
    for names, k in points.groups:
        square, along = points.inner(points.theta, points.theta, names), points.inner(points.theta, descent, names)
        rate = rate - (exponent_factor * k) ** 2 * at["nu"] / square
        tangential = tangential + (points.inner(descent, descent, names) - along**2 / square) / at["nu"]
    size = up + sum(k**2 * at["nu"] / points.inner(points.theta, points.theta, names) for names, k in points.groups)
    return Finding.of(((factor * tangential - rate) / size)[at["keep"]], f"{loss.name} loss, {points.setting()}")


@claim(
    "lyu-li/gd-monotone",
    "gradient descent with rates up to H(Loss) never lets gamma^ fall, and gamma^ < gamma~ <= the normalized margin",
    source=f"{PAPER}, Theorem 4.2, Lemma E.1 and Theorem E.2",
    hypotheses="(S1) C^2 net (cubed ReLUs), exponential loss below 1, (S5) with proved bounds B_0, B_1, B_2",
    tolerance=1e-10,
    because="rounding; phi by quadrature to 1e-9 relative cancels between neighbours",
    quick=2,
    full=12,
)
def gd_monotone(trial: Trial, *, relative: float = 1.0) -> Finding:
    net, (x, y) = _start(trial, power=3, width=4)
    bounds = SmoothnessBounds.two_layer(x, 3)
    history = gradient_descent(net, (x, y), steps=100, rate=bounds, relative=relative)
    log_gamma = np.array([row.get("log_gamma_hat", -math.inf) for row in history.rows])  # missing where the loss is above 1
    smoothed, hard = (np.array([row[name] for row in history.rows]) for name in ("smoothed_margin", "normalized_margin"))
    falls = np.where(np.isfinite(log_gamma[1:]), log_gamma[:-1] - log_gamma[1:], math.inf)
    below = np.where(smoothed > 0, log_gamma - np.log(np.where(smoothed > 0, smoothed, 1.0)), math.inf)
    measured = f"log gamma^ rose by {log_gamma[-1] - log_gamma[0]:.3g}"
    return Finding.of_one([*falls, *below, *(smoothed / hard - 1)], f"cubed ReLUs, {len(x)} points, 100 steps", measured)


@gd_monotone.printed("(20): e^{I(Loss)} < 0")
def _() -> Finding:
    rate = TheoryRate(-3.0, 0.2, 3.0, SmoothnessBounds(0.4, 1.2, 4.0))
    return Finding.of(
        math.exp(rate.phi(-5.0)) / 5.0, "L = 3, log 1/Loss = 5 after 3: e^I is gamma^ / gamma~, positive, and below 1"
    )


@gd_monotone.printed("phi(x) >= log log 1/x (proof of (P1))")
def _() -> Finding:
    rate = TheoryRate(-3.0, 0.2, 3.0, SmoothnessBounds(0.4, 1.2, 4.0))
    return Finding.of(math.log(5.0) - rate.phi(-5.0), "L = 3, log 1/Loss = 5 after 3: phi is below log 5")


@claim(
    "lyu-li/gd-key-lemma",
    "along every step, theta(t + a) = theta(t) - a eta grad Loss: (P1) gamma~ > gamma^(t_0); (P2) 2 L a eta nu < rho(t + a)^2 - rho(t)^2 < 2 L a eta nu (1 + lambda mu); (P3) Loss falls by at least a eta (1 - mu) |grad|^2; (P4) log gamma^ rises by at least rho^2 / (L nu^2) |tangential grad|^2 log(rho(t + a) / rho(t)), whose sum over steps is (22)",
    source=f"{PAPER}, Lemma E.7 and (22)",
    hypotheses="(S1), (S5), exponential loss below 1; cubed ReLUs, steps from eta = H(Loss)",
    tolerance=1e-7,
    because="differences of neighbouring values of log rho and log Loss, relative to changes of 1e-6 or more",
    quick=2,
    full=20,
)
def gd_key_lemma(trial: Trial, *, relative: float = 1.0, growth: float = 1.0, factor: float = 1.0) -> Finding:
    net, (x, y) = _start(trial, power=3, width=4)
    names = [n for n, _ in net.named_parameters()]
    theta = torch.cat([p.detach().flatten() for p in net.parameters()])

    def evaluated(point: Tensor) -> tuple[float, Tensor, Tensor]:
        at = point.detach().clone().requires_grad_(True)
        parts = dict(zip(names, at.split([p.numel() for p in net.parameters()]), strict=True))
        parts = {n: parts[n].reshape(p.shape) for n, p in net.named_parameters()}
        q = y * torch.func.functional_call(net, parts, (x,))[:, 0]
        log = torch.logsumexp(-q, 0)
        return log.item(), torch.autograd.grad(log, at)[0], q.detach()

    log, gradient, q = evaluated(theta)
    L = 4.0
    rule = TheoryRate(log, theta.norm().log().item(), L, SmoothnessBounds.two_layer(x, 3))
    first, violations = rule.log_gamma_hat(log, theta.norm().log().item()), []
    for _ in range(12):
        loss, rho2 = math.exp(log), theta.square().sum().item()
        eta, mu = relative * math.exp(rule.log_rate(log)), rule.mu(log)
        lam = loss * (-log) ** (1 - 2 / L) / (L * math.exp(rule.log_kappa(log)))
        slope_ = loss * gradient
        nu = (torch.exp(-q) * q).sum().item()
        square = slope_.square().sum().item()
        tangential = square - (theta @ slope_).item() ** 2 / rho2
        for a in (0.25, 0.5, 1.0):
            step = -a * eta * slope_
            moved = theta + step
            log_a = evaluated(moved)[0]
            # Small differences of large numbers, from the step itself.
            grown = (2 * theta @ step + step.square().sum()).item()
            expected = growth * 2 * L * a * eta * nu
            rise = 0.5 * math.log1p(grown / rho2)
            gamma = rule.log_gamma_hat(min(log_a, log), 0.5 * math.log(rho2 + grown)) if log_a < 0 else -math.inf
            phi = (rule.phi(min(log_a, log)) - rule.phi(log)) if log_a < 0 else -math.inf
            promised = factor * rho2 / (L * nu**2) * tangential * rise
            violations += [
                first - gamma - 1e-9,
                1 - grown / expected,
                grown / (expected * (1 + lam * mu)) - 1,
                1 - -math.expm1(log_a - log) * loss / (a * eta * (1 - mu) * square),
                (promised - (phi - L * rise)) / (abs(phi) + L * rise),
            ]
        theta = theta - eta * slope_
        log, gradient, q = evaluated(theta)
        if not log < 0:
            break
    return Finding.of(np.reshape(violations, (-1, 15)).max(1), f"cubed ReLUs, {len(x)} points, steps of three parts")


@gd_key_lemma.printed("rho^-2 <= gamma^_0^{2/L} (log 1/Loss)^{-2/L} (proof of Lemma E.9)")
def _() -> Finding:
    rate = TheoryRate(-3.0, 0.2, 3.0, SmoothnessBounds(0.4, 1.2, 4.0))
    bound = math.exp(2 / 3 * rate.log_gamma_hat(-3.0, 0.2)) * 3.0 ** (-2 / 3)
    return Finding.of(
        math.exp(-0.4) - bound, "the start itself, L = 3, log rho = 0.2, log 1/Loss = 3: rho^-2 is the larger, as gamma~ > gamma^"
    )


@claim(
    "lyu-li/rates",
    "L^2 gamma~_0^{2/L} t <= G(1/Loss) <= B_1^2 gamma~_0^{2/L-2} t at every time t, G(z) = int (log u)^{2/L-2} du from 1/Loss_0; so Loss = Theta(1 / (t (log t)^{2-2/L})) and rho = Theta((log t)^{1/L})",
    source=f"{PAPER}, Theorems 4.3 and A.10, Lemma B.6 and the proof of A.10 for the exponential loss",
    hypotheses="exponential loss, Loss_0 < 1, L = 1, 2, 3 in turn, first where both bounds are attained, then from 10% noise on a margin ascent, so that gamma~ has nearly settled; exponents by regression over log t from 100 to 700, 95% intervals within 0.2 of the claim",
    tolerance=1e-5,
    because="error of the integrator (1e-6 a step) where the bounds are attained, relative in log t",
    quick=3,
    full=9,
)
def rates(trial: Trial, *, lower: float = 1.0, upper: float = 1.0, exponent: float = 0.0) -> Finding:
    L = 1 + trial.number % 3
    net, (x, y) = _start(trial, power=L - 1, samples=4 if trial.number else 1, width=4)
    if trial.number:
        _move_near_optimum(net, x, y, trial, order=L, noise=0.1)
    else:  # along one sample both bounds are attained
        with torch.no_grad():
            next(net.parameters()).copy_(1.2 * y * x / x.square().sum())
    flow = gradient_flow(net, (x, y), until=LogLossBelow(-300.0), loss=Exponential(), rtol=1e-6, progress=False)
    rows, p = [flow.rows[0], *flow.rows[1 :: max(len(flow.rows) // 200, 1)]], 2 - 2 / L
    gamma, depth = rows[0]["smoothed_margin"], np.array([-row["log_loss"] for row in rows[1:]])
    log_t = np.array([row["log_time"] for row in rows[1:]])
    v = [np.linspace(max(-rows[0]["log_loss"], d - 60), d, 4001) for d in depth]
    log_G = np.array([d + math.log(simpson(np.exp(w - d) * w**-p, x=w)) for d, w in zip(depth, v, strict=True)])
    largest = SmoothnessBounds.two_layer(x, 2).gradient if L == 3 else x.norm(dim=1).max().item()  # B_1
    below = math.log(lower * L**2 * gamma ** (2 / L)) + log_t - log_G
    above = log_G - math.log(upper * largest**2 * gamma ** (2 / L - 2)) - log_t
    late = log_t > 100
    fits = [
        slope(np.log(log_t[late]), depth[late] - log_t[late]),
        slope(np.log(log_t[late]), np.log([r["norm"] for r in rows[1:]])[late]),
    ]
    off = [abs(fit.value - target - exponent) + fit.error - 0.2 for fit, target in zip(fits, (p, 1 / L), strict=True)]
    measured = f"L = {L}: Loss ~ 1 / (t log(t)^{fits[0].value:.3f} +- {fits[0].error:.3f}) (claim {p:.3f}), rho ~ log(t)^{fits[1].value:.3f} (claim {1 / L:.3f})"
    return Finding.of_one(
        np.concatenate([(below / log_t)[log_t > 0], (above / log_t)[log_t > 0], off]), f"flow to log10-loss -300, L = {L}", measured
    )


@claim(
    "lyu-li/kkt-limit",
    "gradient flow ends in the direction of a KKT point: epsilon tends to 0 and beta to 1",
    source=f"{PAPER}, Theorems 4.4 and A.8",
    hypotheses="smooth nets (squared ReLUs), exponential loss, from 30% noise on a margin ascent, since epsilon falls like a small power of log 1/Loss; a trend from log10-loss -3 to -300",
    tolerance=0.0,
    because="epsilon falls by 2.5 at least, 1 - beta by 10 and to 0.03: that counts as holding",
    quick=1,
    full=5,
)
def kkt_limit(trial: Trial, *, rates: float = 1.0) -> Finding:
    net, data, states = _late_states(trial, rates)
    found = []
    for state in states:
        net.load_state_dict(state)
        found.append(certify(net, data, loss=Exponential()))
    first, last = found
    measured = f"relative epsilon {first.relative_epsilon:.2g} -> {last.relative_epsilon:.2g}, 1 - beta {1 - first.alignment:.2g} -> {1 - last.alignment:.2g}"
    off = 1 - last.alignment
    violations = [2.5 * last.relative_epsilon / first.relative_epsilon - 1, 10 * off / (1 - first.alignment) - 1, off - 0.03]
    return Finding.of_one(violations, "squared ReLUs 3-3-1, 6 points, flow to log10-loss -300", measured)


def _move_near_optimum(net: nn.Module, x: Tensor, y: Tensor, trial: Trial, *, order: int, noise: float) -> None:
    """Ascend the margin, add noise of that share of each layer's norm, and scale to a summed exponential loss just below 1."""
    maximize_margin(net, (x, y), iterations=200, progress=False)
    random = trial.torch_random
    with torch.no_grad():
        good, q = [p.clone() for p in net.parameters()], -torch.ones(())
        while q <= 0:  # some directions leave the separated region
            for p, at in zip(net.parameters(), good, strict=True):
                p.copy_(at + noise * at.norm() / math.sqrt(at.numel()) * torch.randn(at.shape, generator=random, dtype=at.dtype))
            q, noise = (y * net(x)[:, 0]).min(), 0.9 * noise
        for p in net.parameters():
            p.mul_(((math.log(len(x)) + 0.2) / q) ** (1 / order))


def _late_states(trial: Trial, rates: float = 1.0) -> tuple[nn.Module, tuple[Tensor, Tensor], list[dict[str, Tensor]]]:
    """States of a flow at log10-loss -3 and -299, from near a KKT point. rates : of the first layer, other than 1 for another flow."""
    net, (x, y) = _start(trial, power=2, width=3)
    _move_near_optimum(net, x, y, trial, order=3, noise=0.3)
    metric = (lambda point: {"0.weight": torch.full_like(point["0.weight"], rates)}) if rates != 1 else None
    flow = gradient_flow(
        net, (x, y), until=LogLossBelow(-300), loss=Exponential(), rtol=1e-5, levels=(-3, -299), metric=metric, progress=False
    )
    return net, (x, y), list(flow.states.values())


@claim(
    "lyu-li/kkt-lemma",
    "theta / q_min^{1/L} is an (epsilon, delta)-KKT point with epsilon = sqrt(2 (1 - beta)) / gamma~^{1/L} and delta = (N - 1) / (e L gamma~^{2/L} log 1/Loss)",
    source=f"{PAPER}, Lemma C.8 with its own multipliers and the tight constant for the exponential loss (C_2 = 2 e N .. is valid, and loose by more than e^2)",
    hypotheses="exponential loss below 1; pointwise",
    tolerance=1e-9,
    because=ROUNDING,
    quick=14,
    full=220,
)
def kkt_lemma(trial: Trial, *, epsilon: float = 1.0, delta: float = 1.0) -> Finding:
    points, at = _pointwise(trial, Exponential())
    L, q = points.order, points.gaps().detach()[..., 0]
    length, rho = at["square"].sqrt(), at["rho2"].sqrt()
    smallest = q.amin(1)
    scale = smallest ** (-2 / L)
    gamma = at["x"] / rho**L
    weights = torch.exp(-q + at["x"][:, None])  # e^{-q_n} / Loss
    found_delta = scale * rho / length * (weights * (q - smallest[:, None])).sum(1)
    # theta~ - sum lambda_n h_n, lambda_n the proof's: sum lambda_n h_n = q_min^{-1/L} rho d / |d|, d = d theta / dt.
    residual = {
        n: p.detach() - (rho / length).reshape(-1, *[1] * (p.dim() - 1)) * at["descent " + n] for n, p in points.theta.items()
    }
    found_epsilon = scale * points.inner(residual, residual)
    bound_epsilon = 2 * (1 - at["radial"] / (rho * length)).clamp(min=0) / gamma ** (2 / L)
    bound_delta = (q.shape[1] - 1) / (math.e * L * gamma ** (2 / L) * at["x"])
    worst = torch.maximum(
        (found_epsilon - epsilon**2 * bound_epsilon) / (scale * at["rho2"]),
        (found_delta - delta * bound_delta) / (bound_delta + 1e-9),
    )
    return Finding.of(worst[at["keep"]], points.setting())


@kkt_lemma.printed("x e^{-x} attains the maximum value e at x = 1")
def _() -> Finding:
    return Finding.of(math.e - math.exp(-1), "x = 1: the value is 1/e")


@claim(
    "lyu-li/kkt-finite-time",
    "for epsilon, delta small there is a time with log rho in (r, r + Delta), r = (1/L) log(C_2 / (delta gamma~_0)), Delta = C_0 C_1^2 / (2 epsilon^2), at which theta is an (epsilon, delta)-KKT point",
    source=f"{PAPER}, Theorem A.9 with C_2 tight as in kkt-lemma, C_0 = (1/L) log(gamma~_end / gamma~_0)",
    hypotheses="exponential loss below 1, epsilon < sqrt(3/2) C_1, delta < C_2 / log(1/Loss_0); ReLU and squared ReLU nets, pairs (epsilon, delta) whose window ends within the flow",
    tolerance=0.0,
    because="epsilon and delta of Lemma C.8's multipliers, recomputed at the best of 120 recorded times in the window, relative to those promised",
    quick=2,
    full=10,
)
def kkt_finite_time(trial: Trial, *, window: float = 1.0, start: float = 1.0) -> Finding:
    power, L = 1 + trial.number % 2, 2.0 + trial.number % 2
    net, (x, y) = _start(trial, power=power)
    levels = -np.geomspace(0.55, 199, 120)
    flow = gradient_flow(net, (x, y), until=LogLossBelow(-200), loss=Exponential(), rtol=1e-6, levels=tuple(levels), progress=False)
    log_rho, gamma, depth, epsilons, deltas = np.array([_kkt_point(net, x, y, state, L) for state in flow.states.values()]).T
    C_1, C_2 = math.sqrt(2) / gamma[0] ** (1 / L), (len(x) - 1) / (math.e * L * gamma[0] ** (2 / L))
    C_0 = math.log(gamma[-1] / gamma[0]) / L
    violations = []
    for share in (1.2, 1.0, 0.8, 0.6):
        epsilon = share * C_1
        Delta = C_0 * C_1**2 / (2 * epsilon**2)
        for depth_needed in np.geomspace(1.05 * depth[0], 0.3 * depth[-1], 6):
            delta = C_2 / depth_needed
            r = start * math.log(C_2 / (delta * gamma[0])) / L
            if log_rho[-1] > r + Delta:  # the window is within the flow
                inside = (log_rho > r) & (log_rho < r + window * Delta)
                violations.append(np.min(np.maximum(epsilons[inside] / epsilon, deltas[inside] / delta) - 1, initial=math.inf))
    return Finding.of(violations, f"flow of a net of order {L:g} to log10-loss -200, {len(depth)} states")


def _kkt_point(
    net: nn.Module, x: Tensor, y: Tensor, state: dict[str, Tensor], L: float
) -> tuple[float, float, float, float, float]:
    """log rho, gamma~, log 1/Loss, and the epsilon and delta of theta / q_min^{1/L} with the multipliers of Lemma C.8 (exponential loss)."""
    net.load_state_dict(state)
    q = y * net(x)[:, 0]
    log = torch.logsumexp(-q, 0)
    theta = torch.cat([p.detach().flatten() for p in net.parameters()])
    h = torch.cat([-g.flatten() for g in torch.autograd.grad(log, list(net.parameters()))])  # d theta / dt / Loss
    rho, q, smallest = theta.norm(), q.detach(), q.min().item()
    epsilon = smallest ** (-1 / L) * (theta - rho * h / h.norm()).norm().item()
    delta = smallest ** (-2 / L) * (rho / h.norm() * torch.exp(-q - log.detach()) * (q - smallest)).max().item()
    depth = -log.item()
    return math.log(rho), depth / rho.item() ** L, depth, epsilon, delta


@kkt_finite_time.printed("beta^-2 - 1 < 3 implies |beta| < 1/2")
def _() -> Finding:
    return Finding.of(1.0 - 0.5, "beta = 1: beta^-2 - 1 = 0, and |beta| is above 1/2")


@claim(
    "lyu-li/angle-integral",
    "(beta^-2 - 1) d log rho <= (1/L) d log gamma~, at every point; hence some time between t_1 and t_2 has beta^-2 - 1 <= (1/L) log(gamma~_2 / gamma~_1) / log(rho_2 / rho_1)",
    source=f"{PAPER}, Lemma C.9 and Corollary C.10 (beta^-2 - 1, not beta^2 - 1)",
    hypotheses=f"{SEPARATED}; pointwise, and over 100 intervals of a ReLU flow in every fifth trial",
    tolerance=1e-9,
    because=ROUNDING,
    quick=10,
    full=220,
)
def angle_integral(trial: Trial, *, factor: float = 1.0) -> Finding:
    if trial.number % 5 == 4 and trial.number < 30:
        rows = [row for row in _relu_flow(trial).rows if row["log_loss"] < 0]
        log_rho, log_gamma = np.log([row["norm"] for row in rows]), np.log([row["smoothed_margin"] for row in rows])
        angle, random, violations = np.array([row["alignment"] for row in rows]) ** -2.0 - 1, trial.random, []
        for _ in range(100):
            i, j = np.sort(random.choice(len(rows), 2, replace=False))
            bound = (log_gamma[j] - log_gamma[i]) / (log_rho[j] - log_rho[i]) / 2
            violations.append(factor * angle[i : j + 1].min() - bound - 1e-7)
        return Finding.of_one(violations, f"flow of a two-layer ReLU net on 6 points, {len(rows)} steps")
    loss = LOSSES[trial.number % 4]
    points, at = _pointwise(trial, loss)
    rate, size = _growth(at, points.order)
    # d log rho / dt = <theta, d theta / dt> / rho^2, all divided by the loss.
    tangent2 = at["square"] * at["rho2"] / at["radial"] ** 2 - 1
    limit = factor * points.order * tangent2 * at["radial"] / at["rho2"]
    return Finding.of(((limit - rate) / size)[at["keep"]], f"{loss.name} loss, {points.setting()}")


@claim(
    "lyu-li/ntk-svm",
    "at the end theta / L solves the support vector machine of the net's own tangent kernel: its margin is L / ||theta~||, and the cosine tends to 1",
    source=f"{PAPER}, Corollary 4.5 and Lemma C.13",
    hypotheses="smooth nets (squared ReLUs), exponential loss, starts as for kkt-limit; a trend from log10-loss -3 to -300",
    tolerance=0.0,
    because="1 - cosine falls by 5 at least and to 0.03, and the margins agree to 5%: that counts as holding",
    quick=1,
    full=5,
)
def ntk_svm(trial: Trial, *, order_factor: float = 1.0) -> Finding:
    net, data, states = _late_states(trial)
    angles = []
    for state in states:
        net.load_state_dict(state)
        svm = tangent_svm(net, data)
        angles.append(1 - svm.cosine)
    expected = order_factor * 3 / certify(net, data, loss=Exponential()).norm
    measured = f"1 - cosine {angles[0]:.2g} -> {angles[1]:.2g}; margin {svm.margin:.5g} against L / ||theta~|| = {expected:.5g}"
    violations = [5 * angles[1] / angles[0] - 1, angles[1] - 0.03, abs(svm.margin / expected - 1) - 0.05]
    return Finding.of_one(violations, "squared ReLUs 3-3-1, 6 points, flow to log10-loss -300", measured)


@claim(
    "lyu-li/mexican-hat",
    "on phi = 1 / (1 - r^2) the flow of the homogeneous Mexican hat stays on it, with C(r) = 4 r^4 / (4 r^4 + (1 - r^2)^3): so its direction circles and never converges",
    source=f"{PAPER}, Theorem I.1 (exponent 3, not 4)",
    hypotheses="0.05 < r < 0.9, any L, q_n = h for all n; invariance of the curve, pointwise; that r tends to 1 is not checked",
    tolerance=1e-9,
    because="d psi / dt relative to the two terms that cancel in it",
    quick=2,
    full=40,
)
def mexican_hat(trial: Trial, *, exponent: int = 3) -> Finding:
    random = trial.torch_random
    r = 0.05 + 0.85 * torch.rand(256, generator=random, dtype=torch.float64)
    L = 0.5 + 4 * torch.rand(256, generator=random, dtype=torch.float64)
    rho = torch.exp(torch.randn(256, generator=random, dtype=torch.float64))
    return Finding.of(_turning(r, L, rho, exponent), "256 points of the curve, L from 0.5 to 4.5")


def _turning(r: Tensor, L: Tensor, rho: Tensor, exponent: int) -> Tensor:
    """|d psi / dt| relative to its terms at psi = 0, by autograd of h in (x, y, z)."""
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
    half = torch.tensor([0.5], dtype=torch.float64)
    return Finding.of(
        _turning(half, torch.ones(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64), 4),
        "r = 1/2, psi = 0, L = 1: d psi / dt is not 0",
    )

"""Claims of The Ubiquity of 2-Homogeneity (2024) on margins, subsampling and divergences."""

import collections
import math
from typing import Any

import numpy as np
import torch
from scipy.special import betainc, betaincinv, expit, log_expit, xlogy

from ...core.logspace import neg_log_expm1_exp
from ...flow.gradient_flow import gradient_flow
from ...models import mlp
from ...solvers import f1_max_margin
from ...training.stopping import LogLossBelow
from ..ledger.claim import claim
from ..ledger.directions import matrix_game
from ..ledger.draws import draw_directions
from ..ledger.points import BATCH, stacked_outputs
from ..ledger.regression import slope
from ..ledger.trial import Finding, Trial
from ._early_margin import early_margin
from ._instances import (
    PAPER,
    MovingFeatures,
    draw_moving_features,
    draw_stacked_nets,
    kl_divergence,
    run_mirror_flow,
    stacked_log_loss,
)
from ._measures import hit_probability, least_divergence, spread_atoms, subsampling_widths
from ._normalized_nets import NormalizedNet, NormalizedReLU, require_bounded_features
from .claims_mirror import two_features


@claim(
    "two-homogeneity/partial-monotone",
    "psi(w) / |what|^L never falls along gradient flow on all parameters, and |what| grows, for"
    " nets that are L-homogeneous in what alone",
    source=f"{PAPER}, Theorem 3.6",
    hypotheses=(
        "<a . b, F(x; V)>, what = (a, b), L = 2, and heads of one and of three layers with ReLUs,"
        " L = 1 and 3, on F: normalized ReLU, LayerNorm, RMSNorm, a tiny transformer; mean loss"
        " below log(2) / n; pointwise, at any (what, V), in units of the loss"
    ),
    tolerance=1e-9,
    because="rounding, relative to the products of gradient norms",
    trials=(10, 320),
    sharpen={"order": 1},
    ascent=10,
)
def partial_monotone(trial: Trial, *, order: float = 1.0, sign: float = 1.0) -> Finding:
    kind, normalized, theta, x, _ = draw_stacked_nets(trial)
    random, L = trial.random, (2, 1, 2, 3)[trial.number % 4]
    noise = random.normal(size=(BATCH, 8))
    net = normalized if L == 2 else _give_head(random, normalized, theta, L)
    with torch.no_grad():
        if L == 2:  # any (a, b); the first eight stay balanced, where one feature attains equality
            theta["b"][8:] *= torch.exp(0.5 * torch.tensor(noise[8:, : theta["b"].shape[1]]))
        y = torch.sign(stacked_outputs(net, theta, x)[..., 0])
    total = stacked_log_loss(net, theta, x, y)
    psi = neg_log_expm1_exp(total)
    what = [v.flatten(1) for name, v in theta.items() if not name.startswith("inner.")]
    size2 = torch.cat(what, 1).square().sum(1)
    parts = list(theta.values())
    descent = torch.autograd.grad(-total.sum(), parts, retain_graph=True)

    def along(values: torch.Tensor) -> torch.Tensor:
        """The derivatives of values (B,) along the descent of log Loss."""
        slopes = torch.autograd.grad(
            values.sum(), parts, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        pairs = zip(slopes, descent, strict=True)
        return torch.stack([(g * d).flatten(1).sum(1) for g, d in pairs]).sum(0)

    growth, risen = along(size2), along(psi)
    rate = risen / psi - order * L / 2 * growth / size2
    size = risen / psi + growth.abs() / size2
    # Rounding must not decide whether the hypothesis holds.
    keep = total < math.log(math.log(2)) - 1e-6
    worst = torch.maximum(-sign * rate / size, -growth)
    where = f"{kind}, L = {L}, {len(x)} samples, {int(keep.sum())} random parameters"
    return Finding.of(worst[keep], where)


def _give_head(
    random: np.random.Generator, net: NormalizedNet, theta: dict, layers: int
) -> torch.nn.Module:
    """Put layers without biases on the features, in place of a and b, at stacked parameters."""
    sizes = [theta.pop("a").shape[1], *[3] * (layers - 1), 1]
    theta.pop("b")
    head = mlp(sizes, bias="none").double()
    for name, v in head.named_parameters():
        drawn = 2 * random.normal(size=(BATCH, *v.shape))
        theta[f"head.{name}"] = torch.tensor(drawn, requires_grad=True)
    parts = [("inner", net.inner), ("head", head)]
    return torch.nn.Sequential(collections.OrderedDict(parts))


@claim(
    "two-homogeneity/partial-limits",
    "with features that are bounded Loss -> 0 and |what| -> infinity: |what|^L >= L l^-1(Loss) / C,"
    " C the bound of the gradient in what; with F = exp(exp(V)) Loss -> 0 and |what|^2 + 2 exp(-V)"
    " stays as it is",
    source=f"{PAPER}, Theorem 3.6 and Assumption 2.1",
    hypotheses=(
        "logistic loss to 1e-100, without the bound to 1e-20: normalized ReLUs of unit vectors"
        " under <a . b, F>, where C is 2 max |F|; a one-layer head on exp(exp(V)), which has none"
    ),
    tolerance=1e-6,
    because="rounding; 1e-4 of what is conserved for the error of the integrator",
    trials=(2, 12),
    ascent=0,
)
def partial_limits(trial: Trial, *, bound: float = 1.0, limit: float = 1.0) -> Finding:
    random, end = trial.random, LogLossBelow(-100)
    if trial.number % 2:
        net = _DoublyExponential(random.uniform(0.5, 1.5), random.uniform(-1, 0.5))
        data = torch.ones(1, 1), torch.ones(1).long()
        flow = gradient_flow(net, data, until=LogLossBelow(-20), rtol=1e-6, progress=False)
        start, log_loss = net.c.item() ** 2 + 2 * math.exp(-net.v.item()), flow.rows[-1]["log_loss"]
        size, left = flow.final["c"].item() ** 2, 2 * math.exp(-flow.final["v"].item())
        criteria = [abs(size + limit * left - start) - 1e-4 * start, size - start, log_loss + 40]
        shown = f"|what|^2 = {size:.5f} < {start:.5f} at a loss of e^{log_loss:.0f}"
        return Finding.of_one(criteria, "c exp(exp(v)), one sample", shown)
    features = draw_moving_features(random, "normalized ReLU", 1 + trial.number // 2 % 2)
    largest = require_bounded_features(features.net.inner, features.data[0])
    if matrix_game(features.at(features.V)[0])[1] <= 0.05:
        return Finding.of([], "features that do not separate the samples")
    flow = gradient_flow(
        features.net, features.data, until=end, method="proximal", step_size=0.1, progress=False
    )
    sizes = flow.final["a"].square().sum() + flow.final["b"].square().sum()
    q = -flow.rows[-1]["log_loss"]  # l^-1(Loss) to rounding
    criteria = [bound * 2 * q / largest / sizes.item() - 1, 100 - q]
    shown = f"|what|^2 = {sizes:.1f} >= {2 * q / largest:.1f} at a loss of e^-{q:.0f}"
    room = sizes.item() * largest / (2 * q)
    return Finding.of_one(criteria, f"{features.data[0].shape[0]} samples", shown, bound=room)


class _DoublyExponential(torch.nn.Module):
    """c exp(exp(v)) x: linear in c, with a feature that no bound holds."""

    def __init__(self, c: float, v: float):
        super().__init__()
        self.c, self.v = (
            torch.nn.Parameter(torch.tensor([number], dtype=torch.float64)) for number in (c, v)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs for inputs (N, 1), shape (N, 1)."""
        return self.c * torch.exp(torch.exp(self.v)) * x


@claim(
    "two-homogeneity/early-margin",
    "y h / (|a|^2 + |b|^2) at time t is at least what each step of the proof gives: l^-1((n R"
    " |ubar| / 2 + 1) / t) / (2 ((8 R + 2) |ubar| + 16 / n)), where features keep half of their"
    " margin, as they do where (C_1 |p|_inf + C_2) (R |ubar| / 2 + 1 / n) ((8 R + 2) |ubar| + 16 /"
    " n) <= gamma / 2; that drift falls like 1 / m",
    source=(
        f"{PAPER}, Theorem 3.1, with n in its time and the constants of its proof (docs/errata.md)"
    ),
    hypotheses=(
        "|a_j| = |b_j|, mean logistic loss to t = 10 to 1e5, p the best of `early_margin`: frozen"
        " features, and 50 normalized ReLUs whose V is trained; in trial 2 200,000 of them, where"
        " the drift is below half of the margin, and in trial 3 the drift of 500 to 200,000"
    ),
    tolerance=1e-7,
    because="error of the integrator; the drift's slope within 0.1 of -1",
    trials=(2, 30),
    ascent=0,
)
def early(trial: Trial, *, guarantee: float = 1.0, power: float = 1.0) -> Finding:
    random, n = trial.random, 1 + trial.number % 3
    if trial.number == 3:
        return _fit_drift(random, power)
    wide, frozen = trial.number == 2, trial.number % 2 == 0
    n, t = (1, 100.0) if wide else (n, float(10 ** random.uniform(1, 5)))
    if frozen and not wide:
        Z = random.normal(size=(n, 6)) + 1.0
        x, y = torch.tensor(Z), torch.ones(n, dtype=torch.int64)
        net = NormalizedNet(torch.nn.Identity(), 6)
        net.b.data = net.a.data.clone()
        if matrix_game(Z)[1] <= 0.05:
            return Finding.of([], "features that do not separate the samples")
        run = run_mirror_flow(lambda s: Z, np.full(6, 1 / 6), [t], np.zeros(6))
        promised, last, kind = early_margin(net, (x, y), time=t), Z, "6 frozen features"
    else:
        m = 200_000 if wide else 50
        x, y = _draw_circle(random, n)
        seed = int(random.integers(2**31))
        features = MovingFeatures(
            NormalizedNet(NormalizedReLU(2, m, seed=seed), m, seed=seed), x, y
        )
        run = run_mirror_flow(features, features.u, np.linspace(0, t, 5)[1:], np.zeros(m))
        states = features.states(run)
        promised = early_margin(features.net, (x, y), time=t, states=states)
        last, kind = run["z"][-1], f"{m} normalized ReLUs"
    u = run["u"][-1]
    found = (last @ u).min() / (2 * u.sum())
    where = f"{n} samples, {kind}, gamma {promised.gamma:.3f}"
    if promised.guarantee is None or (wide and not promised.applies):
        return Finding.of([1.0] if wide else [], f"{where}: nothing is promised")
    shown = f"{found:.4f} >= {promised.guarantee:.4f} at t = {t:.3g}"
    violations = [guarantee * promised.guarantee - found]
    violations.append(promised.gamma - promised.drift - promised.kept)
    return Finding.of_one(violations, where, shown, guarantee=found / promised.guarantee)


def _draw_circle(random: np.random.Generator, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw n unit vectors of the plane with labels."""
    return torch.tensor(draw_directions(random, n, 2)), torch.tensor(random.choice([-1, 1], n))


def _fit_drift(random: np.random.Generator, power: float) -> Finding:
    """Fit the exponent of the width in the drift that is possible until t = 1e4."""
    widths, drifts = (500, 4_000, 30_000, 200_000), []
    x, y = _draw_circle(random, 2)
    for m in widths:
        net = NormalizedNet(NormalizedReLU(2, m, seed=m), m, seed=m)
        found = early_margin(net, (x, y), time=1e4)
        drifts.append(found.drift / found.gamma)
    fit = slope(np.log(widths), np.log(drifts))
    shown = f"drift / gamma {', '.join(f'{d:.3g}' for d in drifts)}, m^{fit.value:.3f}"
    return Finding.of(fit.off(-power) - 0.1, f"2 samples, {widths} normalized ReLUs", shown)


@early.printed("for t >= (20 R / gamma)^4, whatever n, the margin is at least gamma / (4 (1 + R))")
def _() -> Finding:
    return two_features(1e5)


@early.printed("Theorem 4.1: margin at least gamma / (32 d ln(1 / gamma))")
def _() -> Finding:
    gamma, d = 1 - 1e-6, 2
    return Finding.of(
        gamma / (32 * d * math.log(1 / gamma)) - 1 / 2,
        "one point x = (1 - 1e-6) e_1: gamma = 1 - 1e-6, d = 2; no y h / (|a|^2 + |b|^2) is above"
        " 1/2, since |F| <= 1",
    )


@claim(
    "two-homogeneity/late-margin",
    "from t >= e + exp(exp(4 n KL(pbar, u(0)) / gamma)) on min <u, z_i> / |u|_1 >= gamma / 16,"
    " hence y h / (|a|^2 + |b|^2) >= gamma / 32 with the margin gamma that features keep",
    source=f"{PAPER}, Lemma A.4 and Theorem 3.1, second part",
    hypotheses=(
        "min_i <pbar, z_i(s)> >= gamma until t; 4 n KL / gamma <= 2.4, so that t is at most 6e4:"
        " u(0) near pbar, features some of which harm every sample or one, frozen or moving"
    ),
    tolerance=1e-7,
    because="error of the integrator",
    trials=(3, 45),
    ascent=10,
)
def late(trial: Trial, *, share: float = 1 / 16) -> Finding:
    random, n = trial.random, 1 + trial.number // 3 % 4
    kind = ("frozen", "normalized ReLU", "transformer")[trial.number % 3]
    if kind == "frozen":
        Z = random.normal(size=(n, 6)) + 0.3
        Z /= np.abs(Z).max()
        z: Any = lambda s: Z  # noqa: E731
    else:
        z = draw_moving_features(random, kind, n)
        Z = z.at(z.V)[0]
    _, most, _ = matrix_game(Z)
    if most <= 0.05:
        return Finding.of([], "features that do not separate the samples")
    p = least_divergence(Z, np.full(6, 1 / 6), random.uniform(0.4, 0.9) * most)
    # The divergence is about half of the squares of what turns p into u(0).
    exponent = random.uniform(0.5, 2.2)
    noise = random.normal(size=6) * math.sqrt(2 * exponent * (Z @ p).min() / (4 * n))
    u0 = p * np.exp(noise) / (p * np.exp(noise)).sum()
    divergence = 4 * n * float(kl_divergence(p, u0))
    doubly = divergence / (Z @ p).min()
    if doubly > 2.2:
        return Finding.of([], "a time that is out of reach")
    t = math.e + math.exp(math.exp(1.05 * doubly))  # features may lose a little of their margin
    run = run_mirror_flow(z, u0, np.linspace(0, t, 81)[1:], p)
    zs, u = run["z"] if "z" in run else Z[None], run["u"][-1]
    gamma = float(min((zs @ p).min(), (Z @ p).min()))
    if gamma <= 0 or 1.05 * doubly < divergence / gamma:
        return Finding.of([], "features that lose their margin")
    margin = float((zs[-1] @ u).min() / u.sum())
    shown = f"{margin:.3f} >= {share * gamma:.3f} at t = {t:.3g}"
    where = f"{n} samples, {kind} features of margins from {Z.min():.2f} on"
    return Finding.of_one(share * gamma - margin, where, shown, share=margin / (share * gamma))


@claim(
    "two-homogeneity/feature-drift",
    "|<p, z_i(t) - z_i(0)>| <= (C_1 |p|_inf + C_2) int G sup |u|_1 along the flow of (a, b, V),"
    " which is at most (C_1 |p|_inf + C_2) (R |ubar| / 2 + 1 / n) ((8 R + 2) |ubar| + 16 / n)",
    source=f"{PAPER}, (5) and the proof of Theorem 3.1",
    hypotheses=(
        "normalized ReLUs, whose parameters are their own, LayerNorm, RMSNorm and a transformer,"
        " whose parameters are shared; any p; C_1 and C_2 over 40 states until t = 1 to 1,000"
    ),
    tolerance=1e-7,
    because="error of the integrator",
    trials=(2, 16),
    ascent=4,
)
def feature_drift(trial: Trial, *, factor: float = 1.0) -> Finding:
    random, n = trial.random, 1 + trial.number % 3
    kind = ("normalized ReLU", "transformer", "LayerNorm", "RMSNorm")[trial.number % 4]
    width = 5 if kind in ("LayerNorm", "RMSNorm") else 6
    features = draw_moving_features(random, kind, n, width)
    start, t = features.at(features.V)[0], float(10 ** random.uniform(0, 3))
    best, most, _ = matrix_game(start)
    if most <= 0.05:
        return Finding.of([], "features that do not separate the samples")
    # A p with much weight on one feature, or spread.
    p = best if trial.number % 2 else least_divergence(start, features.u, most / 2)
    run = run_mirror_flow(features, features.u, np.linspace(0, t, 41)[1:], p)
    states = features.states(run)
    found = early_margin(features.net, features.data, time=max(t, 2.0), states=states, p=p)
    moved = np.abs((run["z"] - start) @ p).max(1)
    mass = np.maximum.accumulate(np.maximum(run["u"].sum(1), features.u.sum()))
    allowed = factor * (found.C_1 * p.max() + found.C_2) * run["G"] * mass
    room = float((allowed / np.maximum(moved, 1e-300)).min())
    shown = f"moved {moved[-1]:.3g} of {allowed[-1]:.3g} and {found.drift:.3g}"
    violations = np.append(moved - allowed, allowed[-1] - factor * found.drift)
    return Finding.of_one(violations, f"{n} samples, {kind}, t = {t:.3g}", shown, factor=room)


@claim(
    "two-homogeneity/subsampling",
    "m >= max(8 ln(k / delta) / tau, 4 / tau^2) random neurons, tau = (1/4)(gamma / 8)^{d - 1},"
    " carry a probability u with margins >= gamma / 4, KL(u, uniform) <= ln(2 / tau), which is at"
    " most (d - 1) ln(48 / gamma) for d >= 3, |u|_inf <= 1 / sqrt m; the printed width 2^10 ln^2(2"
    " n / (delta gamma)) (8 / gamma)^{2 d - 2} is larger",
    source=f"{PAPER}, Lemma B.1 with Chernoff's bound, all samples shared by all k atoms",
    hypotheses=(
        "2 to 5 unit vectors in 2 to 4 dimensions, gamma certified, u the proof's, as"
        " `spread_measure` has it; only the neurons near the best ones are drawn, as many as m"
        " uniform ones have there, where their caps are disjoint"
    ),
    tolerance=0.0,
    because="delta = 1e-3 per trial",
    trials=(3, 30),
    ascent=0,
)
def subsampling(trial: Trial, *, tau_factor: float = 1.0, quarter: float = 1 / 4) -> Finding:
    random, d, n = trial.random, 2 + trial.number % 3, 2 + trial.number % 4
    X, y = draw_directions(random, n, d), np.where(np.arange(n) % 2, 1, -1)
    best = f1_max_margin(X, y, bias=False)
    # The paper's neurons have unit directions, ours balanced halves.
    gamma, k = 2 * best.margin, len(best.weights)
    tau, shape = hit_probability(gamma, d), (d - 1) / 2
    ours, printed = subsampling_widths(gamma, d, k, n)
    m, centers, signs = (
        math.ceil(ours),
        best.atoms[:, :-1] * math.sqrt(2),
        np.sign(best.atoms[:, -1]),
    )
    apart = np.linalg.norm(centers[:, None] - centers, axis=2) + 2 * np.eye(k)
    cap = betainc(shape, shape, (gamma / 8) ** 2)  # of the share (1 - cos) / 2 of the diameter
    if gamma < 0.1 or m * cap > 2e6 or (apart[signs[:, None] == signs] <= gamma / 2).any():
        return Finding.of([], "caps that overlap, or too many neurons")
    v, beta = [], []
    for center, sign, count in zip(centers, signs, random.binomial(m, cap / 2, k), strict=True):
        height = betaincinv(shape, shape, cap * random.uniform(size=(count, 1)))
        sideways = random.normal(size=(count, d))
        sideways -= (sideways @ center)[:, None] * center
        sideways /= np.linalg.norm(sideways, axis=1, keepdims=True)
        v.append((1 - 2 * height) * center + 2 * np.sqrt(height * (1 - height)) * sideways)
        beta.append(np.full(count, sign))
    V, signs = np.concatenate(v), np.concatenate(beta)
    u, missed = spread_atoms(best, V, signs)
    margin = float((y[:, None] * signs * np.maximum(X @ V.T, 0) @ u).min())
    kl, bound = float(xlogy(u, u * m).sum()), math.log(2 / (tau_factor * tau))
    violations = [
        missed,
        abs(u.sum() - 1) - 1e-9,
        quarter * gamma - margin,
        kl - bound,
        kl - (d - 1) * math.log(48 / gamma) if d > 2 else -1,
        u.max() - 1 / math.sqrt(m),
        1 - printed / ours,
    ]
    found = (
        f"margin {margin:.3f}, KL {kl:.2f} <= {bound:.2f}, m = {ours:.3g} ({printed:.3g} printed)"
    )
    room = {"quarter": margin / (quarter * gamma), "KL": bound / kl}
    return Finding.of_one(violations, f"{n} points, d = {d}", f"gamma {gamma:.3f}: {found}", **room)


@claim(
    "two-homogeneity/kl-facts",
    "min q >= psi(q); mean e^{-q} <= C_5 e^{-2 k} with k >= ln(2 n C_5) makes min q >= k; min q <="
    " psi(q) + c_1 ln n + c_2 (where psi >= 0 for the logistic loss), mean"
    " loss <= exp(-min q), mean |l'| <= -l'(psi) <= min(1, e n^2 mean |l'|) (the 1 where psi >= 0"
    " for the exponential loss); min over the simplex of D(p, v) = ln 1/|v| + |v| - 1; D(r, q) >="
    " (|r|/2) KL + [|q| >= 2 |r|] |q| / 8, KL >= |r~ - q~|^2 / 2",
    source=f"{PAPER}, Lemmas A.1 (1 to 5) and A.2, A.1 (2) and A.2 (1) corrected",
    hypotheses="exponential and logistic loss; random margins and measures",
    tolerance=1e-11,
    because="rounding, relative",
    trials=(4, 45),
    sharpen={"samples": -1, "eighth": 1, "twice": -1},
)
def kl_facts(
    trial: Trial,
    *,
    samples: float = 1.0,
    attained: float = 0.0,
    eighth: float = 1 / 8,
    twice: float = 2.0,
) -> Finding:
    random, n, B = trial.random, 1 + trial.number % 9, 256
    q = random.normal(size=(B, n)) * 10 ** random.uniform(-1, 1.5, (B, 1))
    q += random.uniform(0, 5, (B, 1))
    q[: B // 8] = q[: B // 8, :1]  # all equal: some are attained
    low = q.min(1)
    # With C_5 = mean e^{2 k - q}, the largest k of A.1 (4), 0 where there is none.
    most = -np.log(twice * np.exp(-q).sum(1))
    violations = [np.where(most > 0, most - low, -1) / (1 + np.abs(low))]
    for logistic in (False, True):
        losses = -log_expit(q) if logistic else np.exp(-q)
        slopes = expit(-q) if logistic else losses
        log_total = np.log(losses.sum(1))
        psi = neg_log_expm1_exp(torch.tensor(log_total)).numpy() if logistic else -log_total
        far = expit(-psi) if logistic else np.exp(-psi)
        G = slopes.mean(1)
        c = 2 * math.log(n) + 1 if logistic else samples * math.log(n)
        size, above = 1 + np.abs(low), (low >= 0) & ((psi >= 0) | (not logistic))
        largest = math.e * n**2 * G
        violations += [
            (psi - low) / size,
            np.where(above, low - psi - c, -1) / size,
            losses.mean(1) / np.exp(-low) - 1,
            G / far - 1,
            far / np.where((psi >= 0) | logistic, np.minimum(1, largest), largest) - 1,
        ]
    r, s = (
        random.exponential(size=(B, n)) * 10 ** random.uniform(-1, 1, (B, 1)) + 1e-9
        for _ in range(2)
    )
    s[: B // 8] = r[: B // 8] * random.uniform(2, 5, (B // 8, 1))
    p = random.dirichlet(np.ones(n), B)
    least = -np.log(s.sum(1)) + s.sum(1) - 1 + attained
    a, b = r.sum(1), s.sum(1)
    kl = (xlogy(r, r / s).sum(1) - a * np.log(a / b)) / a
    violations += [
        np.abs(kl_divergence(s / b[:, None], s) - least) / (1 + b),
        (least - kl_divergence(p, s)) / (1 + b),
        (a / 2 * kl + (b >= 2 * a) * eighth * b - kl_divergence(r, s)) / (a + b),
        np.abs(r / a[:, None] - s / b[:, None]).sum(1) ** 2 / 2 - kl,
    ]
    return Finding.of(np.max(violations, axis=0), f"{n} margins or masses, 256 times")


@kl_facts.printed("A.1 (2) for the logistic loss without psi >= 0")
def _() -> Finding:
    psi, c = -math.log(math.expm1(8 * math.log(2))), 2 * math.log(8) + 1
    return Finding.of(0 - (psi + c), f"8 margins of 0: psi = {psi:.3f}, 2 ln 8 + 1 = {c:.3f}")


@kl_facts.printed("A.2 (1): min over the simplex of D(p, v) = ln 1/|v|_1")
def _() -> Finding:
    v = np.array([1.0, 1.0])
    where = "v = (1, 1): the minimum, at p = (1/2, 1/2), is ln(1/2) + 1"
    return Finding.of(kl_divergence(v / 2, v) - math.log(1 / 2), where)

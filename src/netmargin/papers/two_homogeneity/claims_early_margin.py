"""Claims of The Ubiquity of 2-Homogeneity (2024) on what is promised after finite time."""

import math
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from ..ledger.claim import claim
from ..ledger.directions import matrix_game
from ..ledger.draws import draw_directions
from ..ledger.regression import slope
from ..ledger.trial import Finding, Trial
from ._early_margin import early_margin
from ._instances import PAPER, MovingFeatures, draw_moving_features, run_mirror_flow
from ._measures import least_divergence
from ._normalized_nets import NormalizedNet, NormalizedReLU
from .claims_mirror import two_features


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
        promised, kind = early_margin(net, (x, y), time=t), "6 frozen features"
    else:
        m = 200_000 if wide else 50
        x, y = torch.tensor(draw_directions(random, n, 2)), torch.tensor(random.choice([-1, 1], n))
        seed = int(random.integers(2**31))
        net = NormalizedNet(NormalizedReLU(2, m, seed=seed), m, seed=seed)
        features = MovingFeatures(net, x, y)
        run = run_mirror_flow(features, features.u, np.linspace(0, t, 5)[1:], np.zeros(m))
        states = features.states(run)
        promised = early_margin(features.net, (x, y), time=t, states=states)
        kind = f"{m} normalized ReLUs"
    u = run["u"][-1]
    found = (run["z"][-1] @ u).min() / (2 * u.sum())
    where = f"{n} samples, {kind}, gamma {promised.gamma:.3f}"
    if promised.guarantee is None or (wide and not promised.applies):
        return Finding.of([1.0] if wide else [], f"{where}: nothing is promised")
    shown = f"{found:.4f} >= {promised.guarantee:.4f} at t = {t:.3g}"
    violations = [guarantee * promised.guarantee - found]
    violations.append(promised.gamma - promised.drift - promised.kept)
    return Finding.of_one(violations, where, shown, guarantee=found / promised.guarantee)


def _fit_drift(random: np.random.Generator, power: float) -> Finding:
    """Fit the exponent of the width in the drift that is possible until t = 1e4."""
    # Several narrow nets, as their drifts differ by a factor of 2.
    nets = ((500, 16), (4_000, 8), (30_000, 2), (200_000, 1))
    data = torch.tensor(draw_directions(random, 2, 2)), torch.tensor(random.choice([-1, 1], 2))
    pairs = []
    for m, seed in ((m, m + k) for m, count in nets for k in range(count)):
        net = NormalizedNet(NormalizedReLU(2, m, seed=seed), m, seed=seed)
        found = early_margin(net, data, time=1e4)
        pairs.append((m, found.drift / found.gamma))
    fit = slope(*np.log(pairs).T)
    shown = f"drift / gamma {pairs[0][1]:.3g} -> {pairs[-1][1]:.3g}, m^{fit.value:.3f}"
    return Finding.of(fit.off(-power) - 0.1, "2 samples, 500 to 200,000 normalized ReLUs", shown)


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
        "min_i <pbar, z_i(s)> >= gamma until t; 4 n KL / gamma <= 2.2, so that t is at most 24,000;"
        " features some of which harm every sample or one, frozen or moving; u(0) off pbar at"
        " random or, in two trials of three, against one sample, which then often begins below what"
        " is promised"
    ),
    tolerance=1e-7,
    because="error of the integrator",
    trials=(3, 45),
    ascent=10,
)
def late(trial: Trial, *, share: float = 1 / 16, reach: float = 1.0) -> Finding:
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
    # Most u(0) are tilted against one sample, which margins far below the best let go below 0.
    against = random.random() < 0.7
    low, high, room = (0.05, 0.3, 2.0) if against else (0.4, 0.9, 0.5)
    p = least_divergence(Z, np.full(6, 1 / 6), random.uniform(low, high) * most)
    least, doubly = float((Z @ p).min()), random.uniform(room, 2.2)
    tilt = -Z[(Z @ p).argmin()] if against else random.normal(size=6)

    def miss_divergence(by: float) -> float:
        divergence = float(logsumexp(by * tilt, b=p) - by * (p @ tilt))
        return 4 * n * divergence - doubly * least

    u0 = softmax(np.log(p) + brentq(miss_divergence, 0, 1e4) * tilt)
    # The features may lose a little of their margin.
    t = reach * (math.e + math.exp(math.exp(1.05 * doubly)))
    run = run_mirror_flow(z, u0, np.linspace(0, t, 81)[1:], p)
    zs, u = run["z"], run["u"][-1]
    gamma = min((zs @ p).min(), least)
    if gamma <= 0 or 1.05 * gamma < least:
        return Finding.of([], "features that lose their margin")
    margin = float((zs[-1] @ u).min() / u.sum())
    shown = f"{(Z @ u0).min():.3f} -> {margin:.3f} >= {share * gamma:.3f} at t = {t:.3g}"
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

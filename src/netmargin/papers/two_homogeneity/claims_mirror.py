"""Claims of The Ubiquity of 2-Homogeneity (2024) on mirror flow, its bias, control and margins."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.special import expit, log_expit

from ...core.logspace import neg_log_expm1_exp
from ...flow.gradient_flow import gradient_flow
from ...losses import Logistic
from ..ledger.claim import claim
from ..ledger.directions import matrix_game
from ..ledger.points import log_loss, stacked_outputs
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial, excess
from ._early_margin import promise_margin
from ._instances import (
    PAPER,
    draw_moving_features,
    draw_stacked_nets,
    kl_divergence,
    run_mirror_flow,
    stacked_log_loss,
)
from ._normalized_nets import NormalizedNet, NormalizedReLU, mirror_flow


@claim(
    "two-homogeneity/mirror-equivalence",
    "where |a_j| = |b_j|, gradient flow on (a, b, V) is d ln u / dt = -2 grad_u Loss(<u . beta,"
    " F(x; V)>), u = |a . b|",
    source=f"{PAPER}, Lemma 3.2",
    hypotheses=(
        "|a_j(0)| = |b_j(0)| != 0; normalized ReLU, LayerNorm, RMSNorm, transformer; pointwise, and"
        " both flows integrated in one trial"
    ),
    tolerance=1e-6,
    because="two integrations with errors of 1e-8 a step; pointwise 1e-12",
    trials=(5, 160),
    sharpen="identity",
)
def mirror_equivalence(trial: Trial, *, factor: float = 2.0) -> Finding:
    # Integrating both flows takes longer than all pointwise instances, so that one trial does it.
    if trial.number == 1:
        x = torch.randn(5, 4, generator=trial.torch_random, dtype=torch.float64)
        net = NormalizedNet(NormalizedReLU(4, 8, seed=1), 8, seed=2)
        data = x, torch.where(x[:, 0] * x[:, 1] > 0, 1, -1)
        flow = gradient_flow(net, data, time=100.0, progress=False).final
        u = torch.exp(mirror_flow(net, data, time=100.0 * factor / 2).final["log_u"])
        off = (flow["a"].abs() * flow["b"].abs() - u).norm() / u.norm()
        where = "flow and mirror flow of a normalized ReLU net to t = 100"
        return Finding.of(off, where, f"|u - |a b|| / |u| = {off:.1g}")
    kind, net, theta, x, y = draw_stacked_nets(trial)
    # The gradient of log Loss is that of the loss divided by the loss.
    total = stacked_log_loss(net, theta, x, y).sum()
    da, db = torch.autograd.grad(total, [theta["a"], theta["b"]])
    a, b = theta["a"].detach(), theta["b"].detach()
    u, beta = (a * b).abs().requires_grad_(True), torch.sign(a * b)
    V = {n.removeprefix("inner."): p.detach() for n, p in theta.items() if n.startswith("inner.")}
    features = stacked_outputs(net.inner, V, x) if V else net.inner(x).expand(len(a), *x.shape)
    q = y * torch.einsum("bnm,bm->bn", features, u * beta)
    (g,) = torch.autograd.grad(log_loss(Logistic(), q).sum(), u)
    moved = -(da * b + a * db) / (a * b)
    off = ((moved + factor * g).abs() / (moved.abs() + g.abs() + 1e-12)).amax(1)
    return Finding.of(off, f"{kind}, {len(x)} samples, 64 random parameters")


@mirror_equivalence.printed("(3) for products of L = 1 or 3 factors (the paper says it fails)")
def _() -> Finding:
    # |a^l| = |u|^{1/L}: d ln u = -L |u|^{1 - 2/L} grad_u L, which is -2 grad_u L for L = 2 alone.
    u, off = torch.tensor([3.0, 2.0], dtype=torch.float64), []
    for order in (1, 3):
        factors = [(u ** (1 / order)).requires_grad_(True) for _ in range(order)]
        product = torch.stack(factors).prod(0)
        loss = log_loss(Logistic(), product.sum()[None, None]).sum()
        g, *slopes = torch.autograd.grad(loss, [product, *factors])
        moved = -torch.stack([s / f for s, f in zip(slopes, factors, strict=True)]).sum(0)
        off.append((moved / g + 2).abs().min().item())
    return Finding.of(min(off), "u = (3, 2), one sample with features (1, 1)")


@mirror_equivalence.printed("Section 3.3: d ln u / ds = -grad f_s with f_s = -2 L_s")
def _() -> Finding:
    found = mirror_equivalence.check(Trial(0), factor=-2.0)
    return Finding.of(found.violations.max(), f"{found.setting}: the two sides have opposite signs")


MIRRORS: dict[str, tuple[np.ufunc, np.ufunc, Callable[..., Any]]] = {
    "entropy": (np.log, np.exp, lambda u: u * np.log(u) - u),
    "squares": (np.positive, np.positive, lambda u: u**2 / 2),
    "hyperbolic entropy": (np.arcsinh, np.sinh, lambda u: u * np.arcsinh(u) - np.sqrt(1 + u**2)),
}
"""Legendre maps phi(u) = sum of a function of u_j: its derivative, the inverse of that, itself."""


def _bregman(kind: str, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    """D_phi(v, u), over the last axis."""
    slope, _, phi = MIRRORS[kind]
    return (phi(v) - phi(u) - slope(u) * (v - u)).sum(-1)


@claim(
    "two-homogeneity/implicit-bias",
    "D(ubar, u(t)) - D(ubar, u(0)) <= int f_s(ubar) - f_s(u) for any Legendre map, hence min_s"
    " f_s(u) - f_s(ubar) <= (D(ubar, u(0)) - D(ubar, u(t))) / t; for the entropy |u(t)|_1 / 8"
    " [|u(t)|_1 >= 2 |ubar|_1] + int f_s(u) <= D(ubar, u(0)) + int f_s(ubar), at every t",
    source=f"{PAPER}, Lemma 3.3",
    hypotheses=(
        "mirror flow d grad phi(u) / ds = -grad f_s, phi the entropy, half of the squares, or the"
        " hyperbolic entropy, with convex f_s that drift in time: logistic losses, and linear ones,"
        " where the first is an equality"
    ),
    tolerance=1e-7,
    because="error of the integrator (1e-10 a step), relative to the terms",
    trials=(6, 60),
    sharpen={"divergence": -1, "eighth": 1},
)
def implicit_bias(trial: Trial, *, divergence: float = 1.0, eighth: float = 1 / 8) -> Finding:
    random, m, linear = trial.random, 2 + trial.number % 5, trial.number % 3 == 0
    kind = ("entropy", *MIRRORS)[trial.number % 4]
    mirror, entropy = MIRRORS[kind][:2], kind == "entropy"
    # Features of up to 4 samples that rotate in time.
    first = trial.random
    A, B = (first.normal(size=(1 + trial.number % 4, m)) for _ in range(2))
    speed, u0 = first.uniform(0, 2), first.dirichlet(np.ones(m))
    z = lambda s: A * math.cos(speed * s) + B * math.sin(speed * s) + 0.5  # noqa: E731
    # For linear functions the first inequality is an equality, which any wrong constant breaks.
    reference, times = random.exponential(size=m), np.linspace(0, 5, 41)[1:]
    if linear and entropy:  # half of a later u, where the last inequality is nearly attained
        reference = run_mirror_flow(z, u0, times, reference, linear)["u"][20] / 2.001
    run = run_mirror_flow(z, u0, times, reference, linear, mirror=mirror)
    D0, D = divergence * _bregman(kind, reference, u0), _bregman(kind, reference, run["u"])
    size = D0 + D + np.abs(run["f_u"]) + np.abs(run["f_reference"])
    violations = [(D - D0 - run["f_reference"] + run["f_u"]) / size]
    if entropy:
        mass = run["u"].sum(1)
        norm = eighth * mass * (mass >= 2 * reference.sum())
        violations.append((norm + run["f_u"] - D0 - run["f_reference"]) / (size + mass))
    where = f"{'linear' if linear else 'logistic'} f_s, {kind}, {m} coordinates, 40 times"
    return Finding.of_one(np.concatenate(violations), where)


def _draw_features(
    trial: Trial, n: int, m: int, draws: int = 1
) -> tuple[str, Any, np.ndarray, np.ndarray]:
    """Draw features, the best of so many: words, for `run_mirror_flow`, at the start, and u(0)."""
    random, kind = trial.random, ("normalized ReLU", "frozen", "transformer")[trial.number % 3]
    found = list[tuple[str, Any, np.ndarray, np.ndarray]]()
    for _ in range(draws):
        if kind == "frozen":
            Z = random.normal(size=(n, m)) + 0.7
            Z /= np.abs(Z).max()
            start = random.dirichlet(np.ones(m))
            found.append((f"{m} frozen features", lambda s, Z=Z: Z, Z, start))
        else:
            moving = draw_moving_features(random, kind, n)
            words = f"6 moving features ({kind})"
            found.append((words, moving, moving.at(moving.V)[0], moving.u))
    return max(found, key=lambda drawn: matrix_game(drawn[2])[1])


@claim(
    "two-homogeneity/logistic-control",
    "with ubar = (ln(tn) / gamma) pbar, R = D(ubar, u(0)) / |ubar|_1: |u(t)|_1 <= |u(0)|_1 exp(2"
    " int G), sup |u(s)|_1 <= (8 R + 2) |ubar|_1 + 16 / n, 2 int G <= 2 int L <= R |ubar|_1 + 2 /"
    " n; margin >= l^-1((n R |ubar|_1 / 2 + 1) / t) / ((8 R + 2) |ubar|_1 + 16 / n)",
    source=(
        f"{PAPER}, Lemma 3.4 with 16 / n and 2 / n for 32 and 2, exp(2 int G), and items 1 and 2 as"
        " their proofs give them"
    ),
    hypotheses=(
        "min_i <pbar, z_i(s)> >= gamma; |z| <= 1, normalized ReLUs and a transformer whose V is"
        " trained, frozen features (equal ones in every fourth trial), mean logistic loss, t from 2"
        " to 2,000"
    ),
    tolerance=1e-7,
    because="error of the integrator, relative: 1e-10, 1e-7 for transformers; the room that ReLUs"
    " leave is larger than theirs, 1e-2",
    trials=(3, 40),
    ascent=10,
)
def logistic_control(trial: Trial, *, growth: float = 2.0, r_factor: float = 1.0) -> Finding:
    n, m, violations, rooms = 1 + trial.number % 5, 2 + trial.number % 4, [], [[MOST] * 4]
    if trial.number % 4 == 2:
        Z, u0 = np.ones((n, m)), trial.random.dirichlet(np.ones(m))
        kind, z = f"{m} equal features", lambda s: Z
    else:
        kind, z, Z, u0 = _draw_features(trial, n, m)
    pbar = matrix_game(Z)[0]
    # The reference depends on the end t, so that each t is a run of its own.
    ends = (2.0, 50.0, 2000.0)
    one = ends[trial.number // 3 % 3 :][:1]
    for t in ends if callable(z) else one:  # type: ignore[redundant-expr]
        run = run_mirror_flow(z, u0, np.linspace(0, t, 41)[1:], pbar)
        gamma = float((run["z"] @ pbar).min())
        if min(gamma, (Z @ pbar).min()) <= 0.05:
            continue
        size = math.log(t * n) / gamma
        R = r_factor * float(kl_divergence(size * pbar, u0)) / size
        mass, losses = run["u"].sum(1), run["f_u"]
        bound, promised = promise_margin(R, size, n, t)
        violations += [
            excess(mass, u0.sum() * np.exp(growth * run["G"])).max(),
            excess(mass.max(), bound),
            excess(2 * run["G"], losses).max(),
            excess(losses[-1], R * size + 2 / n),
        ]
        grown = (np.log(mass / u0.sum()) / run["G"]).max()
        rooms.append([growth / grown, bound / mass.max(), (R * size + 2 / n) / losses[-1], MOST])
        if promised is not None:
            found = run["z"][-1] @ run["u"][-1]
            violations.append(promised - found.min() / mass[-1])
            rooms[-1][3] = found.min() / mass[-1] / promised
    room = dict(zip(("growth", "norm", "loss", "margin"), np.min(rooms, 0).tolist(), strict=True))
    return Finding.of_one(violations, f"{n} samples, {kind}", **room)


@logistic_control.printed(
    "item 1: for t >= (20 R / gamma)^4 the margin is at least gamma / (2 (1 + R))"
)
def _() -> Finding:
    return two_features(1e16, lemma=True)


@logistic_control.printed("|u(t)|_1 <= |u(0)|_1 exp(int G) (its proof)")
def _() -> Finding:
    run = run_mirror_flow(lambda s: np.ones((1, 1)), np.ones(1), [10.0], np.ones(1))
    u, bound = run["u"][0, 0], math.exp(run["G"][0])
    where = f"n = 1, one feature z = 1, t = 10: |u| = {u:.3f} = exp(2 int G), exp(int G) ="
    return Finding.of(u / bound - 1, f"{where} {bound:.3f}")


def two_features(n: float, *, lemma: bool = False) -> Finding:
    """Printed margin minus that of the flow; frozen (1, 0.1) of n - 1 samples, (-1, 0.5) of one."""
    Z, shares = np.array([[1.0, 0.1], [-1.0, 0.5]]), np.array([(n - 1) / n, 1 / n])
    pbar, gamma, _ = matrix_game(Z)
    u0 = np.array([0.5, 0.5])

    def ratio(t: float) -> float:
        """The R of the theorem, or of the lemma, at time t."""
        size = math.log(t * n) / gamma
        return float(kl_divergence(size * pbar, u0) / size if lemma else kl_divergence(pbar, u0))

    # A fixed point: R grows like log log t at most, so that the iteration contracts.
    t = 1.0
    for _ in range(100):  # R depends on t
        t = (20 * ratio(t) / gamma) ** 4
    rates = lambda s, w: 2 * (shares * expit(-Z @ np.exp(w))) @ Z  # noqa: E731
    flow = solve_ivp(rates, (0, t), np.log(u0), "LSODA", rtol=1e-9, atol=1e-12)
    u = np.exp(flow.y[:, -1])
    margin, promised = (Z @ u).min() / u.sum(), gamma / (2 * (1 + ratio(t)))
    share, unit = (promised, margin) if lemma else (promised / 2, margin / 2)
    where = (
        f"n = {n:.0e}, features (1, 0.1) and once (-1, 0.5), t = {t:.3g}: margin {unit:.3f},"
        f" promised {share:.3f}"
    )
    return Finding.of(share - unit, where)


@claim(
    "two-homogeneity/margin-lower-bound",
    "psi(u(t)) / |u(t)|_1 >= gamma - (1 + 2 ln n) / |u(t)|_1 + (D(ubar, u(t)) - D(ubar, u(0))) / (2"
    " |u(t)|_1 xi_t), ubar = |u(t)|_1 pbar, where D(ubar, u(t)) >= 0 may be left out, xi_t = -(1/n)"
    " int l'(psi) >= (1/n) int G >= ln(|u(t)|_1 / |u(0)|_1) / (2n)",
    source=(
        f"{PAPER}, Lemmas 3.5 and A.3, (18) (2 |u| xi_t, as its proof has it; 1/(2n), not 1/n)"
    ),
    hypotheses=(
        "min_i <pbar, z_i(s)> >= gamma until t, |z| <= 1, normalized ReLUs and a transformer whose"
        " V is trained, and frozen features; mean logistic loss; t from 0.1 to 1e7 (1e5 where V is"
        " trained), the first part where its bound is positive"
    ),
    tolerance=1e-7,
    because="error of the integrator",
    trials=(5, 40),
    ascent=10,
)
def margin_lower_bound(trial: Trial, *, divergence: float = 1.0, half: float = 0.5) -> Finding:
    # Of more samples little is promised until times that are out of reach.
    n, m = (1, 2, 3, 1)[trial.number % 4], 2 + 6 * (trial.number % 3)
    if n == 3:
        Z = np.full((n, m), 1.0 if trial.number % 8 == 2 else 0.5)
        Z[:, 0] = 1.0
        kind, z, u0 = f"{m} positive features", lambda s: Z, trial.random.dirichlet(np.ones(m))
    else:
        kind, z, Z, u0 = _draw_features(trial, n, m, draws=20)  # large margins promise something
    pbar = matrix_game(Z)[0]
    last = 1e7 if callable(z) else 1e5  # type: ignore[redundant-expr]
    run = run_mirror_flow(z, u0, np.geomspace(0.1, last, 60), pbar)
    # The infimum until each time.
    gamma = np.minimum.accumulate(np.minimum((run["z"] @ pbar).min(1), (Z @ pbar).min()))
    mass, xi = run["u"].sum(1), run["xi"]
    q = np.einsum("tnm,tm->tn", run["z"], run["u"])
    psi = neg_log_expm1_exp(torch.tensor(np.log(-log_expit(q).sum(1)))).numpy()
    D, D_t = (kl_divergence(mass[:, None] * pbar, u) for u in (u0, run["u"]))
    bound = gamma - (1 + 2 * math.log(n)) / mass + (D_t - divergence * D) / (2 * mass * xi)
    chain = np.maximum(run["G"] / n - xi, half * np.log(mass / u0.sum()) / n - run["G"] / n)
    says = bound > 0  # a promise of less than 0 says nothing
    shown = f"psi / |u| = {psi[-1] / mass[-1]:.3f}, promised {bound[-1]:.3f}, gamma {gamma[-1]:.3f}"
    where = f"{n} samples, {kind}, {says.sum()} promises at 60 times"
    # What the divergence, and the half, would have to be at least and at most.
    least = divergence + (bound - psi / mass) / (D / (2 * mass * xi))
    most = (half * np.log(mass / u0.sum()) / run["G"]).max()
    room = {"divergence": divergence / least[psi > 0].max(initial=1 / MOST), "half": 1 / most}
    return Finding.of_one([*(bound - psi / mass)[says], *chain], where, shown, **room)


@margin_lower_bound.printed("xi_t >= (1/n) ln |u(t)|_1")
def _() -> Finding:
    run = run_mirror_flow(lambda s: np.ones((1, 1)), np.ones(1), [1000.0], np.ones(1))
    xi, log_mass = run["xi"][0], math.log(run["u"][0, 0])
    shown = f"xi = {xi:.3f}, ln |u| = {log_mass:.3f}"
    return Finding.of(log_mass - xi, f"n = 1, one feature z = 1, u(0) = 1, t = 1000: {shown}")

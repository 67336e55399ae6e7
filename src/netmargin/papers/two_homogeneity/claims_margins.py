"""Claims of The Ubiquity of 2-Homogeneity (2024) on margins, subsampling and divergences."""

import math

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, xlogy

from ...core.logspace import neg_log_expm1_exp
from ...flow.gradient_flow import gradient_flow
from ...solvers import f1_max_margin
from ..ledger.claim import claim
from ..ledger.directions import matrix_game
from ..ledger.draws import draw_directions
from ..ledger.points import stacked_outputs
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial
from ._early_margin import early_margin
from ._instances import PAPER, draw_stacked_nets, kl_divergence, stacked_log_loss
from ._normalized_nets import NormalizedNet
from .claims_mirror import two_features


@claim(
    "two-homogeneity/partial-monotone",
    "psi(w) / |what|^L never falls along gradient flow on all parameters, and |what| grows, for"
    " nets that are L-homogeneous in what alone",
    source=f"{PAPER}, Theorem 3.6",
    hypotheses=(
        "<a . b, F(x; V)>, what = (a, b), L = 2: normalized ReLU, LayerNorm, RMSNorm, a tiny"
        " transformer; mean loss below log(2) / n; pointwise, at any (a, b, V), in units of the"
        " loss"
    ),
    tolerance=1e-9,
    because="rounding, relative to the products of gradient norms",
    trials=(10, 320),
    sharpen={"order": 1},
)
def partial_monotone(trial: Trial, *, order: float = 2.0, sign: float = 1.0) -> Finding:
    kind, net, theta, x, _ = draw_stacked_nets(trial)
    # Any (a, b); the first eight stay balanced, where one feature attains equality.
    with torch.no_grad():
        shape, random = theta["b"].shape, trial.torch_random
        noise = 0.5 * torch.randn(shape, generator=random, dtype=torch.float64)
        theta["b"][8:] *= torch.exp(noise[8:])
        y = torch.sign(stacked_outputs(net, theta, x)[..., 0])
    total = stacked_log_loss(net, theta, x, y)
    psi = neg_log_expm1_exp(total)
    size2 = theta["a"].square().sum(1) + theta["b"].square().sum(1)
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
    rate = risen / psi - order / 2 * growth / size2
    size = risen / psi + growth.abs() / size2
    # Rounding must not decide whether the hypothesis holds.
    keep = total < math.log(math.log(2)) - 1e-6
    worst = torch.maximum(-sign * rate / size, -growth)
    return Finding.of(worst[keep], f"{kind}, {len(x)} samples, {int(keep.sum())} random parameters")


@claim(
    "two-homogeneity/early-margin",
    "y h / (|a|^2 + |b|^2) at time t is at least what each step of the proof gives: l^-1((n R"
    " |ubar| / 2 + 1) / t) / (2 ((8 R + 2) |ubar| + 16 / n)); from t >= e + exp(exp(4 n R / gamma))"
    " on at least gamma / 64",
    source=(
        f"{PAPER}, Theorem 3.1, with n in its time and the constants of its proof (docs/errata.md)"
    ),
    hypotheses=(
        "features that keep half of their margin (no parameters in F), |a_j| = |b_j|, mean logistic"
        " loss; the second where 4 n R / gamma <= 2.5"
    ),
    tolerance=1e-7,
    because="error of the integrator",
    trials=(5, 40),
    ascent=10,
)
def early(trial: Trial, *, guarantee: float = 1.0) -> Finding:
    random, n, m = trial.random, 1 + trial.number % 3, (2, 3, 8)[trial.number // 3 % 3]
    Z = random.uniform(1, 3, (n, m)) if n == 1 else random.normal(size=(n, m)) + 1.0
    p, gamma, _ = matrix_game(Z)
    if gamma <= 0.05:
        return Finding.of([], "features that do not separate the samples")
    x, y = torch.tensor(Z * np.array([1, -1, 1])[:n, None]), torch.tensor([1, -1, 1])[:n]
    net = NormalizedNet(torch.nn.Identity(), m, seed=trial.number)
    # The signs of a b are fixed by the flow: turned into those of the features, all of them help.
    x = x * torch.sign(net.a * net.b).detach()
    violations, shown, room = [], [], MOST
    doubly = 4 * n * kl_divergence(p, np.full(m, 1 / m)) / gamma
    # The second bound begins at a doubly exponential time, which is 2e5 where the exponent is 2.5.
    times = [10.0, 1e3, 1e5] + ([math.e + math.exp(math.exp(doubly))] if doubly <= 2.5 else [])
    for t in times:
        flow = gradient_flow(net, (x, y), time=t / n, progress=False)
        found = flow.rows[-1]["partial_normalized_margin"]
        promised = early_margin(net, (x, y), time=t).guarantee
        if promised is not None:
            violations.append(guarantee * promised - found)
            room = min(room, found / promised)
            shown.append(f"{found:.3f} >= {promised:.3f} at t = {t:.2g}")
    if doubly <= 2.5:
        violations.append(guarantee * gamma / 64 - found)
        room = min(room, 64 * found / gamma)
    where = f"{n} samples, {m} fixed features, gamma {gamma:.3f}"
    return Finding.of_one(violations, where, "; ".join(shown), guarantee=room)


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
    "two-homogeneity/subsampling",
    "m >= max(8 ln(k / delta) / tau, 4 / tau^2) random neurons, tau = (1/4)(gamma / 8)^{d - 1},"
    " carry a probability u with margins >= gamma / 4, KL(u, uniform) <= ln(2 / tau), |u|_inf <= 1"
    " / sqrt m",
    source=f"{PAPER}, Lemma B.1 with Chernoff's bound, all samples shared by all k atoms",
    hypotheses=(
        "2 to 5 points of the unit circle, gamma certified, u the proof's: the weight of each"
        " optimal neuron spread over the drawn ones within gamma / 4 of it"
    ),
    tolerance=0.0,
    because="delta = 1e-3 per trial",
    trials=(3, 20),
    sharpen={"tau_factor": 1, "quarter": 1},
)
def subsampling(trial: Trial, *, tau_factor: float = 1.0, quarter: float = 1 / 4) -> Finding:
    random, n = trial.random, 2 + trial.number % 4
    X, y = draw_directions(random, n, 2), np.where(np.arange(n) % 2, 1, -1)
    best = f1_max_margin(X, y, bias=False)
    gamma = 2 * best.margin  # the paper's neurons have unit directions, ours balanced halves
    if gamma < 0.1:
        return Finding.of([], "points with a margin below 0.1")
    tau, k = gamma / 32, len(best.weights)
    m = math.ceil(max(8 * math.log(k / 1e-3) / tau, 4 / tau**2))
    angle, beta = random.uniform(0, 2 * np.pi, m), random.choice([-1.0, 1.0], m)
    v = np.column_stack([np.cos(angle), np.sin(angle)])
    u, Z = np.zeros(m), y[:, None] * beta * np.maximum(X @ v.T, 0)
    for atom, weight in zip(best.atoms, best.weights, strict=True):
        near = np.linalg.norm(v - atom[:2] * math.sqrt(2), axis=1) <= gamma / 4
        near &= beta == np.sign(atom[2])
        u[near] += weight / max(near.sum(), 1)
    margin, kl = (Z @ u).min(), xlogy(u, u * m).sum()
    # The proof's u need not be the best: the least divergence must obey the bound as well.
    smallest, bound = _minimize_divergence(Z, gamma / 4), math.log(2 / (tau_factor * tau))
    violations = [
        abs(u.sum() - 1) - 1e-9,
        quarter * gamma - margin,
        max(kl, smallest) - bound,
        u.max() - 1 / math.sqrt(m),
    ]
    found = f"margin {margin:.3f}, KL {kl:.2f} (least {smallest:.2f}) <= {bound:.2f}"
    return Finding.of_one(violations, f"{n} points, m = {m}", f"gamma {gamma:.3f}: {found}")


def _minimize_divergence(Z: np.ndarray, margin: float) -> float:
    """Minimize KL(u, uniform) over probabilities u with Z u >= margin, by the dual problem."""

    def dual(lam: np.ndarray) -> tuple[float, np.ndarray]:
        """Evaluate the negative dual and its gradient at multipliers of the margins."""
        w = lam @ Z
        log_mean = logsumexp(w) - math.log(len(w))
        return log_mean - margin * lam.sum(), Z @ np.exp(w - logsumexp(w)) - margin

    n = len(Z)
    found = minimize(dual, np.zeros(n), jac=True, bounds=[(0, None)] * n, method="L-BFGS-B")
    return -float(found.fun)


@claim(
    "two-homogeneity/kl-facts",
    "min q >= psi(q), min q <= psi(q) + c_1 ln n + c_2 (where psi >= 0 for the logistic loss), mean"
    " loss <= exp(-min q), mean |l'| <= -l'(psi) <= min(1, e n^2 mean |l'|) (the 1 where psi >= 0"
    " for the exponential loss); min over the simplex of D(p, v) = ln 1/|v| + |v| - 1; D(r, q) >="
    " (|r|/2) KL + [|q| >= 2 |r|] |q| / 8, KL >= |r~ - q~|^2 / 2",
    source=f"{PAPER}, Lemmas A.1 (1, 2, 3, 5) and A.2, A.1 (2) and A.2 (1) corrected",
    hypotheses="exponential and logistic loss; random margins and measures",
    tolerance=1e-11,
    because="rounding, relative",
    trials=(4, 45),
    sharpen={"samples": -1, "eighth": 1},
)
def kl_facts(
    trial: Trial, *, samples: float = 1.0, attained: float = 0.0, eighth: float = 1 / 8
) -> Finding:
    random, n, B = trial.random, 1 + trial.number % 9, 256
    q = random.normal(size=(B, n)) * 10 ** random.uniform(-1, 1.5, (B, 1))
    q += random.uniform(0, 5, (B, 1))
    q[: B // 8] = q[: B // 8, :1]  # all equal: some are attained
    low, violations = q.min(1), []
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

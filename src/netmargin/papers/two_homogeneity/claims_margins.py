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
from ..ledger.trial import Finding, Trial, excess
from ._instances import (
    PAPER,
    draw_moving_features,
    draw_stacked_nets,
    kl_divergence,
    stacked_log_loss,
)
from ._measures import hit_probability, spread_atoms, subsampling_widths
from ._normalized_nets import NormalizedNet, require_bounded_features


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
    # Shifted every 20 trials, so that one feature of one sample meets every order.
    random, L = trial.random, (2, 1, 2, 3)[(trial.number + trial.number // 20) % 4]
    noise = random.normal(size=(BATCH, 8))
    net = normalized if L == 2 else _give_head(random, normalized, theta, x, L)
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
    random: np.random.Generator,
    net: NormalizedNet,
    theta: dict[str, Any],
    x: torch.Tensor,
    layers: int,
) -> torch.nn.Module:
    """Put layers without biases on the features, in place of a and b, at stacked parameters."""
    sizes = [theta.pop("a").shape[1], *[3] * (layers - 1), 1]
    theta.pop("b")
    head = mlp(sizes, bias="none").double()
    size, into = random.uniform(0.5, 1.5, (8, 1, 1)), np.sign(x[:1].numpy())
    for name, v in head.named_parameters():
        drawn = 2 * random.normal(size=(BATCH, *v.shape))
        if sizes[0] == 1:  # eight that are balanced and of rank one attain equality
            out = np.abs(random.normal(size=(8, len(v))))
            out /= np.linalg.norm(out, axis=1, keepdims=True)
            drawn[:8], into = size * out[:, :, None] * into[:, None], out
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

    def __init__(self, c: float, v: float) -> None:
        super().__init__()
        self.c, self.v = map(torch.nn.Parameter, torch.tensor([[c], [v]], dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs for inputs (N, 1), shape (N, 1)."""
        return self.c * torch.exp(torch.exp(self.v)) * x


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
    trials=(9, 30),
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
    m, centers, signs = math.ceil(ours), best.atoms[:, :-1] * 2**0.5, np.sign(best.atoms[:, -1])
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
    " (|r|/2) KL + [|q| >= |r|] (|r|/2) (sqrt(|r|/|q|) - sqrt(|q|/|r|))^2 >= (|r|/2) KL + [|q| >= 2"
    " |r|] |q| / 8, KL >= |r~ - q~|^2 / 2",
    source=f"{PAPER}, Lemmas A.1 (1 to 5) and A.2, A.1 (2) and A.2 (1) corrected",
    hypotheses="exponential and logistic loss; random margins and measures",
    tolerance=1e-11,
    because="rounding, relative",
    trials=(4, 45),
    sharpen={"samples": -1, "eighth": 1, "twice": -1, "half": 1},
)
def kl_facts(
    trial: Trial,
    *,
    samples: float = 1.0,
    attained: float = 0.0,
    eighth: float = 1 / 8,
    twice: float = 2.0,
    half: float = 1 / 2,
) -> Finding:
    random, n, B = trial.random, 1 + trial.number % 9, 256
    q = random.normal(size=(B, n)) * 10 ** random.uniform(-1, 1.5, (B, 1))
    q += random.uniform(0, 5, (B, 1))
    q[: B // 8] = q[: B // 8, :1]  # all equal: some are attained
    low = q.min(1)
    # With C_5 = mean e^{2 k - q}, the largest k of A.1 (4), 0 where there is none.
    most = -np.log(twice * np.exp(-q).sum(1))
    violations = [np.where(most <= 0, -1, most - low) / (1 + np.abs(low))]
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
            excess(losses.mean(1), np.exp(-low)),
            excess(G, far),
            excess(far, np.where((psi >= 0) | logistic, np.minimum(1, largest), largest)),
        ]
    r, s = (
        random.exponential(size=(B, n)) * 10 ** random.uniform(-1, 1, (B, 1)) + 1e-9
        for _ in range(2)
    )
    s[: B // 8] = r[: B // 8] * random.uniform(2, 5, (B // 8, 1))
    # Nearly the same mass, where both sides of the first inequality of A.2 (2) bend alike.
    s[B // 8 : B // 4] = r[B // 8 : B // 4] * (1 + 10 ** random.uniform(-3, 0, (B // 8, 1)))
    p = random.dirichlet(np.ones(n), B)
    least = -np.log(s.sum(1)) + s.sum(1) - 1 + attained
    a, b = r.sum(1), s.sum(1)
    kl = (xlogy(r, r / s).sum(1) - a * np.log(a / b)) / a
    roots = (b >= a) * half * a * (np.sqrt(a / b) - np.sqrt(b / a)) ** 2
    violations += [
        np.abs(kl_divergence(s / b[:, None], s) - least) / (1 + b),
        (least - kl_divergence(p, s)) / (1 + b),
        (a / 2 * kl + roots - kl_divergence(r, s)) / (a + b),
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

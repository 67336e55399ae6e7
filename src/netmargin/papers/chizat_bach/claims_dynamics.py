"""Claims of Chizat and Bach 2020 on the dynamics: rates, projected flow, balance, growth."""

import math
from functools import partial
from typing import Any

import numpy as np
import torch

from ...core.logspace import softplus
from ...losses import Exponential, Logistic
from ...twolayer import train_both_layers
from ..ledger.claim import claim
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial
from ._fixed_features import FixedFeatureRun, train_magnitudes, train_output_layer
from ._instances import PAPER


def _draw_features(trial: Trial) -> tuple[np.ndarray, np.ndarray]:
    """Draw up to 40 fixed neurons on up to 11 samples; one of each in every fourth trial."""
    random, n, m = trial.random, 1, 1
    # One neuron and one sample leave nothing to average: there the bounds on a step are attained.
    if trial.number % 4 != 3:
        n, m = int(random.integers(2, 12)), int(random.integers(2, 40))
    features = random.normal(size=(n, m))
    y = np.where(random.random(n) < 0.5, -1, 1)
    return np.abs(features) + 0.1 if n == 1 else features, y


def _draw_few_features(trial: Trial) -> tuple[np.ndarray, np.ndarray]:
    """Draw 2 to 4 neurons on 1 to 3 samples of large margin: soon the propositions promise some."""
    random, n, m = trial.random, 1 + trial.number % 3, 2 + trial.number % 3
    y = np.where(random.random(n) < 0.5, -1, 1)
    z = random.uniform(-1, 1, (n, m))
    # One neuron that is right on every sample makes the margin large.
    z[:, 0] = random.uniform(0.5, 1, n)
    return y[:, None] * z, y


@claim(
    "chizat-bach/mirror-rate",
    "training magnitudes alone, max over s < t of the margin >= gamma_1^(m) - (|z|_inf / sqrt t) (8"
    " log m + log t + 1) - (4 log n / sqrt t) sum 1 / (beta(s) sqrt(s + 1)), at every t",
    source=f"{PAPER}, Proposition 6 before its simplification, (15)",
    hypotheses=(
        "fixed directions, steps 1 / (16 |z|_inf sqrt(t + 1)), uniform start; 2 to 4 random"
        " features on 1 to 3 samples, 20,000 steps; at those t where a positive margin is promised"
    ),
    tolerance=1e-9,
    because="rounding; gamma by a linear program, to its proved bound",
    trials=(8, 60),
)
def mirror_rate(trial: Trial, *, share: float = 1.0) -> Finding:
    run = train_magnitudes(*_draw_few_features(trial), steps=20_000)
    return _compare_with_rate(trial, run, share)


@claim(
    "chizat-bach/output-rate",
    "training the output layer alone, max over s < t of the margin >= gamma_2^(m) - (|z|_inf / sqrt"
    " t) (2 sqrt 2 + sqrt 3 log n / gamma_2^(m)), at every t",
    source=f"{PAPER}, Proposition 7",
    hypotheses=(
        "gamma_2^(m) > 0, steps sqrt 2 beta(t) / (|z|_inf sqrt(t + 1)), start at 0; 2 to 4 random"
        " features on 1 to 3 samples, 20,000 steps; at those t where a positive margin is promised"
    ),
    tolerance=1e-9,
    because="rounding; gamma_2 recomputed in float64",
    trials=(8, 60),
)
def output_rate(trial: Trial, *, share: float = 1.0) -> Finding:
    run = train_output_layer(*_draw_few_features(trial), steps=20_000)
    return _compare_with_rate(trial, run, share)


@output_rate.printed("beta(t) >= m gamma_2^(m) sum_{s < t} eta(s) (proof in Appendix F)")
def _() -> Finding:
    run = train_output_layer(np.ones((1, 10)), [1], steps=100)
    sizes = np.exp(run.log_sizes)
    total = (math.sqrt(2) * sizes[:-1] / np.sqrt(np.arange(1, 101))).sum()
    found = f"beta is {sizes[-1] / total:.3f} gamma_2 sum eta, not 10 times that"
    where = f"n = 1, ten equal features, t = 100: {found}"
    return Finding.of(10 * run.optimum * total / sizes[-1] - 1, where)


def _compare_with_rate(trial: Trial, run: FixedFeatureRun, share: float) -> Finding:
    """Compare the best margin so far with every positive one that is promised."""
    lacking = run.optimum - run.guarantee
    promised = run.proved - share * lacking
    # A promise of less than 0 holds of itself, and would count as an instance.
    says = promised > 0
    setting = "nothing is promised within 20,000 steps"
    if says.any():
        setting = f"promises from step {np.argmax(says) + 1:,} of 20,000 on"
    measured = f"best {run.best[-1]:.4f}, promised {promised[-1]:.4f}, gamma {run.proved:.4f}"
    # A stronger promise counts where it is positive, thus where it is met by a positive margin.
    met = (run.best > 0) & (run.best < run.proved)
    room = (lacking[met] / (run.proved - run.best[met])).min(initial=MOST)
    violations = ((promised - run.best) / run.proved)[says]
    return Finding.of_one(violations, setting, measured, share=float(room))


@claim(
    "chizat-bach/projected-flow",
    "nu_t = Pi_2(mu_t) solves (11): d/dt int psi d nu = int <grad J', grad psi> + 4 J' psi d nu;"
    " the normalized nu_bar_t solves it with J' - int J' d nu_bar in the reaction term, J' that of"
    " nu_t",
    source=f"{PAPER}, (11) and (12), with J'_{{nu_t}} in (12)",
    hypotheses=(
        "ascent of the smooth margin of a two-layer ReLU net, exponential or logistic loss;"
        " pointwise, d psi / dt by autograd, psi quadratic"
    ),
    tolerance=1e-9,
    because="rounding, relative to the size of the terms",
    trials=(8, 520),
    sharpen="identity",
)
def projected(trial: Trial, *, reaction: float = 4.0) -> Finding:
    worst = _measure_projected_errors(trial, reaction, whole=True).reshape(20, 2).max(1)
    return Finding.of(worst, "12 neurons, 6 points in the plane, 20 functions psi")


def _smooth_margin(q: torch.Tensor, exponential: bool) -> torch.Tensor:
    """The smooth margin, minus the log of the summed loss over the last axis."""
    return -torch.logsumexp(-q, -1) if exponential else -torch.log(softplus(-q).sum(-1))


def _measure_projected_errors(trial: Trial, reaction: float, *, whole: bool) -> np.ndarray:
    """Relative errors of (11) and (12), with J' of nu_t where `whole`, else as printed."""
    random, m = trial.random, 12
    # Neurons of size 4 give the measure a mass far from 1, so that J' of nu and of nu_bar differ.
    X = torch.tensor(np.hstack([random.normal(size=(6, 2)), np.ones((6, 1))]))
    y = torch.tensor(random.choice([-1.0, 1.0], 6))
    w = torch.tensor(2 * random.normal(size=(m, 4))).requires_grad_(True)

    def margins(at: torch.Tensor) -> torch.Tensor:
        """Margins of all samples, for neurons at the given positions."""
        return y * ((X @ at[:, :3].T).relu() @ at[:, 3]) / m

    smooth = partial(_smooth_margin, exponential=trial.number % 2 == 0)
    (velocity,) = torch.autograd.grad(smooth(margins(w)), w)
    velocity = m * velocity  # in the time of the measure each neuron has weight 1 / m
    square = w.square().sum(1)
    theta = (w / square.sqrt()[:, None]).detach().requires_grad_(True)
    q = margins(w).detach() / (1.0 if whole else square.mean().item())
    q.requires_grad_(True)
    (p,) = torch.autograd.grad(smooth(q), q)
    J = (p * y) @ ((X @ theta[:, :3].T).relu() * theta[:, 3])
    (full,) = torch.autograd.grad(J.sum(), theta)
    J, full = J.detach(), full.detach()
    nu, at = (square / m).detach(), theta.detach()
    bar = nu / nu.sum()
    errors = []
    # Both sides are linear in psi: random quadratic functions test all directions and reactions.
    for _ in range(20):
        A, c = torch.tensor(random.normal(size=(4, 4))), torch.tensor(random.normal(size=4))
        psi = lambda t, A=A, c=c: ((t @ A) * t).sum(1) + t @ c  # noqa: E731
        units = w / square.sqrt()[:, None]
        moved = []
        for total in ((square / m * psi(units)).sum(), (square * psi(units)).sum() / square.sum()):
            (g,) = torch.autograd.grad(total, w, retain_graph=True)
            moved.append((g * velocity).sum().item())
        value, slope_ = psi(at), at @ (A + A.T) + c
        along = (full * slope_).sum(1) - (full * at).sum(1) * (slope_ * at).sum(1)
        terms = [along + reaction * J * value, along + reaction * (J - bar @ J) * value]
        for found, term, mass in zip(moved, terms, (nu, bar), strict=True):
            size = (mass @ (along.abs() + 4 * J.abs() * value.abs())).item()
            errors.append(abs(found - (mass @ term).item()) / size)
    return np.array(errors if whole else errors[1::2])


@projected.printed("(12) with J' of nu_bar_t")
def _() -> Finding:
    worst = _measure_projected_errors(Trial(0), 4.0, whole=False).max()
    return Finding.of(worst, "12 random neurons of size 4, mass 16")


@claim(
    "chizat-bach/normalized-soft-min",
    "S_beta of nu_bar rises at the rate int |grad J'|^2 + 4 (J' - int J' d nu_bar)^2 d nu_bar, beta"
    " fixed; with beta = |nu| at least at log(n) d/dt (1 / |nu|) where the mass grows",
    source=f"{PAPER}, D.2, with its sign corrected and log n for n",
    hypotheses="two-layer ReLU nets, exponential loss; pointwise by autograd",
    tolerance=1e-10,
    because="rounding, relative to the size of the terms",
    trials=(8, 160),
    sharpen={"log_n": -1},
)
def normalized_soft_min(
    trial: Trial, *, log_n: float = 1.0, spread: float = 4.0, sign: float = 1.0
) -> Finding:
    random, n, m = trial.random, 2 + trial.number % 4, 1 + trial.number % 7
    inputs, w = random.normal(size=(64, n, 3)), random.normal(size=(64, m, 4))
    w *= 10 ** random.uniform(-1, 1, (64, 1, 1))
    y = torch.tensor(random.choice([-1.0, 1.0], (64, n)))
    if trial.number % 4 == 3:
        # One neuron where J' is largest and one sample that is least: the bound is attained.
        inputs, w, y = np.zeros((64, n, 3)), np.zeros((64, 1, 4)), torch.ones(64, n)
        inputs[..., 0] = np.append(1, np.full(n - 1, 1e3))
        w[..., [0, 3]] = np.linspace(1, 2, 64)[:, None, None]
    at = torch.tensor(w).requires_grad_(True)
    hidden = (torch.tensor(inputs) @ at[..., :3].mT).relu()
    q = y * (hidden @ at[..., 3:])[..., 0] / at.shape[1]
    S, sizes = _smooth_margin(q, exponential=True) + math.log(n), at.square().sum(2)
    mass = sizes.mean(1)

    def differentiate(values: torch.Tensor) -> torch.Tensor:
        """The gradient of values (64,), where each is of one net."""
        return torch.autograd.grad(values.sum(), at, retain_graph=True)[0]

    velocity = at.shape[1] * differentiate(S)
    rises, grows = ((differentiate(v) * velocity).sum((1, 2)) for v in (S / mass, mass))
    with torch.no_grad():
        nu = sizes / sizes.sum(1, keepdim=True)
        J = (velocity * at).sum(2) / (2 * sizes)
        slopes = velocity.square().sum(2) / sizes - 4 * J**2
        fixed = (nu * (slopes + spread * (J - (nu * J).sum(1, keepdim=True)) ** 2)).sum(1)
        p = torch.softmax(-q, 1)
        entropy = torch.special.xlogy(p, n * p).sum(1)
        # Dead nets stand still.
        size = (fixed + math.log(n) * grows.abs() / mass**2).clamp(min=1e-300)
        off = (rises - fixed + entropy * grows / mass**2).abs() / size
        below = (-sign * log_n * math.log(n) * grows / mass**2 - rises) / size
    return Finding.of(torch.maximum(off, below.where(grows > 0, off)), f"64 nets, {n} samples")


@normalized_soft_min.printed("D.2: d/dt S >= -n d/dt (1 / |nu|)")
def _() -> Finding:
    found = normalized_soft_min.check(Trial(3), sign=-1.0)
    return Finding.of(found.violations.max(), "one neuron, whose mass grows: S falls all the same")


@claim(
    "chizat-bach/balance",
    "gradient ascent keeps |a_j|^2 - b_j^2: a . a' = b b', so that steps drift from |a_j| = |b_j|"
    " at first order only",
    source=f"{PAPER}, Lemma 26",
    hypotheses=(
        "two-layer ReLU nets, exponential or logistic loss; pointwise by autograd; drift over a"
        " fixed time with steps 0.02 and 0.01 in the first trial"
    ),
    tolerance=1e-10,
    because="rounding; a ratio of drifts between 1.5 and 2.5 counts as first order",
    trials=(8, 160),
    sharpen="identity",
)
def balance(trial: Trial, *, factor: float = 1.0) -> Finding:
    random = trial.random
    if trial.number == 0:
        # Half the step over the same time: drift of first order halves, of second order quarters.
        X, y, drifts = random.normal(size=(10, 2)), np.tile([1, -1], 5), []
        options: dict[str, Any] = {"width": 20, "dtype": torch.float64, "progress": False}
        for rate in (0.02 * factor, 0.01):
            steps, constant = round(2 / rate), lambda t, r=rate: np.full(len(t), r)
            runs = train_both_layers(X, y, steps=steps, rate=constant, **options)
            atoms = runs.measures[0].atoms
            drifts.append(np.abs((atoms[:, :-1] ** 2).sum(1) - atoms[:, -1] ** 2).max())
        ratio = drifts[0] / drifts[1]
        shown = f"drifts {drifts[0]:.2g}, {drifts[1]:.2g}: ratio {ratio:.2f}"
        return Finding.of(abs(ratio - 2) - 0.5, "20 neurons, 10 points", shown)
    inputs = torch.tensor(random.normal(size=(64, 5, 3)))
    labels = torch.tensor(random.choice([-1.0, 1.0], (64, 5)))
    a = torch.tensor(random.normal(size=(64, 7, 3))).requires_grad_(True)
    b = torch.tensor(random.normal(size=(64, 7))).requires_grad_(True)
    q = labels * torch.einsum("bnj,bj->bn", torch.einsum("bnd,bjd->bnj", inputs, a).relu(), b)
    S = _smooth_margin(q, exponential=trial.number % 2 == 1)
    da, db = torch.autograd.grad(S.sum(), [a, b])
    left, right = (a * da).sum(2), factor * b * db
    off = (left - right).abs() / (a.norm(dim=2) * da.norm(dim=2) + (b * db).abs() + 1e-12)
    return Finding.of(off.amax(1), "64 nets of 7 neurons, 5 samples")


@claim(
    "chizat-bach/soft-min",
    "min u <= S_beta(u) <= min u + log(n) / beta for the exponential loss, + log(n / log 2) / beta"
    " for the logistic loss and u >= 0; so S_beta tends to min u, and its gradient to weights of"
    " the least ones, grad_i <= e^{-beta (u_i - min u)}, over log 2 for the logistic loss; but not"
    " to 0: sum_i grad_i >= (1 - e^-L) / L, with L the summed logistic loss",
    source=f"{PAPER}, (14), Lemmas 13, 14 and 15, made explicit for the logistic loss",
    hypotheses="S_beta(u) = -log(mean_n l(beta u_n)) / beta, random u, beta from 1e-2 to 1e6",
    tolerance=1e-11,
    because="logarithms of sums, relative to the size of u or log(n) / beta",
    trials=(6, 60),
    sharpen={"log_n": -1, "rate": 1, "total": 1},
)
def soft_min(
    trial: Trial, *, log_n: float = 1.0, sign: float = 1.0, rate: float = 1.0, total: float = 1.0
) -> Finding:
    random, n = trial.random, 1 + trial.number % 12
    u = random.normal(size=(256, n)) * 10 ** random.uniform(-2, 2, (256, 1))
    u[:64, 1:] += 1e6  # all but one far away: the upper bounds are attained
    beta = 10 ** random.uniform(-2, 6, (256, 1))
    violations = []
    for loss, v, most in ((Exponential(), u, 1.0), (Logistic(), np.abs(u), 1 / math.log(2))):
        q, low = torch.tensor(beta * v), v.min(1, keepdims=True)
        logs = torch.logsumexp(-loss.f(q), 1, keepdim=True)
        soft = (math.log(n) - logs.numpy()) / beta
        worst = np.maximum(sign * (low - soft), soft - low - log_n * math.log(n * most) / beta)
        # Of the gradient by its logarithm, whose terms are as large as beta u.
        slopes = (loss.log_slope(q) - logs).numpy() / beta
        above = slopes + rate * (v - low) - math.log(most) / beta
        size = (math.log(n * most) + 1) / beta
        above /= np.abs(v).max(1, keepdims=True) + size
        violations.append(np.maximum(worst / (np.abs(low) + size), above).max(1))
    # The sum of the gradient, where losses are neither 0 nor infinite.
    q = torch.tensor(np.clip(beta * u, -30, 30))
    summed = softplus(-q).sum(1)
    found = torch.sigmoid(-q).sum(1) / summed
    violations.append(total * -torch.expm1(-summed) / summed / found - 1)
    return Finding.of(np.stack(violations), f"{n} numbers, 256 times")


@soft_min.printed("Lemma 13 for losses with l(u) ~ exp(u) as u -> infinity")
def _() -> Finding:
    u, beta = np.array([1.0, 2.0]), 1e3
    soft = -math.log(np.mean(1 + np.exp(-beta * u))) / beta
    where = f"l(u) = 1 + e^u, u = (1, 2), beta = 1000: S_beta = {soft:.3g}, min u = 1"
    return Finding.of(u.min() - soft - 1e-2, f"{where}; what counts is u -> -infinity")


@claim(
    "chizat-bach/growth",
    "beta(t + 1) / beta(t) >= (1 + 2 eta(t) margin(t))^2; hence in the end log beta grows by 2"
    " gamma_1 sum eta at least, eta ~ 1 / sqrt t: like sqrt t; and sum eta / beta is bounded, from"
    " any t on by c / (2 g beta(t)) where margins stay above g > 0, with c = x / (1 - (1 + x)^-2)"
    " for x = 2 eta(t) g",
    source=f"{PAPER}, Lemma 18 (the exact step by Jensen's inequality); Lemma 17 as its sum",
    hypotheses=(
        "fixed directions, random features; the growth from step 2,000 to 20,000 in the first"
        " trial, where gamma_1 > 0: a trend, which tends to 4 gamma_1 sum eta"
    ),
    tolerance=1e-12,
    because="rounding",
    trials=(8, 60),
    sharpen={"factor": 1, "total": -1},
)
def growth(trial: Trial, *, factor: float = 2.0, share: float = 2.0, total: float = 1.0) -> Finding:
    features, y = _draw_features(trial)
    largest = np.abs(features).max()
    if trial.number == 0:
        features = features + 0.3 * y[:, None]  # separable
        run = train_magnitudes(features, y, steps=20_000)
        rates = 1 / (16 * np.abs(features).max() * np.sqrt(np.arange(20_000) + 1))
        grown = run.log_sizes[20_000] - run.log_sizes[2000]
        found = grown / (run.optimum * rates[2000:].sum())
        where = f"{features.shape} features, gamma_1 {run.optimum:.3f}"
        criteria = [share - found, _exceed_sum(run, rates, total)]
        return Finding.of_one(criteria, where, f"log beta grew by {found:.3f} gamma_1 sum eta")
    # The bound on a single step asks nothing of the rate; with a large one it exceeds rounding.
    rates = np.full(400, 0.2 / largest)
    run = train_magnitudes(features, y, steps=400, rate=lambda t: rates)
    least = 2 * np.log1p(np.maximum(factor * rates * run.margins[:-1], -0.999))
    setting = f"{features.shape[1]} features, {features.shape[0]} samples, every step of 400"
    violations = np.append(least - np.diff(run.log_sizes), _exceed_sum(run, rates, total))
    return Finding.of_one(violations, setting)


def _exceed_sum(run: FixedFeatureRun, rates: np.ndarray, total: float) -> float:
    """By how much sum_s eta(s) / beta(s) from t on exceeds `total` times its bound, at any t."""
    least = np.minimum.accumulate(run.margins[-2::-1])[::-1]
    known = least > 0
    if not known.any():
        return -1.0
    # Relative to 1 / beta(t), which may leave the range of float64.
    terms = np.log(rates) - run.log_sizes[:-1]
    sums = np.logaddexp.accumulate(terms[::-1])[::-1] + run.log_sizes[:-1]
    x = 2 * rates * least
    most = rates[known] / -np.expm1(-2 * np.log1p(x[known]))
    return float((np.exp(sums[known]) / most).max()) - total


@growth.printed("beta(t + 1) / beta(t) = 1 + eta grad S . Z a_bar + O(eta^2)")
def _() -> Finding:
    eta = 1e-4
    run = train_magnitudes([[1.0]], [1], steps=1, rate=lambda t: np.full(len(t), eta))
    rest = (math.exp(run.log_sizes[1]) - 1 - eta) / eta
    left = f"what is left is {rest:.4f} eta, of first order (the factor is 4)"
    return Finding.of(rest, f"n = m = 1, z = 1, eta = 1e-4: {left}")

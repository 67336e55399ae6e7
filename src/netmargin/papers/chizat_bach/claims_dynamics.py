"""Claims of Chizat and Bach 2020 on the dynamics: rates, projected flow, balance, growth."""

import math
from typing import Any

import numpy as np
import torch

from ...core.logspace import softplus
from ...losses import Exponential, Logistic, Loss
from ...twolayer import train_both_layers
from ..ledger.claim import claim
from ..ledger.points import log_loss
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial, excess
from ._fixed_features import FixedFeatureRun, train_magnitudes, train_output_layer
from ._instances import PAPER

_LOSSES = (Exponential(), Logistic())


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
    return _compare_with_rate(train_magnitudes(*_draw_few_features(trial), steps=20_000), share)


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
    return _compare_with_rate(train_output_layer(*_draw_few_features(trial), steps=20_000), share)


@output_rate.printed("beta(t) >= m gamma_2^(m) sum_{s < t} eta(s) (proof in Appendix F)")
def _() -> Finding:
    run = train_output_layer(np.ones((1, 10)), [1], steps=100)
    sizes = np.exp(run.log_sizes)
    total = (math.sqrt(2) * sizes[:-1] / np.sqrt(np.arange(1, 101))).sum()
    found = f"beta is {sizes[-1] / total:.3f} gamma_2 sum eta, not 10 times that"
    where = f"n = 1, ten equal features, t = 100: {found}"
    return Finding.of(10 * run.optimum * total / sizes[-1] - 1, where)


def _compare_with_rate(run: FixedFeatureRun, share: float) -> Finding:
    """Compare the best margin so far with every positive one that is promised."""
    lacking = run.optimum - run.guarantee
    promised = run.proved - share * lacking
    # A promise of less than 0 holds of itself, and would count as an instance.
    says = promised > 0
    setting = "nothing is promised within 20,000 steps"
    if says.any():
        setting = f"promises from step {np.argmax(says) + 1:,} of 20,000 on"
    measured = f"best {run.best[-1]:.4f}, promised {promised[-1]:.4f}, gamma {run.proved:.4f}"
    # A stronger promise fails where it is positive and above the best margin.
    least = np.minimum(run.proved - run.best, run.proved) / lacking
    room = 1 / max(least.max(), 1 / MOST)
    violations = ((promised - run.best) / run.proved)[says]
    return Finding.of_one(violations, setting, measured, share=float(room))


class _MovingNets:
    """Nets of neurons w (B, m, 3 + 1) of weight 1 / m on n samples; they ascend the margin."""

    def __init__(self, w: np.ndarray, inputs: np.ndarray, y: np.ndarray, loss: Loss) -> None:
        self.w, self._loss = torch.tensor(w).requires_grad_(True), loss
        self._signed = torch.tensor(y[..., None] * inputs), torch.tensor(y)
        self.q = self._respond(self.w).mean(1)
        self.S, self.sizes = -log_loss(loss, self.q), self.w.square().sum(2)
        self.mass = self.sizes.mean(1)
        self.nu = (self.sizes / self.mass[:, None] / w.shape[1]).detach()
        (velocity,) = torch.autograd.grad(self.S.sum(), self.w, retain_graph=True)
        self.velocity = w.shape[1] * velocity

    def _respond(self, w: torch.Tensor) -> torch.Tensor:
        """y_n phi(w_j, x_n), (B, m, n)."""
        return (w[..., :3] @ self._signed[0].mT * self._signed[1][:, None]).relu() * (
            self._signed[1][:, None] * w[..., 3:]
        )

    def derive(self, values: torch.Tensor) -> torch.Tensor:
        """d/dt of values (B,), one of each net."""
        (slopes,) = torch.autograd.grad(values.sum(), self.w, retain_graph=True)
        return torch.mul(slopes, self.velocity).sum((1, 2))

    def field(self, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Unit neurons, J' there and its gradient on the sphere, with the slopes of S at q."""
        q = q.detach().requires_grad_(True)
        (p,) = torch.autograd.grad(-log_loss(self._loss, q).sum(), q)
        theta = (self.w / self.sizes.sqrt()[..., None]).detach().requires_grad_(True)
        J = (self._respond(theta) * p[:, None]).sum(2)
        (slopes,) = torch.autograd.grad(J.sum(), theta)
        theta, J = theta.detach(), J.detach()
        return theta, J, slopes - 2 * J[..., None] * theta  # by Euler's theorem


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
    trials=(8, 160),
    sharpen="identity",
)
def projected(trial: Trial, *, reaction: float = 4.0) -> Finding:
    worst = np.maximum(*_measure_projected_errors(trial, reaction, whole=True))
    return Finding.of(worst, "64 nets of 12 neurons, 6 points in the plane, a function psi each")


def _measure_projected_errors(trial: Trial, reaction: float, *, whole: bool) -> np.ndarray:
    """Relative errors of (11) and (12), (2, 64), with J' of nu_t where `whole`, else of nu_bar."""
    random = trial.random
    # Neurons of size 4 give the measure a mass far from 1, so that J' of nu and of nu_bar differ.
    inputs = np.concatenate([random.normal(size=(64, 6, 2)), np.ones((64, 6, 1))], 2)
    y, w = random.choice([-1.0, 1.0], (64, 6)), 2 * random.normal(size=(64, 12, 4))
    nets = _MovingNets(w, inputs, y, _LOSSES[trial.number % 2])
    A, c = (torch.tensor(random.normal(size=(64, k, 4))) for k in (4, 1))
    theta, J, slopes = nets.field(nets.q if whole else nets.q / nets.mass[:, None])
    neurons = nets.w / nets.sizes.sqrt()[..., None]
    moving, value = (((t @ A + c) * t).sum(2) for t in (neurons, theta))  # psi
    along = (slopes * (theta @ (A + A.mT) + c)).sum(2)
    errors = []
    for nu, mean in ((nets.sizes / 12, 0.0), (nets.sizes / nets.sizes.sum(1, keepdim=True), 1.0)):
        found = nets.derive((nu * moving).sum(1))
        rest = J - mean * (nets.nu * J).sum(1, keepdim=True)
        term = (nu * (along + reaction * rest * value)).sum(1)
        size = (nu * (along.abs() + 4 * J.abs() * value.abs())).sum(1)
        errors.append(((found - term).abs() / size).detach().numpy())
    return np.array(errors)


@projected.printed("(12) with J' of nu_bar_t")
def _() -> Finding:
    worst = _measure_projected_errors(Trial(0), 4.0, whole=False)[1].max()
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
    y = random.choice([-1.0, 1.0], (64, n))
    if trial.number % 4 == 3:
        # One neuron where J' is largest and one sample that is least: the bound is attained.
        inputs, w, y = np.zeros((64, n, 3)), np.zeros((64, 1, 4)), np.ones((64, n))
        inputs[..., 0] = np.append(1, np.full(n - 1, 1e3))
        w[..., [0, 3]] = np.linspace(1, 2, 64)[:, None, None]
    nets = _MovingNets(w, inputs, y, Exponential())
    rises, grows = nets.derive((nets.S + math.log(n)) / nets.mass), nets.derive(nets.mass)
    _, J, slopes = nets.field(nets.q)
    rest = J - (nets.nu * J).sum(1, keepdim=True)
    fixed = (nets.nu * (slopes.square().sum(2) + spread * rest**2)).sum(1)
    p, grown = torch.softmax(-nets.q.detach(), 1), grows / nets.mass.detach() ** 2
    entropy = torch.special.xlogy(p, n * p).sum(1)
    # Dead nets stand still.
    size = (fixed + math.log(n) * grown.abs()).clamp(min=1e-300)
    off = (rises - fixed + entropy * grown).abs() / size
    below = (-sign * log_n * math.log(n) * grown - rises) / size
    return Finding.of(torch.maximum(off, below.where(grown > 0, off)), f"64 nets, {n} samples")


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
    y, inputs = random.choice([-1.0, 1.0], (64, 5)), random.normal(size=(64, 5, 3))
    nets = _MovingNets(random.normal(size=(64, 7, 4)), inputs, y, _LOSSES[trial.number % 2 - 1])
    moved = (nets.w * nets.velocity).detach()
    left, right = moved[..., :3].sum(2), factor * moved[..., 3]
    off = (left - right).abs() / (moved.abs().sum(2) + 1e-12)
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
    for loss, v, most in zip(_LOSSES, (u, np.abs(u)), (1.0, 1 / math.log(2)), strict=True):
        q, low = torch.tensor(beta * v), v.min(1, keepdims=True)
        logs = log_loss(loss, q)[:, None]
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
    # Relative to 1 / beta(t), which may leave the range of float64.
    terms = np.log(rates) - run.log_sizes[:-1]
    sums = np.logaddexp.accumulate(terms[::-1])[::-1] + run.log_sizes[:-1]
    bounds = -rates / np.expm1(-2 * np.log1p(2 * rates * np.maximum(least, 1e-300)))
    return float(excess(np.exp(sums), total * bounds)[least > 0].max(initial=-1.0))


@growth.printed("beta(t + 1) / beta(t) = 1 + eta grad S . Z a_bar + O(eta^2)")
def _() -> Finding:
    eta = 1e-4
    run = train_magnitudes([[1.0]], [1], steps=1, rate=lambda t: np.full(len(t), eta))
    rest = (math.exp(run.log_sizes[1]) - 1 - eta) / eta
    left = f"what is left is {rest:.4f} eta, of first order (the factor is 4)"
    return Finding.of(rest, f"n = m = 1, z = 1, eta = 1e-4: {left}")

"""Claims of Chizat and Bach 2020 on the limit: F_1 margin, slackness, norms, generalization."""

import math
from typing import Any

import numpy as np
from scipy.stats import binom

from ...solvers import ReLUMeasure, f1_max_margin, f2_max_margin
from ...twolayer import slackness, train_both_layers
from ..ledger.claim import claim
from ..ledger.directions import best_margins
from ..ledger.draws import draw_blobs, draw_points, draw_signed
from ..ledger.regression import slope
from ..ledger.trial import Finding, Trial
from ._instances import PAPER


@claim(
    "chizat-bach/f1-limit",
    "the normalized margin of a wide two-layer net tends to gamma_1, the largest of any measure on"
    " the sphere",
    source=f"{PAPER}, Theorem 3 and Corollary 4 (squared ReLU), Theorem 5 (ReLU)",
    hypotheses=(
        "exponential loss, balanced start that covers the sphere: 256 neurons; gamma_1 certified;"
        " 4,000 steps of 0.5 / sqrt(t + 1) (half for squared ReLU): a trend"
    ),
    tolerance=1e-6,
    because="within 5% of gamma_1 and never above it counts as holding; gamma_1 to 1e-6",
    trials=(2, 8),
    sharpen="trend",
)
def f1_limit(trial: Trial, *, width: int = 256, factor: float = 1.0) -> Finding:
    power = 2 - trial.number % 2
    X, y = draw_blobs(trial.random, 24)
    optimum = factor * f1_max_margin(X, y, power=power).upper_bound
    # The output of a neuron of squared ReLU grows with the cube of its size: smaller steps.
    rate = (lambda t: 0.25 / np.sqrt(t + 1)) if power == 2 else None
    options: dict[str, Any] = {"power": power, "rate": rate, "seeds": (trial.number,)}
    runs = train_both_layers(X, y, width=width, steps=4000, progress=False, **options)
    share = runs.margins[:, 0] / optimum
    name = "ReLU" if power == 1 else "squared ReLU"
    where, shown = f"{name}, 24 points in four blobs", f"{name}: margin {share[-1]:.4f} gamma_1"
    return Finding.of_one([share.max() - 1, 0.95 - share[-1]], where, f"{shown} at the end")


@claim(
    "chizat-bach/slackness",
    "nu is optimal for gamma_1 if and only if weights p exist with nu where J' is largest and p"
    " where q is least: max J' - min q >= gamma_1 - margin(nu) for all nu, p, with equality at"
    " optimal p; along training it tends to 0",
    source=f"{PAPER}, Proposition 12; Theorem 10 for the limit",
    hypotheses=(
        "gamma_1 > 0; random measures and weights in the plane with proved maxima; training in the"
        " first trial, a trend"
    ),
    tolerance=1e-5,
    because=(
        "gamma_1 to 1e-6, relative to the largest feature; a fall by 10 over 4,000 steps counts as"
        " tending to 0"
    ),
    trials=(6, 60),
    sharpen={"factor": -1},
)
def complementary_slackness(trial: Trial, *, factor: float = 1.0) -> Finding:
    if trial.number == 0:
        X, y = draw_blobs(trial.random, 24)
        runs = train_both_layers(X, y, width=256, steps=4000, snapshots=[0], progress=False)
        found = [slackness(s.measures[0], X, y, s.duals[0]) for s in runs.snapshots]
        first, last = (factor * f.residual for f in found)
        # A residual from local search is no proof: that counts as a violation.
        criteria = [10 * last / first - 1, float(not all(f.proved for f in found))]
        shown = f"residual {first:.3g} -> {last:.3g} in units of the margin"
        return Finding.of_one(criteria, "ReLU, 24 points, 256 neurons", shown)
    random, n = trial.random, 2 + trial.number % 6
    X, y = draw_points(random, n)
    best = f1_max_margin(X, y)
    size = np.sqrt((X**2).sum(1) + 1).max() / 2
    optimal = slackness(best, X, y, best.dual)
    violations = [optimal.residual / size]
    for k in range(5):
        atoms = random.normal(size=(5, 4))
        measure = ReLUMeasure.projected(atoms, random.random(5), bias=True)
        # At optimal weights the inequality is an equality, whatever the measure.
        dual = best.dual if k == 0 else random.dirichlet(np.ones(n))
        lacking = best.margin - measure.normalized_margin(X, y)
        residual = factor * slackness(measure, X, y, dual).residual
        violations.append((lacking - residual) / size if k else abs(lacking - residual) / size)
    return Finding.of(violations, f"{n} points in the plane")


@complementary_slackness.printed(
    "p_i(infinity) = 0 for all i in argmin q_i (proof of Theorem 10, step 2)"
)
def _() -> Finding:
    weight = f1_max_margin([[1.0, 0.0]], [1]).dual[0]
    return Finding.of(weight, "n = 1: the one sample attains the minimum, and its weight is 1")


@claim(
    "chizat-bach/norm-equivalence",
    "the norm over the sphere of (a, c) is twice that over unit-norm features, and only neurons"
    " with |a| = |c| carry it",
    source=f"{PAPER}, Proposition 9",
    hypotheses=(
        "24 random directions with both signs and three splits of the norm between the layers, 1 to"
        " 5 samples; best margins of both balls by linear programs"
    ),
    tolerance=1e-7,
    because="feasibility of the linear programs",
    trials=(5, 105),
    sharpen="identity",
)
def norm_equivalence(trial: Trial, *, factor: float = 2.0) -> Finding:
    signed = draw_signed(trial)
    both = np.concatenate([signed, -signed], 2)
    flat, _ = best_margins(both)
    # Balanced neurons, and two kinds that give one of the layers more: the latter get no weight.
    angle = np.pi / 4 + np.array([0.0, 0.3, -0.5])
    kinds = np.concatenate([math.cos(t) * math.sin(t) * both for t in angle], 2)
    sphere, weights = best_margins(kinds)
    unbalanced = weights[:, both.shape[2] :].sum(1)
    worst = np.maximum(np.abs(factor * sphere - flat) / flat, unbalanced)
    return Finding.of(worst, f"{both.shape[1]} samples, {both.shape[2]} signed directions")


@claim(
    "chizat-bach/interclass",
    "gamma_1 >= C (Delta_r / R)^{(r + 3) / (2 - epsilon)}, whatever the other dimensions, and so is"
    " gamma_2 for r = d",
    source=f"{PAPER}, Lemma 20 with epsilon = 1/7; C is not given, so exponents are fitted",
    hypotheses=(
        "alternating points at random distances on a line (r = 1), checkerboards of them (r = 2), R"
        " fixed; both margins by the solvers; noise coordinates added"
    ),
    tolerance=0.0,
    because=(
        "the fitted exponent with its 95% interval; the margin with noise coordinates, solved from"
        " scratch, at least that without, to 1e-5"
    ),
    trials=(1, 6),
    sharpen="trend",
)
def interclass(trial: Trial, *, shift: float = 0.0) -> Finding:
    random, r = trial.random, 1 + trial.number % 2
    counts = (12, 24, 32, 48, 64) if r == 1 else (3, 4, 5, 6, 7)
    deltas, margins, noisy = [], [], 0.0
    for k in counts:
        ticks = np.cumsum(random.uniform(1, 1.1, (r, k)), 1)
        ticks = 2 * (ticks - ticks[:, :1]) / np.ptp(ticks, 1, keepdims=True) - 1
        X = np.stack(np.meshgrid(*ticks, indexing="ij"), -1).reshape(-1, r)
        y = 1 - 2 * (np.indices((k,) * r).sum(0).ravel() % 2)
        deltas.append(np.diff(ticks).min())
        margins.append([f1_max_margin(X, y).margin, f2_max_margin(X, y).margin])
        # Once, where the problem is small: coordinates that may be ignored cannot lower the margin.
        if k == counts[0]:
            wide = np.hstack([X, 0.5 * random.uniform(-1, 1, (len(X), 2))])
            noisy = 1 - f1_max_margin(wide, y, time_limit=20).margin / margins[0][0] - 1e-5
    claimed = (r + 3) / (2 - 1 / 7) + shift
    fits = [slope(np.log(deltas), np.log(found)) for found in np.transpose(margins)]
    shown = ", ".join(
        f"gamma_{index} ~ Delta^({fit.value:.2f} +- {fit.error:.2f})"
        for index, fit in enumerate(fits, 1)
    )
    criteria = [fit.value + fit.error - claimed for fit in fits]
    where = f"r = {r}"
    return Finding.of_one([*criteria, noisy], where, f"{where}: {shown}, claim at most {claimed:g}")


@interclass.printed(
    "the unit ball of F_1 has Rademacher complexity at most 1 / sqrt n on |x| <= R (proof of"
    " Theorem 8)"
)
def _() -> Finding:
    n, R = 100, 3.0
    # All x_i equal: sup over the ball of f(x) is |x~| / 2, so it is |x~| / 2 E |sum of n signs| /
    # n.
    signs = np.arange(-n, n + 1, 2)
    mean = np.sum(np.abs(signs) * binom.pmf(np.arange(n + 1), n, 0.5))
    found, bound = math.sqrt(R**2 + 1) / 2 * mean / n, 1 / math.sqrt(n)
    return Finding.of(found - bound, f"n = 100, all x_i = 3: {found:.4f} against {bound:.4f}")

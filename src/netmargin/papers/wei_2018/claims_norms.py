"""Claims of Wei et al. 2018 and 2019 on norms and margins: two-layer nets, l1, kernels."""

import math
from typing import Any

import numpy as np
from scipy.special import roots_jacobi
from scipy.stats import norm

from ...kernels import arc_cosine
from ...solvers import ReLUMeasure, f1_max_margin, f2_max_margin, min_norm_interpolation
from ..ledger.claim import claim
from ..ledger.directions import best_margins, dual_norms, least_norms
from ..ledger.draws import draw_directions, draw_points, draw_signed
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial, excess
from ._instances import W18, W19
from ._separation import draw_cut_off


@claim(
    "wei/l1-equivalence",
    "gamma*,m = gamma_l1 / 2 for m >= n, and an optimal alpha has at most n neurons",
    source=f"{W18}, Theorem 3.3 and Lemma B.1; {W19}, Proposition B.11",
    hypotheses=(
        "2 to 7 points in the plane; gamma_l1 by a linear program over 3,600 directions with those"
        " of the nets, gamma*,m by our solver, and recomputed on the net itself"
    ),
    tolerance=2e-6,
    because="tolerance 1e-6 of the solver, and the program's",
    trials=(4, 60),
    sharpen="identity",
)
def l1_equivalence(trial: Trial, *, factor: float = 2.0, neurons: int = 0) -> Finding:
    random, n = trial.random, 2 + trial.number % 6
    X, y = draw_points(random, n)
    sol = f1_max_margin(X, y, bias=False)
    # A grid of directions needs none of our pricing; those of the net are added, as a grid misses
    # the best directions by up to its width.
    angle, root = np.linspace(0, 2 * np.pi, 3600, endpoint=False), math.sqrt(2)
    U = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), sol.atoms[:, :2] * root])
    signed = (y[:, None] * np.maximum(X @ U.T, 0))[None]
    value, weights = best_margins(np.concatenate([signed, -signed], 2))
    used = weights[0] > 1e-9  # the linear program's zeros
    atoms = np.column_stack([np.vstack([U, U]), np.repeat([1.0, -1.0], len(U))])[used] / root
    measure = ReLUMeasure(atoms=atoms, weights=weights[0][used], bias=False).normalized()
    net = ReLUMeasure.from_network(measure.to_network(width=max(n, used.sum())))
    gamma = net.normalized_margin(X, y)
    scale = sol.upper_bound or 1.0
    violations = [
        abs(value[0] - factor * sol.margin) / scale / factor,
        abs(gamma - value[0] / factor) / scale,
        sol.gap if sol.margin else 0.0,
        float(used.sum() > n - neurons),
    ]
    shown = f"{used.sum()} neurons for {n} samples"
    return Finding.of_one(violations, f"{n} points in the plane", shown)


@claim(
    "wei/l1-duality",
    "min |alpha|_1 with y_n <alpha, phi(x_n)> >= 1 equals max sum lambda with |sum_n lambda_n y_n"
    " relu(u . x_n)| <= 1, lambda >= 0, and 1 / gamma_l1, of which alpha / |alpha|_1 is an optimum;"
    " alpha_u != 0 implies sum_n lambda_n y_n relu(u . x_n) = sign(alpha_u)",
    source=f"{W18}, Claims B.2 and B.3 and (B.2), one direction",
    hypotheses=(
        "random neurons that reach every sign pattern, 1 to 5 samples; primal, dual and margin"
        " solved separately"
    ),
    tolerance=1e-7,
    because="feasibility of the linear programs",
    trials=(5, 105),
    sharpen="identity",
)
def l1_duality(
    trial: Trial, *, factor: float = 1.0, scale: float = 1.0, sign: float = 1.0
) -> Finding:
    signed = draw_signed(trial)
    value, alpha = least_norms(signed)
    bound, lam = dual_norms(signed)
    responses = np.einsum("bn,bnk->bk", lam, signed)
    # Complementary slackness in one direction: silent neurons may have response 1 as well.
    slack = np.where(
        np.abs(alpha) > 1e-7,
        np.abs(responses - sign * np.sign(alpha)),
        np.maximum(np.abs(responses) - 1, 0),
    ).max(1)
    gamma, _ = best_margins(np.concatenate([signed, -signed], 2))
    reached = np.einsum("bnk,bk->bn", signed, alpha).min(1) / np.abs(alpha).sum(1)
    ratios = [bound * factor / value, reached / (scale * gamma), scale * value * gamma]
    worst = np.maximum(np.abs(np.array(ratios) - 1).max(0), slack)
    return Finding.of(worst, f"{signed.shape[1]} samples, {alpha.shape[1]} neurons")


@l1_duality.printed(
    "(B.2): sum_n lambda_n y_n relu(u . x_n) = sign(alpha_u) if and only if alpha_u != 0"
)
def _() -> Finding:
    angle = np.pi / 3 * np.arange(6)
    U = np.column_stack([np.cos(angle), np.sin(angle)])
    signed = np.maximum(U @ U.T, 0)
    alpha, lam = np.tile([1.0, 0.0], 3), np.full(6, 0.5)
    optimal = (
        (signed @ alpha).min() - 1 >= -1e-12
        and np.abs(lam @ signed).max() <= 1 + 1e-12
        and lam.sum() == alpha.sum()
    )
    return Finding.of(
        float(optimal) * np.abs(lam @ signed)[alpha == 0].max(),
        "a hexagon, all labels +1: the neurons at 0, 120, 240 degrees are optimal, those at 60,"
        " 180, 300 have response 1 and alpha = 0",
    )


@claim(
    "wei/dependent-neurons",
    "of neurons that an optimal alpha uses, sum_u c_u v(u) = 0 implies sum_u c_u sign(alpha_u) = 0",
    source=f"{W18}, Claim B.4",
    hypotheses=(
        "2 to 6 samples; features of which more have response +-1 than there are samples, so that a"
        " random alpha on them is optimal: the least norm by a linear program"
    ),
    tolerance=1e-9,
    because="rounding, and the program's tolerance",
    trials=(5, 60),
    sharpen="identity",
)
def dependent_neurons(trial: Trial, *, negative: float = -1.0) -> Finding:
    random, n = trial.random, 2 + trial.number % 5
    signs = random.choice([-1.0, 1.0], n + 1 + trial.number % 3)
    used = len(signs)
    response = np.append(signs, random.uniform(-0.9, 0.9, 6))
    alpha = response * (np.abs(response) == 1) * random.uniform(0.2, 1, used + 6)
    size = np.abs(alpha).sum()
    # lambda v(u) is the response, then v alpha = 1, which leaves the response as sum lambda = size.
    lam, v = random.uniform(0.5, 2, n), random.normal(size=(n, used + 6))
    lam *= size / lam.sum()
    v += np.outer(lam, response - lam @ v) / (lam @ lam)
    v += np.outer(1 - v @ alpha, alpha) / (alpha @ alpha)
    dependences = np.linalg.svd(v[:, :used])[2][n:]
    off = np.abs(dependences @ np.where(signs > 0, 1.0, negative))
    least = least_norms(v[None])[0][0]
    shown = f"{n} samples, {used} neurons in use"
    return Finding.of([abs(least / size - 1), *off], shown)


@claim(
    "wei/kernel-margin-bound",
    "the F_2 margin is at most |mean_n y_n phi(x_n)| / sqrt(kappa) = sqrt(y' K y) / n",
    source=f"{W18}, Lemma 3.6",
    hypotheses="64 random predictors and the max-margin one for random data",
    tolerance=1e-9,
    because="rounding",
    trials=(4, 160),
)
def kernel_margin_bound(trial: Trial, *, factor: float = 1.0) -> Finding:
    random, n, d = trial.random, 1 + trial.number % 8, 2 + trial.number % 3
    X, y = draw_points(random, n, d)
    K = arc_cosine(X)
    # Coefficients lean toward y, half of the predictors without noise: most margins are positive.
    c = random.normal(size=(64, n)) * y * (random.random((64, 1)) < 0.5)
    c += y * random.random((64, n))
    margins = (y * (c @ K)).min(1) / np.sqrt(np.einsum("bn,nm,bm->b", c, K, c))
    margins = np.append(margins, f2_max_margin(X, y).margin)
    bound = factor * math.sqrt(y @ K @ y) / n
    above = (margins - bound) / math.sqrt(np.trace(K) / n)
    room = bound / margins[margins > 0].max(initial=bound / MOST)
    return Finding.of(above, f"{n} points in {d} dimensions", factor=float(room))


@claim(
    "wei/xor-cancellation",
    "h(a) = E [(a + Z)_+ + (-a + Z)_+] - sqrt(2 / pi) is between 0 and min(|a|, a^2); on the XOR"
    " distribution W = y phi(x) / sqrt(kappa) has |E W| <= .448 / d, given |x|^2 <= d log n"
    " also |W|^2 <= log(n) / 2 and sum Var W <= n log(n) / 2, and |mean W| <= log n / sqrt n + .448"
    " / d",
    source=f"{W18}, Claim D.2, Lemma 3.7 and the three parts of its proof, with constants",
    hypotheses=(
        "|a| from 1e-4 to 1e4; E W exact, by quadrature over the sphere, d = 4 to 256; 24 draws of"
        " p_data, n = 50 to 400, which no sample may violate (the lemma's probability is above"
        " 1 - 1e-13), and their second moment 1 / 2n + (1 - 1 / n) |E W|^2"
    ),
    tolerance=1e-3,
    because="quadrature and rounding, relative; the second moment to 5 standard errors",
    trials=(1, 12),
    sharpen={"claim": -1, "population": -1},
)
def xor_cancellation(
    trial: Trial, *, claim: float = 1.0, population: float = 0.448, moment: float = 1.0
) -> Finding:
    random = trial.random
    a = np.append(10 ** random.uniform(-4, 4, 1000), 1e4)
    h = _add_kinks(a) - _add_kinks(np.zeros(1))
    d, n = 4 << (trial.number % 7), (50, 100, 200, 400)[trial.number % 4]
    exact, squares = _mean_feature(d), []
    violations = [*(h / np.minimum(a, a * a) - claim), *-h, 1 - population / (d * exact)]
    for seed in random.integers(2**31, size=24).tolist():
        X, y = draw_cut_off(n, d, seed)
        K = arc_cosine(X, bias=False)
        mean = math.sqrt(y @ K @ y) / n
        squares.append(mean**2)
        variance = np.trace(K) / n - exact**2
        violations += [excess(max(np.diag(K).max(), variance), math.log(n) / 2)]
        violations += [excess(mean, math.log(n) / math.sqrt(n) + population / d)]
    error = np.std(squares, ddof=1) / math.sqrt(len(squares))
    off = np.mean(squares) - moment * (1 / (2 * n) + (1 - 1 / n) * exact**2)
    violations.append(abs(off) / (5 * error) - 1)
    shown = f"|E W| = {d * exact:.4f} / d, |mean W| = {math.sqrt(np.mean(squares)):.4f}"
    return Finding.of(violations, f"d = {d}, n = {n}", shown)


def _add_kinks(a: np.ndarray) -> np.ndarray:
    """E [(a + Z)_+ + (-a + Z)_+] of a normal Z."""
    return 2 * norm.pdf(a) + a * (2 * norm.cdf(a) - 1)


def _mean_feature(d: int) -> float:
    """|E y phi(x)| / sqrt(kappa) of the XOR distribution, over neurons uniform on the sphere."""
    # The squared length of the first two coordinates is of a Beta distribution.
    nodes, weights = roots_jacobi(60, (d - 4) / 2, 0)
    angle, share = 2 * np.pi * np.arange(64) / 64, (nodes[:, None] + 1) / 2
    tau = np.sqrt(1 - share)
    plus, minus = (np.abs(np.cos(angle) + s * np.sin(angle)) * np.sqrt(share) for s in (1, -1))
    mean = tau / 4 * (_add_kinks(plus / tau) - _add_kinks(minus / tau))
    return math.sqrt(weights @ (mean**2).mean(1) / weights.sum())


@claim(
    "wei/kernel-regression-norm",
    "targets y_n = relu(u . x_n) of a random unit u have E y' K^-1 y = n / kappa, while their l1"
    " norm is at most 1",
    source=f"{W18}, Lemma D.7 and Theorem D.6",
    hypotheses=(
        "n <= 6 random points in 3 dimensions, no bias; in odd trials phi(z) = relu(z) + a"
        " relu(-z), a random, for ReLU; kernel in closed form (averaged over the sphere, so n in"
        " place of n / kappa), u by 40,000 draws"
    ),
    tolerance=0.0,
    because="the mean within 4 standard errors; certified l1 norms at most 1 + 1e-6",
    trials=(3, 20),
)
def kernel_regression_norm(
    trial: Trial, *, factor: float = 1.0, across: float = 2.0, kernel: Any = arc_cosine
) -> Finding:
    random, n = trial.random, 1 + trial.number % 6
    X, U = random.normal(size=(n, 3)), draw_directions(random, 40_000, 3)
    # The Monte Carlo mean over u, with its own standard error, against the closed form.
    V = np.maximum(U @ X.T, 0)
    a = random.uniform(0.2, 1) if trial.number % 2 else 0.0
    K = (1 + a * a) * kernel(X, bias=False) + across * a * arc_cosine(X, -X, bias=False)
    values = V + a * np.maximum(-U @ X.T, 0)
    norms = np.einsum("un,un->u", values, np.linalg.solve(K, values.T).T)
    error = norms.std() / math.sqrt(len(norms))
    least = min_norm_interpolation(X, V[V.any(1)][0], bias=False, norm="l1")
    off = [abs(norms.mean() - factor * n) / (4 * error) - 1, least.norm - 1 - 1e-6]
    shown = f"E y' K^-1 y = {norms.mean():.3f} +- {error:.3f} for n = {n}"
    return Finding.of_one(off, f"{n} points", shown, norm=1 / least.norm)

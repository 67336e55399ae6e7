"""Claims of Wei et al. 2018 and 2019 on norms and margins: two-layer nets, l1, kernels."""

import math

import numpy as np

from ... import datasets
from ...kernels import arc_cosine
from ...solvers import ReLUMeasure, f1_max_margin, f2_max_margin, min_norm_interpolation
from ..ledger.claim import claim
from ..ledger.directions import best_margins, dual_norms, least_norms
from ..ledger.draws import draw_directions, draw_points, draw_signed
from ..ledger.regression import slope
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial
from ._instances import W18, W19


@claim(
    "wei/l1-equivalence",
    "gamma*,m = gamma_l1 / 2 for m >= n, and an optimal alpha has at most n neurons",
    source=f"{W18}, Theorem 3.3 and Lemma B.1; {W19}, Theorem B.11",
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
    " relu(u . x_n)| <= 1, lambda >= 0; alpha_u != 0 implies sum_n lambda_n y_n relu(u . x_n) ="
    " sign(alpha_u)",
    source=f"{W18}, Claim B.3 and (B.2), one direction",
    hypotheses=(
        "random neurons that reach every sign pattern, 1 to 5 samples; primal and dual solved"
        " separately"
    ),
    tolerance=1e-7,
    because="feasibility of the linear programs",
    trials=(5, 105),
    sharpen="identity",
)
def l1_duality(trial: Trial, *, factor: float = 1.0, sign: float = 1.0) -> Finding:
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
    worst = np.maximum(np.abs(value - factor * bound) / value, slack)
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
    "wei/kernel-margin-bound",
    "the F_2 margin is at most |mean_n y_n phi(x_n)| / sqrt(kappa) = sqrt(y' K y) / n, which on the"
    " XOR distribution is O(log n / sqrt n + 1/d)",
    source=f"{W18}, Lemmas 3.6 and 3.7",
    hypotheses=(
        "inequality: 64 random predictors and the max-margin one for random data; rates: slope -1/2"
        " in n at d = 1,000, slope -1 in d of the population value"
    ),
    tolerance=1e-9,
    because=(
        "rounding; slopes within 0.1 of the claim, confidence intervals included, count as holding"
    ),
    trials=(4, 160),
)
def kernel_margin_bound(trial: Trial, *, factor: float = 1.0, slopes: float = 0.0) -> Finding:
    random = trial.random
    if trial.number == 0:
        ns, ds = np.array([50, 100, 200, 400, 800]), np.repeat([4, 8, 16, 32], 2)
        means = [
            np.mean([_estimate_mean_feature(n, 1000, s) for s in random.integers(2**31, size=12)])
            for n in ns
        ]
        values = [_estimate_mean_feature(3000, d, d, population=True) for d in ds]
        in_n, in_d = slope(np.log(ns), np.log(means)), slope(np.log(ds), np.log(values))
        off = [in_n.off(-0.5 - slopes) - 0.1, in_d.off(-1 - slopes) - 0.1]
        shown = f"d^({in_d.value:.2f} +- {in_d.error:.2f})"
        shown = f"n^({in_n.value:.3f} +- {in_n.error:.3f}), {shown}"
        return Finding.of_one(off, "XOR distribution", shown)
    n, d = 1 + trial.number % 8, 2 + trial.number % 3
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


def _estimate_mean_feature(n: int, d: int, seed: int, *, population: bool = False) -> float:
    """sqrt(y' K y) / n of XOR samples; unbiased, without the diagonal, for the population."""
    X, labels = datasets.gaussian_xor(n, d, seed=seed)
    K, y = arc_cosine(X, bias=False), labels.numpy()
    total = y @ K @ y
    return math.sqrt((total - np.trace(K)) / (n * (n - 1))) if population else math.sqrt(total) / n


@claim(
    "wei/kernel-regression-norm",
    "targets y_n = relu(u . x_n) of a random unit u have E y' K^-1 y = n / kappa, while their l1"
    " norm is at most 1",
    source=f"{W18}, Lemma D.7 and Theorem D.6",
    hypotheses=(
        "n <= 6 random points in 3 dimensions, no bias; kernel in closed form (averaged over the"
        " sphere, so n in place of n / kappa), u by 40,000 draws"
    ),
    tolerance=0.0,
    because="the mean within 4 standard errors; certified l1 norms at most 1 + 1e-6",
    trials=(3, 20),
)
def kernel_regression_norm(trial: Trial, *, factor: float = 1.0, kernel=arc_cosine) -> Finding:
    random, n = trial.random, 1 + trial.number % 6
    X, U = random.normal(size=(n, 3)), draw_directions(random, 40_000, 3)
    # The Monte Carlo mean over u, with its own standard error, against the closed form.
    V = np.maximum(U @ X.T, 0)
    norms = np.einsum("un,un->u", V, np.linalg.solve(kernel(X, bias=False), V.T).T)
    error = norms.std() / math.sqrt(len(norms))
    least = min_norm_interpolation(X, V[V.any(1)][0], bias=False, norm="l1")
    off = [abs(norms.mean() - factor * n) / (4 * error) - 1, least.norm - 1 - 1e-6]
    shown = f"E y' K^-1 y = {norms.mean():.3f} +- {error:.3f} for n = {n}"
    return Finding.of_one(off, f"{n} points", shown, norm=1 / least.norm)

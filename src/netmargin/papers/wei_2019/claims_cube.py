"""Claims of Wei et al. 2019, Appendix B: what no predictor in the tangent kernel's span learns."""

import math
from itertools import product

import numpy as np

from ..ledger.claim import claim
from ..ledger.trial import Finding, Trial
from ..wei_2018._instances import W19
from ._cube import (
    LABELS,
    SIGNALS,
    CubeKernel,
    Span,
    arc_parts,
    draw_distinct,
    draw_fresh,
    fourier,
    kravchuk,
)

_KERNELS = ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0))
"""(A, B): both layers, the output layer alone, the hidden layer alone."""


def _cube(N: int) -> np.ndarray:
    """All noises, (2^N, N)."""
    return np.array(list(product((-1, 1), repeat=N)))


def _draw_span(trial: Trial, d: int, n: int) -> Span:
    """The predictors of n samples, with one of three kernels."""
    return Span(CubeKernel(d, *_KERNELS[trial.number % 3]), *draw_distinct(trial.random, n, d))


@claim(
    "wei/hypercube-error-split",
    "error >= 1/4 (P[f_+ <= 0] + P[f_- >= 0]) >= 1/4 P[|f_+ + f_-| >= f_+ - f_-] >= 1/4 P[|g| >="
    " max |f_+- - g|], f_+- the sum of f over the signals of a class, of which g sees neither",
    source=f"{W19}, Lemma B.2, restored",
    hypotheses=(
        "all points of the cube, d = 8 to 12; random predictors and one that is right on three"
        " of four signals; f_+- from the kernel itself, and from second differences"
    ),
    tolerance=1e-12,
    because="rounding, relative",
    trials=(3, 30),
    sharpen={"quarter": 1},
)
def hypercube_error_split(trial: Trial, *, quarter: float = 1.0) -> Finding:
    random, d = trial.random, 8 + trial.number % 5
    span, z = _draw_span(trial, d, 3 * d), _cube(d - 2)
    f = np.stack(
        [span.kernel(np.hstack([np.tile(a, (len(z), 1)), z]) @ span.X.T) for a in SIGNALS]
    )  # (4, 2^N, n)
    violations = []
    for weights in (*random.normal(size=(40, len(span.y))), span.find_best()):
        values = f @ weights
        plus, minus, g = span.parts(weights, z)
        size = np.abs(f).sum(0).max() * np.abs(weights).max()
        violations += [
            np.abs(plus - values[:2].sum(0)).max() / size,
            np.abs(minus - values[2:].sum(0)).max() / size,
        ]
        error = float((LABELS[:, None] * values <= 0).mean())
        halves = float((plus <= 0).mean() + (minus >= 0).mean())
        blind = float((np.abs(plus + minus) >= plus - minus).mean())
        alone = float((np.abs(g) >= np.maximum(abs(plus - g), abs(minus - g))).mean())
        violations += [quarter * halves / 4 - error, blind - halves, alone - blind]
    shown = f"error {error:.4f}, bound {blind / 4:.4f} of one right on three signals"
    return Finding.of(violations, f"d = {d}, {len(span.y)} samples, 41 predictors", shown)


@claim(
    "wei/second-differences",
    "for |t| + 1 <= c_0 R: (A + 2B) / (2 pi R) <= k(t + 1) - 2 k(t) + k(t - 1) <= [A (1 -"
    " c_0^2)^{-1/2} + B (2 - c_0^2) (1 - c_0^2)^{-3/2}] / (2 pi R), the lower half for all t",
    source=f"{W19}, Lemmas B.4 and B.5, with the range of the cosine that they need",
    hypotheses="all integers t, d = 8 to 80, random A, B >= 0 and c_0 from .2 to .8",
    tolerance=1e-9,
    because="differences of kernels of order R, relative to 1 / R",
    trials=(10, 100),
    sharpen={"lower": 1, "upper": -1},
)
def second_differences(trial: Trial, *, lower: float = 1.0, upper: float = 1.0) -> Finding:
    random, d = trial.random, 8 + trial.number * 7 % 73
    A, B = random.exponential(size=2) * [(1, 1), (1, 0), (0, 1)][trial.number % 3]
    kernel, c = CubeKernel(d, A, B), random.uniform(0.2, 0.8)
    t, scale = kernel.levels, 2 * np.pi * (d - 1) / (A + B)
    found = scale * kernel.second_difference()
    least = lower * (A + 2 * B) / (A + B)
    most = upper * (A * (1 - c * c) ** -0.5 + B * (2 - c * c) * (1 - c * c) ** -1.5) / (A + B)
    inside = found[np.abs(t) + 1 <= c * (d - 1)]
    return Finding.of(
        [*(least - found), *(inside - most)], f"d = {d}, A = {A:.2f}, B = {B:.2f}, c_0 = {c:.2f}"
    )


@claim(
    "wei/degree-four",
    "with q_r = 1 + (pi / 2) c + c^2 / 2 + c^4 / 24, q_g = (pi / 2) c + c^2 + c^4 / 6: c^6 / 80 <="
    " h_r - q_r <= (pi / 2 - 37/24) c^6 and 3 c^6 / 40 <= h_g - q_g <= (pi / 2 - 7/6) c^6",
    source=f"{W19}, Lemma B.6, restored for all |c| <= 1",
    hypotheses="random cosines with |c| >= .05, and +-1",
    tolerance=1e-6,
    because="remainders down to 1e-10 of terms of order 1, relative",
    trials=(1, 10),
    sharpen={"below": 1, "above": -1},
)
def degree_four(
    trial: Trial, *, below: float = 1.0, above: float = 1.0, fourth: float = 1.0
) -> Finding:
    random = trial.random
    c = np.append(random.choice([-1, 1], 1000) * random.uniform(0.05, 1, 1000), [-1.0, 1.0])
    h_r, h_g = arc_parts(c)
    relu = (h_r - 1 - np.pi / 2 * c - c**2 / 2 - fourth * c**4 / 24) / c**6
    gradient = (h_g - np.pi / 2 * c - c**2 - fourth * c**4 / 6) / c**6
    violations = []
    for rest, least, most in (
        (relu, 1 / 80, np.pi / 2 - 37 / 24),
        (gradient, 3 / 40, np.pi / 2 - 7 / 6),
    ):
        violations += [*(below * least - rest) / least, *(rest - above * most) / least]
    return Finding.of(violations, "1,002 cosines")


@claim(
    "wei/power-correlation",
    "p_a(z) = sum_i beta_i (z . z_i)^a has E p_a p_b = sum_s C_{a,s} C_{b,s} sum_{|S| = s} (sum_i"
    " beta_i chi_S(z_i))^2, C_{a,s} >= 0 the coefficient of a! x^a in sinh^s cosh^{N - s}: at least"
    " 0, and 0 where a - b is odd",
    source=f"{W19}, Lemma B.9, in explicit form",
    hypotheses="enumeration, N = 4, 6, 8 in turn, a, b <= 5, random z_i and beta",
    tolerance=1e-11,
    because="rounding, relative to the norms of p_a and p_b",
    trials=(3, 30),
    sharpen="identity",
)
def power_correlation(trial: Trial, *, pairs: float = 1.0, odd: float = 0.0) -> Finding:
    random, N = trial.random, 4 + 2 * (trial.number % 3)
    cube = _cube(N)
    z, beta = random.choice([-1, 1], (N + 2, N)), random.normal(size=N + 2)
    powers = [(cube @ z.T) ** a @ beta for a in range(6)]
    # The functions chi_S of all sets S, at all points and at the samples.
    sets = (1 - cube) // 2
    weights = (beta @ (1 - 2 * (((1 - z) // 2) @ sets.T % 2))) ** 2
    mass = np.array([weights[sets.sum(1) == s].sum() for s in range(N + 1)])
    # By (e^x + e^-x) / 2 and (e^x - e^-x) / 2, whose products are sums of e^{(N - 2 j) x}.
    exponents, signs = N - 2 * np.arange(N + 1), kravchuk(N)
    C = np.array([exponents**a @ signs / 2**N for a in range(6)], float)
    C[2, 2] *= pairs
    violations = []
    for a, b in product(range(6), repeat=2):
        size = math.sqrt((powers[a] ** 2).mean() * (powers[b] ** 2).mean())
        found = float((powers[a] * powers[b]).mean())
        violations.append(abs(found - (C[a] * C[b]) @ mass) / size)
        violations.append((abs(found - odd) if (a - b) % 2 else -found) / size)
    return Finding.of(violations, f"N = {N}, {len(z)} points")


@claim(
    "wei/quadratic-moment",
    "E (sum_i beta_i (z . z_i)^2)^2 = N^2 (sum beta)^2 + 4 |W beta|^2, W the products of two"
    " coordinates, W'W = ((z_i . z_j)^2 - N) / 2; E G^2 >= g_2^2 |W beta|^2 with g_2 >= 4 (A + 2B)"
    " / (2 pi R), hence at least g_2^2 lambda_min(W'W) |beta|^2, and lambda_min(W'W) >= d^2 / 50",
    source=f"{W19}, Lemma B.7 (the eigenvalue for n = d^2 / 8; d^2 / 8 as d grows)",
    hypotheses=(
        "identity by enumeration, N = 4 to 8; moments of G over all points for n = d^2 / 8, d = 20"
        " to 30"
    ),
    tolerance=1e-9,
    because="rounding, relative; the least eigenvalue of a matrix with condition 1e4",
    trials=(3, 15),
    sharpen={"level": 1},
)
def quadratic_moment(
    trial: Trial, *, products: float = 4.0, level: float = 1.0, least: float = 0.02
) -> Finding:
    random, N = trial.random, 4 + trial.number % 5
    z, weights = random.choice([-1, 1], (N + 2, N)), random.normal(size=N + 2)
    p, q = np.triu_indices(N, 1)
    squares = (z[:, p] * z[:, q]).T @ weights
    exact = N**2 * weights.sum() ** 2 + products * squares @ squares
    found = float((((_cube(N) @ z.T) ** 2 @ weights) ** 2).mean())
    d = 20 + trial.number * 5 % 11
    span = _draw_span(trial, d, d * d // 8)
    A, B = span.kernel.A, span.kernel.B
    noise = span.X[:, 2:]
    gram = ((noise @ noise.T) ** 2 - (d - 2)) / 2
    second = fourier(span.kernel.total())[2]
    G = span.total_moments
    rest = np.linalg.eigvalsh(G - level * second**2 * gram)[0]
    eigenvalue = np.linalg.eigvalsh(gram)[0] / d**2
    return Finding.of(
        [
            abs(found / exact - 1),
            -rest / np.linalg.eigvalsh(G)[0],
            1 - second / (4 * (A + 2 * B) / (2 * np.pi * (d - 1))),
            least - eigenvalue,
        ],
        f"N = {N}; d = {d}, {len(span.y)} samples",
        f"lambda_min(W'W) = {eigenvalue:.4f} d^2",
        least=float(eigenvalue) / least,
    )


@claim(
    "wei/monomial-tail",
    "for a unit vector v, ||<v, w>||_q <= q - 1 over the products w of two coordinates, q >= 2:"
    " so <v, w> is sub-exponential, with psi_1 norm at most 2.878",
    source=f"{W19}, Claim B.8, by Bonami's inequality (the matrix bound that it feeds is lost)",
    hypotheses="all points, N = 4 to 10; random v, equal entries and single ones; q = 2, 3, 4, 6",
    tolerance=1e-12,
    because="rounding; attained for q = 2",
    trials=(3, 20),
    sharpen={"growth": -1},
)
def monomial_tail(trial: Trial, *, growth: float = 1.0) -> Finding:
    random, N = trial.random, 4 + trial.number % 7
    p, q = np.triu_indices(N, 1)
    cube = _cube(N)
    w = cube[:, p] * cube[:, q]
    directions = [*random.normal(size=(4, len(p))), np.ones(len(p)), np.eye(len(p))[0]]
    violations = []
    for v in directions:
        values = np.abs(w @ (v / np.linalg.norm(v)))
        for power in (2, 3, 4, 6):
            violations.append((values**power).mean() ** (1 / power) / (power - 1) - growth)
        violations.append(np.exp(values / 2.878).mean() - 2)
    return Finding.of(violations, f"N = {N}, {len(directions)} directions")


@claim(
    "wei/no-kernel-predictor",
    "with n = d^2 / 8 and d^2 / 4 samples that differ up to sign, every predictor in the span of"
    " the tangent kernel errs .2% at least, whatever its coefficients, and so do its squares, cut"
    " off at 1",
    source=f"{W19}, Theorems 1.1, 2.1 and B.1, Lemma B.3, Section B.3, proved for each set drawn",
    hypotheses=(
        "d = 20 to 60; both layers, one of them, the other in turn; second moments over all points,"
        " hypercontractivity; beside it the best predictor that was found, its error on 20,000"
        " samples, and in the first trial a bound by linear programs at 95% confidence (d = 20, n ="
        " 50)"
    ),
    tolerance=0.0,
    because="what is proved has to be above the floor, and below what is found",
    trials=(3, 15),
    ascent=8,
)
def no_kernel_predictor(
    trial: Trial, *, floor: float = 0.002, samples: float = 1.0, share: float = 1.0
) -> Finding:
    d = (20, 30, 40, 24, 60)[trial.number % 5]
    n = round(samples * d * d / (8 if trial.number % 2 == 0 else 4))
    if d == 20 and n > 50:
        d, n = 22, n + 20  # in a cube of 2^18 points more samples nearly coincide
    span = _draw_span(trial, d, n)
    proved, random = span.prove_error(share), trial.random
    X, y = draw_fresh(random, 20_000, d)
    weights = span.find_best()
    best = span.error(weights, X, y)
    # Where the sign is wrong a square, cut off at 1, is 1.
    f = span.kernel(X @ span.X.T) @ weights
    squares = min(
        np.minimum(1, (scale * f - y) ** 2).mean() for scale in np.geomspace(0.01, 10, 31)
    )
    violations, shown = [floor - proved, proved - best, proved - squares], ""
    if trial.number == 0:
        bound, count = span.bound_by_separation(random, 135, 100)
        violations.append(bound - best)
        shown = f"; {100 * bound:.1f}% at 95% confidence ({count} of 100 sets of 135 inseparable)"
    return Finding.of_one(
        violations,
        f"d = {d}, n = {n}",
        f"proved {100 * proved:.2f}%{shown}, best found {100 * best:.1f}%, its truncated squares"
        f" {squares:.2f}",
        share=best / proved if proved else math.inf,
    )


@claim(
    "wei/kernel-thresholds",
    "the best predictor found in the span errs 1/4, as one that is right on three of the four"
    " signals, from 2 d to d^2 / 4 samples, while least squares errs above 40%; with d^2 it errs"
    " nowhere",
    source=f"{W19}, Theorem 2.1: its constant is at most 1/4, and d^2 is the second threshold",
    hypotheses="d = 20 to 30, errors on 20,000 samples; least squares over all points of the cube",
    tolerance=0.0,
    because="errors from .22 to .3, above .38 and below .01 count as 1/4, 40% and none: a trend",
    trials=(1, 6),
    sharpen="trend",
)
def kernel_thresholds(trial: Trial, *, many: float = 1.0) -> Finding:
    d = (20, 24, 30)[trial.number % 3]
    X, y = draw_fresh(trial.random, 20_000, d)
    few, enough = (_draw_span(trial, d, n) for n in (d * d // 8, round(many * d * d)))
    best, fitted, last = (
        few.error(few.find_best(), X, y),
        few.error(few.fit_least_squares(), X, y),
        enough.error(enough.find_best(), X, y),
    )
    return Finding.of_one(
        [0.22 - best, best - 0.3, 0.38 - fitted, last - 0.01],
        f"d = {d}",
        f"n = d^2 / 8: {best:.3f}, least squares {fitted:.3f}; n = d^2: {last:.4f}",
    )

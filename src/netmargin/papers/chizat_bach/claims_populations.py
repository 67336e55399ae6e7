"""Claims of Chizat and Bach 2020, Appendix H, on the smooth margin of populations."""

import math

import numpy as np
from scipy.special import logsumexp

from ..ledger.claim import claim
from ..ledger.draws import draw_directions
from ..ledger.trial import Finding, Trial
from ._instances import PAPER


@claim(
    "chizat-bach/population-soft-min",
    "S[f] = -log int e^-f d rho has the gradient lambda = e^-f rho / int e^-f d rho: 0 <= S[f] +"
    " int g d lambda - S[f + g] <= |g|^2 / 2, and lambda moves by |g| at most in L^1; that of beta"
    " f gathers where f is least: lambda(A) <= e^{-beta (min_A f - max_B f)} rho(A) / rho(B)",
    source=f"{PAPER}, Lemmas 23 and 24, made explicit",
    hypotheses="256 measures rho on 2 to 40 points, f and g random, beta from 1 to 1,000",
    tolerance=1e-9,
    because="rounding, relative to |g|^2 and to beta |f|",
    trials=(8, 60),
    sharpen={"quadratic": -1, "moved": -1, "rate": 1},
)
def population_soft_min(
    trial: Trial, *, quadratic: float = 0.5, moved: float = 1.0, rate: float = 1.0
) -> Finding:
    random, n = trial.random, 2 + trial.number % 39
    logs = np.log(random.dirichlet(np.ones(n), 256))
    f, g, far = random.normal(size=(3, 256, n)) * 10 ** random.uniform(-1, 1, (3, 256, 1))
    if trial.number % 4 == 0:
        # Two sets of equal weight attain all bounds.
        logs, f = np.full((256, n), -math.log(n)), np.zeros((256, n))
        g = np.where(np.arange(n) < n // 2, 1, -1) * random.uniform(0.01, 0.1, (256, 1))
        far = np.where(np.arange(n) < n // 2, 100.0, 0.0) * np.ones((256, 1))
    beta, A, B = 10 ** random.uniform(0, 3, (256, 1)), np.s_[:, : n // 2], np.s_[:, n // 2 :]
    start, end, scaled = (-logsumexp(logs - v, 1, keepdims=True) for v in (f, f + g, beta * far))
    before, after = np.exp(logs - f + start), np.exp(logs - f - g + end)
    size = np.abs(g).max(1, keepdims=True)
    rest = (start + (before * g).sum(1, keepdims=True) - end) / size**2
    drift = np.abs(after - before).sum(1, keepdims=True) / size - moved
    share = logsumexp((logs - beta * far)[A], 1, keepdims=True) + scaled
    gap = beta * (far[A].min(1, keepdims=True) - far[B].max(1, keepdims=True))
    weights = logsumexp(logs[A], 1, keepdims=True) - logsumexp(logs[B], 1, keepdims=True)
    above = (share + rate * gap - weights) / (1 + beta * np.abs(far).max(1, keepdims=True))
    violations = [-rest, rest - quadratic, drift, above]
    return Finding.of(np.max(violations, 0), f"256 measures on {n} points")


@claim(
    "chizat-bach/population-field",
    "of a density of at most D on |x| <= 1 grad_a F' turns with a by |b| D 2^{3/2} times its angle"
    " at most; F' and its gradient move by M |lambda - lambda'|_1 at most, M the largest feature or"
    " slope; and a measure lambda is known from its features int (a . (x, 1))_+ d lambda, so that"
    " it is 0 where they are",
    source=f"{PAPER}, Lemma 25 on the line, with its constant, and Lemma 28 by second differences",
    hypotheses=(
        "256 signed densities, constant on 1 to 8 cells of the line, and |a| = |b|; M on 500"
        " neurons, attained at one point; 256 signed measures on 1 to 8 points in 2 to 4 dimensions"
    ),
    tolerance=1e-9,
    because="rounding, relative to the angle and to the largest feature",
    trials=(8, 60),
    sharpen={"turn": -1},
)
def population_field(
    trial: Trial, *, turn: float = 2**1.5, twice: float = 2.0, field: float = 1.0
) -> Finding:
    random, n = trial.random, 1 + trial.number % 8
    edges, heights = np.linspace(-1, 1, n + 1), random.normal(size=(256, n))
    angles = random.uniform(0, 2 * math.pi, (256, 1)) + np.array([0.0, 1.0]) * 10 ** random.uniform(
        -3, 0, (256, 1)
    )
    if n == 1:
        angles = -math.pi / 4 + np.array([[0.0, 1e-4]])  # a kink at the end of the support
    a = np.stack([np.cos(angles), np.sin(angles)], -1) / math.sqrt(2)
    # Where a neuron is active on a cell: on one side of its kink.
    kink = -a[..., 1:] / a[..., :1]
    low = np.where(a[..., :1] > 0, np.clip(edges[:-1], kink, None), edges[:-1])
    high = np.where(a[..., :1] > 0, edges[1:], np.clip(edges[1:], None, kink))
    high = np.maximum(high, low)
    parts = np.stack([(high**2 - low**2) / 2, high - low], -1)
    fields = (heights[:, None, :, None] * parts).sum(2) / math.sqrt(2)
    most = turn * np.abs(heights).max(1) / math.sqrt(2)
    turned = np.linalg.norm(np.diff(fields, axis=1)[:, 0], axis=1) / np.ptp(angles, 1)
    X = random.normal(size=(256, n, 2 + trial.number % 3))
    t = (X * draw_directions(random, 256, 1, X.shape[2])).sum(2)
    masses = random.normal(size=(256, n))
    gaps = np.abs(t[:, :, None] - t[:, None]) + np.where(np.eye(n), np.inf, 0.0)
    h = np.minimum(gaps.min((1, 2)), 1.0)[:, None]

    def feature(s: np.ndarray) -> np.ndarray:
        """The sum of ReLUs that begin at the points, (256, n)."""
        return (masses[:, None] * np.maximum(t[:, None] - s[..., None], 0)).sum(2)

    sides, middle = (feature(t - h) + feature(t + h)), feature(t)
    off = np.abs(sides - twice * middle - h * masses) / (np.abs(sides) + np.abs(middle) + h)
    # Balanced neurons of norm 1 as rows, the signed difference of two weights of all samples.
    Z, moved = np.insert(X[0], X.shape[2], 1, axis=1), masses[0] / np.abs(masses[0]).sum()
    neurons = np.concatenate([draw_directions(random, 500, Z.shape[1]), Z])
    neurons /= math.sqrt(2) * np.linalg.norm(neurons, axis=1, keepdims=True)
    feature_sums = np.abs(np.maximum(neurons @ Z.T, 0) @ moved) / math.sqrt(2)
    slopes = np.linalg.norm((neurons @ Z.T > 0) * moved @ Z, axis=1) / math.sqrt(2)
    largest = np.linalg.norm(Z, axis=1).max()
    drift = max(feature_sums.max() / (largest / 2), slopes.max() / (largest / math.sqrt(2))) - field
    return Finding.of(
        [*np.maximum(turned - most, off.max(1)), drift], f"{n} cells and points, 256 times"
    )

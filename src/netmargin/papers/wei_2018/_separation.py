"""Test errors of a regularized net and of fitted tangent kernel machines on the same samples."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from ... import datasets
from ...kernels import arc_cosine, ntk
from ...models import mlp
from ...regularization.path import regularization_path
from ...solvers import kernel_max_margin
from ..ledger.trial import Finding, Trial
from ._interpolation import evaluate_minimizer

SCALES = ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, 3.0), (3.0, 1.0))
"""(r_w, r_u) of the tangent kernel: the output layer alone, the hidden layer alone, both."""


TREND = (
    "the 95% interval of the mean difference over 4 draws (8 in later trials) must lie above 0.1,"
    " and the net below 5%: a trend"
)
"""What `compare_on_draws` counts as holding."""


def separation(
    train: tuple[Any, ...], test: tuple[Any, ...], *, seed: int
) -> tuple[float, list[float]]:
    """Test errors at the minimum of mean loss + 1e-4 ||theta||^2, and of kernels at all SCALES."""
    (X, y), (T, t) = train, test
    make = partial(mlp, [X.shape[1], 50, 1], bias="none")
    options: dict[str, Any] = {"starts": 1, "iterations": 60, "seed": seed, "progress": False}
    path = regularization_path(make, (X, y), lambdas=[3e-2, 1e-2, 3e-3, 1e-3, 1e-4], **options)
    wrong = t.numpy() * evaluate_minimizer(make, path, T) <= 0
    return float(wrong.mean()), kernel_errors(train, test)


def kernel_errors(train: tuple[Any, ...], test: tuple[Any, ...]) -> list[float]:
    """Test errors of the tangent kernel at each of SCALES; `train` and `test` are pairs (X, y)."""
    (X, y), (T, t) = train, test
    errors = []
    for r_w, r_u in SCALES:
        predictor = kernel_max_margin(ntk(X, r_w=r_w, r_u=r_u, bias=False), y)
        values = predictor.decision_function(ntk(T, X, r_w=r_w, r_u=r_u, bias=False))
        errors.append(float((t.numpy() * values <= 0).mean()))
    return errors


def compare_on_draws(
    trial: Trial,
    draw: Callable[..., Any],
    samples: int,
    margin: float,
    compare: Callable[..., Any] = separation,
) -> Finding:
    """Compare the net with the kernel that is best in the mean, as TREND says, `margin` for 0.1."""
    seeds = trial.random.integers(2**31, size=(4 + 4 * (trial.number > 0), 2))
    tests = [draw(2000, seed=b) for _, b in seeds]
    pairs = [
        compare(draw(samples, seed=a), test, seed=int(a))
        for (a, _), test in zip(seeds, tests, strict=True)
    ]
    net, kernels = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    best = kernels[:, kernels.mean(0).argmin()]
    gain, count = best - net, len(pairs)
    half = stats.t.ppf(0.975, count - 1) * gain.std(ddof=1) / np.sqrt(count)
    shown = f"net {100 * net.mean():.2f}%, best fitted kernel machine {100 * best.mean():.1f}%"
    criteria = [half - gain.mean() + margin, net.mean() - 0.05]
    where = f"d = {tests[0][0].shape[1]}, n = {samples}, {count} draws"
    return Finding.of_one(criteria, where, shown)


@dataclass(frozen=True)
class MarginGap:
    """Margins on p_data: gamma_l1 of four neurons, gamma_l2 certified, its bound by Lemma 3.6."""

    net: float
    kernel: float
    kernel_bound: float

    def ratio(self, d: int) -> float:
        """The leading term of Lemma 3.4 over that of Theorem 3.1, both with sqrt(D / n)."""
        return self.net / (self.kernel * float(np.sqrt(d)))


def draw_cut_off(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw n samples of p_data, which is D cut off at |x|^2 <= d log n, with their signs."""
    X, y = (part.numpy() for part in datasets.gaussian_xor(2 * n, d, seed=seed))
    inside = np.flatnonzero((X**2).sum(1) <= d * np.log(n))[:n]
    if len(inside) < n:
        raise RuntimeError("more than half of the samples were cut off")
    return X[inside], y[inside]


def measure_gap(n: int, d: int, seed: int) -> MarginGap:
    """Draw n samples of p_data, and measure both margins."""
    X, y = draw_cut_off(n, d, seed)
    signs = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]) / np.sqrt(2)
    four = np.maximum(X[:, :2] @ signs.T, 0) @ np.array([1, 1, -1, -1]) / 4
    K = arc_cosine(X, bias=False)
    kernel = kernel_max_margin(K, y).margin
    return MarginGap(float((y * four).min()), kernel, float(np.sqrt(y @ K @ y)) / n)

"""Test errors of a regularized net and of fitted tangent kernel machines on the same samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import stats

from ...kernels import ntk
from ...models import mlp
from ...regularization.path import regularization_path
from ...solvers import kernel_max_margin
from ..ledger.trial import Finding, Trial
from ._interpolation import load_minimizer

SCALES = ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, 3.0), (3.0, 1.0))
"""(r_w, r_u) of the tangent kernel: the output layer alone, the hidden layer alone, both."""


def separation(
    train: tuple, test: tuple, *, seed: int, width: int = 50, iterations: int = 60
) -> tuple[float, list[float]]:
    """Test errors of a regularized two-layer net and of the tangent kernel at each of SCALES.

    train, test : pairs (X, y), labels {-1, +1}. The net minimizes mean logistic loss + 1e-4
    ||theta||^2, followed from 3e-2 down from one start.
    """
    (X, y), (T, t) = train, test
    make = lambda: mlp([X.shape[1], width, 1], bias="none")  # noqa: E731
    options: dict[str, Any] = {"starts": 1, "iterations": iterations, "seed": seed}
    lambdas = [3e-2, 1e-2, 3e-3, 1e-3, 1e-4]
    path = regularization_path(make, (X, y), lambdas=lambdas, progress=False, **options)
    net = load_minimizer(make, path)
    with torch.no_grad():
        net_error = (t * net(T)[:, 0] <= 0).double().mean().item()
    kernel_errors = []
    for r_w, r_u in SCALES:
        predictor = kernel_max_margin(ntk(X, r_w=r_w, r_u=r_u, bias=False), y)
        values = predictor.decision_function(ntk(T, X, r_w=r_w, r_u=r_u, bias=False))
        kernel_errors.append(float((t.numpy() * values <= 0).mean()))
    return net_error, kernel_errors


def compare_on_draws(trial: Trial, draw: Callable, samples: int, margin: float) -> Finding:
    """Compare the net with the kernel scale that is best in the mean, on 4 draws of so many samples
    in 15 dimensions, 8 in later trials: the 95% interval of the mean difference has to lie above
    `margin`, and the mean error of the net below 5%.
    """
    seeds = trial.random.integers(2**31, size=(4 + 4 * (trial.number > 0), 2))
    pairs = [separation(draw(samples, a), draw(2000, b), seed=int(a)) for a, b in seeds]
    net, kernels = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    best = kernels[:, kernels.mean(0).argmin()]
    gain, count = best - net, len(pairs)
    half = stats.t.ppf(0.975, count - 1) * gain.std(ddof=1) / np.sqrt(count)
    shown = f"net {100 * net.mean():.2f}%, best fitted kernel machine {100 * best.mean():.1f}%"
    criteria = [half - gain.mean() + margin, net.mean() - 0.05]
    return Finding.of_one(criteria, f"d = 15, n = {samples}, {count} draws", shown)

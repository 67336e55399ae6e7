"""Test errors of a regularized net and of fitted tangent kernel machines on the same samples."""

import numpy as np
import torch

from ...kernels import ntk
from ...models import mlp
from ...regularization.path import regularization_path
from ...solvers import kernel_max_margin
from ._interpolation import load_minimizer

SCALES = ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, 3.0), (3.0, 1.0))
"""(r_w, r_u) of the tangent kernel: the output layer alone, the hidden layer alone, both."""


def separation(
    train: tuple, test: tuple, *, seed: int, width: int = 50, iterations: int = 60
) -> tuple[float, list[float]]:
    """Measure the test errors of a regularized two-layer net, which minimizes mean logistic loss +
    1e-4 ||theta||^2, and of the max-margin tangent kernel predictor at each of SCALES.

    train, test : pairs (X, y) of tensors, labels {-1, +1}. The net follows regularization from 3e-2
        down, from one start.
    """
    (X, y), (T, t) = train, test
    make = lambda: mlp([X.shape[1], width, 1], bias="none")  # noqa: E731
    options = {"starts": 1, "iterations": iterations, "seed": seed, "progress": False}
    path = regularization_path(make, (X, y), lambdas=[3e-2, 1e-2, 3e-3, 1e-3, 1e-4], **options)
    net = load_minimizer(make, path)
    with torch.no_grad():
        net_error = (t * net(T)[:, 0] <= 0).double().mean().item()
    kernel_errors = []
    for r_w, r_u in SCALES:
        predictor = kernel_max_margin(ntk(X, r_w=r_w, r_u=r_u, bias=False), y)
        values = predictor.decision_function(ntk(T, X, r_w=r_w, r_u=r_u, bias=False))
        kernel_errors.append(float((t.numpy() * values <= 0).mean()))
    return net_error, kernel_errors


def advantage(pairs: list[tuple[float, list[float]]]) -> tuple[float, float, float]:
    """Compare the net with the kernel that is best in the mean.

    Returns both mean errors, and how much less than 0 the 95% interval of the mean difference
    begins (negative: kernels lose).
    """
    from scipy import stats

    net, kernels = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    best = kernels[:, kernels.mean(0).argmin()]
    difference = best - net
    half = (
        stats.t.ppf(0.975, len(difference) - 1) * difference.std(ddof=1) / np.sqrt(len(difference))
    )
    return float(net.mean()), float(best.mean()), float(half - difference.mean())

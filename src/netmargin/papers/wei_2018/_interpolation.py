"""Paths of minimizers of mean square + lambda ||theta||^r (Theorem D.3), and their last nets."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...nets.arrays import Arrays
from ...regularization.following import RegularizationPath, follow_path
from ...regularization.objective import RegularizedObjective


class _SquaresObjective(RegularizedObjective):
    """The objective of regression with one output."""

    def _log_mean_loss(self, outputs: Tensor) -> Tensor:
        return torch.log((outputs[:, 0] - self.scored.samples.y).square().mean())

    def measure(self) -> dict[str, Any]:
        return {"norm": self.size()}


def interpolation_path(
    make_model: Callable[[], nn.Module],
    X: Tensor,
    y: Tensor,
    *,
    lambdas: Sequence[float],
    starts: int,
    seed: int,
    iterations: int = 100,
) -> RegularizationPath:
    """Minimize mean_n (f(x_n) - y_n)^2 + lambda ||theta||^2 along falling lambda."""
    samples = Arrays(X, y.double())
    return follow_path(
        make_model,
        lambda model: _SquaresObjective(model, samples, 2.0, "global"),
        lambdas=lambdas,
        starts=starts,
        iterations=iterations,
        seed=seed,
        progress=False,
    )


def load_minimizer(make_model: Callable[[], nn.Module], path: RegularizationPath) -> nn.Module:
    """Make the net at the weakest lambda of a path, in float64."""
    net = make_model().double()
    net.load_state_dict(path.states[min(path.states)])
    return net


def evaluate_minimizer(
    make_model: Callable[[], nn.Module], path: RegularizationPath, X: Tensor
) -> np.ndarray:
    """Outputs (n,) of that net with one output."""
    with torch.no_grad():
        return np.asarray(load_minimizer(make_model, path)(X)[:, 0])

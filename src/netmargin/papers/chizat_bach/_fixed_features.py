"""Training with fixed directions, with proved rates: magnitudes only, or the output layer only."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import softmax

from ...core.matrices import binary_data
from ...core.records import Shown
from ...errors import DataError
from ...losses import Exponential, Loss
from ...result import Status
from ...solvers.linear import linear_max_margin
from ...twolayer.options import step_sizes
from ...twolayer.smooth_margin import margin_loss, sample_weights
from ..ledger.directions import matrix_game

_LARGEST_LOG_SIZE = 600.0
"""Sizes enter losses as e^600 at most: float64 ends at e^709, and the least margin alone counts."""


@dataclass(frozen=True)
class FixedFeatureRun(Shown):
    """A run of t = 0 .. steps, beside the optimum and the rate that is proved."""

    margins: np.ndarray  # min_n z_n . a_bar(t), (steps + 1,)
    log_sizes: np.ndarray  # log beta(t), by which weights were divided, (steps + 1,)
    weights: np.ndarray  # a_bar at the end, (m,)
    optimum: float  # gamma as attained; the best margin so far where Ctrl-C ended its search
    proved: float  # an upper bound of gamma
    guarantee: np.ndarray  # a lower bound of `best`, with `optimum` for gamma, (steps,); -inf for
    # losses and step sizes other than the default, for which no rate is proved
    status: Status

    @property
    def best(self) -> np.ndarray:
        """The best margin among the first t = 1 .. steps iterates, which the guarantee is about."""
        return np.maximum.accumulate(self.margins[:-1])


def train_magnitudes(
    features: Any,
    y: Any,
    *,
    steps: int,
    rate: Callable[[np.ndarray], np.ndarray] | None = None,
    loss: Loss | str | None = None,
) -> FixedFeatureRun:
    """Train the magnitudes of neurons of outputs `features` (n, m) by ascent of the smooth margin.

    r(t + 1) = r(t) + eta(t) m grad F(r(t)) with F(r) = -log mean_n l(z_n . a), a_j = r_j^2 / m,
    r(0) = 1: a / |a|_1 approaches gamma_1 at rate log(t) / sqrt(t), which is proved for the default
    rate and loss. Chizat and Bach 2020, Proposition 6 with the partial sum of Proposition 16 (15).
    """
    loss = margin_loss(loss)
    z, largest = _multiply_by_labels(features, y)
    eta = step_sizes(steps, rate or (lambda t: 1 / (16 * largest * np.sqrt(t + 1))))
    n, m = z.shape

    def move(mean: np.ndarray, shares: np.ndarray, rate: float) -> tuple[np.ndarray, float]:
        grown = mean * (1 + 2 * rate * (shares @ z)) ** 2
        return grown, float(grown.sum())

    margins, log_sizes, weights, status = _ascend(z, np.full(m, 1 / m), eta, move, loss)
    # Any iterate attains its margin, and equal weights of the samples prove a bound, too: that is
    # what is known of the optimum where Ctrl-C comes before it is found.
    optimum, proved = float(margins.max()), float(z.mean(0).max())
    if status is not Status.INTERRUPTED:
        try:
            _, optimum, proved = matrix_game(z)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    t = np.arange(1, len(margins))
    sums = np.cumsum(np.exp(-log_sizes[:-1]) / np.sqrt(t))
    slack = (
        largest / np.sqrt(t) * (8 * math.log(m) + np.log(t) + 1)
        + 4 * math.log(n) / np.sqrt(t) * sums
    )
    known = rate is None and isinstance(loss, Exponential)
    guarantee = optimum - (slack if known else np.full(len(t), np.inf))
    return FixedFeatureRun(margins, log_sizes, weights, optimum, proved, guarantee, status)


def train_output_layer(
    features: Any, y: Any, *, steps: int, loss: Loss | str | None = None
) -> FixedFeatureRun:
    """Train the output layer over neurons of outputs (n, m) by ascent of the smooth margin.

    As `train_magnitudes`, with a = r / m, r(0) = 0: a / beta, beta(t) = max(1, max_s sqrt(m)
    |a(s)|_2), approaches gamma_2 at rate 1 / sqrt(t), with eta / beta = sqrt(2) / (largest sqrt(t +
    1)). Chizat and Bach 2020, Proposition 7.
    """
    loss = margin_loss(loss)
    z, largest = _multiply_by_labels(features, y)
    eta = step_sizes(steps, lambda t: math.sqrt(2) / (largest * np.sqrt(t + 1)))
    n, m = z.shape
    # The max margin without labels: z holds y already.
    solution = linear_max_margin(z, np.ones(n))
    if solution.status is Status.INTERRUPTED:  # Ctrl-C is meant for all of it
        eta = eta[:0]
    if solution.status is Status.NOT_SEPARABLE:
        raise DataError(
            "No output weights classify all samples correctly, so gamma_2 = 0. Take more features."
        )
    optimum, proved = solution.margin / math.sqrt(m), solution.upper_bound / math.sqrt(m)

    # From 0 the weights stay in the span of the samples: a = z' c, for which n x n products are
    # enough.
    products = z @ z.T

    def move(mean: np.ndarray, shares: np.ndarray, rate: float) -> tuple[np.ndarray, float]:
        moved = mean + rate / m * shares
        return moved, max(1.0, math.sqrt(m * max(float(moved @ (products @ moved)), 0.0)))

    margins, log_sizes, coefficients, status = _ascend(products, np.zeros(n), eta, move, loss)
    if solution.status is Status.INTERRUPTED:
        status = Status.INTERRUPTED
    weights = coefficients @ z
    t = np.arange(1, len(margins))
    # An optimum that is not known to be positive guarantees nothing: a division by nearly 0.
    known = max(optimum, np.finfo(float).tiny)
    slack = largest / np.sqrt(t) * (2 * math.sqrt(2) + math.sqrt(3) * math.log(n) / known)
    guarantee = optimum - (slack if isinstance(loss, Exponential) else np.full(len(t), np.inf))
    return FixedFeatureRun(margins, log_sizes, weights, optimum, proved, guarantee, status)


def _multiply_by_labels(features: Any, y: Any) -> tuple[np.ndarray, float]:
    """The matrix z_nj = y_n phi(theta_j, x_n) and its largest absolute entry. Raises DataError."""
    data = binary_data(features, y, bias=False)
    z = data.y[:, None] * data.Z
    if not z.any():
        raise DataError(
            "All features are 0, so every weight has margin 0. Choose neurons that are active on"
            " some sample."
        )
    return z, data.size


def _ascend(
    z: np.ndarray, mean: np.ndarray, eta: np.ndarray, move: Callable[..., Any], loss: Loss
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Status]:
    """Ascend the smooth margin of beta a_bar from beta = 1: margins, log beta, a_bar, status."""
    margins, log_sizes, log_size = np.empty(len(eta) + 1), np.empty(len(eta) + 1), 0.0
    margins[0], log_sizes[0] = (z @ mean).min(), log_size
    done, reached, status = 1, mean, Status.FINISHED
    try:
        # One pass more than there are steps measures the last iterate.
        for t, rate in enumerate(np.append(eta, 0.0)):
            values = z @ mean
            margins[t], log_sizes[t] = values.min(), log_size
            done, reached = t + 1, mean
            if t < len(eta):
                size = math.exp(min(log_size, _LARGEST_LOG_SIZE))
                if isinstance(loss, Exponential):  # whose runs are long: an eighth of the time
                    # Relative to the least value, so that what overflows has share 0.
                    shares = softmax(-size * (values - margins[t]))
                else:
                    shares = sample_weights(torch.from_numpy(-size * values)[None], loss)[0].numpy()
                # beta(t + 1) / beta(t) times a_bar(t + 1), and that ratio: like exp(1 / sqrt t).
                moved, growth = move(mean, shares, rate)
                mean, log_size = moved / growth, log_size + math.log(growth)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return margins[:done], log_sizes[:done], reached, status

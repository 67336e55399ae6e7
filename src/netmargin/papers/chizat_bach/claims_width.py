"""Claims of Chizat and Bach 2020 on the number of neurons: what many of them tend to."""

from typing import Any

import numpy as np
import torch

from ...solvers import f1_max_margin
from ...twolayer import train_both_layers
from ..ledger.claim import claim
from ..ledger.directions import matrix_game
from ..ledger.draws import draw_blobs, draw_directions, draw_points
from ..ledger.regression import slope
from ..ledger.trial import Finding, Trial
from ._instances import PAPER

_MANY = 40_000
"""Neurons that stand for infinitely many: as near as if the widest net had an eighth more."""


@claim(
    "chizat-bach/infinite-width",
    "a net of m neurons, all drawn from one law, tends to the net of infinitely many, uniformly on"
    " bounded times, and its distance falls like m^-1/2",
    source=f"{PAPER}, Theorem 2; the rate is that of independent neurons",
    hypotheses=(
        "squared ReLU, 8 points with random labels, exponential or logistic loss (odd trials),"
        " steps of .01 to t = .4; the largest of three distances, root mean square over 64 other"
        f" points and 24 starts, from a net of {_MANY:,} neurons; m = 20 to 5,120 (first trial:"
        " to 320, 64 starts): a trend"
    ),
    tolerance=0.0,
    because="a fitted exponent within .1 of -1/2, with half of its 95% interval in full trials",
    trials=(1, 6),
    sharpen="trend",
)
def infinite_width(trial: Trial, *, exponent: float = 0.5) -> Finding:
    sizes, starts = (5, 64) if trial.number == 0 else (9, 24)
    X, y = draw_points(trial.random, 8)
    tested = trial.random.normal(size=(64, 2))
    widths = 20 * 2 ** np.arange(sizes)
    all_widths = [_MANY, *np.repeat(widths, starts).tolist()]
    options: dict[str, Any] = {"steps": 40, "snapshots": [10, 20, 40], "records": 1, "power": 2}
    options |= {"loss": "logistic" if trial.number % 2 else "exponential", "dtype": torch.float64}
    options |= {"rate": lambda t: np.full(len(t), 0.01), "seeds": range(len(all_widths))}
    runs = train_both_layers(X, y, width=all_widths, progress=False, **options)
    distances = []
    for snapshot in runs.snapshots:
        masses = np.exp(snapshot.log_masses)[:, None]
        h = masses * np.array([net.decision_function(tested) for net in snapshot.measures])
        squares = ((h[1:] - h[0]) ** 2).mean(1).reshape(sizes, starts)
        distances.append(np.sqrt(squares.mean(1)))
    largest = np.max(distances, 0)
    fit = slope(np.log(widths), np.log(largest))
    off = abs(fit.value + exponent) + (fit.error / 2 if trial.number else 0.0) - 0.1
    shown = f"{largest[0]:.3f} to {largest[-1]:.4f}: m^({fit.value:.3f} +- {fit.error:.3f})"
    return Finding.of(off, f"m = 20 to {widths[-1]:,}", shown)


@claim(
    "chizat-bach/many-directions",
    "gamma_1^(m), the largest margin over m fixed neurons drawn uniformly from the sphere, grows to"
    " gamma_1",
    source=f"{PAPER}, Section 4",
    hypotheses=(
        "24 points in four blobs of the plane, ReLU and squared ReLU; m = 50, 500 and 5,000, each"
        " with the neurons before; by linear programs: a trend"
    ),
    tolerance=1e-6,
    because="gamma_1 to 1e-6; 95% of it at m = 5,000 counts as tending to it",
    trials=(2, 12),
    sharpen="trend",
)
def many_directions(trial: Trial, *, factor: float = 1.0, least: float = 0.95) -> Finding:
    random, power = trial.random, 1 + trial.number % 2
    X, y = draw_blobs(random, 24)
    optimum = factor * f1_max_margin(X, y, power=power).upper_bound
    directions = draw_directions(random, 5000, 3)
    # The best neuron in a direction has half its length in each layer; signs have none.
    features = np.maximum(np.hstack([X, np.ones((24, 1))]) @ directions.T, 0) ** power / (3 - power)
    signed = y[:, None] * features * random.choice([-1, 1], 5000)
    shares = np.array([matrix_game(signed[:, :m])[1] / optimum for m in (50, 500, 5000)])
    criteria = [*-np.diff(shares), shares.max() - 1, least - shares[-1]]
    shown = ", ".join(f"{share:.3f}" for share in shares)
    return Finding.of_one(criteria, f"power {power}, 24 points", f"{shown} of gamma_1")

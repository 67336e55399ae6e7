"""Least-norm interpolation of 200 Gaussian sets: how many are proved, how sharply, in what time.

The sets have 10 to 80 samples of 1 to 3 inputs.

The peer is a linear program of scipy over 2,000 random neurons, for the largest set of each
dimension: what one has without pricing.
"""

import time

import numpy as np
from scipy.optimize import linprog

from netmargin.solvers import min_norm_interpolation

SETS = 200
"""Enough to see rare failures: every count of samples from 10 to 80 about three times."""
OPTIONS = {1: {"tol": 1e-6}, 2: {"tol": 1e-6}, 3: {"tol": 1e-2, "time_limit": 60}}
"""By dimension: with three inputs a proof to 1e-6 takes too long for a benchmark."""
_NEURONS = 2000
"""Random neurons of the peer: 25 times as many as there are samples at most."""


def draw_set(index: int) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) and y (n,), standard normal; d goes round from 1 to 3."""
    random = np.random.default_rng(index)
    n = int(random.integers(10, 81))
    return random.normal(size=(n, index % 3 + 1)), random.normal(size=n)


def sampled_norm(X: np.ndarray, y: np.ndarray) -> float:
    """The least norm over random neurons, which is not below that over all; inf if they fail."""
    Z = np.hstack([X, np.ones((len(X), 1))])
    U = np.random.default_rng(0).normal(size=(_NEURONS, Z.shape[1]))
    A = np.maximum(Z @ U.T / np.linalg.norm(U, axis=1), 0.0)
    found = linprog(np.ones(2 * _NEURONS), A_eq=np.hstack([A, -A]), b_eq=y, method="highs")
    return float(found.fun) if found.status == 0 else np.inf


def main() -> None:
    """Solve all sets, and print one row for each dimension."""
    print(
        " d  sets  proved  worst gap  worst residual  longest s   norm / of random neurons  seconds"
        " / theirs"
    )
    for d, options in OPTIONS.items():
        sets = [draw_set(index) for index in range(SETS) if index % 3 + 1 == d]
        solved = [min_norm_interpolation(X, y, **options) for X, y in sets]
        largest = max(range(len(sets)), key=lambda k: len(sets[k][1]))
        started = time.monotonic()
        sampled = sampled_norm(*sets[largest])
        theirs = time.monotonic() - started
        residual = max(s.residual / np.abs(y).max() for s, (_, y) in zip(solved, sets, strict=True))
        print(
            f"{d:2}  {len(sets):4}  {sum(s.certified for s in solved):6} "
            f" {max(s.gap for s in solved):9.1e}  {residual:14.1e} "
            f" {max(s.seconds for s in solved):9.1f}  {solved[largest].norm / sampled:25.5f} "
            f" {solved[largest].seconds / theirs:16.1f}",
            flush=True,
        )

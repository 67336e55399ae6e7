"""Reads the best net off a restricted problem, also where the search was stopped early."""

import numpy as np

from .restricted_problem import RestrictedProblem

_LEAST_SQUARES_NEURONS = 500
"""Least squares over so many neurons take a fraction of a second for some thousand samples."""
_TRIED_MULTIPLES = 64
"""Quantiles of the bends tried as multiples of the net of least squares: enough to come within a
few per cent of the best one, at no cost.
"""
_RIDGE = 1e-6
"""Ridge of the least squares, relative to the sum of squares of all columns: nearly equal neurons
then share their weight instead of cancelling each other.
"""


def extract_net(
    best: RestrictedProblem, *, early: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The net of a search that has ended: directions (k, D), output signs (k,), weights (k,) with
    sum 1, and the least y f; without neurons where nothing separates the samples.

    A search that is stopped `early`, before any net separates, has nothing but f = 0 to show; then
    it is the net of least squares, which makes few errors, and whose margin may be negative.
    """
    if best.t > 0:
        used = np.flatnonzero(best.weights)
        return best.U[used], best.s[used], best.weights[used], best.t
    if early:
        return _fit_least_squares(best)
    return best.U[:0], best.s[:0], best.weights[:0], 0.0


def extract_soft_net(
    best: RestrictedProblem, C: float, scale: float, *, early: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions (k, D), output signs (k,) and weights alpha (k,) of a soft search that has ended;
    the best multiple of the net of least squares where it was stopped `early` at f = 0.
    """
    used = np.flatnonzero(best.weights)
    if len(used) or not early:
        return best.U[used], best.s[used], best.weights[used] / (best.t * scale)
    U, s, weights, _ = _fit_least_squares(best)
    outputs = best.columns(U, s) @ weights
    # The sum of hinge losses is convex in the multiple and bends at target / output.
    target = best.rows.target
    bends = np.append(0.0, target[outputs > 0] / outputs[outputs > 0])
    multiples = np.quantile(bends, np.linspace(0, 1, _TRIED_MULTIPLES))
    objectives = [m / scale + C * np.maximum(target - m * outputs, 0.0).sum() for m in multiples]
    return U, s, weights * multiples[int(np.argmin(objectives))] / scale


def _fit_least_squares(
    problem: RestrictedProblem,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The net of least squares over the last neurons, missing most, and a linear function."""
    w = np.linalg.lstsq(problem.Z, problem.rows.signs, rcond=None)[0]
    U = np.concatenate(
        [problem.U[-_LEAST_SQUARES_NEURONS:], np.array([w, -w]) / (np.linalg.norm(w) or 1.0)]
    )
    A = problem.columns(U, np.ones(len(U)))
    gram = A.T @ A
    gram += _RIDGE * np.trace(gram) * np.eye(len(U))
    alphas = np.linalg.lstsq(gram, A.sum(0), rcond=None)[0]
    used = alphas != 0
    weights = np.abs(alphas[used]) / (np.abs(alphas).sum() or 1.0)
    s = np.sign(alphas[used])
    return U[used], s, weights, float((A[:, used] @ (s * weights)).min())

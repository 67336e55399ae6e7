"""A cheap proved bound of |sum_i c_i phi(u . z_i)| over the unit sphere in any dimension."""

import numpy as np
from scipy.optimize import minimize_scalar

from ..neurons.activations import RELU, Activation

_TEMPERATURES = 12
"""Values of tau tried over a factor of 30: each is valid, the best within a few per cent."""
_RELATIVE_ROUNDING = 1e-12
"""Room for the rounding of eigenvalues: some 1e-15 of the largest."""
_TINY = 1e-300
"""Keeps scales of 0 from dividing by 0."""


def bound_by_relaxation(Z: np.ndarray, c: np.ndarray, activation: Activation = RELU) -> float:
    """Bound |sum_i c_i phi(u . z_i)| over unit u; for squared ReLU, by the terms of either sign.

    With phi(t) = line t + kink |t| / 2, the positive c are bounded by Cauchy-Schwarz, sum c |t_i|
    <= (C / tau + tau sum c t_i^2)/2 for every tau > 0 with C = sum c, and the negative ones by |t|
    >= t^2 / |z|. What remains is a quadratic form over the ball, whose maximum is bounded by its
    Lagrangian dual at any multiplier; tau and the multiplier are only optimized, never trusted.
    """
    if activation.power == 2:
        forms = np.stack([(Z.T * np.maximum(sign * c, 0.0)) @ Z for sign in (1, -1)])
        return float(np.linalg.eigvalsh(forms)[:, -1].max()) * (1 + _RELATIVE_ROUNDING)
    kinks, linear = activation.kink * c, activation.line * (c @ Z)
    return max(_bound_one_side(Z, kinks, linear), _bound_one_side(Z, -kinks, -linear), 0.0)


def _bound_one_side(Z: np.ndarray, c: np.ndarray, linear: np.ndarray) -> float:
    """An upper bound of linear . u + sum_i c_i |u . z_i| / 2 over the unit ball."""
    positive, negative = np.maximum(c, 0.0), np.maximum(-c, 0.0)
    total = positive.sum()
    norms = np.linalg.norm(Z, axis=1)
    shrink = np.divide(negative, norms, out=np.zeros_like(norms), where=norms > 0)
    plus, minus = (Z.T * positive) @ Z, (Z.T * shrink) @ Z
    if total == 0:
        return _bound_on_ball(-0.5 * minus, linear)
    # Any tau is valid. The natural scale makes both terms of Cauchy-Schwarz equal.
    scale = np.sqrt(total / max(np.linalg.norm(plus, 2), _TINY))
    return min(
        float(0.25 * total / tau) + _bound_on_ball(0.25 * tau * plus - 0.5 * minus, linear)
        for tau in scale * np.logspace(-0.5, 1.0, _TEMPERATURES)
    )


def _bound_on_ball(H: np.ndarray, h: np.ndarray) -> float:
    """Bound u'Hu + h'u over the unit ball by the least mu + h'(mu - H)^{-1} h / 4, mu - H > 0."""
    eigenvalues, vectors = np.linalg.eigh(H)
    weights = 0.25 * (vectors.T @ h) ** 2
    floor = max(eigenvalues[-1], 0.0)

    def dual(log_excess: float) -> float:
        """The Lagrangian dual at mu = floor + exp(log_excess), valid wherever the search ends."""
        mu = floor + np.exp(log_excess)
        return float(mu + (weights / (mu - eigenvalues)).sum())

    # The dual is smooth in log mu; beyond 25 units below its scale it changes by rounding only.
    scale = np.log(np.linalg.norm(h) + np.abs(eigenvalues).max() + _TINY)
    return float(minimize_scalar(dual, bounds=(scale - 25, scale + 2), method="bounded").fun)

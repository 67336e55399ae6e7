"""Proved bounds of many functionals of the first hidden layer at once, by one shared quadratic."""

from typing import Any

import numpy as np

from ..products import share
from .quadratics import bound_length, bound_lengths, diagonalize
from .units import minimize_on_branch, negative_branch, positive_branch

_WEIGHTS = (0.5, 1.0, 2.0)
"""Multiples of the weight that is best for symmetric intervals, tried for each functional."""
_STEPS = 6
"""Newton steps for the multiplier of the ball: each is proved anyway, and more change nothing."""


def bound_functionals(
    functionals: np.ndarray,
    first: np.ndarray,
    anchor: Any,
    slope: Any,
    box: Any,
    sector: Any,
    radius: float,
) -> np.ndarray:
    """Lower bounds of w . t_1 in the ball |u| <= radius, for each row w of functionals (rows, n_1).

    For any g and lam >= 0, and k >= 0 shared by all rows, w . t_1 is at least

        sum over units of min over y in the box of (w t - g y + lam k y^2/2)
        + min over |u| <= radius of g . L u - lam u'L' diag(k) L u/2,

    and the second minimum is at least -mu radius^2/2 - sum p^2/(mu - lam Lambda)/2 in an eigenbasis
    of L' diag(k) L, for any mu above lam Lambda. first : L, (n_1, m). anchor, slope, box, sector :
    those of the layer.
    """
    k = sector.spread
    weighted = np.sqrt(k)[:, None] * first
    basis = diagonalize(weighted.T @ weighted)
    residual = basis.residual + 2 * share(len(first) + 4) * bound_length(weighted) ** 2
    values = basis.values.clip(min=0.0)
    grown = radius * np.sqrt(1 + basis.defect) * (1 + share(1))
    # A convex unit is above its tangent; a concave one loses least about the middle of its sector.
    convex = functionals * (1 - slope) > 0
    tangent = np.where(anchor >= 0, 1.0, slope)
    g = functionals * np.where(convex, tangent, sector.m)
    size = (np.abs(g) @ bound_lengths(first)) * radius
    p = (g @ first) @ basis.vectors
    lost = size * (
        share(len(first)) + 2 * basis.defect + share(p.shape[1]) * bound_length(basis.vectors)
    )
    loss = np.where(convex, 0.0, functionals) ** 2 @ k
    start = np.sqrt(loss / max(values[-1], 1e-300)) / radius
    best = np.full(len(functionals), -np.inf)
    for factor in _WEIGHTS:
        lam = factor * start[:, None]
        mu = _solve_for_ball(p, lam * values, grown)
        poles = mu - lam * values - share(2) * mu  # it may be small beside both
        with np.errstate(divide="ignore", invalid="ignore"):
            fractions = np.where(p != 0, p * p / poles, 0.0).sum(1)
        theta = (g, -functionals, -lam * k, 0.0, 0.0)
        h = np.minimum(
            minimize_on_branch(theta, positive_branch(anchor, slope, box.low, box.high)),
            minimize_on_branch(theta, negative_branch(anchor, slope, box.low, box.high)),
        )
        ball = mu[:, 0] * grown**2 / 2 + fractions / 2 + lam[:, 0] * residual * radius**2 / 2
        lower = h.sum(1) - ball * (1 + share(len(values))) - lost
        lower -= share(len(anchor)) * np.abs(h).sum(1)
        best = np.fmax(best, np.where((poles > 0).all(1), lower, -np.inf))
    return best


def _solve_for_ball(p: np.ndarray, values: np.ndarray, radius: float) -> np.ndarray:
    """The multiplier mu of each row, (rows, 1): |p/(mu - values)| = radius, mu above values."""
    top = values[:, -1:]
    length = np.sqrt((p * p).sum(1, keepdims=True))
    mu: np.ndarray = top * (1 + 1e-9) + np.abs(p[:, -1:]) / radius + 1e-9 * length / radius + 1e-300
    for _ in range(_STEPS):
        s = p / (mu - values)
        norm = np.sqrt((s * s).sum(1, keepdims=True))
        slope = (s * s / (mu - values)).sum(1, keepdims=True)
        step = (norm / radius - 1) * norm**2 / np.where(slope > 0, slope, np.inf)
        mu = np.maximum(mu + step, top * (1 + 1e-9) + 1e-9 * length / radius + 1e-300)
    return mu

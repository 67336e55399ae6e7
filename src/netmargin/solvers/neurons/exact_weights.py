"""The best output weights of given neurons and the multipliers of samples that prove them so, by
an interior point: for losses with corners, constraints, and to tell which neurons are needed.
"""

import clarabel
import numpy as np
from scipy import sparse

from ...core.cone_program import minimize
from .losses import QuadraticLoss
from .samples import Samples

_WORK = 1e8
"""Multiplications of one step of the solver up to which it is used: with 20 to 30 steps 2 seconds.
"""
_TOLERANCE = 1e-9
"""As sharp as an interior point gets without trouble."""
_PROVED = 1e-6
"""The relative gap of weights and multipliers up to which they count as solved."""
_DUST = 1e-7
"""Multipliers below this part of the largest are 0: an interior point leaves some everywhere."""


def weigh_exactly(samples: Samples, W: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The weights (k, K) of neurons W (k, D) and the multipliers p (n, R) of the samples; None
    where the neurons are too many, or cannot keep the constraints.

    The program is the dual one, max sum p target - p^2 / 2 cost over low <= p <= high with |C'
    phi(w_j . z)| <= 1 for every neuron, C the coefficients of p. Weights are its multipliers.
    """
    loss = samples.loss
    assert isinstance(loss, QuadraticLoss)
    (n, R), (k, K) = loss.target.shape, (len(W), loss.labels.outputs)
    wanted = loss.high > 0
    sizes = int(wanted.sum()), k * K
    if not 0 < sizes[0] * sizes[1] * min(sizes) <= _WORK:
        return None
    H = samples.features(W).astype(np.float64)
    pulls = [loss.labels.combine(np.tile(row, (n, 1))) for row in np.eye(R)]
    # Values (k, K) of the neurons as functions of p.
    values = np.einsum("nj,rnc->jcnr", H, pulls)[:, :, wanted]
    count = values.shape[2]
    values = np.concatenate([np.zeros((k, 1, count)), values], axis=1).reshape(-1, count)
    ones = np.tile(np.eye(1, K + 1), k)[0]
    most, least = loss.high[wanted], np.full(count, loss.low)
    sides = sparse.vstack([sparse.eye(count), -sparse.eye(count)], format="csr")
    bounds = np.concatenate([most, -least])
    finite = np.isfinite(bounds)
    A = sparse.vstack([sparse.csc_matrix(values), sides[finite]])
    b = np.concatenate([ones, bounds[finite]])
    cones = [clarabel.SecondOrderConeT(K + 1)] * k
    cones += [clarabel.NonnegativeConeT(len(b) - len(ones))]
    squares = sparse.diags(np.broadcast_to(1 / loss.cost, (n, R))[wanted])
    solution, multipliers = minimize(
        -loss.target[wanted], A, b, cones, quadratic=squares, tol=_TOLERANCE
    )
    p = np.zeros((n, R))
    p[wanted] = np.clip(solution, least, most)
    p[np.abs(p) < _DUST * np.abs(p).max(initial=0.0)] = 0.0
    weights = multipliers[: len(ones)].reshape(k, K + 1)[:, 1:]
    proved = loss.bound(loss.labels.combine(p))
    # At the optimum alone a smooth loss, below one with corners, is as large as what p proves.
    smooth = loss.smoothed(p, 1.0) if loss.exact else loss
    attained = float(np.linalg.norm(weights, axis=1).sum()) + smooth.value(H @ weights)
    return (weights, p) if abs(attained - proved) <= _PROVED * attained else None

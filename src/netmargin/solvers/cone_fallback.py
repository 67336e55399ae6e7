"""The kernel problems by an interior point method, for what steps of two samples do not solve:
samples that nothing separates, kernels that are singular to rounding, a huge C.
"""

from collections.abc import Iterator

import clarabel
import numpy as np
from scipy import sparse

from ..core.cone_program import minimize
from ..core.matrices import EPS, Floats

AFFORDABLE = 1500
"""Samples up to which it is tried: a step takes a second there, and 20 are needed."""


def propose_weights(Q: Floats, caps: Floats, deadline: float) -> Floats:
    """Weights p that minimize p'Qp / 2 - sum p over 0 <= p <= caps; with infinite caps p'Qp over p
    >= 0 with sum 1.

    With Q = F F' and v = F'p / sqrt(C), C the largest cap, |v|^2 is what is minimized, which keeps
    its scaling for every C and has few equations where Q is singular to rounding.
    """
    n, C = len(Q), float(caps.max())
    hard = np.isinf(C)
    if hard:  # features of one length, as the weight of a long one is as small as it is long
        lengths = np.sqrt(np.maximum(np.diagonal(Q), 0.0))
        lengths = np.where(lengths > 0, lengths, 1.0)
        units, sums, cost = 1 / lengths, sparse.csc_matrix(lengths.min() / lengths), np.zeros(n)
    else:
        units, sums, cost = caps / C, sparse.eye(n), -caps / C
    eigenvalues, vectors = np.linalg.eigh(units[:, None] * Q * units)
    kept = eigenvalues > n * EPS * eigenvalues[-1]
    F = vectors[:, kept] * np.sqrt(eigenvalues[kept] * (1.0 if hard else C))
    (m, _), rank = sums.shape, F.shape[1]
    A = sparse.block_array([
        [-sparse.eye(rank), F.T],
        [sparse.csc_matrix((m, rank)), sums],
        [sparse.csc_matrix((n, rank)), -sparse.eye(n)],
    ])  # fmt: skip
    b = np.concatenate([np.zeros(rank), np.ones(m), np.zeros(n)])
    equations = rank + m if hard else rank
    cones = [clarabel.ZeroConeT(equations), clarabel.NonnegativeConeT(len(b) - equations)]
    quadratic = sparse.diags(np.append(np.ones(rank), np.zeros(n)))
    cost = np.append(np.zeros(rank), cost)
    x, _ = minimize(cost, A, b, cones, quadratic=quadratic, tol=1e-12, deadline=deadline)
    p: Floats = units * np.maximum(x[rank:], 0.0)
    if hard:
        return p if p.any() else units
    return np.minimum(C * p, caps)


def drop_dust(weights: np.ndarray) -> Iterator[np.ndarray]:
    """Copies of weights without those below a part of the largest, the largest part first: an
    interior point leaves dust on every sample, and a support vector should be one.
    """
    for part in (1e-4, 1e-6, 1e-8, 1e-10, 0.0):
        yield np.where(weights > part * weights.max(initial=0.0), weights, 0.0)

"""The kernel problems by an interior point method, for what steps of two samples do not solve:
samples that nothing separates, kernels that are singular to rounding, a huge C.
"""

from collections.abc import Iterator

import clarabel
import numpy as np
from scipy import sparse

from ..core.cone_program import minimize
from ..core.matrices import EPS

AFFORDABLE = 1500
"""Samples up to which it is tried: a step takes a second there, and 20 are needed."""


def minimize_norm(Q: np.ndarray, deadline: float) -> np.ndarray:
    """The weights p, >= 0 with sum 1, that minimize p'Qp, to the accuracy of an interior point."""
    n, lengths = len(Q), np.sqrt(np.maximum(np.diagonal(Q), 0.0))
    # Features of one length, as the weight of a long one is as small as it is long.
    lengths = np.where(lengths > 0, lengths, 1.0)
    Q = Q / lengths / lengths[:, None]
    shares = lengths.min() / lengths
    A = sparse.vstack([shares[None], -sparse.eye(n)], format="csc")
    b = np.append(1.0, np.zeros(n))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    x, _ = minimize(np.zeros(n), A, b, cones, quadratic=Q, tol=1e-12, deadline=deadline)
    p = np.maximum(x, 0.0) * shares
    return p if p.sum() > 0 else np.full(n, 1 / n)


def propose_in_box(Q: np.ndarray, caps: np.ndarray, deadline: float) -> Iterator[np.ndarray]:
    """Weights that minimize p'Qp / 2 - sum p over 0 <= p <= caps, by three programs in turn."""
    unit = float(np.abs(Q).max()) or 1.0
    Q, scaled = Q / unit, caps * unit
    # The first is the fastest by far; the others are for a C so large that it loses its digits.
    for solve in (_solve_box, _solve_hard, _solve_factored):
        yield np.clip(solve(Q, scaled, deadline) / unit, 0.0, caps)


def drop_dust(weights: np.ndarray) -> Iterator[np.ndarray]:
    """Copies of weights without those below a part of the largest, the largest part first: an
    interior point leaves dust on every sample, and a support vector should be one.
    """
    for part in (1e-4, 1e-6, 1e-8, 1e-10, 0.0):
        yield np.where(weights > part * weights.max(initial=0.0), weights, 0.0)


def _solve_box(Q: np.ndarray, caps: np.ndarray, deadline: float) -> np.ndarray:
    """Solve it in units of the caps."""
    n = len(Q)
    A = sparse.vstack([sparse.eye(n), -sparse.eye(n)])
    b = np.concatenate([np.ones(n), np.zeros(n)])
    cones = [clarabel.NonnegativeConeT(2 * n)]
    unit = caps.max()
    part = caps / unit
    quadratic = unit * part[:, None] * Q * part[None, :]
    x, _ = minimize(-part, A, b, cones, quadratic=quadratic, tol=1e-10, deadline=deadline)
    return caps * x


def _solve_hard(Q: np.ndarray, caps: np.ndarray, deadline: float) -> np.ndarray:
    """Solve it by the hard margin, optimal where no hinge loss is worth its cost."""
    hard = minimize_norm(Q, deadline)
    return hard * hard.sum() / max(float(hard @ Q @ hard), 1e-300)


def _solve_factored(Q: np.ndarray, caps: np.ndarray, deadline: float) -> np.ndarray:
    """Solve the same problem with p = caps q, Q = F F' and v = F'p / sqrt(C), C the largest cap:
    min |v|^2 / 2 - p . 1 / C over 0 <= q <= 1 keeps its scaling for every C.

    Its equations are dense, so that it is some 30 times slower than `_solve_box`.
    """
    n = len(Q)
    unit = caps.max()
    part = caps / unit
    eigenvalues, vectors = np.linalg.eigh(Q)
    kept = eigenvalues > n * EPS * eigenvalues[-1]
    F = part[:, None] * vectors[:, kept] * np.sqrt(eigenvalues[kept])
    rank = F.shape[1]
    box = sparse.hstack(
        [sparse.csc_matrix((2 * n, rank)), sparse.vstack([sparse.eye(n), -sparse.eye(n)])]
    )
    A = sparse.vstack([np.hstack([-np.eye(rank), np.sqrt(unit) * F.T]), box])
    b = np.concatenate([np.zeros(rank), np.ones(n), np.zeros(n)])
    quadratic = sparse.diags(np.append(np.ones(rank), np.zeros(n)))
    cost = np.append(np.zeros(rank), -part)
    cones = [clarabel.ZeroConeT(rank), clarabel.NonnegativeConeT(2 * n)]
    x, _ = minimize(cost, A, b, cones, quadratic=quadratic, tol=1e-10, deadline=deadline)
    return caps * x[rank:]

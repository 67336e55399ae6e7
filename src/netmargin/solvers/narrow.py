"""The largest margin of two-layer ReLU nets with few neurons: exact for a few samples in the plane, by trying all activation patterns."""

import itertools
import math
import operator

import clarabel
import numpy as np

from ..errors import DataError
from .cone_program import minimize
from .data import binary_data
from .solution import ReLUMeasure

_MOST_PROGRAMS = 200_000


def narrow_max_margin(X, y, width: int, *, bias: bool = False) -> ReLUMeasure:
    """gamma*,m: the best q_min / ||theta||^2 of nets sum_j b_j relu(a_j . x~) with at most m = `width` neurons, not convex in the neurons for m < n.

    Every choice of m neurons' signs and activation patterns leaves a convex problem: max t with y_n sum_j s_j 1[n active for j] v_j . x~_n >= t, v_j in its
    cell, sum_j |v_j| <= 1/2. All of them are solved, so it is for few samples of rank 2: 2n cells with two signs, chosen m at a time.

    Returns the net as a probability measure, balanced, with no atoms where no such net separates the data; its margin is
    `normalized_margin(X, y)`, which is within 1e-6 of the best and recomputed in float64.
    X : (n, d); y : (n,) labels {-1, +1} or {0, 1}. Raises DataError : rank above 2, or more than 200,000 choices.

    >>> import netmargin as nm
    >>> X, y = nm.datasets.parity(2, 2)
    >>> margins = [nm.solvers.narrow_max_margin(X, y, m).normalized_margin(X, y) for m in (1, 2, 3, 4)]
    >>> [round(margin, 6) for margin in margins], round(nm.solvers.f1_max_margin(X, y, bias=False).margin, 6)
    ([0.0, 0.0, 0.0, 0.125], 0.125)

    Source: Wei et al. 2018, Theorem 3.2.
    """
    data, width = binary_data(X, y, bias=bias), operator.index(width)
    if width < 1:
        raise DataError(f"width must be at least 1; got {width}")
    Z = data.Z / data.size
    patterns = _patterns(Z)
    choices = [(pattern, sign) for pattern in patterns for sign in (1.0, -1.0)]
    programs = math.comb(len(choices), width) if width <= len(choices) else 1
    if programs > _MOST_PROGRAMS:
        raise DataError(
            f"{len(choices)} neurons chosen {width} at a time are {programs:,} problems; take fewer samples or a smaller width."
        )
    best, atoms, weights = 0.0, np.zeros((0, Z.shape[1] + 1)), np.zeros(0)
    for chosen in itertools.combinations(choices, min(width, len(choices))):
        covered = np.any([pattern & (data.y * sign > 0) for pattern, sign in chosen], axis=0)
        if not covered.all():  # no neuron of the right sign is active on some sample
            continue
        v = _solve(Z, data.y, chosen)
        found = _measure(v, np.array([sign for _, sign in chosen]), bias)
        margin = found.normalized_margin(data.Z[:, : Z.shape[1] - bias], data.y) if len(found.weights) else 0.0
        if margin > best:
            best, atoms, weights = margin, found.atoms, found.weights
    return ReLUMeasure(atoms=atoms, weights=weights, bias=bias)


def _patterns(Z: np.ndarray) -> list[np.ndarray]:
    """Activation patterns of all directions: points of rank 2 have one per arc between the normals of their lines."""
    _, singular, rows = np.linalg.svd(Z, full_matrices=False)
    rank = int((singular > 1e-12 * max(singular[0], 1e-300)).sum())
    if rank > 2:
        raise DataError(f"The points have rank {rank}; patterns are enumerated up to rank 2 (with a bias: one coordinate).")
    plane = Z @ rows[: max(rank, 1)].T
    if rank < 2:
        return [plane[:, 0] > 0, plane[:, 0] < 0]
    used = plane[np.linalg.norm(plane, axis=1) > 0]
    walls = np.sort((np.arctan2(used[:, 1], used[:, 0])[:, None] + np.array([np.pi / 2, -np.pi / 2])).ravel() % (2 * np.pi))
    middles = walls + 0.5 * np.diff(np.append(walls, walls[0] + 2 * np.pi))
    found = np.column_stack([np.cos(middles), np.sin(middles)]) @ plane.T > 0
    return list(np.unique(found, axis=0))


def _solve(Z: np.ndarray, y: np.ndarray, chosen) -> np.ndarray:
    """Neurons v, (m, D), of the convex problem with these patterns and signs."""
    n, D = Z.shape
    m = len(chosen)
    outputs = np.hstack([(y * sign * pattern)[:, None] * Z for pattern, sign in chosen])
    cells = np.zeros((m * n, m * D))
    for j, (pattern, _) in enumerate(chosen):
        cells[j * n : (j + 1) * n, j * D : (j + 1) * D] = np.where(pattern, 1.0, -1.0)[:, None] * Z
    # Over x = (v, sizes, t): t - outputs v <= 0, -cells v <= 0, sum of sizes <= 1/2, |v_j| <= sizes_j.
    A = [
        np.hstack([-outputs, np.zeros((n, m)), np.ones((n, 1))]),
        np.hstack([-cells, np.zeros((m * n, m + 1))]),
        np.concatenate([np.zeros(m * D), np.ones(m), [0.0]])[None],
    ]
    for j in range(m):
        cone = np.zeros((1 + D, m * D + m + 1))
        cone[0, m * D + j] = -1.0
        cone[1:, j * D : (j + 1) * D] = -np.eye(D)
        A.append(cone)
    right = np.concatenate([np.zeros(n + m * n), [0.5], np.zeros(m * (1 + D))])
    cones = [clarabel.NonnegativeConeT(n + m * n + 1), *[clarabel.SecondOrderConeT(1 + D)] * m]
    x, _ = minimize(np.append(np.zeros(m * D + m), -1.0), np.vstack(A), right, cones, tol=1e-10)
    return x[: m * D].reshape(m, D)


def _measure(v: np.ndarray, signs: np.ndarray, bias: bool) -> ReLUMeasure:
    """The balanced net of neurons s_j relu(v_j . x~), as a probability measure."""
    sizes = np.linalg.norm(v, axis=1)
    used = sizes > 1e-9 * sizes.max(initial=0.0)
    atoms = np.column_stack([v[used] / sizes[used, None], signs[used]]) / np.sqrt(2)
    return ReLUMeasure(atoms=atoms, weights=sizes[used] / sizes[used].sum() if used.any() else np.zeros(0), bias=bias)

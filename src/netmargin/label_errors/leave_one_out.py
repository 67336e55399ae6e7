"""What all other samples predict for each one: kernel ridge regression in closed form.

Y holds 0.9 in the column of the given label and -0.1 elsewhere, and W the weights of samples. With
A = K + ridge W^-1, the predictions for a group G of samples of the regression that saw none of them
are Y_G - ((A^-1)_GG)^-1 (A^-1 Y)_G, exactly and for all groups at once; a sample is a group of one.

Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, Section 5.4.2 (the
same formula for Gaussian processes).
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lapack, solve_triangular

from ..core.matrices import Floats

RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Ridges among which leave-one-out errors choose; the kernel has diagonal 1. Best were 0.03 to 0.1
on images with 10% wrong labels, and 1 on tables.
"""
EXACT_UP_TO = 5000
"""Samples up to which the regression is exact: two matrices of 200 MB, and some seconds."""
CENTRES = 3000
"""Centres of the approximation above that: 60,000 images of MNIST then take 150 CPU seconds."""
_ROWS_AT_ONCE = 2000
"""Rows of the kernel per step, of 3,000 centres 48 MB."""
_JITTER = 1e-10
"""Added to the kernel of the centres, whose diagonal is 1: copies of a sample make it singular."""


def encode_labels(classes: np.ndarray, count: int) -> Floats:
    """The targets Y, shape (n, count): 0.9 for the class of each sample, -0.1 for the others."""
    return np.eye(count)[classes, :] - 0.1


def median_distance(features: np.ndarray) -> float:
    """The median distance of two different samples; 1 where most samples are the same."""
    distances = _distances(features, features)[np.triu_indices(len(features), 1)]
    return float(np.median(distances)) or 1.0


def laplace_kernel(A: np.ndarray, B: np.ndarray, scale: float) -> Floats:
    """exp(-|a - b| / scale) of each row of A and each of B, float64."""
    K = _distances(A, B)
    K /= -scale
    return np.exp(K, out=K)


def squared_errors(
    K: Floats, Y: Floats, weights: Floats, together: Sequence[np.ndarray] = ()
) -> Floats:
    """The mean squared error, with weights, of predictions left out, for each of the RIDGES."""
    heavy = np.sqrt(weights)[:, None]
    values, vectors = np.linalg.eigh(heavy * K * heavy.T)
    vectors *= heavy
    errors = []
    for ridge in RIDGES:
        root = vectors / np.sqrt(np.maximum(values, 0) + ridge)
        residual = _leave_out(root.T, Y, together)
        errors.append(np.average(np.square(residual).mean(axis=1), weights=weights))
    return np.array(errors)


def predict_exactly(
    K: Floats, Y: Floats, ridge: float, weights: Floats, together: Sequence[np.ndarray] = ()
) -> Floats:
    """Predictions, (n, C), each without its group, from the kernel of all, which changes."""
    # Of A^-1 = L^-T L^-1 some blocks and the products with Y are needed, which L^-1 gives.
    inverse, _ = lapack.dtrtri(_factor(K, ridge / weights), lower=1, overwrite_c=1)
    return Y - _leave_out(inverse, Y, together)


def _leave_out(root: Floats, Y: Floats, together: Sequence[np.ndarray]) -> Floats:
    """((A^-1)_GG)^-1 (A^-1 Y)_G of each group G, where A^-1 is the product of root' and root."""
    solved = root.T @ (root @ Y)
    residual: Floats = solved / np.einsum("ij,ij->j", root, root)[:, None]
    for rows in together:
        columns = root[:, rows]
        residual[rows] = np.linalg.solve(columns.T @ columns, solved[rows])
    return residual


def predict_approximately(
    features: np.ndarray,
    Y: Floats,
    scale: float,
    centres: np.ndarray,
    ridge: float,
    weights: Floats,
    together: Sequence[np.ndarray] = (),
) -> Floats:
    """Predictions as of `predict_exactly`, shape (n, C), of the regression on some centres.

    The kernel is replaced by K_nm K_mm^-1 K_mn over m centres: a linear regression in m features
    phi, whose errors E without a group are (I - H)^-1 times those of the fit, H = phi G^-1 phi' and
    G the regularized Gram matrix; phi and E are multiplied by roots of weights. In float64
    throughout: in float32 they lose their digits.

    A sample that is a centre is left out as a centre as well: with its own column of the kernel
    left to it, a centre is where the other samples extrapolate most, and of the 25 labels of MNIST
    that scored lowest 17 were those of centres, where 1 is to be expected. Without centre j the
    weights w of the features are orthogonal to u = L^-1 e_j, L the root of the kernel of the
    centres. With U the u of a group's centres and q = phi G^-1 U, that moves its errors by

        - (I - H)^-1 q (U' G^-1 U + q' (I - H)^-1 q)^-1 (U' w + q' E).
    """
    points = features[centres]
    root = _factor(laplace_kernel(points, points, scale), _JITTER)
    heavy: Floats = np.sqrt(weights)[:, None]
    mapped = np.empty((len(features), len(root)))
    parts = [slice(n, n + _ROWS_AT_ONCE) for n in range(0, len(features), _ROWS_AT_ONCE)]
    for part in parts:
        block = laplace_kernel(points, features[part], scale)
        mapped[part] = heavy[part] * _solve(root, block).T
    factor = _factor(mapped.T @ mapped, ridge)
    # From here on w, U and phi are multiplied by the inverse of the Cholesky factor of G.
    fit = _solve(factor, mapped.T @ (heavy * Y))
    own = _solve(factor, _solve(root, np.eye(len(root))))
    for part in parts:
        mapped[part] = _solve(factor, mapped[part].T).T
    errors = mapped @ fit - heavy * Y
    singles = np.setdiff1d(centres, [row for rows in together for row in rows])
    found: Floats = errors / (1 - np.einsum("ij,ij->i", mapped, mapped))[:, None]
    for rows in [*singles[:, None], *together]:
        phi, U = mapped[rows], own[:, np.isin(centres, rows)]
        q, system = phi @ U, np.eye(len(rows)) - phi @ phi.T
        error, moved = np.linalg.solve(system, errors[rows]), np.linalg.solve(system, q)
        pull = np.linalg.solve(U.T @ U + q.T @ moved, U.T @ fit + q.T @ error)
        found[rows] = error - moved @ pull
    return Y + found / heavy


def _solve(factor: Floats, B: Floats) -> Floats:
    """The product of the inverse of a lower triangle and B, which changes."""
    B = solve_triangular(factor, B, lower=True, overwrite_b=True, check_finite=False)
    return B


def _factor(K: Floats, ridge: Floats | float) -> Floats:
    """The lower Cholesky factor of K plus a ridge, ten times as large where rounding asks it."""
    K[np.diag_indices_from(K)] += ridge
    try:
        root: Floats = cholesky(K, lower=True, check_finite=False)
    except LinAlgError:
        if not np.all(ridge < len(K)):  # numbers that are none
            raise
        return _factor(K, 10 * ridge)
    return root


def _distances(A: np.ndarray, B: np.ndarray) -> Floats:
    """The distance of each row of A and each of B, float64."""
    same = A is B
    A = A.astype(np.float64, copy=False)
    # Of a matrix and its own transpose BLAS computes one half.
    B = A if same else B.astype(np.float64, copy=False)
    squares: Floats = A @ B.T
    squares *= -2
    squares += np.square(A).sum(1)[:, None]
    squares += np.square(B).sum(1)[None]
    # Rounding leaves copies slightly below zero.
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)

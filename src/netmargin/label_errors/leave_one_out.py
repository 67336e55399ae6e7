"""What all other samples predict for each one: kernel ridge regression in closed form.

Y holds 0.9 in the column of the given label and -0.1 elsewhere. With A = K + ridge I, the
prediction for sample n of the regression that never saw sample n is Y_n - (A^-1 Y)_n / (A^-1)_nn,
exactly and for all n at once. Labels enter through Y alone.

Samples have weights W, A = K + ridge W^-1. Those of a group G are left out together: of the
regression that saw none of them the predictions are Y_G - ((A^-1)_GG)^-1 (A^-1 Y)_G.

Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, Section 5.4.2 (the
same formula for Gaussian processes).
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cholesky, lapack, solve_triangular

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


def encode_labels(classes: np.ndarray, count: int) -> np.ndarray:
    """The targets Y, shape (n, count): 0.9 for the class of each sample, -0.1 for the others."""
    Y = np.full((len(classes), count), -0.1)
    Y[np.arange(len(classes)), classes] = 0.9
    return Y


def median_distance(features: np.ndarray) -> float:
    """The median distance of two different samples; 1 where most samples are the same."""
    distances = _distances(features, features)[np.triu_indices(len(features), 1)]
    return float(np.median(distances)) or 1.0


def laplace_kernel(A: np.ndarray, B: np.ndarray, scale: float) -> np.ndarray:
    """exp(-|a - b| / scale) of each row of A and each of B, float64."""
    K = _distances(A, B)
    K /= -scale
    return np.exp(K, out=K)


def squared_errors(
    K: np.ndarray, Y: np.ndarray, weights: np.ndarray, together: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """The mean squared error, with weights, of predictions left out, for each of the RIDGES.

    All of them share one decomposition of K, which is why they are compared on few samples only.
    """
    root = np.sqrt(weights)[:, None]
    values, vectors = np.linalg.eigh(root * K * root.T)
    vectors *= root
    projected = vectors.T @ Y
    errors = []
    for ridge in RIDGES:
        shrink = 1 / (np.maximum(values, 0) + ridge)
        solved = vectors @ (shrink[:, None] * projected)
        residual = solved / (np.square(vectors) @ shrink)[:, None]
        for rows in together:
            block = (vectors[rows] * shrink) @ vectors[rows].T
            residual[rows] = np.linalg.solve(block, solved[rows])
        errors.append(np.average(np.square(residual).mean(axis=1), weights=weights))
    return np.array(errors)


def predict_exactly(
    K: np.ndarray,
    Y: np.ndarray,
    ridge: float,
    weights: np.ndarray,
    together: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Predictions, shape (n, C), from the kernel of all samples, each without its group.

    weights : of each sample, (n,). together : the samples of each group of more than one. K is
    overwritten.
    """
    factor = _factor(K, ridge / weights)
    # Of A^-1 = L^-T L^-1 some blocks and the products with Y are needed, which L^-1 gives.
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    diagonal = np.einsum("ij,ij->j", inverse, inverse)
    solved = inverse.T @ (inverse @ Y)
    found = Y - solved / diagonal[:, None]
    for rows in together:
        columns = inverse[:, rows]
        found[rows] = Y[rows] - np.linalg.solve(columns.T @ columns, solved[rows])
    return found


def predict_approximately(
    features: np.ndarray,
    Y: np.ndarray,
    scale: float,
    ridge: float,
    centres: np.ndarray,
    weights: np.ndarray,
    together: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Predictions as of `predict_exactly`, shape (n, C), of the regression on some centres.

    The kernel is replaced by K_nm K_mm^-1 K_mn over m centres. That regression is a linear one in m
    features, whose predictions without a group are exact (`_leave_out`). In float64 throughout: in
    float32 they lose their digits. A sample that is a centre is left out as a centre as well: with
    its own column of the kernel left to it, a centre is where the other samples extrapolate most,
    and of the 25 labels of MNIST that scored lowest 17 were those of centres, where 1 is to be
    expected.
    """
    points = features[centres]
    root = _factor(laplace_kernel(points, points, scale), _JITTER)
    starts = range(0, len(features), _ROWS_AT_ONCE)
    gram, projected = np.zeros_like(root), np.zeros((len(root), Y.shape[1]))
    mapped = np.empty((len(features), len(root)))
    for start in starts:
        part = slice(start, start + _ROWS_AT_ONCE)
        block = laplace_kernel(points, features[part], scale)
        mapped[part] = solve_triangular(
            root, block, lower=True, overwrite_b=True, check_finite=False
        ).T
        # Of a matrix and its own transpose BLAS computes one half.
        weighted = np.sqrt(weights[part, None]) * mapped[part]
        gram += weighted.T @ weighted
        projected += mapped[part].T @ (weights[part, None] * Y[part])
    factor = _factor(gram, ridge)
    fit = solve_triangular(factor, projected, lower=True)
    own = solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False)
    own = solve_triangular(factor, own, lower=True, overwrite_b=True, check_finite=False)
    column = np.full(len(features), -1)
    column[centres] = np.arange(len(centres))
    found = np.empty_like(Y)
    for start in starts:
        part = slice(start, start + _ROWS_AT_ONCE)
        half = solve_triangular(factor, mapped[part].T, lower=True, check_finite=False)
        mapped[part] = half.T
        leverage = np.square(half).sum(axis=0)[:, None]
        error = (half.T @ fit - Y[part]) / (1 - weights[part, None] * leverage)
        found[part] = Y[part] + error
    singles = np.setdiff1d(centres, np.concatenate([[], *together]).astype(int))
    for rows in [*singles[:, None], *together]:
        own_columns = own[:, column[rows][column[rows] >= 0]]
        found[rows] = _leave_out(mapped[rows], own_columns, fit, Y[rows], weights[rows])
    return found


def _factor(K: np.ndarray, ridge: np.ndarray | float) -> np.ndarray:
    """The lower Cholesky factor of K, which changes, and `ridge` on its diagonal; of ten times as
    much where the rounding of distances, of near copies above all, has left it indefinite.
    """
    K[np.diag_indices_from(K)] += ridge
    try:
        return cholesky(K, lower=True, check_finite=False)
    except LinAlgError:
        if not np.all(ridge < len(K)):  # numbers that are none
            raise
        return _factor(K, 10 * ridge)


def _leave_out(
    half: np.ndarray, own: np.ndarray, fit: np.ndarray, Y: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Predictions for a group by the regression without it as samples and as centres.

    With G the regularized Gram matrix, phi the features of the group and H = phi G^-1 phi', the
    errors of the fit become M (fit - Y), M = (I - H W)^-1. Leaving centre j out means w . u = 0 for
    the weights w of the features, with u = L^-1 e_j and L the root of the kernel of the centres.
    With U the u of the group's centres and q = phi G^-1 U, these constraints move errors E by

        - M q (U' G^-1 U + q' W M q)^-1 (U' w + q' W E).

    half, own, fit : features, (g, m), the U, (m, c), and products of features and targets, (m, C),
    all multiplied by the inverse of the lower Cholesky factor of G.
    """
    system = np.eye(len(half)) - half @ half.T * weights
    error = np.linalg.solve(system, half @ fit - Y)
    if own.shape[1]:
        shared = half @ own
        moved, weighted = np.linalg.solve(system, shared), weights * shared.T
        curvature = own.T @ own + weighted @ moved
        error -= moved @ np.linalg.solve(curvature, own.T @ fit + weighted @ error)
    return Y + error


def _distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The distance of each row of A and each of B, float64."""
    same = A is B
    A = A.astype(np.float64, copy=False)
    # Of a matrix and its own transpose BLAS computes one half.
    B = A if same else B.astype(np.float64, copy=False)
    squares = A @ B.T
    squares *= -2
    squares += np.square(A).sum(1)[:, None]
    squares += np.square(B).sum(1)[None]
    # Rounding leaves copies slightly below zero.
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)

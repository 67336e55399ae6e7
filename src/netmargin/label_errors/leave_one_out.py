"""What all other samples predict for each one: kernel ridge regression in closed form.

Y holds 0.9 in the column of the given label and -0.1 elsewhere. With A = K + ridge I, the
prediction for sample n of the regression that never saw sample n is Y_n - (A^-1 Y)_n / (A^-1)_nn,
exactly and for all n at once. Labels enter through Y alone.

Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, Section 5.4.2 (the
same formula for Gaussian processes).
"""

import numpy as np
from scipy.linalg import cholesky, lapack, solve_triangular

from ..core.memory import require_memory

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


def squared_errors(K: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """The mean squared leave-one-out error of each of the RIDGES.

    All of them share one decomposition of K, which is why they are compared on few samples only.
    """
    values, vectors = np.linalg.eigh(K)
    projected = vectors.T @ Y
    errors = []
    for ridge in RIDGES:
        shrink = 1 / (np.maximum(values, 0) + ridge)
        diagonal = np.square(vectors) @ shrink
        residual = (vectors @ (shrink[:, None] * projected)) / diagonal[:, None]
        errors.append(np.square(residual).mean())
    return np.array(errors)


def predict_exactly(K: np.ndarray, Y: np.ndarray, ridge: float) -> np.ndarray:
    """Leave-one-out predictions, shape (n, C), from the kernel of all samples; K is overwritten."""
    K[np.diag_indices_from(K)] += ridge
    factor = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    # Of A^-1 = L^-T L^-1 the diagonal and the products with Y are needed, which L^-1 gives.
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    diagonal = np.einsum("ij,ij->j", inverse, inverse)
    return Y - inverse.T @ (inverse @ Y) / diagonal[:, None]


def predict_approximately(
    features: np.ndarray, Y: np.ndarray, scale: float, ridge: float, centres: np.ndarray
) -> np.ndarray:
    """Leave-one-out predictions, shape (n, C), of the regression on some centres.

    The kernel is replaced by K_nm K_mm^-1 K_mn over m centres. That regression is a linear one in m
    features, whose leave-one-out predictions are exact: (H Y - h Y) / (1 - h), H its hat matrix and
    h the diagonal of H. In float64 throughout: in float32 1 - h loses its digits. A sample that is
    a centre is left out as a centre as well (`_leave_centres_out`).
    """
    require_memory(
        8 * len(features) * len(centres),
        f"The search among {len(features):,} samples",
        "Take a random part of them.",
    )
    points = features[centres]
    K = laplace_kernel(points, points, scale)
    K[np.diag_indices_from(K)] += _JITTER
    root = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    starts = range(0, len(features), _ROWS_AT_ONCE)
    gram, projected = np.zeros_like(root), np.zeros((len(root), Y.shape[1]))
    mapped = np.empty((len(features), len(root)))
    for start in starts:
        part = slice(start, start + _ROWS_AT_ONCE)
        block = laplace_kernel(points, features[part], scale)
        mapped[part] = solve_triangular(
            root, block, lower=True, overwrite_b=True, check_finite=False
        ).T
        gram += mapped[part].T @ mapped[part]
        projected += mapped[part].T @ Y[part]
    gram[np.diag_indices_from(gram)] += ridge
    factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
    weights = solve_triangular(factor, projected, lower=True)
    found = np.empty_like(Y)
    for start in starts:
        part = slice(start, start + _ROWS_AT_ONCE)
        half = solve_triangular(factor, mapped[part].T, lower=True, check_finite=False)
        leverage = np.square(half).sum(axis=0)[:, None]
        found[part] = (half.T @ weights - leverage * Y[part]) / (1 - leverage)
    found[centres] = _leave_centres_out(root, factor, weights, mapped[centres], Y[centres])
    return found


def _leave_centres_out(
    root: np.ndarray, factor: np.ndarray, weights: np.ndarray, mapped: np.ndarray, Y: np.ndarray
) -> np.ndarray:
    """Predictions for the centres, each by the regression without it as a sample and as a centre.

    With its own column of the kernel left to it, a centre is where the other samples extrapolate
    most: of the 25 labels of MNIST that scored lowest 17 were those of centres, where 1 is to be
    expected. Leaving centre j out means w . u = 0 for the weights w of the mapped features, with
    u = L^-1 e_j and L the root. With G the regularized Gram matrix, phi the features of the sample,
    h its leverage and s = phi . G^-1 u, the constraint moves the prediction by

        - s / (1 - h) * (u . w + s (phi . w - Y) / (1 - h)) / (u . G^-1 u + s^2 / (1 - h)).

    root, factor : lower Cholesky factors of the kernel of the centres, and of G. weights : the
    inverse of `factor` times the features' products with the targets. mapped, Y : those of the
    centres.
    """
    half = solve_triangular(factor, mapped.T, lower=True, check_finite=False)
    own = solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False)
    half_own = solve_triangular(factor, own, lower=True, overwrite_b=True, check_finite=False)
    rest = 1 - np.square(half).sum(axis=0)[:, None]
    fitted, along = half.T @ weights, half_own.T @ weights
    shared = (half * half_own).sum(axis=0)[:, None]
    error = (fitted - Y) / rest
    curvature = np.square(half_own).sum(axis=0)[:, None] + shared**2 / rest
    return Y + error - shared / rest * (along + shared * error) / curvature


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

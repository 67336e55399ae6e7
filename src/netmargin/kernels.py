"""Kernels of infinitely wide two-layer ReLU nets, in closed form. Inputs X of shape (n, d), X2 of shape (m, d); float64 results (n, m).

With a bias, every input gets a last coordinate 1. Angles are computed from both cosine and sine, so that nearly parallel inputs
lose no digits.
"""

import numpy as np


def arc_cosine(X, X2=None, *, bias: bool = True) -> np.ndarray:
    """The kernel of the RKHS F_2: k(x, x') = E_u relu(u . x) relu(u . x'), u uniform on the unit sphere.

    Equals |x| |x'| (sin t + (pi - t) cos t) / (2 pi D), t the angle between x and x', D their dimension with the bias.
    Source: Chizat and Bach 2020, (5); Wei et al. 2018, (3.8).

    >>> import numpy as np
    >>> from netmargin.kernels import arc_cosine
    >>> arc_cosine([[1.0, 0.0], [0.0, 1.0]], bias=False) * 2 * np.pi * 2 / np.pi      # E over the circle of relu(u1)^2 is 1/4
    array([[1.        , 0.31830989],
           [0.31830989, 1.        ]])
    """
    A, B = _inputs(X, bias), _inputs(X if X2 is None else X2, bias)
    size, angle = _polar(A, B)
    return size * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi * A.shape[1])


def ntk(X, X2=None, *, r_w: float = 1.0, r_u: float = 1.0, bias: bool = False) -> np.ndarray:
    """The tangent kernel of sum_j w_j relu(u_j . x) per unit: r_u^2 E[relu relu] + r_w^2 x . x' P(both active).

    Directions of u are uniform on the unit sphere; r_u and r_w scale the first and second layer at initialization. r_w = 0 leaves the
    kernel of the output layer alone (then it is r_u^2 `arc_cosine`). Source: Wei et al. 2019, Section 2.
    """
    A, B = _inputs(X, bias), _inputs(X if X2 is None else X2, bias)
    size, angle = _polar(A, B)
    both_active = (np.pi - angle) / (2 * np.pi)
    return r_u**2 * arc_cosine(A, B, bias=False) + r_w**2 * size * np.cos(angle) * both_active


def _inputs(X, bias: bool) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    return np.hstack([X, np.ones((len(X), 1))]) if bias else X


def _polar(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products of norms, and angles; the angle to a zero vector counts as 0, where its kernels vanish anyway."""
    a, b = np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)
    U = np.divide(A, a[:, None], out=np.zeros_like(A), where=a[:, None] > 0)
    V = np.divide(B, b[:, None], out=np.zeros_like(B), where=b[:, None] > 0)
    cosine = U @ V.T
    # |u - v| = 2 sin(t/2) and |u + v| = 2 cos(t/2): accurate near t = 0 and t = pi, where arccos is not.
    near = np.abs(cosine) > 0.9
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    rows, columns = np.nonzero(near)
    for start in range(0, len(rows), 1 << 18):
        i, j = rows[start : start + (1 << 18)], columns[start : start + (1 << 18)]
        half = np.arctan2(np.linalg.norm(U[i] - V[j], axis=1), np.linalg.norm(U[i] + V[j], axis=1))
        angle[i, j] = 2 * half
    return a[:, None] * b[None, :], angle

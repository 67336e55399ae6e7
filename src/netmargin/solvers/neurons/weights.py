"""The best output weights of given neurons: min sum_j |A_j| + loss(H A), a convex problem."""

import numpy as np

from .samples import Samples
from .slide import minimize_smoothly

_NEWTON_STEPS = 8
"""Newton's method has the weights of one output after some five steps; more are rounding."""
_MODEL_STEPS = 500
"""Steps for the quadratic model over k weights, which cost k^2 each."""
_STEP_LENGTHS = 0.5 ** np.arange(8.0)
"""Lengths tried in a line search: the model of what is piecewise quadratic is seldom far off."""
_GAIN = 1e-7
"""Newton's method ends where a step gains less than this part."""
_STEPS = 100
"""Steps of L-BFGS for several outputs: as many neurons are nearly 0 after them as after more."""
_TINY = 1e-30
"""Keeps weights of 0 from dividing by 0."""


def weigh(samples: Samples, W: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The weights (k, K) of neurons W (k, D), starting from A (k, K)."""
    H = samples.features(W)
    if A.shape[1] > 1:
        return _weigh_several(samples, H, A)
    signs = np.where(A >= 0, 1.0, -1.0)
    return signs * _weigh_one(samples, H * signs.T.astype(H.dtype), np.abs(A[:, 0]))[:, None]


def _weigh_one(samples: Samples, H: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Weights a (k,) >= 0 of signed features H (n, k) by Newton's method, each step of which is a
    quadratic program.
    """
    loss = samples.loss

    def evaluate(a: np.ndarray) -> tuple[float, np.ndarray]:
        F = (H @ a.astype(H.dtype)).astype(np.float64)[:, None]
        return float(a.sum()) + loss.value(F), F

    value, F = evaluate(a)
    for _ in range(_NEWTON_STEPS):
        slope = 1 - (loss.slopes(F)[:, 0].astype(H.dtype) @ H).astype(np.float64)
        bends = loss.curvatures(F)
        used = bends > 0
        roots = H[used] * np.sqrt(bends[used, None]).astype(H.dtype)
        Q = (roots.T @ roots).astype(np.float64)
        moved = _minimize_model(Q, slope, a)
        for length in _STEP_LENGTHS:
            tried = a + length * (moved - a)
            lower, outputs = evaluate(tried)
            if lower < value:
                break
        else:
            break
        gain, a, F, value = value - lower, tried, outputs, lower
        if gain <= _GAIN * value:
            break
    return a


def _minimize_model(Q: np.ndarray, slope: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The minimum over b >= 0 of slope . (b - a) + (b - a) Q (b - a) / 2."""

    def evaluate(b: np.ndarray) -> tuple[float, np.ndarray]:
        step = b - a
        turn = Q @ step
        return float(slope @ step + step @ turn / 2), slope + turn

    return minimize_smoothly(evaluate, a, _MODEL_STEPS, bounds=[(0, None)] * len(a))


def _weigh_several(samples: Samples, H: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Weights A (k, K) = r v by L-BFGS, at the price (r^2 + |v|^2) / 2 as in `slide`."""
    k, loss, dtype = len(A), samples.loss, H.dtype

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        r, V = x[:k, None], x[k:].reshape(k, -1)
        F = (H @ (r * V).astype(dtype)).astype(np.float64)
        G = (H.T @ loss.slopes(F).astype(dtype)).astype(np.float64)
        value = float(x @ x) / 2 + loss.value(F)
        return value, np.concatenate([x[:k] - (G * V).sum(1), (V - r * G).ravel()])

    sizes = np.sqrt(np.linalg.norm(A, axis=1))
    x = np.concatenate([sizes, (A / np.maximum(sizes, _TINY)[:, None]).ravel()])
    x = minimize_smoothly(evaluate, x, _STEPS)
    return x[:k, None] * x[k:].reshape(k, -1)

"""All neurons descend together: min sum_j |A_j| + loss(F) as a smooth problem without constraints.

A neuron u of length |u| with outputs v stands for A = |u| v at w = u / |u|, at the price (|u|^2 +
|v|^2) / 2, which is at least |A|, and equal where both are as long. So the least price is that of
the problem, whose minimum has no other local one than what neurons that are not there could mend.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...core.matrices import Floats
from .samples import Samples, pull

_MEMORY = 20
"""Pairs of steps that L-BFGS keeps; each is two copies of the neurons."""
_TINY = 1e-30
"""Keeps neurons of length 0 from dividing by 0."""
_FEW = 0.5
"""Samples with slopes are picked out if fewer than this part: else copying is dearer."""


def slide(samples: Samples, W: np.ndarray, A: np.ndarray, steps: int) -> tuple[np.ndarray, ...]:
    """Move neurons W (k, D) and outputs A (k, K) by so many steps of L-BFGS; returns both."""
    size = np.sqrt(np.linalg.norm(A, axis=1, keepdims=True))
    x = np.concatenate([(size * W).ravel(), (A / np.maximum(size, _TINY)).ravel()])
    x = minimize_smoothly(lambda x: _evaluate(samples, x, len(W)), x, steps)
    U, V = _unpack(x, *W.shape)
    lengths = np.linalg.norm(U, axis=1, keepdims=True)
    return U / np.maximum(lengths, _TINY), lengths * V


def minimize_smoothly(evaluate: Any, x: Floats, steps: int) -> Floats:
    """The point that so many steps of L-BFGS lead to, where `evaluate` has value and gradient."""
    options = {"maxiter": steps, "maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0}
    x = minimize(evaluate, x, jac=True, method="L-BFGS-B", options=options).x
    return x


def _unpack(x: np.ndarray, k: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """U (k, D) and V (k, K) of the variables."""
    return x[: k * D].reshape(k, D), x[k * D :].reshape(k, -1)


def _evaluate(samples: Samples, x: np.ndarray, k: int) -> tuple[float, np.ndarray]:
    """The objective and its gradient."""
    activation, dtype = samples.activation, samples.Z.dtype
    U, V = _unpack(x, k, samples.Z.shape[1])
    lengths = np.linalg.norm(U, axis=1, keepdims=True)
    W = U / np.maximum(lengths, _TINY)
    weights, V_, W_ = (lengths * V).astype(dtype), V.astype(dtype), W.astype(dtype)
    value, G, slopes = float(x @ x) / 2, np.zeros(V.shape), np.zeros(U.shape)
    for part in samples.blocks(k):
        Z, t = part.Z, part.Z @ W_.T
        features = activation.feature(t)
        F = (features @ weights).astype(np.float64)
        value += part.loss.value(F)
        C = part.loss.slopes(F).astype(dtype)
        used = C.any(1)
        if used.mean() < _FEW:
            Z, t, features, C = Z[used], t[used], features[used], C[used]
        G += features.T @ C
        slopes += pull(Z, C, V_, t, activation)
    # u -> |u| phi(u . z / |u|): a power above 1 also changes with the length.
    slopes += (1 - activation.power) * (G * V).sum(1, keepdims=True) * W
    return value, np.concatenate([(U - slopes).ravel(), (V - lengths * G).ravel()])

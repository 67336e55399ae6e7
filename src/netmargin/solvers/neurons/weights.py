"""The best output weights of given neurons: min sum_j |A_j| + loss(H A), a convex problem."""

import numpy as np

from ...core.matrices import Floats
from .losses import Loss
from .samples import Samples
from .slide import minimize_smoothly

_NEWTON_STEPS = 20
"""Newton's method has the weights of one output after some five steps; more are rounding."""
_MODEL_STEPS = 1000
"""Weights that leave or enter a quadratic model, one a step: seldom more than there are neurons."""
_STEP_LENGTHS = 0.5 ** np.arange(30.0)
"""Lengths tried in a line search: all take less time than a model, which may be far off."""
_WORTH = 1e-10
"""A neuron enters that is worth more than its cost by so much: less is the rounding of sums."""
_STEPS = 100
"""Steps of L-BFGS for several outputs: as many neurons are nearly 0 after them as after more."""
_TINY = 1e-30
"""Keeps weights and models of 0 from dividing by 0."""


def weigh(samples: Samples, W: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The weights (k, K) of neurons W (k, D) from A (k, K) on, where 0 gets the sign that pays."""
    H = samples.features(W)
    if A.shape[1] > 1:
        return _weigh_several(samples, H, A)
    C = samples.loss.slopes((H @ A.astype(H.dtype)).astype(np.float64))
    signs = np.where(np.where(A == 0, H.T @ C.astype(H.dtype), A) >= 0, 1.0, -1.0)
    return signs * _weigh_one(samples.loss, H * signs.T.astype(H.dtype), np.abs(A[:, 0]))[:, None]


def _weigh_one(loss: Loss, H: np.ndarray, a: Floats) -> Floats:
    """The weights (k,) >= 0 of signed features H (n, k) from a (k,) on, by quadratic programs."""
    precision = float(np.finfo(H.dtype).eps)

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
        # Equal neurons must not get huge steps of opposite signs.
        Q += max(precision * np.trace(Q), _TINY) * np.eye(len(a))
        moved = _minimize_model(Q, slope, a)
        for length in _STEP_LENGTHS:
            tried = a + length * (moved - a)
            lower, outputs = evaluate(tried)
            if lower < value:
                break
        else:
            break
        gain, a, F, value = value - lower, tried, outputs, lower
        if gain <= precision * value:
            break
    return a


def _minimize_model(Q: np.ndarray, slope: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The minimum over b >= 0 of slope . (b - a) + (b - a) Q (b - a) / 2, by active sets."""
    b, used, turn = a.copy(), a > 0, slope
    # It falls until a weight is 0, which leaves; at a minimum the neuron of steepest slope enters.
    for _ in range(_MODEL_STEPS):
        some = np.flatnonzero(used)
        step = np.linalg.solve(Q[np.ix_(some, some)], -turn[some])
        room = np.divide(b[some], -step, out=np.full(len(some), np.inf), where=step < 0)
        length = min(1.0, float(room.min(initial=1.0)))
        b[some] = np.where(room <= length, 0.0, b[some] + length * step)
        used[some] = room > length
        turn = slope + Q @ (b - a)
        if length == 1:
            idle = np.where(used, 0.0, turn)
            best = int(idle.argmin())
            if idle[best] >= -_WORTH:
                break
            used[best] = True
    return b


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

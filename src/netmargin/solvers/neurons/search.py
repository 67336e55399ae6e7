"""The search for neurons of large value |sum_n phi(w . z_n) C_n| at coefficients C (n, K), which
proves nothing: a look says how hard it searched.

Gradients lead to the region of a maximum, but halt on concave kinks (samples that pull a neuron to
w . z_n = 0), where maxima usually lie; a Newton method on smoothed kinks then settles the best.
"""

from dataclasses import dataclass

import numpy as np

from .activations import Activation
from .samples import pull, respond, slices

_ROWS = 5000
"""Samples on which a look begins: the region of a maximum is seen from a part of them."""
_LONGER, _SHORTER = 1.5, 0.3
"""Factors of the step length after a success and a failure."""
_LARGEST_STEPS = np.array([1.0, 1.0, 1.0, 0.05])
"""Largest step lengths of the starts, in turn. Steps of 1 reach most maxima soon, but can leap off
a narrow hill though it is the highest: none of 768 such starts stayed on one in the plane.
"""
_ALIKE = 0.98
"""Neurons of a larger cosine lead to one maximum, mostly: the best of them go on first."""
_NEAR = 0.8
"""High maxima lie near others. Of 1,500 starts at this cosine to known neurons 149 led to new ones
above 1.02, of random ones 46 (5,000 x 20, five classes; cosines of .7 and .9: 91 and 133).
"""
_SAME = 1 - 1e-6
"""Neurons of a larger cosine are one."""
_SETTLING_STEPS, _SMOOTHING = 10, (0.1, 1e-6)
"""Newton steps, and relative widths of the smoothed kinks, from the first to the last."""
_SETTLING_WORK = 1e9
"""Multiplications of one settling: about half a second of one core, in which as many neurons are
settled as it is enough for.
"""
_STEEPEST = 1e9
"""The largest curvature of a kink: beyond it linear systems lose their digits."""
_TINY = 1e-30
"""Keeps what is 0 from dividing by 0."""


@dataclass(frozen=True)
class Look:
    """How hard a search looks: random starts, starts near known neurons, steps on a part of the
    samples, how many distinct neurons go on with all samples, and for how many steps.
    """

    starts: int
    near: int
    first_steps: int
    kept: int
    steps: int


QUICK = Look(starts=96, near=96, first_steps=15, kept=48, steps=15)
QUICK_OF_SEVERAL = Look(starts=192, near=576, first_steps=30, kept=256, steps=15)
"""The looks of a round, for one output and for several, which have more maxima."""
THOROUGH = Look(starts=768, near=0, first_steps=30, kept=128, steps=60)
"""The look that judges: eight times as many starts find what a quick look misses; on 11 random
problems another one of the same size with another seed found values at most .02 above it.
"""


def find_neurons(
    Z: np.ndarray,
    C: np.ndarray,
    known: np.ndarray,
    look: Look,
    activation: Activation,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct neurons W (m, D) of locally largest value at C (n, K), and their responses G (m, K),
    largest first. `known` (k, D) are neurons to start from as well, the best first.
    """
    used = np.flatnonzero(C.any(1))
    Z, C = Z[used], C[used]
    if not len(Z):
        return np.zeros((0, Z.shape[1])), np.zeros((0, C.shape[1]))
    some = random.choice(len(Z), _ROWS, replace=False) if len(Z) > _ROWS else slice(None)
    drawn = _draw_starts(Z, look.starts, random)
    starts = np.concatenate([known[: look.kept], drawn, _draw_near(known, look.near, random)])
    W, G = _ascend(Z[some], C[some], starts, look.first_steps, activation)
    # Where few are that different, the others go on too: ascents that halt early may be alike.
    apart, near = (select_distinct(W, G, look.kept, cosine)[0] for cosine in (_ALIKE, _SAME))
    W = np.concatenate([apart, near])[: look.kept]
    W, G = _ascend(Z, C, W, look.steps, activation)
    settled = _settle(Z, C, np.concatenate(_share(known, W, Z)), activation)
    W = np.concatenate([W, known, settled])
    return select_distinct(W, respond(Z, C, W, activation), len(W), _SAME)


def select_distinct(
    W: np.ndarray, G: np.ndarray, count: int, cosine: float
) -> tuple[np.ndarray, np.ndarray]:
    """The neurons of largest response up to `count`, none with a cosine above that of a better."""
    chosen: list[int] = []
    free = np.ones(len(W), dtype=bool)
    # A stable order makes the result the same on every machine where values tie.
    for index in np.argsort(-np.linalg.norm(G, axis=1), kind="stable").tolist():
        if len(chosen) == count:
            break
        if free[index]:
            chosen.append(index)
            free &= W @ W[index] <= cosine
    return W[chosen], G[chosen]


def _draw_starts(Z: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Unit starts: samples or their opposites, differences of two, and normal ones, in turn."""
    signs = random.choice([-1.0, 1.0], size=(count, 1))
    first, second = Z[random.integers(len(Z), size=(2, count))].astype(np.float64)
    kind = np.arange(count)[:, None] % 3
    normal = random.normal(size=first.shape)
    return _unit(np.where(kind == 0, signs * first, np.where(kind == 1, first - second, normal)))


def _draw_near(known: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Starts at a cosine of about _NEAR to some of the known neurons, in random directions."""
    W = known[random.integers(len(known), size=count)] if len(known) else known
    return _unit(_NEAR * W + np.sqrt(1 - _NEAR**2) * _unit(random.normal(size=W.shape)))


def _ascend(
    Z: np.ndarray, C: np.ndarray, W: np.ndarray, steps: int, activation: Activation
) -> tuple[np.ndarray, np.ndarray]:
    """Ascend along gradients from unit neurons W (m, D), each with a step length of its own."""
    G = respond(Z, C, W, activation)
    gradients = _climb(Z, C, W, G, activation)
    values, most = np.linalg.norm(G, axis=1), np.resize(_LARGEST_STEPS, (len(W), 1))
    lengths = most
    for _ in range(steps):
        # On a cell the maximum of one output is at the gradient: step towards it, less far where
        # that does not help.
        moved = _unit(W + lengths * (_unit(gradients) - W))
        responses = respond(Z, C, moved, activation)
        larger = np.linalg.norm(responses, axis=1)
        better = larger > values
        W[better], G[better], values[better] = moved[better], responses[better], larger[better]
        gradients[better] = _climb(Z, C, W[better], G[better], activation)
        lengths = np.where(better[:, None], np.minimum(most, _LONGER * lengths), _SHORTER * lengths)
    return W, G


def _climb(
    Z: np.ndarray, C: np.ndarray, W: np.ndarray, G: np.ndarray, activation: Activation
) -> np.ndarray:
    """The gradients (m, D) of the lengths of the responses G (m, K) of neurons W (m, D)."""
    V = (G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), _TINY)).astype(Z.dtype)
    C, W_, gradients = C.astype(Z.dtype), W.astype(Z.dtype), np.zeros(W.shape)
    for rows in slices(len(Z), len(W)):
        gradients += pull(Z[rows], C[rows], V, Z[rows] @ W_.T, activation)
    return gradients


def _share(known: np.ndarray, found: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The neurons to settle, as many as can be, half of them known ones."""
    count = int(_SETTLING_WORK / (_SETTLING_STEPS * 2 * len(Z) * Z.shape[1] ** 2)) + 2
    old = known[: max(count // 2, count - len(found))]
    return old, found[: count - len(old)]


def _settle(Z: np.ndarray, C: np.ndarray, W: np.ndarray, activation: Activation) -> np.ndarray:
    """Move unit neurons W (m, D) into the kinks where maxima lie, by majorizing and minimizing:
    convex terms are linearized, concave |t| are replaced by t^2 / 2h + h / 2, h = |t| smoothed ever
    less. Each step is a linear system: the maximum of f on the sphere is that of f(w) - |w|^2 / 2
    up to length.
    """
    if activation.kink == 0:
        return W
    Z, C = Z.astype(np.float64), C.astype(np.float64)
    lengths = np.linalg.norm(Z, axis=1)
    settled = []
    for w in W:
        best, largest = w, -np.inf
        for smoothing in (*np.geomspace(*_SMOOTHING, _SETTLING_STEPS), None):
            t = Z @ w
            G = activation.feature(t) @ C
            value = float(np.linalg.norm(G))
            if value > largest:  # a step may lead downhill while the smoothing is wide
                best, largest = w, value
            if smoothing is None:
                break
            c = C @ (G / max(value, _TINY))
            kinks = activation.kink / 2 * c
            linear = (activation.line * c + np.maximum(kinks, 0.0) * np.sign(t)) @ Z
            concave = np.maximum(-kinks, 0.0)
            # At the length of the value, where the maximum of f(w) - |w|^2 / 2 is.
            smooth = np.hypot(t, smoothing * lengths) * max(value, _TINY)
            curvature = concave / np.maximum(smooth, np.maximum(concave / _STEEPEST, _TINY))
            moved = np.linalg.solve((curvature[:, None] * Z).T @ Z + np.eye(len(w)), linear)
            w = moved / max(float(np.linalg.norm(moved)), _TINY)
        settled.append(best)
    return np.array(settled).reshape(-1, Z.shape[1])


def _unit(W: np.ndarray) -> np.ndarray:
    """Rows at length 1; rows of length 0 stay 0."""
    return W / np.maximum(np.linalg.norm(W, axis=1, keepdims=True), _TINY)

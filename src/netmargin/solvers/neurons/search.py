"""The search for neurons of large value |sum_n phi(w . z_n) C_n| at coefficients C, which proves
nothing: a look says how hard it searched.

Gradients lead to the region of a maximum, but halt on concave kinks (samples that pull a neuron to
w . z_n = 0), where maxima usually lie; a Newton method on smoothed kinks then settles the best.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.matrices import Floats
from .activations import RELU, Activation
from .samples import pull, respond, slices

# Nothing here is proved: these numbers trade time for the maxima that are found, set by trial.

_LONGER, _SHORTER, _SHORTEST = 1.5, 0.5, 1e-4
"""Factors of the step length after a success and a failure, and the length at which ascent ends. On
two problems of 60 samples in 8 dimensions other factors (1.1 to 2, 0.25 to 0.8) and lengths (1e-2,
1e-7) led to margins that were smaller by up to 0.7%.
"""
_LEAST_GAIN = 1e-9
"""Ascent ends where a step gains less, if there are kinks: Newton's method is faster then."""
_SAME = 1 - 1e-10
"""Neurons of a larger cosine are one: they are 1e-5 apart."""
_SETTLED, _SETTLED_AT_LEAST, _SETTLING_WORK = 24, 4, 2.5e7
"""Neurons that Newton's method settles where no look says how many, and the least number of them: a
step takes about n D^2 multiplications for each, and of these so many are enough.
"""
_SETTLING_STEPS, _SMOOTHING = 20, (0.1, 1e-7)
"""Newton steps, and relative widths of the smoothed kinks, from the first to the last of them: wide
enough to leave a kink, then so narrow that the maximum is found to half the digits of float64.
"""
_HELD = (1e-2, 1e-3, 1e-4)
"""Distances from kinks, in units of the sample, within which they hold a neuron at last: where they
pull weakly, it is still that far from them, and up to 1e-4 below the maximum.
"""
_ENTRIES_AT_ONCE = 50_000_000
"""Entries of the Newton matrices that are built at once: 400 MB."""
_STEEPEST = 1e11
"""Largest curvature of a kink: beyond it, linear systems lose all digits (1e16 in float64)."""
_SINGULAR = 1e15
"""Largest entries of a system beside 1, for samples far out: beyond, it is singular in float64."""
_TINY = 1e-300
"""Keeps what is 0 from dividing by 0."""

_ROWS = 5000
"""Samples on which a look begins: the region of a maximum is seen from a part of them."""
_RAYS = 8
"""Samples or opposites drawn for each start at one, the best: a value costs 1/30 of an ascent."""
_LARGEST_STEPS = np.array([1.0, 1.0, 1.0, 0.05])
"""Largest step lengths of the starts of a look, in turn. Steps of 1 reach most maxima soon, but can
leap off a narrow hill though it is the highest: none of 768 such starts stayed on one in the plane.
"""
_FEW_DIMENSIONS = 12
"""Dimensions up to which a quarter of the starts are where as many kinks meet as can; in more,
those that bound a hill are seldom drawn. Of 24 thorough looks at 60 samples in 6 dimensions four
found up to 7% more with them, and two up to 1.7% less.
"""
_ALIKE = 0.98
"""Neurons of a larger cosine lead to one maximum, mostly: the best of them go on first."""
_NEAR = 0.8
"""High maxima lie near others. Of 1,500 starts at this cosine to known neurons 149 led to new ones
above 1.02, of random ones 46 (5,000 x 20, five classes; cosines of .7 and .9: 91 and 133).
"""


@dataclass(frozen=True)
class Look:
    """How hard a search looks: starts, half of them samples, starts near known neurons, steps on a
    part of the samples, how many neurons go on with all, for how many steps, and how many settle.
    """

    starts: int
    near: int
    first_steps: int
    kept: int
    steps: int
    settled: int = _SETTLED


QUICK = Look(starts=96, near=96, first_steps=15, kept=48, steps=15)
QUICK_OF_SEVERAL = Look(starts=192, near=576, first_steps=30, kept=256, steps=15)
"""The looks of a round, for one output and for several, which have more maxima."""
THOROUGH = Look(starts=2048, near=768, first_steps=30, kept=256, steps=60, settled=1024)
"""The look that judges. What comes first need not do so once it is settled: with 24 settled, and no
starts at kinks, 11 of those 24 looks found .9 to 9% less. It found 1.0478 from 5 seeds where
one of ten times as many starts found 1.0481 (5,000 x 20, five classes), and 1.0001 to 1.0049 where
that found 1.0074 (digits); 768 starts without samples of large value found 1.0017 to 1.0075, and
1.0001 to 1.0029.
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
    largest first, by a look. `known` (k, D) are neurons to start from as well, the best first.
    """
    used = np.flatnonzero(C.any(1))
    Z, C = Z[used], C[used]
    if not len(Z):
        return np.zeros((0, Z.shape[1])), np.zeros((0, C.shape[1]))
    some = random.choice(len(Z), _ROWS, replace=False) if len(Z) > _ROWS else slice(None)
    half = look.starts // 2
    rays = draw_starts(Z, random, samples=_RAYS * half, normal=0)
    rays = rays[np.argsort(-_lengths(respond(Z[some], C[some], rays, activation)))[:half]]
    edges = _draw_edges(Z, half // 2 if Z.shape[1] <= _FEW_DIMENSIONS else 0, random)
    normal = draw_starts(Z, random, samples=0, normal=half - len(edges))
    # At a cosine of about _NEAR to some of the known neurons, in random directions.
    near = known[random.integers(len(known), size=look.near)] if len(known) else known
    near = _unit(_NEAR * near + np.sqrt(1 - _NEAR**2) * _unit(random.normal(size=near.shape)))
    starts = np.concatenate([known[: look.kept], rays, normal, edges, near])
    longest = np.resize(_LARGEST_STEPS, len(starts))
    W, G = _ascend(Z[some], C[some], starts, look.first_steps, activation, longest=longest)
    # Where few are that different, the others go on too: ascents that halt early may be alike.
    kept = max(look.kept, _count_settled(Z, look.settled))
    apart, near = (select_distinct(W, G, kept, cosine)[0] for cosine in (_ALIKE, _SAME))
    W = np.concatenate([apart, near])[:kept]
    return search_neurons(
        Z,
        C,
        W,
        known=known,
        count=len(W) + len(known),
        activation=activation,
        steps=look.steps,
        settled=look.settled,
    )


def search_neurons(
    Z: np.ndarray,
    C: np.ndarray,
    starts: np.ndarray,
    *,
    count: int,
    known: np.ndarray | None = None,
    activation: Activation = RELU,
    steps: int = 30,
    settled: int = _SETTLED,
    deadline: float = math.inf,
) -> tuple[np.ndarray, np.ndarray]:
    """Find up to `count` distinct unit neurons W (m, D) by ascents from `starts` (k, D) and from
    `known` neurons, with their responses sum_n phi(w . z_n) C_n to C (n,) or (n, K), largest first.
    """
    W, G = _ascend(Z, C, _unit(starts), steps, activation, deadline=deadline)
    if known is not None:
        W, G = np.concatenate([W, known]), np.concatenate([G, respond(Z, C, known, activation)])
    W, G = select_distinct(W, G, count)
    if activation.kink:
        ends = _settle(Z, C, W[: _count_settled(Z, settled)], activation, deadline)
        W = np.concatenate([W, ends])
        G = np.concatenate([G, respond(Z, C, ends, activation)])
        W, G = select_distinct(W, G, count)
    return W, G


def draw_starts(
    Z: np.ndarray, random: np.random.Generator, *, samples: int, normal: int
) -> np.ndarray:
    """Unit neurons (k, D) to search from: the samples Z and their opposites, or a random
    `samples` of these, where local maxima are near, and `normal` ones, which reach everywhere else.
    """
    rays = np.concatenate([Z, -Z])
    if len(rays) > samples:
        rays = rays[random.choice(len(rays), samples, replace=False)]
    return unit_rows(np.concatenate([rays, random.normal(size=(normal, Z.shape[1]))]))


def unit_rows(W: Floats) -> Floats:
    """The rows of W (m, D) that have a direction, at length 1."""
    lengths: Floats = np.linalg.norm(W, axis=1)
    kept = (lengths > 0) & (lengths < np.inf)
    return W[kept] / lengths[kept, None]


def select_distinct(
    W: np.ndarray, G: np.ndarray, count: int, cosine: float = _SAME
) -> tuple[np.ndarray, np.ndarray]:
    """The neurons of largest response up to `count`, none with a cosine above that of a better."""
    chosen: list[int] = []
    free = np.ones(len(W), dtype=bool)
    # A stable order makes the result the same on every machine where values tie.
    for index in np.argsort(-_lengths(G), kind="stable").tolist():
        if len(chosen) == count:
            break
        if free[index]:
            chosen.append(index)
            free &= W @ W[index] <= cosine
    return W[chosen], G[chosen]


def _draw_edges(Z: Floats, count: int, random: np.random.Generator) -> Floats:
    """Starts at which D - 1 of the samples Z (n, D) have w . z_n = 0, as at most maxima."""
    D = Z.shape[1]
    crossing = Z[random.integers(len(Z), size=(count, D - 1))]
    ends: Floats = np.linalg.svd(crossing, full_matrices=True)[2][:, -1]
    return random.choice([-1.0, 1.0], size=(count, 1)) * ends


def _ascend(
    Z: Any,
    C: Any,
    W: np.ndarray,
    steps: int,
    activation: Activation,
    *,
    deadline: Any = math.inf,
    longest: Any = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Ascend from unit neurons W (m, D), each by lengths of its own up to the `longest` (m,)."""
    G, gradients = _climb(Z, C, W, np.full(len(W), -np.inf), activation)
    values, longest = _lengths(G), np.broadcast_to(longest, len(W))
    lengths, least_gain = longest.copy(), _LEAST_GAIN if activation.kink else 0.0
    # Neurons that have arrived are left out of the products, which take all the time.
    live = np.arange(len(W))
    for _ in range(steps):
        # On a cell the maximum of one output is at the gradient: step there, or less far.
        moved = _unit(W[live] + lengths[live, None] * (gradients[live] - W[live]))
        responses, slopes = _climb(Z, C, moved, values[live], activation)
        gains = _lengths(responses) - values[live]
        better = gains > 0
        to = live[better]
        W[to], G[to], gradients[to] = moved[better], responses[better], slopes[better]
        values[to] += gains[better]
        lengths[live] *= np.where(better, _LONGER, _SHORTER)
        lengths[live] = np.minimum(longest[live], lengths[live])
        gained = gains > least_gain * values[live]
        short = lengths[live] <= _SHORTEST * longest[live]
        live = live[np.where(better, gained, ~short)]
        if not len(live) or time.monotonic() > deadline:
            break
    return W, G


def _climb(
    Z: Any, C: Any, W: np.ndarray, least: np.ndarray, activation: Activation
) -> tuple[np.ndarray, np.ndarray]:
    """Responses (m, K), and directions (m, D) of steepest ascent for values above `least` (m,)."""
    gradients, C_ = np.zeros(W.shape), _columns(C).astype(Z.dtype)
    if C_.shape[1] == 1:  # one pass is enough: gradients have the values
        gradients = _pull_all(Z, C_, W, np.ones((len(W), 1)), activation)
        G = (gradients * W).sum(1) / activation.power
        gradients *= np.where(G >= 0, 1.0, -1.0)[:, None]
        return G.reshape(len(W), *C.shape[1:]), _unit(gradients)
    G = respond(Z, C, W, activation)
    values = _lengths(G)
    better = values > least
    V = G[better] / np.maximum(values[better], _TINY)[:, None]
    gradients[better] = _unit(_pull_all(Z, C_, W[better], V, activation))
    return G, gradients


def _pull_all(Z: Any, C: Any, W: np.ndarray, V: np.ndarray, activation: Activation) -> np.ndarray:
    """The gradients sum_n phi'(w_j . z_n) (C_n . V_j) z_n (m, D)."""
    W, V, gradients = W.astype(Z.dtype), V.astype(Z.dtype), np.zeros(W.shape)
    for rows in slices(len(Z), len(W)):
        gradients += pull(Z[rows], C[rows], V, Z[rows] @ W.T, activation)
    return gradients


def _settle(Z: Any, C: Any, W: np.ndarray, activation: Activation, deadline: float) -> np.ndarray:
    """Move unit neurons W (m, D) into the kinks where maxima lie, by majorizing and minimizing:
    convex terms are linearized, concave |t| are replaced by t^2 / 2h + h / 2, h = |t| smoothed ever
    less. A step is a linear system: the maximum on the sphere is that of f(w) - |w|^2 / 2.
    """
    Z, C, D = Z.astype(np.float64), _columns(C).astype(np.float64), Z.shape[1]
    lengths = np.linalg.norm(Z, axis=1)
    steepest = np.minimum(_STEEPEST, _SINGULAR / np.maximum(lengths, 1.0) ** 2)
    batch = max(1, _ENTRIES_AT_ONCE // (len(Z) * D))
    best, largest = W.copy(), np.full(len(W), -np.inf)
    # A narrow kink holds whatever comes near it; smoothing that shrinks lets neurons leave.
    steps = [(width, 2.0) for width in np.geomspace(*_SMOOTHING, _SETTLING_STEPS)]
    for smoothing, held in (*steps, *((0.0, width) for width in _HELD), (0.0, 0.0)):
        t = W @ Z.T
        G = activation.feature(t) @ C
        values = _lengths(G)
        # A step may lead downhill while the smoothing is wide: the best ones are kept.
        better = values > largest
        best[better], largest[better] = W[better], values[better]
        if not held or time.monotonic() > deadline:
            break
        if not smoothing:
            W, t, values = best, best @ Z.T, largest
            G = activation.feature(t) @ C
        values = np.maximum(values, _TINY)[:, None]
        c = (G / values) @ C.T
        kinks = activation.kink / 2 * c
        # Those farther than that are lines.
        concave = np.where(np.abs(t) < held * lengths, np.maximum(-kinks, 0.0), 0.0)
        linear = (activation.line * c + (kinks + concave) * np.sign(t)) @ Z
        # At the length of the value, where the maximum of f(w) - |w|^2 / 2 is.
        smooth = np.hypot(t, smoothing * lengths) * values if smoothing else 0.0
        curvature = concave / np.maximum(smooth, np.maximum(concave / steepest, _TINY))
        moved = np.empty_like(W)
        for start in range(0, len(W), batch):
            part = slice(start, start + batch)
            quadratic = np.matmul((curvature[part, :, None] * Z).transpose(0, 2, 1), Z) + np.eye(D)
            moved[part] = np.linalg.solve(quadratic, linear[part, :, None])[:, :, 0]
        W = _unit(moved)
    return best


def _count_settled(Z: np.ndarray, most: int) -> int:
    """Up to so many neurons that it is affordable to settle."""
    affordable = int(_SETTLING_WORK / (len(Z) * Z.shape[1] ** 2))
    return min(most, max(_SETTLED_AT_LEAST, affordable))


def _columns(G: np.ndarray) -> np.ndarray:
    """One output as a column."""
    return G[:, None] if G.ndim == 1 else G


def _lengths(G: Floats) -> Floats:
    """The values (m,) of responses G, (m,) or (m, K)."""
    return np.abs(G) if G.ndim == 1 else np.linalg.norm(G, axis=1)


def _unit(W: np.ndarray) -> np.ndarray:
    """Rows at length 1; rows of length 0 stay 0."""
    W = W / np.maximum(np.linalg.norm(W, axis=1, keepdims=True), _TINY)
    return W

"""A ball of inputs as the judge sees it: a neighbour of the chain whose values are exact floats."""

import math
from dataclasses import dataclass

import numpy as np

from .boxes import Box, BoxBuilder
from .chain import Chain
from .quadratics import bound_length, bound_lengths, share


@dataclass(frozen=True)
class CompactChain:
    """A chain with its first layer in few coordinates: W_1 = L Q + rest, with few rows of Q.

    Where inputs outnumber the units of the first layer, only Qd counts, which has that many
    entries. Attributes hold for all anchors.

    Attributes
    ----------
    chain : Chain
        The chain.
    first : float64 array, (n_1, m)
        L, with m = min(n_0, n_1).
    growth : float
        An upper bound of the norm of Q: |Qd| <= growth |d|.
    rest : float64 array, (n_1,)
        Upper bounds of the norms of the rows of W_1 - L Q.
    """

    chain: Chain
    first: np.ndarray
    growth: float
    rest: np.ndarray


def compact(chain: Chain) -> CompactChain:
    """Write the first layer of a chain in an orthonormal basis of its rows, if that is smaller."""
    weight = chain.weights[0]
    units, inputs = weight.shape
    if inputs <= units:
        return CompactChain(chain, weight, 1.0, np.zeros(units))
    q, r = np.linalg.qr(weight.T)
    first, q = np.ascontiguousarray(r.T), np.ascontiguousarray(q.T)
    rest = bound_lengths(weight - first @ q) * (1 + share(1))
    # |L| |Q| has rows of at most |L_i| |Q|_F.
    rest += share(units) * (bound_lengths(first) * bound_length(q) + bound_lengths(weight))
    defect = bound_length(q @ q.T - np.eye(units)) + share(inputs) * bound_length(q) ** 2
    return CompactChain(chain, first, float(np.sqrt(1 + 2 * defect)), rest)


@dataclass(frozen=True)
class Ball:
    """All inputs within a radius of an anchor, and what a chain can do with them.

    It is about a neighbour of the net, which has the same weights, but L in place of W_1 and biases
    that make the computed values at the anchor exact. `output_errors` says how far the scores of
    neighbour and net differ at most, anywhere in the ball: all rounding of the values, of folded
    layers and of the basis is in it. The intervals hold for the neighbour.

    Attributes
    ----------
    weights : tuple of float64 arrays, (n_k, n_{k-1})
        L, W_2 .. W_{K+1}: y_1 = L u for |u| <= radius.
    slopes : tuple of float
        The slopes s_1 .. s_K of the chain.
    radius : float
        The radius in u, at least that in inputs.
    anchors : tuple of float64 arrays, (n_k,)
        z^_1 .. z^_K, the neighbour's values at the anchor.
    scores : float64 array, (n_{K+1},)
        z^_{K+1}.
    low, high : tuples of float64 arrays, (n_k,)
        low <= z_k - z^_k <= high in the ball, for k = 1 .. K; they contain 0.
    output_errors : float64 array, (n_{K+1},)
        Bounds of |score of the net - score of the neighbour| in the ball.
    """

    weights: tuple[np.ndarray, ...]
    slopes: tuple[float, ...]
    radius: float
    anchors: tuple[np.ndarray, ...]
    scores: np.ndarray
    low: tuple[np.ndarray, ...]
    high: tuple[np.ndarray, ...]
    output_errors: np.ndarray

    def fix_stable(self, layer: int) -> np.ndarray:
        """The signs of the units of a layer, 0 .. K - 1, that cannot change in the ball, else 0."""
        z, low, high = self.anchors[layer], self.low[layer], self.high[layer]
        return ((low >= -z).astype(np.int8) - (high <= -z)).astype(np.int8)


def enclose(compacted: CompactChain, anchor: np.ndarray, radius: float) -> Ball:
    """Enclose all values of a chain on a ball, with proved intervals of all pre-activations.

    Parameters
    ----------
    compacted : CompactChain
        The chain, from `compact`.
    anchor : float64 array, (n_0,)
        The centre of the ball.
    radius : float
        Its radius, positive and finite.

    Returns
    -------
    Ball
        Intervals, and bounds of what rounding may have changed.
    """
    assert 0 < radius < math.inf
    chain, anchor = compacted.chain, np.asarray(anchor, np.float64).reshape(-1)
    values = [value[0] for value in chain.evaluate(anchor[None])]
    weights = (compacted.first, *chain.weights[1:])
    grown = radius * compacted.growth * (1 + share(1))
    builder = BoxBuilder(compacted.first, grown)
    boxes = [builder.box]
    for z, slope, weight in zip(values[:-2], chain.slopes[:-1], weights[1:-1], strict=True):
        boxes.append(builder.pass_layer(z, slope, weight))
    boxes = boxes[: len(chain.slopes)]
    return Ball(
        weights,
        chain.slopes,
        grown,
        tuple(values[:-1]),
        values[-1],
        tuple(box.low for box in boxes),
        tuple(box.high for box in boxes),
        _bound_output_errors(compacted, anchor, values, boxes, radius),
    )


def _bound_output_errors(
    compacted: CompactChain,
    anchor: np.ndarray,
    values: list[np.ndarray],
    boxes: list[Box],
    radius: float,
) -> np.ndarray:
    """Bound |score of the net - score of the neighbour| in the ball, (n_{K+1},)."""
    chain = compacted.chain
    # Inputs are the same, and differ from the anchor by at most the radius.
    changes = [compacted.rest * radius + bound_lengths(chain.weight_errors[0]) * radius]
    for k, box in enumerate(boxes):
        # The next layer's weights are wrong on the changes as well.
        reach = max(1.0, abs(chain.slopes[k])) * np.maximum(-box.low, box.high)
        changes.append(chain.weight_errors[k + 1] @ reach)
    return chain.bound_errors(anchor[None], [z[None] for z in values], changes)[0]

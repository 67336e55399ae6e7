"""A ball of inputs as the judge sees it: a neighbour of the chain whose values are exact floats."""

import math
from dataclasses import dataclass

import numpy as np

from ..products import share
from .boxes import Box, BoxBuilder
from .chain import Chain
from .quadratics import bound_length, bound_lengths


@dataclass(frozen=True)
class CompactChain:
    """A chain with its first layer in few coordinates: W_1 = L Q + rest, with few rows of Q.

    Where inputs outnumber the units of the first layer, only Qd counts, which has that many
    entries. All of it holds for every anchor.
    """

    chain: Chain
    first: np.ndarray  # L, (n_1, min(n_0, n_1))
    growth: float  # at least the norm of Q: |Qd| <= growth |d|
    rest: np.ndarray  # (n_1,): at least the norms of the rows of W_1 - L Q


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
    """

    weights: tuple[np.ndarray, ...]  # L, W_2 .. W_{K+1}: y_1 = L u for |u| <= radius
    slopes: tuple[np.ndarray, ...]  # s_1 .. s_K, (n_k,)
    radius: float  # in u, at least that in inputs
    anchors: tuple[np.ndarray, ...]  # z^_1 .. z^_K, the neighbour's values at the anchor
    scores: np.ndarray  # z^_{K+1}
    low: tuple[np.ndarray, ...]  # low <= z_k - z^_k <= high in the ball, and they contain 0
    high: tuple[np.ndarray, ...]
    output_errors: np.ndarray  # (n_{K+1},)

    def fix_stable(self, layer: int) -> np.ndarray:
        """The signs of the units of a layer, 0 .. K - 1, that cannot change in the ball, else 0."""
        z, low, high = self.anchors[layer], self.low[layer], self.high[layer]
        return ((low >= -z).astype(np.int8) - (high <= -z)).astype(np.int8)


def enclose(compacted: CompactChain, anchor: np.ndarray, radius: float) -> Ball:
    """Enclose all values of a chain on a ball around an anchor (n_0,), with proved intervals."""
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
        reach = np.maximum(1.0, np.abs(chain.slopes[k])) * np.maximum(-box.low, box.high)
        changes.append(chain.weight_errors[k + 1] @ reach)
    return chain.bound_errors(anchor[None], [z[None] for z in values], changes)[0, :]

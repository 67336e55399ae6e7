"""Both ends of the bracket of a norm plus hinge losses, of a function and its dual weights."""

from typing import NamedTuple

import numpy as np

_RELIABLE_OUTPUT = 1e-6
"""Factors 1 / output of f above 1e6 are not tried: outputs that are so small are rounding."""


class HingeBracket(NamedTuple):
    """What a function and its dual weights are worth, scaled as is best: the objective of the
    function times `factor`, with `hinge` the sum of its hinge losses without their costs, and the
    bound `lower` that the weights times `shrink`, in (0, 1], prove.
    """

    objective: float
    lower: float
    hinge: float
    factor: float
    shrink: float


def bracket_hinges(
    caps: np.ndarray, total: float, square: float, outputs: np.ndarray, rounding: float
) -> HingeBracket:
    """The bracket of min ||f||^2 / 2 + sum_n caps_n max(0, 1 - output_n) at one function f.

    `total` is the sum of its dual weights, `square` at least ||f||^2, `outputs` (n,) at most its
    outputs times their labels; sums are known up to the part `rounding`. Both ends are taken on the
    safe sides of that.
    """
    sums = 1 + rounding
    total = total / sums
    shrink = min(1.0, total / square) if square > 0 else 1.0
    lower = max(shrink * total - 0.5 * shrink**2 * square, 0.0)
    # Where C is huge, the last of the hinge losses are cheaper to remove by scaling f. In its
    # scale, their sum is convex and bends at 1 / output.
    reliable = outputs[outputs > _RELIABLE_OUTPUT]
    scales = np.concatenate([[0.0, 1.0], 1 / reliable])
    costs = 0.5 * scales**2 * square + _sum_hinges(scales, outputs, caps)
    factor = float(scales[np.argmin(costs)])
    hinges = np.maximum(1 - factor * outputs, 0.0)
    objective = float(0.5 * factor**2 * square + caps @ hinges * sums)
    return HingeBracket(objective, lower, float(hinges.sum()), factor, shrink)


def _sum_hinges(scales: np.ndarray, outputs: np.ndarray, caps: np.ndarray) -> np.ndarray:
    """The hinge losses sum_i caps_i max(0, 1 - scale outputs_i) at many scales, by one sort."""
    order = np.argsort(outputs)
    ascending = outputs[order]
    costs = np.concatenate([[0.0], np.cumsum(caps[order])])
    sums = np.concatenate([[0.0], np.cumsum(caps[order] * ascending)])
    below = np.searchsorted(
        ascending, np.divide(1, scales, out=np.full_like(scales, np.inf), where=scales > 0)
    )
    return costs[below] - scales * sums[below]

"""The outputs of a net with their derivative along a direction in parameter space."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import ModelError

Vector = dict[str, Tensor]
"""A vector in parameter space: the name of each parameter -> its part, float64."""


class Slopes(NamedTuple):
    """The slopes of a batch of constraints in a direction.

    samples : the slice of samples that they belong to.
    gaps : s, (N, C) with +infinity at j = y_n, or (N, 1).
    slopes : the inner products <grad s, direction>, of that shape.
    score_sizes, slope_sizes : the largest score of each sample, and slope of one, (N, 1).
    """

    samples: slice
    gaps: Tensor
    slopes: Tensor
    score_sizes: Tensor
    slope_sizes: Tensor


def value_and_slope(
    outputs: Callable[[Vector], Tensor], point: Vector, moved: Vector
) -> tuple[Tensor, Tensor]:
    """Compute outputs and their derivative along a direction.

    Forward mode is used or, for operations without one such as weight norm, reverse mode twice.
    """
    try:
        with torch.no_grad():
            value, slope, *_ = torch.func.jvp(outputs, (point,), (moved,))
        return value, slope
    except NotImplementedError as error:
        lacking = str(error).splitlines()[0]
    try:
        value, pull, *_ = torch.func.vjp(outputs, point)
        # The pulled back gradient is linear in what is pulled, so that its own derivative is the
        # same everywhere: it maps `moved` to the slope.
        _, push, *_ = torch.func.vjp(lambda cotangent: pull(cotangent)[0], torch.zeros_like(value))
        (slope,) = push(moved)
    except (NotImplementedError, RuntimeError) as error:
        raise ModelError(
            "The model uses an operation that can be differentiated neither in forward mode nor"
            f" twice: {lacking} Write it with operations that can."
        ) from error
    return value, slope

"""The outputs of a net with their derivative along a direction in parameter space."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import ModelError

Vector = dict[str, Tensor]
"""A vector in parameter space: the name of each parameter -> its part, float64."""


class Slopes(NamedTuple):
    """The slopes of a batch of constraints in a direction."""

    samples: slice  # that they belong to
    gaps: Tensor  # s, (N, C) with +infinity at j = y_n, or (N, 1)
    slopes: Tensor  # the inner products <grad s, direction>, of that shape
    score_sizes: Tensor  # the largest score of each sample, (N, 1)
    slope_sizes: Tensor  # the largest slope of one, (N, 1)


def value_and_slope(
    outputs: Callable[[Vector], Tensor], point: Vector, moved: Vector
) -> tuple[Tensor, Tensor]:
    """Outputs and their derivative along a direction, forward, or by reverse mode twice."""
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

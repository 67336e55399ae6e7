"""The box of inputs, given by the user or chosen for attacks."""

import math
from typing import Any

from torch import Tensor

from ..errors import DataError
from ..nets.arrays import Arrays

InputBox = tuple[float, float] | None
"""The smallest and the largest value of an input; None for all of R^d."""

_ATTACK_ROOM = 4.0
"""Room that attacks without a box have beyond the inputs, in units of their largest size or range:
the nearest misclassified point is rarely farther, and step sizes of attacks grow with it.
"""
_BOX_ROUNDING = 1e-6
"""Share of a box's width by which rounding, as of float32 images, may put inputs outside it."""


def check_box(box: Any, samples: Arrays) -> InputBox:
    """Validate a box, and widen it by what rounding put outside it, or raise DataError."""
    if box is None:
        return None
    try:
        low, high = map(float, box)
    except (TypeError, ValueError):
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise DataError(
            f"box must be a pair of finite numbers, the smaller first, such as (0, 1); got {box!r}."
            " Use None for all of R^d."
        )
    rounding = _BOX_ROUNDING * (high - low)
    outside = int(
        ((low - rounding > samples.X) | (high + rounding < samples.X)).flatten(1).any(1).sum()
    )
    least, most = float(samples.X.min()), float(samples.X.max())
    if outside:
        raise DataError(
            f"{outside} of {len(samples)} inputs lie outside the box [{low:g}, {high:g}]: their"
            f" values go from {least:g} to {most:g}. Scale them, or give their box."
        )
    return min(low, least), max(high, most)


def choose_bounds(x: Tensor) -> tuple[float, float]:
    """Choose bounds for attacks on inputs x, wide enough to matter little."""
    least, most = float(x.min()), float(x.max())
    room = _ATTACK_ROOM * max(most - least, abs(most), abs(least), 1e-6)
    return least - room, most + room

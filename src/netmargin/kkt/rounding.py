"""How much the rounding of float64 changes margins and slopes: measured, for any operations.

A rounded product is the product of numbers that are off by a part of 2^-53. So everything is
computed again with every number off by a random part, large enough to show, and what that changes
is scaled down.
"""

import torch
from torch import Tensor

ROUNDOFF = 2.0**-52
"""Twice the unit roundoff of float64, which covers what is of second order (Higham 2002, 3.1)."""
_PART = 2.0**-26
"""What numbers are off by: far above rounding, and its square is below it."""
_ALLOWANCE = 32
"""Rounding is taken to be at most so many times what was measured: sums of many terms round more
than once, and a random change is below a twentieth of its usual size once in 25 times.
"""
_LEAST_ROUNDINGS = 8
"""Roundings of the largest number at the end that are allowed for besides."""
_ENOUGH, _MOST_DRAWS = 100, 8
"""Changes that are not all small by chance: with few constraints more are drawn."""


def draw_changes(constraints: int) -> list[torch.Generator]:
    """The sources of the random changes for a net with so many constraints."""
    count = min(_MOST_DRAWS, 1 + _ENOUGH // constraints)
    return [torch.Generator().manual_seed(seed) for seed in range(count)]


def change(value: Tensor, source: torch.Generator | None) -> Tensor:
    """A tensor with each number off by a random part; whole numbers, or without a source, as is."""
    if source is None or not value.is_floating_point():
        return value
    drawn = torch.randn(value.shape, generator=source, dtype=value.dtype).to(value.device)
    return value * (1 + _PART * drawn)


def allow_for_rounding(values: Tensor, again: list[Tensor], sizes: Tensor) -> Tensor:
    """Bound |computed - exact| of values by what they were after each change.

    sizes : of the largest numbers whose difference they are.
    """
    spread = torch.stack([(other - values).abs() for other in again]).amax(0)
    errors = ROUNDOFF * (_ALLOWANCE / _PART * spread + _LEAST_ROUNDINGS * sizes)
    return errors.nan_to_num(nan=0.0, posinf=0.0)  # infinite where there is no constraint

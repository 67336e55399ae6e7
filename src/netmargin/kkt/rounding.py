"""How much the rounding of float64 changes margins and slopes: measured, for any operations.

Multiplying the parameters by c multiplies the s of a homogeneous net by c^L, and all that is
rounded on the way is rounded anew. What is left of the difference is rounding.
"""

import math

import torch
from torch import Tensor

ROUNDOFF = 2.0**-52
"""Twice the unit roundoff of float64, which covers what is of second order (Higham 2002, 3.1)."""
_ALLOWANCE = 32
"""Rounding is taken to be at most so many times what it changed: the difference of two roundings
is below a thirtieth of the larger one once in some forty constraints, and the largest of many
counts.
"""
_LEAST_ROUNDINGS = 8
"""Roundings of the largest number at the end that are allowed for where nothing changed."""
_ENOUGH, _MOST_FACTORS = 100, 8
"""Differences that are not all small by chance: with few constraints more factors are taken."""


def rounding_factors(constraints: int) -> list[float]:
    """The factors of the parameters at which a net with so many constraints is computed anew.

    They are no powers of two, which would round alike, and so near to 1 that the eps of
    normalization layers, which do not scale, count for nothing.
    """
    count = min(_MOST_FACTORS, 1 + _ENOUGH // constraints)
    return [1 + 3e-7 * math.cos(k) for k in range(1, count + 1)]


def allow_for_rounding(values: Tensor, again: list[Tensor], sizes: Tensor) -> Tensor:
    """Bound |computed - exact| of values by what they were when they were computed again.

    sizes : of the largest numbers whose difference they are.
    """
    spread = torch.stack([(other - values).abs() for other in again]).amax(0)
    # Infinite where there is no constraint.
    return (_ALLOWANCE * spread + _LEAST_ROUNDINGS * ROUNDOFF * sizes).nan_to_num(
        nan=0.0, posinf=0.0
    )

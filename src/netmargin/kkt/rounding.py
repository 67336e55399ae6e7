"""How much the rounding of float64 changes margins and slopes: measured, for any operations.

Multiplying the parameters by c multiplies the s of a homogeneous net by c^L, and all that is
rounded on the way is rounded anew. What is left of the difference is rounding.
"""

import torch
from torch import Tensor

ALLOWANCE = 32
"""Rounding is taken to be at most so many times what it changed: the difference of two roundings
is below a thirtieth of the larger one once in some forty constraints, and the largest of many
counts.
"""
_FEW, _MOST_FACTORS = 100, 3
"""With fewer constraints than this one difference may be small by chance: more are measured."""
_FACTORS = (1 + 3.14159265e-7, 1 - 2.71828183e-7, 1 + 1.61803399e-7)
"""No powers of two, which would round alike, and so near to 1 that the eps of normalization layers,
which do not scale, count for nothing.
"""
_LEAST_ROUNDINGS = 8
"""Roundings of the value itself that are allowed for where nothing changed."""


def rounding_factors(constraints: int) -> tuple[float, ...]:
    """The factors of the parameters at which a net with so many constraints is computed anew."""
    return _FACTORS[: min(_MOST_FACTORS, 1 + _FEW // constraints)]


def allow_for_rounding(values: Tensor, again: list[Tensor]) -> Tensor:
    """Bound |computed - exact| of values by what they were when they were computed again."""
    spread = torch.stack([(other - values).abs() for other in again]).amax(0)
    least = _LEAST_ROUNDINGS * torch.finfo(values.dtype).eps * values.abs()
    # Infinite where there is no constraint.
    return (ALLOWANCE * spread + least).nan_to_num(nan=0.0, posinf=0.0)

"""What is asked of all numbers of a tensor, without a second tensor of its size."""

import cmath
import math

import torch
from torch import Tensor

from ..core.devices import where_float64_is

_PART = 2**20
"""Numbers that are converted to float64 at a time: 8 MB stay in the caches and with the allocator,
where a copy of a layer of millions comes in fresh pages, which take ten times as long to fill.
"""


def are_finite(values: Tensor) -> bool:
    """Whether no number is NaN or infinite."""
    # A finite sum has finite terms; only otherwise is it worth looking at each.
    return cmath.isfinite(values.sum().item()) or bool(torch.isfinite(values).all())


def hold_nan(values: Tensor) -> bool:
    """Whether some number is NaN."""
    # Infinite terms of both signs make a sum NaN as well.
    return bool(torch.isnan(values.sum())) and bool(torch.isnan(values).any())


def euclidean_norm(values: Tensor) -> float:
    """The root of the sum of squares, in float64 whatever the type of the numbers."""
    values = where_float64_is(values.detach())
    parts = values.reshape(-1).split(_PART) if values.numel() > _PART else (values,)
    norms = [torch.linalg.vector_norm(part, dtype=torch.float64).item() for part in parts]
    return norms[0] if len(norms) == 1 else math.hypot(*norms)

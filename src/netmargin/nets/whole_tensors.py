"""What is asked of all numbers of a tensor, without a second tensor of its size."""

import cmath
import math

import torch
from torch import Tensor

from ..core.devices import where_float64_is
from ..core.matrices import floor_to_powers

_PART = 2**20
"""Numbers that are converted to float64 at a time: 8 MB stay in the caches and with the allocator,
where a copy of a layer of millions comes in fresh pages, which take ten times as long to fill.
"""
_LEAST_NORM = 1e-140
"""Norms from here up to its inverse have squares that round as others do."""


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
    norm = norms[0] if len(norms) == 1 else math.hypot(*norms)
    if _LEAST_NORM < norm < 1 / _LEAST_NORM or not (bool(values.any()) and are_finite(values)):
        return norm
    # Powers of 2, which round nothing, keep the squares of tiny and huge numbers within float64.
    power = float(floor_to_powers(values.abs().max().item()))
    return power * euclidean_norm(values.double() / power)


def row_norms(rows: Tensor) -> Tensor:
    """The Euclidean norms (n,) of rows of float64, also where squares are none."""
    largest = rows.abs().amax(1, keepdim=True)
    powers = torch.from_numpy(floor_to_powers(largest.cpu().numpy())).to(rows.device)
    return powers[:, 0] * torch.linalg.vector_norm(rows / powers, dim=1)

"""Every exp and log of a margin or a loss: float64 functions that stay accurate where the loss
itself underflows.

All logarithms are natural. `q` is a margin, `z` any real number.
"""

import math
from typing import Any

import torch
from torch import Tensor

from .devices import where_float64_is

LN10 = math.log(10.0)
"""Rows and plots show logs to base 10, as the papers do."""

_TINY_EXPONENT = -37.0
"""Below this, log1p(e^z) is e^z (1 - e^z / 2) in float64, and far below it e^z underflows."""
_LOG_LOG2, _LOG_LOG2_REST = -0.36651292058166435, 2.0606571710351486e-17
"""log(log 2) as the sum of a float64 and its rounding error: differences from it keep all digits.
"""
_LARGEST_EXPONENT = 709
"""e to a larger whole number is infinite in float64."""


def as_float64(values: Any) -> Tensor:
    """Return `values` as a float64 tensor with its graph, where its device has them."""
    if isinstance(values, Tensor):
        values = where_float64_is(values)
    device = values.device if isinstance(values, Tensor) else "cpu"
    return torch.as_tensor(values, dtype=torch.float64, device=device)


def softplus(z: Tensor) -> Tensor:
    """Return log(1 + e^z), with relative accuracy for every z."""
    return z.clamp(min=0) + torch.log1p(torch.exp(-z.abs()))


def log_softplus(z: Tensor) -> Tensor:
    """Return log(log(1 + e^z)), the log of the logistic loss at margin -z."""
    tail = z - 0.5 * torch.exp(z)
    return torch.where(z < _TINY_EXPONENT, tail, torch.log(softplus(z.clamp(min=_TINY_EXPONENT))))


def neg_log_expm1_exp(z: Any) -> Any:
    """Return -log(exp(e^z) - 1), the margin of logistic loss e^z, accurate for every z.

    z is a tensor or a float, which takes a tenth of the time.
    """
    # One formula for each range of z; for tensors, clamped arguments keep those that torch.where
    # discards from overflowing.
    if isinstance(z, float):
        if z > _LARGEST_EXPONENT:
            return -math.inf
        return next((formula for _, end, formula in _RANGES if z < end), _far_above_one)(z, math)
    found = _far_above_one(z.clamp(min=1.0))
    for start, end, formula in reversed(_RANGES):
        found = torch.where(z < end, formula(z.clamp(start, end)), found)
    return found


def _below_minus_two(z: Any, at: Any = torch) -> Any:
    """`neg_log_expm1_exp` where e^z is small, but not lost beside 1."""
    loss = at.exp(z)
    return -z - at.log(at.expm1(loss) / loss)


def _around_zero(z: Any, at: Any = torch) -> Any:
    """`neg_log_expm1_exp` from -2 to 1."""
    # e^L - 1 = 1 + 2 (e^{L - log 2} - 1) with L - log 2 = log 2 (e^{z - log log 2} - 1), where
    # nothing cancels.
    offset = (z - _LOG_LOG2) - _LOG_LOG2_REST
    return -at.log1p(2 * at.expm1(math.log(2) * at.expm1(offset)))


def _far_above_one(z: Any, at: Any = torch) -> Any:
    """`neg_log_expm1_exp` from 1 on."""
    loss = at.exp(z)
    return -loss - at.log1p(-at.exp(-loss))


_RANGES = (
    (None, _TINY_EXPONENT, lambda z, at=torch: -z - 0.5 * at.exp(z)),  # e^2z is lost beside 1
    (_TINY_EXPONENT, -2.0, _below_minus_two),
    (-2.0, 1.0, _around_zero),
)
"""Where each formula is used, from and to; beyond, it is that of large losses."""


def softplus_difference(b: Tensor, difference: Tensor) -> Tensor:
    """Return softplus(b + difference) - softplus(b), also where b is so large that it rounds."""
    a = b + difference
    # softplus(z) = max(z, 0) + log(1 + e^{-|z|}): of two large numbers the difference is known.
    exact_part = torch.where((a > 0) & (b > 0), difference, a.clamp(min=0) - b.clamp(min=0))
    return exact_part + torch.log1p(torch.exp(-a.abs())) - torch.log1p(torch.exp(-b.abs()))


def log_mean(log_sum: float, count: int) -> float:
    """Return the natural log of the mean of `count` terms, from the natural log of their sum."""
    return log_sum - math.log(count)


def log10_mean(log_sum: float, count: int) -> float:
    """Return the base-10 log of the mean of `count` terms, from the natural log of their sum."""
    return log_mean(log_sum, count) / LN10


def scaled_ratio(value: float, log_divisor: float) -> float:
    """Return value / exp(log_divisor), without overflow of the divisor."""
    if value == 0:
        return 0.0
    exponent = math.log(abs(value)) - log_divisor
    return math.copysign(math.inf if exponent > _LARGEST_EXPONENT else math.exp(exponent), value)


def log_add(a: float, b: float) -> float:
    """Return log(e^a + e^b), also where both underflow; NaN if one of them is NaN."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    larger, smaller = max(a, b), min(a, b)
    return larger if smaller == -math.inf else larger + math.log1p(math.exp(smaller - larger))

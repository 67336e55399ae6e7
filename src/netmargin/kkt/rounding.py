"""How much the rounding of float64 changes margins and slopes: measured, not proved.

A rounded product is the product of numbers that are off by a part of 2^-53. So everything is
computed again with every weight and input off by a random part, large enough to show, and what that
changes is scaled down. docs/conventions.md says how, and what that does not see.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..core.devices import draw_normal
from ..core.matrices import EPS
from ..nets.named_inputs import map_floating

_PART = 2.0**-26
"""What numbers are off by: far above rounding, and its square is below it."""
_ALLOWANCE = 32
"""Rounding is taken to be at most so many times what was measured: sums of many terms round more
than once, and a random change is below a twentieth of its usual size once in 25 times.
"""
_LEAST_ROUNDINGS = 8
"""Roundings of the largest number at the end that are allowed for besides."""
DRAWS = 8
"""Changes near what counts: that all are below a twentieth happens once in 10^11 times."""
CLOSE = 64
"""Samples that are near: few, so that more draws for them cost little."""


def draw_changes(count: int) -> list[torch.Generator]:
    """The sources of so many random changes."""
    return [torch.Generator().manual_seed(seed) for seed in range(count)]


def change(value: Any, source: torch.Generator | None) -> Any:
    """Tensors with each number off by a random part; whole numbers, or without a source, as is."""
    if source is None:
        return value
    return map_floating(lambda part: part * (1 + _PART * draw_normal(part, source)), value)


def measure_spread(values: Tensor, again: list[Tensor]) -> Tensor:
    """The largest changes of values, after each of several changes of what they are made of."""
    none = torch.zeros_like(values)
    spread = torch.stack([none, *((other - values).abs() for other in again)]).amax(0)
    return spread.nan_to_num(nan=0.0, posinf=torch.inf)  # where there is no constraint


def allow_for_rounding(spread: Tensor, sizes: Tensor | float) -> Tensor:
    """Bound |computed - exact| of differences of numbers of `sizes`, by their changes."""
    errors = EPS * (_ALLOWANCE / _PART * spread + _LEAST_ROUNDINGS * sizes)
    return errors.nan_to_num(nan=0.0, posinf=torch.inf)  # where there is no constraint


def largest_share(spread: Tensor, scales: Tensor) -> float:
    """The largest change relative to the sizes of the terms."""
    return (spread / scales).where(scales > 0, 0.0).max().item()


class Reach(NamedTuple):
    """How far rounding may raise the ratios of some samples."""

    samples: Tensor  # their numbers, (N,)
    largest: Tensor  # the largest ratio of each, with what its own changes allow for, (N,)
    scales: Tensor  # the largest size of the terms of a ratio of each, (N,)
    share: float  # the largest change relative to the sizes of the terms

    @classmethod
    def of(
        cls, samples: Tensor, ratios: Tensor, again: list[Tensor], scales: Tensor, sizes: Tensor
    ) -> "Reach":
        """The reach of ratios (N, C), by what they were after each change."""
        spread = measure_spread(ratios, again)
        raised = ratios + allow_for_rounding(spread, sizes)
        raised = torch.where(raised.isnan(), torch.inf, raised)  # where numbers overflowed
        share = largest_share(spread, scales)
        return cls(samples, raised.amax(1).cpu(), scales.amax(1).cpu(), share)

    @classmethod
    def joined(cls, parts: "list[Reach]") -> "Reach":
        """The reach of the samples of all parts."""
        samples, largest, scales, shares = zip(*parts, strict=True)
        return cls(torch.cat(samples), torch.cat(largest), torch.cat(scales), max(shares))

    def ends(self) -> Tensor:
        """How large the ratios may be, if all are as sensitive as the most sensitive one, (N,)."""
        return self.largest + allow_for_rounding(self.share * self.scales, 0.0)

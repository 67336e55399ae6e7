"""One step of Dormand and Prince's embedded Runge-Kutta pair of orders 5 and 4, with dense output.

The coefficients are scipy's, the step our own: events change the field within it, time is kept by
its logarithm, and velocities carry more than their direction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.integrate import RK45
from torch import Tensor

ORDER = 5
"""Order of the method, which says how a step length follows from its error."""
# RK5(4)7M of Dormand and Prince 1980: how each stage's point follows from the stages before.
_STAGES = [*(RK45.A[k, :k].tolist() for k in range(1, 6)), RK45.B.tolist()]
# Weights of the embedded method of order 4, which estimates the error, and of the solution itself:
# its last stage is at the end of the step, and is the first of the next one.
LOWER_WEIGHTS = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
WEIGHTS = (*_STAGES[-1], 0.0)  # 0: the last stage is evaluated at the end of the step itself
# Shampine's interpolant of order 4: coefficients of sigma .. sigma^4 per stage.
_DENSE = RK45.P.tolist()


@dataclass(frozen=True)
class Step:
    """A step from y over a length h."""

    y: Tensor
    h: float
    stages: list[Any]  # velocities at all seven, the last at the end, where the next step begins
    error: float  # estimate of the Euclidean error at the end

    def weights(self, share: float) -> list[float]:
        """Weights of the stages that give the solution at a share of the step, in units of h."""
        if share == 1.0:
            return list(WEIGHTS)
        return [sum(c * share ** (power + 1) for power, c in enumerate(row)) for row in _DENSE]

    def inside(self, share: float) -> Tensor:
        """The solution at a share of the step, accurate to order 4."""
        return self.y + self.h * _combine(self.weights(share), self.stages)


def step(field: Callable[..., Any], y: Tensor, first: Any, h: float) -> Step:
    """Take one step of length h; `first` is field(y)."""
    stages = [first]
    for row in _STAGES:
        stages.append(field(y + h * _combine(row, stages)))
    difference = _combine([w - v for w, v in zip(WEIGHTS, LOWER_WEIGHTS, strict=True)], stages)
    return Step(y, h, stages, h * torch.linalg.vector_norm(difference).item())


def _combine(weights: Sequence[float], stages: list[Any]) -> Tensor:
    """The sum of the velocities of stages with these weights."""
    parts: list[Tensor] = [w * s.direction for w, s in zip(weights, stages, strict=True) if w]
    return sum(parts, torch.zeros_like(stages[0].direction))

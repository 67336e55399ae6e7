"""Weighted particles of perturbed flow: their steps, new mass, and the reduction to a budget."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.matrices import as_array
from ...core.records import Shown
from ...errors import DataError
from ._functionals import Functional

Row = tuple[float, float, float]
"""Time t, objective L, second moment."""


@dataclass(frozen=True)
class Particles(Shown):
    """A measure of neurons as weighted particles, with the rest of its mass at the origin."""

    positions: Tensor  # (N, p), float64
    weights: Tensor  # (N,), float64; with `resting` their sum is 1
    resting: float = 0.0  # the mass at the origin
    dropped: float = 0.0  # what the second moment lost to the budget so far
    dropping_error: float = 0.0  # the sum of the absolute changes of L by that


@dataclass(frozen=True)
class Dynamics:
    """The rules by which particles move, mass is renewed and the number of particles limited."""

    functional: Functional
    sigma: float  # share of the mass per unit of time
    every: int  # steps between two renewals
    fresh: int  # new particles that share the renewed mass
    budget: int  # particles kept at most
    random: torch.Generator

    def record(self, now: Particles, time: float) -> Row:
        """Time, objective and second moment, one record of the flow."""
        value = self.functional.value(now.positions, now.weights).item()
        return time, value, (now.weights @ now.positions.square().sum(1)).item()

    def advance(self, now: Particles, span: float, rate: float) -> Particles:
        """The particles after a time `span`, in steps of the rate or a little less."""
        # A whole number of equal steps, so that records lie at the same times for every rate.
        count = max(1, round(span / rate))
        step = span / count
        for begin in range(0, count, self.every):
            theta, chunk = now.positions, min(self.every, count - begin)
            for _ in range(chunk):
                _, _, velocity = self.functional.slopes(theta, now.weights)
                theta = theta + step * velocity
            now = replace(now, positions=theta)
            if self.sigma > 0:
                # 1 - (1 - sigma step)^chunk, which is 0 in floats for the sigma of the theorems.
                now = self._renew_mass(now, -math.expm1(chunk * math.log1p(-self.sigma * step)))
            if len(now.weights) > self.budget:
                now = self._reduce(now)
        return now

    def _renew_mass(self, now: Particles, share: float) -> Particles:
        """Move a share of all mass to fresh particles, uniform on the unit sphere."""
        shape, gained = (self.fresh, now.positions.shape[1]), share / self.fresh
        new = torch.randn(shape, dtype=torch.float64, generator=self.random)
        weights = torch.full((self.fresh,), gained, dtype=torch.float64)
        return replace(
            now,
            positions=torch.cat([now.positions, torch.nn.functional.normalize(new, dim=1)]),
            weights=torch.cat([now.weights * (1 - share), weights]),
            resting=now.resting * (1 - share),
        )

    def _reduce(self, now: Particles) -> Particles:
        """Keep `budget` particles: half of them of large mass, the others of fast growing mass."""
        value, first, _ = self.functional.slopes(now.positions, now.weights)
        squares = now.positions.square().sum(1)
        masses = now.weights * squares
        # |theta|^2 grows at the rate -4 L' / |theta|^2.
        growth = torch.where(squares > 0, -first / squares, -torch.inf)
        # Infinite growth puts the heaviest half first.
        growth[torch.argsort(masses, descending=True)[: (self.budget + 1) // 2]] = torch.inf
        order = torch.argsort(growth, descending=True)
        # Particles stay in their order, the oldest first.
        kept, left = order[: self.budget].sort().values, order[self.budget :]
        fewer = replace(now, positions=now.positions[kept], weights=now.weights[kept])
        change = abs(self.functional.value(fewer.positions, fewer.weights) - value).item()
        return replace(
            fewer,
            resting=now.resting + now.weights[left].sum().item(),
            dropped=now.dropped + masses[left].sum().item(),
            dropping_error=now.dropping_error + change,
        )


def read_particles(positions: Any, weights: Any) -> Particles:
    """The start of a flow as float64 tensors; weights are equal by default. Raises DataError."""
    theta = torch.tensor(as_array(positions, "positions"))
    if theta.ndim != 2 or not len(theta) or not torch.isfinite(theta).all():
        raise DataError(f"positions must be finite, of shape (N, p); got {tuple(theta.shape)}")
    equal = np.full(len(theta), 1 / len(theta))
    w = torch.tensor(equal if weights is None else as_array(weights, "weights"))
    if w.shape != theta.shape[:1] or not (w > 0).all() or abs(w.sum().item() - 1) > 1e-9:
        raise DataError(f"weights must be {len(theta)} positive numbers with sum 1; got {weights}")
    return Particles(theta, w)

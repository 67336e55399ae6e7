"""The smoothed normalized margin of a net as a function of its parameters, at a temperature."""

import math

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..core.batches import Arrays, Labels, batches
from ..core.nets import scores
from ..homogeneity import Homogeneity
from ..margins import margins

_NEGLIGIBLE = 30.0
"""Constraints further than this many temperatures above the smallest weigh less than 1e-13 of
it.
"""
_SAMPLES = 2000
"""Of larger batches the activations are computed twice instead of held."""


class SmoothedMargin:
    """-T log sum_nj exp(-s_nj / T), s the gaps of theta divided by the product of its layer norms,
    or by ||theta||^L.

    Never above the normalized margin, and within T log(number of constraints) of it. For a float64
    twin on whole data, of which only samples near the margin are looked at where the rest cannot
    count.
    """

    def __init__(self, twin: nn.Module, data: Arrays, homogeneity: Homogeneity, by_layers: bool):
        self._twin = twin
        self._x, y = next(batches(data, len(data), twin))
        with torch.no_grad():
            outputs = scores(twin, self._x[:1]).shape[1]
            self._y = Labels(outputs).encode(y).to(self._x.device)
        self.constraints = len(self._x) * max(outputs - 1, 1)
        parameters = dict(twin.named_parameters())
        groups, members = homogeneity.groups, homogeneity.members
        if by_layers:
            self._groups = [
                ([parameters[n] for n in members[name]], float(k))
                for name, k in groups.items()
                if k > 0
            ]
        else:
            everything = [parameters[n] for names in members.values() for n in names]
            self._groups = [(everything, float(sum(groups.values())))]
        self.order = sum(k for _, k in self._groups)
        self.parameters = [p for names in members.values() for p in (parameters[n] for n in names)]
        self.active = torch.arange(len(self._x), device=self._x.device)
        self.gradient_samples = 0

    def log_norm(self) -> Tensor:
        """Natural log of what margins are divided by."""
        squares = [
            torch.stack([p.square().sum() for p in group]).sum() for group, _ in self._groups
        ]
        return torch.stack(
            [
                0.5 * k * torch.log(square)
                for (_, k), square in zip(self._groups, squares, strict=True)
            ]
        ).sum()

    def size(self) -> float:
        """||theta|| over the parameters that scale."""
        with torch.no_grad():
            return math.sqrt(
                sum(p.square().sum().item() for group, _ in self._groups for p in group)
            )

    def normalize(self, size: float | None = None) -> None:
        """Give theta the norm `size`, sqrt(L) if none is given, each layer its share sqrt(k_i / L)
        of it.

        Normalized margins stay the same, and layers become balanced.
        """
        with torch.no_grad():
            for group, k in self._groups:
                wanted = math.sqrt(k) if size is None else size * math.sqrt(k / self.order)
                own = math.sqrt(sum(p.square().sum().item() for p in group))
                for p in group:
                    p.mul_(wanted / own)

    def margins(self) -> Tensor:
        """Normalized margins of all samples, shape (N,)."""
        with torch.no_grad():
            parts = [
                margins(scores(self._twin, x), y)[0]
                for x, y in zip(self._x.split(1000), self._y.split(1000), strict=True)
            ]
            return torch.cat(parts) / torch.exp(self.log_norm())

    def near(self, temperature: float) -> Tensor:
        """The samples that can matter at this temperature."""
        margins = self.margins()
        return torch.nonzero(margins <= margins.min() + _NEGLIGIBLE * temperature)[:, 0]

    def loss(self, temperature: float) -> Tensor:
        """Minus the smoothed margin in units of the temperature, over the active samples;
        differentiable.
        """
        gaps, own = self._gaps(self._x[self.active], self._y[self.active])
        self.gradient_samples += len(self.active)
        scaled = -gaps * torch.exp(-self.log_norm()) / temperature
        return torch.logsumexp(scaled.masked_fill(own, -math.inf).flatten(), 0)

    def feasible(self) -> None:
        """Scale the counted parameters until the smallest margin is 1."""
        self.normalize()
        factor = self.margins().min().item() ** (-1 / self.order)
        factor *= math.exp(-self.log_norm().item() / self.order)
        with torch.no_grad():
            for p in self.parameters:
                p.mul_(factor)

    def softmax_multipliers(self, temperature: float) -> Tensor:
        """At a feasible point, the multipliers that the smoothed margin believes in: sum L lambda s
        = ||theta||^2. Shape (N, C).
        """
        with torch.no_grad():
            gaps, own = self._gaps(self._x, self._y)
            shares = torch.softmax(
                (-gaps / temperature).masked_fill(own, -math.inf).flatten(), 0
            ).reshape(gaps.shape)
            return shares * self.square() / (self.order * (shares * gaps).sum())

    def square(self) -> Tensor:
        """||theta||^2 over what counts."""
        return torch.stack([p.square().sum() for p in self.parameters]).sum()

    def augmented_lagrangian(self, multipliers: Tensor, penalty: float) -> Tensor:
        """||theta||^2 / 2 + sum of (max(0, lambda + penalty (1 - s))^2 - lambda^2) / (2 penalty);
        differentiable.
        """
        forces = self.forces(multipliers, penalty)
        self.gradient_samples += len(self._x)
        return 0.5 * self.square() + (forces.square().sum() - multipliers.square().sum()) / (
            2 * penalty
        )

    def forces(self, multipliers: Tensor, penalty: float) -> Tensor:
        """max(0, lambda + penalty (1 - s)): the multipliers after a step of the method of
        multipliers.
        """
        gaps, own = self._gaps(self._x, self._y)
        return (multipliers + penalty * (1 - gaps)).masked_fill(own, 0.0).clamp(min=0)

    def _gaps(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Gaps to the scores of all classes, and which of them is the sample's own, where there is
        no constraint.
        """
        if len(x) <= _SAMPLES:
            outputs = scores(self._twin, x)
        else:
            parts = [
                checkpoint(scores, self._twin, part, use_reentrant=False)
                for part in x.split(_SAMPLES)
            ]
            outputs = torch.cat(parts)
        if outputs.shape[1] == 1:
            return y[:, None] * outputs, torch.zeros_like(outputs, dtype=torch.bool)
        own = torch.zeros_like(outputs, dtype=torch.bool).scatter_(1, y[:, None], True)
        return outputs.gather(1, y[:, None]) - outputs, own

"""The smoothed normalized margin of a net as a function of its parameters, at a temperature."""

import math

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from ..homogeneity import Homogeneity
from ..margins import margins, score_gaps
from ..nets.model import scores
from ..nets.net_on_samples import NetOnSamples
from ..nets.whole_tensors import euclidean_norm

_ACTIVE_TEMPERATURES = 30.0
"""Samples whose margin is further than this many temperatures above the smallest are left out: each
weighs less than 1e-13 of the nearest.
"""
_CHECKPOINTED_ABOVE = 2000
"""Samples above which activations are computed twice instead of held, in parts of that size: memory
is bounded, at the price of one more forward pass, a third of the time.
"""
_FORWARD_CHUNK = 1000
"""Samples that go through the net at once where no gradient is needed; bounds the memory only."""


class SmoothedMargin:
    """-T log sum_nj exp(-s_nj / T), s the score gaps over a product of norms or ||theta||^L."""

    def __init__(self, scored: NetOnSamples, homogeneity: Homogeneity, by_layers: bool) -> None:
        self._twin, self._x, self._y = scored.twin, scored.x, scored.y
        self.constraints = len(scored) * max(scored.outputs - 1, 1)
        parameters = dict(self._twin.named_parameters())
        groups, members = homogeneity.groups, homogeneity.members
        self.parameters = [parameters[n] for names in members.values() for n in names]
        if by_layers:
            self._groups = [
                ([parameters[n] for n in members[name]], float(k))
                for name, k in groups.items()
                if k > 0
            ]
        else:
            self._groups = [(self.parameters, float(sum(groups.values())))]
        self.order = sum(k for _, k in self._groups)
        # Samples too far from the margin to carry weight are left out.
        self.active = torch.arange(len(self._x), device=self._x.device)
        self.gradient_samples = 0

    def log_norm(self) -> Tensor:
        """Natural log of the norm that margins are divided by; differentiable."""
        logs = [
            0.5 * k * torch.log(torch.stack([p.square().sum() for p in group]).sum())
            for group, k in self._groups
        ]
        return torch.stack(logs).sum()

    def size(self) -> float:
        """||theta|| over the parameters that the outputs scale with."""
        return math.hypot(*(euclidean_norm(p) for group, _ in self._groups for p in group))

    def normalize(self, size: float | None = None) -> None:
        """Scale theta to the norm `size`, sqrt(L) by default, each layer to its share of it."""
        with torch.no_grad():
            for group, k in self._groups:
                wanted = math.sqrt(k) if size is None else size * math.sqrt(k / self.order)
                own = math.hypot(*map(euclidean_norm, group))
                for p in group:
                    p.mul_(wanted / own)

    def margins(self) -> Tensor:
        """Normalized margins of all samples, shape (N,)."""
        chunks = zip(self._x.split(_FORWARD_CHUNK), self._y.split(_FORWARD_CHUNK), strict=True)
        with torch.no_grad():
            parts = [margins(scores(self._twin, x), y)[0] for x, y in chunks]
            return torch.cat(parts) / torch.exp(self.log_norm())

    def near(self, temperature: float) -> Tensor:
        """Indices of the samples that carry weight at this temperature, shape (K,)."""
        margins = self.margins()
        return torch.nonzero(margins <= margins.min() + _ACTIVE_TEMPERATURES * temperature)[:, 0]

    def loss(self, temperature: float) -> Tensor:
        """Minus the smoothed margin in units of the temperature, over the active samples."""
        gaps, own = self._gaps(self._x[self.active], self._y[self.active])
        self.gradient_samples += len(self.active)
        scaled = -gaps * torch.exp(-self.log_norm()) / temperature
        return torch.logsumexp(scaled.masked_fill(own, -math.inf).flatten(), 0)

    def feasible(self) -> None:
        """Balance the layers, and scale the parameters until the smallest score gap is 1."""
        self.normalize()
        # Scores are homogeneous of this order, so that a root of the margin scales it to 1 at once.
        factor = self.margins().min().item() ** (-1 / self.order)
        factor *= math.exp(-self.log_norm().item() / self.order)
        with torch.no_grad():
            for group, _ in self._groups:
                for p in group:
                    p.mul_(factor)

    def softmax_multipliers(self, temperature: float) -> Tensor:
        """Estimate multipliers (N, C) at a feasible point by the weights of the smoothed margin."""
        # They are scaled such that L sum lambda s = ||theta||^2, as at a KKT point.
        with torch.no_grad():
            gaps, own = self._gaps(self._x, self._y)
            weighed = (-gaps / temperature).masked_fill(own, -math.inf)
            shares = torch.softmax(weighed.flatten(), 0).reshape(gaps.shape)
            return shares * self.square() / (self.order * (shares * gaps).sum())

    def square(self) -> Tensor:
        """||theta||^2 over the parameters that the outputs scale with; differentiable."""
        return torch.stack([p.square().sum() for group, _ in self._groups for p in group]).sum()

    def augmented_lagrangian(self, multipliers: Tensor, penalty: float) -> Tensor:
        """||theta||^2 / 2 + sum ((lambda + penalty (1 - s))_+^2 - lambda^2) / (2 penalty)."""
        forces = self.forces(multipliers, penalty)
        self.gradient_samples += len(self._x)
        change = forces.square().sum() - multipliers.square().sum()
        return 0.5 * self.square() + change / (2 * penalty)

    def forces(self, multipliers: Tensor, penalty: float) -> Tensor:
        """(lambda + penalty (1 - s))_+, the multipliers after a step of the method, (N, C)."""
        gaps, own = self._gaps(self._x, self._y)
        return (multipliers + penalty * (1 - gaps)).masked_fill(own, 0.0).clamp(min=0)

    def _gaps(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Score gaps to all classes, 0 to the own one, and a mask of these; both (N, C)."""
        # All constraints enter one gradient, so large data cannot be split into batches.
        if len(x) <= _CHECKPOINTED_ABOVE:
            outputs = scores(self._twin, x)
        else:
            # Torch ends a recomputation early by an exception, which `scores` would take for one of
            # the net's own.
            with set_checkpoint_early_stop(False):
                parts = [
                    checkpoint(scores, self._twin, part, use_reentrant=False)
                    for part in x.split(_CHECKPOINTED_ABOVE)
                ]
            outputs = torch.cat(parts)
        # A sign is no index: with one output the mask is empty.
        own = y[:, None] == torch.arange(outputs.shape[1], device=y.device)
        # Infinity there, times a weight of 0, would be NaN in gradients.
        return score_gaps(outputs, y).masked_fill(own, 0.0), own

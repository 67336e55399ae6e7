"""The velocity of gradient flow, on one side of every kink or along some of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..core import logspace
from ..errors import ModelError
from ..losses import Loss
from ..margins import margins
from ..nets.gates import Gates
from ..nets.gradients import differentiate_each
from ..nets.model import call_with
from ..nets.net_on_samples import NetOnSamples
from ..training.relative_loss import relative_gradient
from .kinks import Kinks, Pattern, find_gates, least_squares

_LEAST_NORM_SHARE = 1e-3
"""Where the flow passes near 0, steps are relative to this share of the first norm: small enough to
follow the passage, large enough that arc length relative to the norm does not end there.
"""

Metric = Callable[[dict[str, Tensor]], dict[str, Tensor]]
"""Positive factors by name, of the shapes of the parameters that it is given by name."""


@dataclass(frozen=True)
class Velocity:
    """The velocity of the flow at one point, and what was computed on the way; V is minus the
    gradient of the log-loss, and rho the norm of theta.
    """

    direction: Tensor  # (P,), d theta / ds = V rho^2 / (1 + rho |V|)
    log_time_rate: float  # natural log of dt / ds
    z: Tensor  # pre-activations, all ReLU calls in one vector
    normals: Tensor  # (K, P), gradients of the sliding pre-activations
    q: Tensor  # (N,), margins
    log_loss: float  # natural log of the summed loss
    alignment: float  # beta, the cosine of theta and V
    _find_kinks: Callable[[], Kinks]

    @cached_property
    def kinks(self) -> Kinks:
        """The gates of sliding units, computed when first asked for, as most steps need none."""
        return self._find_kinks()


class FlowField:
    """Minus the gradient of the summed loss of a float64 copy of a net, in a time s of its own.

    Far from stationary points s is arc length relative to the norm; near them it is t up to a
    factor, so that the velocity stays smooth. Along a kink that both sides push against, the flow
    slides: its velocity is the projection of either side's onto the kink, the element of least norm
    of the subdifferential if the gate that this takes lies in [0, 1] (Lyu and Li 2019, Lemma H.3).
    Norms at kinks are those of the metric.
    """

    def __init__(self, scored: NetOnSamples, loss: Loss, metric: Metric | None = None) -> None:
        twin = scored.twin
        self._twin, self._x, self._y = twin, scored.x, scored.y
        self._loss, self._metric = loss, metric
        self.trained = dict(twin.named_parameters())
        self._sizes = [p.numel() for p in self.trained.values()]
        self._fixed = dict(twin.named_buffers())
        start = self.flat().detach()
        self._least = _LEAST_NORM_SHARE * torch.linalg.vector_norm(start).item()
        self.evaluations = 0
        self.normal_evaluations = 0
        self._evaluate_metric_roots(start)  # raises ModelError for what is no metric

    def flat(self) -> Tensor:
        """The trained parameters of the net as it is, in one vector, (P,); differentiable."""
        return torch.cat([p.reshape(-1) for p in self.trained.values()])

    def put(self, theta: Tensor) -> None:
        """Set the trained parameters of the net from one vector."""
        with torch.no_grad():
            for name, part in self.named(theta).items():
                self.trained[name].copy_(part)

    def length(self, theta: Tensor) -> float:
        """The length that steps and errors are relative to: the norm of theta, if not near 0."""
        return float(max(torch.linalg.vector_norm(theta).item(), self._least))

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """The parameters in a vector, by name and in their shapes."""
        parts = zip(self.trained.items(), theta.split(self._sizes), strict=True)
        return {name: part.reshape(p.shape) for (name, p), part in parts}

    def pattern(self, theta: Tensor) -> Pattern:
        """The pattern of active units at a point, none of them sliding."""
        with torch.no_grad(), Gates() as gates:
            call_with(self._twin, self.named(theta) | self._fixed, self._x)
        return Pattern(
            [z > 0 for z in gates.inputs], torch.zeros(0, dtype=torch.int64, device=theta.device)
        )

    def preactivations(self, theta: Tensor, pattern: Pattern) -> Tensor:
        """Pre-activations of all ReLU calls with the gates of the pattern, in one vector."""
        with torch.no_grad(), Gates(pattern.active) as gates:
            call_with(self._twin, self.named(theta) | self._fixed, self._x)
        return torch.cat([z.reshape(-1) for z in gates.inputs])

    def __call__(self, theta: Tensor, pattern: Pattern) -> Velocity:
        self.evaluations += 1
        leaves = {n: p.detach().requires_grad_(True) for n, p in self.named(theta).items()}
        outputs, gates = self._forward(leaves, pattern.active)
        q, soft = margins(outputs.detach(), self._y)
        log_loss = self._loss.log_sum(soft)
        log_mean = logspace.log_mean(log_loss, len(q))
        cotangent = relative_gradient(self._loss, outputs, self._y, log_mean)
        sliding = len(pattern.sliding) > 0
        wanted = [*leaves.values(), *(gates.outputs if sliding else [])]
        found = torch.autograd.grad(
            *(outputs, wanted, cotangent, sliding), allow_unused=True, materialize_grads=True
        )
        roots = self._evaluate_metric_roots(theta)
        velocity = -roots * torch.cat([g.reshape(-1) for g in found[: len(leaves)]])
        z = torch.cat([theta.new_zeros(0), *(z.detach().reshape(-1) for z in gates.inputs)])
        # In coordinates in which the metric is Euclidean: theta moves by roots times what is free
        # there.
        free = velocity
        normals = scaled = velocity.new_zeros(0, len(velocity))
        pull = forces = velocity.new_zeros(0)
        if sliding:
            self.normal_evaluations += 1
            normals = self._compute_normals(gates.inputs, pattern.sliding, leaves)
            scaled = normals * roots
            pull = torch.cat([g.reshape(-1) for g in found[len(leaves) :]])[pattern.sliding]
            forces = least_squares(scaled @ scaled.T, scaled @ free)
            velocity = free - scaled.T @ forces
        velocity = roots * velocity

        def find_kinks() -> Kinks:
            kinks = find_gates(free, scaled, forces, pull)
            # The pull on a unit also comes through sliding units of later layers, by as much as
            # their gates are open, which takes one more round per layer.
            for _ in range(len(pattern.sliding_calls().unique()) - 1):
                through = self._compute_pull(leaves, pattern, kinks.gates.clamp(0, 1), cotangent)
                kinks = find_gates(free, scaled, forces, through)
            return kinks

        size, rho = torch.linalg.vector_norm(velocity).item(), self.length(theta)
        norm = torch.linalg.vector_norm(theta).item() * size
        pace = rho**2 / (1 + rho * size)
        return Velocity(
            velocity * pace,
            (math.log(pace) if pace > 0 else math.nan) - log_loss,
            z,
            normals,
            q,
            log_loss,
            (theta @ velocity).item() / norm if norm > 0 else 0.0,
            find_kinks,
        )

    def _evaluate_metric_roots(self, theta: Tensor) -> Tensor:
        """Square roots of the metric's factors, (P,); 1 without a metric."""
        if self._metric is None:
            return theta.new_ones(())
        point = self.named(theta)
        given: Any = self._metric(point)
        for name, factors in given.items():
            if (
                name not in point
                or not torch.is_tensor(factors)
                or not ((factors > 0) & torch.isfinite(factors)).all()
            ):
                raise ModelError(
                    f"metric gave {name!r}: it must give positive, finite tensors, under names of"
                    f" parameters that require gradients: {', '.join(point)}"
                )
        return torch.cat(
            [given.get(n, torch.ones_like(p)).expand_as(p).reshape(-1) for n, p in point.items()]
        ).sqrt()

    def _forward(self, leaves: dict[str, Tensor], factors: list[Tensor]) -> tuple[Tensor, Gates]:
        """Outputs (N, C) with ReLUs replaced by these factors, and the gates with their graph."""
        with torch.enable_grad(), Gates(factors) as gates:
            outputs = call_with(self._twin, leaves | self._fixed, self._x)
        return outputs[:, None] if outputs.ndim == 1 else outputs, gates

    def _compute_pull(
        self, leaves: dict[str, Tensor], pattern: Pattern, shares: Tensor, cotangent: Tensor
    ) -> Tensor:
        """The gradient in the outputs of sliding units, (K,), with gates open by these shares."""
        self.evaluations += 1
        factors = pattern.flat().to(shares.dtype)
        factors[pattern.sliding] = shares
        outputs, gates = self._forward(leaves, pattern.split(factors))
        found = torch.autograd.grad(
            outputs, gates.outputs, cotangent, allow_unused=True, materialize_grads=True
        )
        return torch.cat([g.reshape(-1) for g in found])[pattern.sliding]

    def _compute_normals(
        self, inputs: list[Tensor], sliding: Tensor, leaves: dict[str, Tensor]
    ) -> Tensor:
        """Gradients of the sliding pre-activations in the parameters, (K, P)."""
        chosen = torch.cat([z.reshape(-1) for z in inputs])[sliding]
        each = torch.eye(len(sliding), dtype=chosen.dtype, device=chosen.device)
        rows = differentiate_each(chosen, list(leaves.values()), each)
        parts = [
            (chosen.new_zeros(len(sliding), size) if g is None else g.reshape(len(sliding), -1))
            for g, size in zip(rows, self._sizes, strict=True)
        ]
        return torch.cat(parts, 1)

"""The velocity of gradient flow, on one side of every kink or along some of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from scipy.optimize import lsq_linear
from torch import Tensor, nn

from ..core import logspace
from ..core.batches import Arrays, Labels, batches
from ..core.gates import Gates
from ..core.nets import scores
from ..errors import ModelError
from ..losses import Loss
from ..margins import margins
from ..training.relative_loss import relative_gradient

_FAR = 10.0
_SAME = 1e-10
_NEGLIGIBLE = 1e-12
_NEAR_ZERO = 1e-3


Metric = Callable[[dict[str, Tensor]], dict[str, Tensor]]


@dataclass(frozen=True)
class Pattern:
    """Which pre-activations are active, and which slide: stay at 0 because both sides push them
    back.

    active : one boolean tensor per relu call, False for sliding ones.
    sliding : (K,) positions in the concatenation of all calls.
    """

    active: list[Tensor]
    sliding: Tensor


@dataclass(frozen=True)
class Kinks:
    """What holds sliding pre-activations at 0, each (K,).

    convex : both sides push back, so that it can stay.
    rising : where they do not, whether it goes on to the active side.
    gates : how far each must be open to stay at 0; outside [0, 1] where that is impossible.
    bounded : within [0, 1], the ones that make the velocity as small as can be: 0 for those that
        turn inactive, 1 for active.
    """

    convex: Tensor
    rising: Tensor
    gates: Tensor
    bounded: Tensor


@dataclass(frozen=True)
class Velocity:
    """At one point: d theta / ds = V rho^2 / (1 + rho |V|), V minus the gradient of the log-loss,
    and dt / ds, as its natural log.

    z : pre-activations, all calls in one vector.
    normals : (K, P), gradients of the sliding ones.
    q, log_loss : margins, and log of the summed loss.
    alignment : beta, the cosine of theta and V.
    """

    direction: Tensor
    log_time_rate: float
    z: Tensor
    normals: Tensor
    q: Tensor
    log_loss: float
    alignment: float
    _find_kinks: Callable[[], Kinks]

    @cached_property
    def kinks(self) -> Kinks:
        """Found when first asked for."""
        return self._find_kinks()


class FlowField:
    """-grad of the summed loss, for a float64 twin of a net on whole data, in a time s of its own.

    Far from stationary points s is arc length relative to the norm, in which a homogeneous net
    moves steadily however small its loss is; near them it is t up to a factor, so that the velocity
    stays smooth.

    Along a kink that both sides push against, the flow slides: its velocity is the projection of
    either side's onto the kink, which is the element of least norm of the subdifferential if the
    gate that this takes lies in [0, 1] (Lyu and Li 2019, Lemma H.3).

    metric : the factors by which coordinates move faster, of the parameters by name; norms at kinks
        are those of this metric.
    """

    def __init__(self, twin: nn.Module, data: Arrays, loss: Loss, metric: Metric | None = None):
        self._twin, self._loss, self._metric = twin, loss, metric
        self._names = [n for n, p in twin.named_parameters() if p.requires_grad]
        self._shapes = [dict(twin.named_parameters())[n].shape for n in self._names]
        self._sizes = [s.numel() for s in self._shapes]
        self._x, y = next(batches(data, len(data), twin))
        with torch.no_grad():
            self._y = Labels(scores(twin, self._x[:1]).shape[1]).encode(y).to(self._x.device)
        self._fixed = {
            n: p.detach() for n, p in twin.named_parameters() if n not in self._names
        } | dict(twin.named_buffers())
        self._least = _NEAR_ZERO * torch.linalg.vector_norm(self.start).item()
        self.evaluations = 0
        self.normal_evaluations = 0
        self._metric_roots(self.start)  # refuses what is no metric

    @property
    def start(self) -> Tensor:
        """The twin's own parameters, in one vector."""
        parameters = dict(self._twin.named_parameters())
        return torch.cat([parameters[n].detach().reshape(-1) for n in self._names]).clone()

    def length(self, theta: Tensor) -> float:
        """What steps and errors are relative to: the norm, or a little of the first one where the
        flow passes near 0.
        """
        return max(torch.linalg.vector_norm(theta).item(), self._least)

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """The vector as parameters."""
        return {
            n: part.reshape(s)
            for n, part, s in zip(self._names, theta.split(self._sizes), self._shapes, strict=True)
        }

    def pattern(self, theta: Tensor) -> Pattern:
        """The gates at a point, none sliding."""
        with torch.no_grad(), Gates() as gates:
            torch.func.functional_call(self._twin, self.named(theta) | self._fixed, (self._x,))
        return Pattern(
            [z > 0 for z in gates.inputs], torch.zeros(0, dtype=torch.int64, device=theta.device)
        )

    def preactivations(self, theta: Tensor, pattern: Pattern) -> Tensor:
        """Of all relu calls with the gates of the pattern, in one vector; a forward pass, no
        gradient.
        """
        with torch.no_grad(), Gates(pattern.active) as gates:
            torch.func.functional_call(self._twin, self.named(theta) | self._fixed, (self._x,))
        return torch.cat([z.reshape(-1) for z in gates.inputs])

    def __call__(self, theta: Tensor, pattern: Pattern) -> Velocity:
        self.evaluations += 1
        leaves = {n: p.detach().requires_grad_(True) for n, p in self.named(theta).items()}
        outputs, gates = self._forward(leaves, pattern.active)
        q, soft = margins(outputs.detach(), self._y)
        log_loss = self._loss.log_sum(soft)
        cotangent = relative_gradient(
            self._loss, outputs, self._y, logspace.log_mean(log_loss, len(q))
        )
        sliding = len(pattern.sliding) > 0
        wanted = [*leaves.values(), *(gates.outputs if sliding else [])]
        reached = torch.autograd.grad(
            outputs, wanted, cotangent, retain_graph=sliding, allow_unused=True
        )
        found = [
            torch.zeros_like(at) if g is None else g for g, at in zip(reached, wanted, strict=True)
        ]
        roots = self._metric_roots(theta)
        velocity = -roots * torch.cat([g.reshape(-1) for g in found[: len(leaves)]])
        z = (
            torch.cat([z.detach().reshape(-1) for z in gates.inputs])
            if gates.inputs
            else theta.new_zeros(0)
        )
        # In coordinates in which the metric is Euclidean: theta moves by roots times what is free
        # there.
        free, normals, pull, forces = (
            velocity,
            velocity.new_zeros(0, len(velocity)),
            velocity.new_zeros(0),
            velocity.new_zeros(0),
        )
        if sliding:
            self.normal_evaluations += 1
            normals = self._normals(gates.inputs, pattern.sliding, leaves)
            pull = torch.cat([g.reshape(-1) for g in found[len(leaves) :]])[pattern.sliding]
            forces = least_squares(
                (normals * roots) @ (normals * roots).T, (normals * roots) @ free
            )
            velocity = free - (normals * roots).T @ forces
        velocity = roots * velocity

        def find_kinks() -> Kinks:
            kinks = _kinks(free, normals * roots, forces, pull)
            # What is asked of a unit also comes through units of later layers, by as much as their
            # gates are open.
            for _ in range(_layers(pattern) - 1):
                kinks = _kinks(
                    free,
                    normals * roots,
                    forces,
                    self._pull(leaves, pattern, kinks.gates.clamp(0, 1), cotangent),
                )
            return kinks

        size, rho = torch.linalg.vector_norm(velocity).item(), self.length(theta)
        norm = torch.linalg.vector_norm(theta).item()
        alignment = (theta @ velocity).item() / (norm * size) if norm * size > 0 else 0.0
        pace = rho**2 / (1 + rho * size)
        return Velocity(
            velocity * pace,
            math.log(pace) - log_loss,
            z,
            normals,
            q,
            log_loss,
            alignment,
            find_kinks,
        )

    def _metric_roots(self, theta: Tensor) -> Tensor:
        """Square roots of the metric's factors, (P,); 1 without a metric."""
        if self._metric is None:
            return theta.new_ones(())
        point = self.named(theta)
        given = self._metric(point)
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
        with torch.enable_grad(), Gates(factors) as gates:
            outputs = torch.func.functional_call(self._twin, leaves | self._fixed, (self._x,))
        return outputs[:, None] if outputs.ndim == 1 else outputs, gates

    def _pull(
        self, leaves: dict[str, Tensor], pattern: Pattern, shares: Tensor, cotangent: Tensor
    ) -> Tensor:
        """The gradient in the outputs of sliding units, when their gates are open by these
        shares.
        """
        self.evaluations += 1
        factors = torch.cat([a.reshape(-1) for a in pattern.active]).to(shares.dtype)
        factors[pattern.sliding] = shares
        parts = factors.split([a.numel() for a in pattern.active])
        outputs, gates = self._forward(
            leaves, [p.reshape(a.shape) for p, a in zip(parts, pattern.active, strict=True)]
        )
        found = torch.autograd.grad(outputs, gates.outputs, cotangent, allow_unused=True)
        parts = [
            torch.zeros_like(at) if g is None else g
            for g, at in zip(found, gates.outputs, strict=True)
        ]
        return torch.cat([g.reshape(-1) for g in parts])[pattern.sliding]

    def _normals(self, inputs: list[Tensor], sliding: Tensor, leaves: dict[str, Tensor]) -> Tensor:
        chosen = torch.cat([z.reshape(-1) for z in inputs])[sliding]
        rows = torch.autograd.grad(
            chosen,
            list(leaves.values()),
            torch.eye(len(sliding), dtype=chosen.dtype, device=chosen.device),
            is_grads_batched=True,
            allow_unused=True,
        )
        parts = [
            (chosen.new_zeros(len(sliding), size) if g is None else g.reshape(len(sliding), -1))
            for g, size in zip(rows, self._sizes, strict=True)
        ]
        return torch.cat(parts, 1)


def least_squares(matrix: Tensor, values: Tensor) -> Tensor:
    """The solution of least norm, also where the matrix is singular; on the CPU, where alone torch
    can.

    NaN where a number is not finite, which LAPACK refuses: the step is then rejected as one of
    infinite error.
    """
    if not (torch.isfinite(matrix).all() and torch.isfinite(values).all()):
        return torch.full_like(values, torch.nan)
    return (
        torch.linalg.lstsq(matrix.cpu(), values.cpu()[:, None], driver="gelsd")
        .solution[:, 0]
        .to(values.device)
    )


def _kinks(free: Tensor, normals: Tensor, forces: Tensor, pull: Tensor) -> Kinks:
    """The gates by which free - sum_k gate_k pull_k normal_k is the velocity, which with the right
    forces is orthogonal to the normals.
    """
    gates = torch.nan_to_num(forces / pull, nan=_FAR).clamp(-_FAR, _FAR)
    convex = pull * torch.linalg.vector_norm(
        normals, dim=1
    ) > _NEGLIGIBLE * torch.linalg.vector_norm(free)
    rising = forces > pull / 2
    if ((gates >= 0) & (gates <= 1)).all() or not convex.all() or not torch.isfinite(free).all():
        return Kinks(convex, rising, gates, gates.clamp(0, 1))
    columns = normals.T * pull
    q, r = torch.linalg.qr(columns)
    found = lsq_linear(r.cpu().numpy(), (q.T @ free).cpu().numpy(), (0, 1), method="bvls").x
    bounded = torch.from_numpy(found).to(gates)
    # Where normals depend on each other there are many gates for one velocity.
    same = torch.linalg.vector_norm(
        columns @ bounded - normals.T @ forces
    ) <= _SAME * torch.linalg.vector_norm(free)
    return Kinks(convex, rising, bounded if same else gates, bounded)


def _layers(pattern: Pattern) -> int:
    """In how many relu calls units slide."""
    ends = torch.tensor([a.numel() for a in pattern.active], device=pattern.sliding.device).cumsum(
        0
    )
    return len(torch.unique(torch.searchsorted(ends, pattern.sliding, right=True)))

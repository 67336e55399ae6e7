"""Kinks along which gradient flow slides: which pre-activations stay at 0, and by which gates."""

from dataclasses import dataclass

import torch
from scipy.optimize import lsq_linear
from torch import Tensor

_LARGEST_GATE = 10.0
"""Gates beyond [0, 1] only say that a unit leaves its kink; clamping keeps 1 / 0 finite."""
_RELATIVE_TIE = 1e-10
"""Velocities that agree to this share of the free one are the same: above the rounding of a least
squares solution with dependent normals, far below any difference that a gate makes.
"""
_NEGLIGIBLE_PULL = 1e-12
"""A pull below this share of the free velocity is rounding, and does not make a kink convex."""


@dataclass(frozen=True)
class Pattern:
    """The state of every ReLU: active, inactive, or sliding, as both sides push it back to 0."""

    active: list[Tensor]  # boolean, as the input of each ReLU call; False for sliding units
    sliding: Tensor  # (K,) int64, positions in the concatenation of all calls

    def flat(self) -> Tensor:
        """`active` of all calls in one vector."""
        return torch.cat([a.reshape(-1) for a in self.active])

    def split(self, flat: Tensor) -> list[Tensor]:
        """A vector of values of all units as one part per call, in its shape."""
        parts = flat.split([a.numel() for a in self.active])
        return [part.reshape(a.shape) for part, a in zip(parts, self.active, strict=True)]

    def sliding_calls(self) -> Tensor:
        """The numbers of the ReLU calls in which units slide, (K,)."""
        sizes = [a.numel() for a in self.active]
        ends = torch.tensor(sizes, device=self.sliding.device).cumsum(0)
        return torch.searchsorted(ends, self.sliding, right=True)


@dataclass(frozen=True)
class Kinks:
    """The gates that hold sliding pre-activations at 0; every field has shape (K,)."""

    convex: Tensor  # whether both sides push back, so that the unit can stay
    rising: Tensor  # where they do not, whether the unit goes on to the active side
    gates: Tensor  # how far to open each for the unit to stay at 0; not in [0, 1] if it cannot
    bounded: Tensor  # those within [0, 1] of the least velocity: 0 turns inactive, 1 active


def least_squares(matrix: Tensor, values: Tensor) -> Tensor:
    """The least squares solution of least norm, also where the matrix is singular."""
    # LAPACK refuses what is not finite: NaN rejects the step as one of infinite error. On the CPU,
    # as torch has no such driver on other devices.
    if not (torch.isfinite(matrix).all() and torch.isfinite(values).all()):
        return torch.full_like(values, torch.nan)
    found: Tensor = torch.linalg.lstsq(matrix.cpu(), values.cpu()[:, None], driver="gelsd")[0]
    return found[:, 0].to(values.device)


def find_gates(free: Tensor, normals: Tensor, forces: Tensor, pull: Tensor) -> Kinks:
    """The gates with which free - sum_k gate_k pull_k normal_k is the velocity along the kinks.

    free (P,) is the velocity with all sliding gates closed, normals (K, P) the gradients of the
    sliding pre-activations, to which free - normals.T @ forces is orthogonal, and pull (K,) the
    gradients of the log-loss in the outputs of the sliding units.
    """
    gates = torch.nan_to_num(forces / pull, nan=_LARGEST_GATE).clamp(-_LARGEST_GATE, _LARGEST_GATE)
    size = torch.linalg.vector_norm(free)
    convex = pull * torch.linalg.vector_norm(normals, dim=1) > _NEGLIGIBLE_PULL * size
    rising = forces > pull / 2
    if ((gates >= 0) & (gates <= 1)).all() or not convex.all() or not torch.isfinite(free).all():
        return Kinks(convex, rising, gates, gates.clamp(0, 1))
    # Gates beyond [0, 1]: the ones within that leave the least velocity tell who stays, turns
    # active or turns inactive.
    columns = normals.T * pull
    q, r = torch.linalg.qr(columns)
    found = lsq_linear(r.cpu().numpy(), (q.T @ free).cpu().numpy(), (0, 1), method="bvls").x
    bounded = torch.from_numpy(found).to(gates)
    # Where normals depend on each other there are many gates for one velocity; if the bounded ones
    # give it, too, they hold the units where they are.
    apart = torch.linalg.vector_norm(columns @ bounded - normals.T @ forces)
    same = apart <= _RELATIVE_TIE * size
    return Kinks(convex, rising, bounded if same else gates, bounded)

"""Kinks along which gradient flow slides: which pre-activations stay at 0, and the gates that hold
them there.
"""

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
    """The state of every ReLU: active, inactive, or sliding, which is to stay at 0 because both
    sides push it back.

    active : one boolean tensor per ReLU call, of the shape of its input; False for sliding units.
    sliding : (K,) int64, positions in the concatenation of all calls.
    """

    active: list[Tensor]
    sliding: Tensor

    def flat(self) -> Tensor:
        """`active` of all calls in one vector."""
        return torch.cat([a.reshape(-1) for a in self.active])

    def sliding_calls(self) -> Tensor:
        """The numbers of the ReLU calls in which units slide, (K,)."""
        sizes = [a.numel() for a in self.active]
        ends = torch.tensor(sizes, device=self.sliding.device).cumsum(0)
        return torch.searchsorted(ends, self.sliding, right=True)


@dataclass(frozen=True)
class Kinks:
    """The gates that hold sliding pre-activations at 0; every field has shape (K,).

    convex : boolean, whether both sides push back, so that the unit can stay.
    rising : boolean, where they do not, whether the unit goes on to the active side.
    gates : how far each gate must be open for the unit to stay at 0; outside [0, 1] where that is
        impossible.
    bounded : the gates within [0, 1] that make the velocity as small as can be: 0 for units that
        turn inactive, 1 for those that turn active.
    """

    convex: Tensor
    rising: Tensor
    gates: Tensor
    bounded: Tensor


def least_squares(matrix: Tensor, values: Tensor) -> Tensor:
    """The least squares solution of least norm, also where the matrix is singular.

    NaN where a number is not finite, which LAPACK refuses: the step is then rejected as one of
    infinite error. Computed on the CPU: torch has no such driver on other devices.
    """
    if not (torch.isfinite(matrix).all() and torch.isfinite(values).all()):
        return torch.full_like(values, torch.nan)
    return (
        torch.linalg.lstsq(matrix.cpu(), values.cpu()[:, None], driver="gelsd")
        .solution[:, 0]
        .to(values.device)
    )


def find_gates(free: Tensor, normals: Tensor, forces: Tensor, pull: Tensor) -> Kinks:
    """The gates with which free - sum_k gate_k pull_k normal_k is the velocity along the kinks.

    free : (P,), the velocity with all sliding gates closed.
    normals : (K, P), gradients of the sliding pre-activations.
    forces : (K,), with which free - normals.T @ forces is orthogonal to the normals.
    pull : (K,), gradients of the log-loss in the outputs of the sliding units.
    """
    gates = torch.nan_to_num(forces / pull, nan=_LARGEST_GATE).clamp(-_LARGEST_GATE, _LARGEST_GATE)
    convex = pull * torch.linalg.vector_norm(
        normals, dim=1
    ) > _NEGLIGIBLE_PULL * torch.linalg.vector_norm(free)
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
    same = torch.linalg.vector_norm(
        columns @ bounded - normals.T @ forces
    ) <= _RELATIVE_TIE * torch.linalg.vector_norm(free)
    return Kinks(convex, rising, bounded if same else gates, bounded)

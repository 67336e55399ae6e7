"""What happens at kinks on the way of gradient flow: pre-activations reach 0 and cross, or stay
there and slide, or leave again.
"""

import torch
from scipy.optimize import brentq
from torch import Tensor

from .dormand_prince import Step
from .field import FlowField, Pattern, Velocity

_ON_KINK = 1e-12
_GATE = 1e-9
_AT_END = 1e-10
_SHARE = 1e-14


def violations(z: Tensor, gates: Tensor, pattern: Pattern) -> Tensor:
    """How far each condition of the pattern is from holding (positive: violated): per
    pre-activation, then the gates' two ends.

    Pre-activations count relative to the largest.
    """
    active = torch.cat([a.reshape(-1) for a in pattern.active])
    outside = torch.where(active, -z, z) / z.abs().max().clamp(min=1e-300) - _ON_KINK
    outside[pattern.sliding] = -torch.inf
    return torch.cat([outside, -gates - _GATE, gates - 1 - _GATE])


def first_event(field: FlowField, step: Step, pattern: Pattern) -> float | None:
    """The share of the step at which a condition is first violated, on the dense output; None if
    none is at the end.

    Conditions that fail and hold again within the step are not seen.
    """
    start, end = step.stages[0], step.stages[-1]
    if not end.z.numel():
        return None
    # What leaves a kink may begin on its wrong side, by rounding: it violates its condition where
    # it goes further there.
    allowed = violations(start.z, start.kinks.gates, pattern).clamp(min=0) + _ON_KINK
    ahead = violations(end.z, end.kinks.gates, pattern) > allowed
    if not ahead.any():
        return None
    of_gates = ahead[len(end.z) :].any()

    def worst(share: float) -> float:
        theta = step.inside(share)
        if of_gates:
            here = field(theta, pattern)
            z, gates = here.z, here.kinks.gates
        else:
            z, gates = field.preactivations(theta, pattern), start.kinks.gates
        return (violations(z, gates, pattern) - allowed).max().item()

    if worst(0.0) >= 0:
        return 0.0
    return brentq(worst, 0.0, 1.0, xtol=_SHARE, rtol=1e-13)


def settle(field: FlowField, theta: Tensor, pattern: Pattern) -> tuple[Pattern, Velocity]:
    """The pattern with which flow goes on from a point where conditions are violated, or about to
    be, and the velocity.

    All pre-activations at 0 are first tried as sliding. Where both sides push back (convex kinks),
    the gates in [0, 1] that make the velocity least tell which stay so, which turn active (1) and
    which inactive (0); one that the sides push away crosses. Lower layers are decided first: the
    gates of the others depend on them.
    """
    velocity = field(theta, pattern)
    arriving = (
        violations(velocity.z, velocity.kinks.gates, pattern)[: len(velocity.z)] > -2 * _ON_KINK
    )
    was_active = torch.cat([a.reshape(-1) for a in pattern.active])
    slid = torch.zeros_like(was_active)
    slid[pattern.sliding] = True
    pattern = _changed(
        pattern, torch.cat([pattern.sliding, torch.nonzero(arriving)[:, 0]]).unique(), was_active
    )
    while True:
        velocity = field(theta, pattern)
        units, kinks = pattern.sliding, velocity.kinks
        # At 0 because all that feeds them is 0, as in a layer after one that dies on a sample:
        # their sides stay as they were.
        fixed = (
            torch.linalg.vector_norm(velocity.normals, dim=1) * torch.linalg.vector_norm(theta)
            <= _GATE * velocity.z.abs().max()
        )
        if fixed.any():
            leaving, side = fixed, was_active[units]
        elif not kinks.convex.all():
            leaving, side = (
                ~kinks.convex,
                torch.where(slid[units], kinks.rising, ~was_active[units]),
            )
        else:
            leaving, side = (
                (kinks.bounded <= _AT_END) | (kinks.bounded >= 1 - _AT_END),
                kinks.bounded > 0.5,
            )
        if not leaving.any():
            return pattern, velocity
        calls = torch.searchsorted(
            torch.tensor([a.numel() for a in pattern.active], device=units.device).cumsum(0),
            units,
            right=True,
        )
        leaving = leaving & (calls == calls[leaving].min())
        active = torch.cat([a.reshape(-1) for a in pattern.active])
        active[units[leaving]] = side[leaving]
        pattern = _changed(pattern, units[~leaving], active)


def _changed(pattern: Pattern, sliding: Tensor, active: Tensor) -> Pattern:
    active = active.clone()
    active[sliding] = False
    parts = active.split([a.numel() for a in pattern.active])
    return Pattern(
        [part.reshape(a.shape) for part, a in zip(parts, pattern.active, strict=True)], sliding
    )

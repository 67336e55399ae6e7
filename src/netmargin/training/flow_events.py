"""What happens at kinks on the way of gradient flow: pre-activations reach 0 and cross, or stay there and slide, or leave again."""

import torch
from scipy.optimize import brentq
from torch import Tensor

from .dormand_prince import Step
from .flow_field import FlowField, Pattern, Velocity

_ON_KINK = 1e-12
_GATE = 1e-9
_SHARE = 1e-14
_TURNS = 40


def violations(z: Tensor, gates: Tensor, pattern: Pattern) -> Tensor:
    """How far each condition of the pattern is from holding (positive: violated): per pre-activation, then the gates' two ends.

    Pre-activations count relative to the largest.
    """
    active = torch.cat([a.reshape(-1) for a in pattern.active])
    outside = torch.where(active, -z, z) / z.abs().max().clamp(min=1e-300) - _ON_KINK
    outside[pattern.sliding] = -torch.inf
    return torch.cat([outside, -gates - _GATE, gates - 1 - _GATE])


def first_event(field: FlowField, step: Step, pattern: Pattern) -> float | None:
    """The share of the step at which a condition is first violated, on the dense output; None if none is at the end.

    Conditions that fail and hold again within the step are not seen.
    """
    end = step.stages[-1]
    if not end.z.numel() or violations(end.z, end.gates, pattern).max() <= 0:
        return None

    def worst(share: float) -> float:
        theta = step.inside(share)
        if len(pattern.sliding):
            here = field(theta, pattern)
            return violations(here.z, here.gates, pattern).max().item()
        return violations(field.preactivations(theta, pattern), end.gates, pattern).max().item()

    if worst(0.0) >= 0:
        return 0.0
    return brentq(worst, 0.0, 1.0, xtol=_SHARE, rtol=1e-13)


def settle(field: FlowField, theta: Tensor, pattern: Pattern) -> tuple[Pattern, Velocity]:
    """The pattern with which flow goes on from a point where conditions are violated, or about to be, and the velocity.

    A pre-activation at 0 is first tried as sliding. It stays so if its gate lies in [0, 1] and both sides push it back (a convex kink); it
    becomes active if the gate would exceed 1, inactive if it would be negative; it crosses where the sides push away.
    """
    velocity = field(theta, pattern)
    arriving = violations(velocity.z, velocity.gates, pattern)[: len(velocity.z)] > -2 * _ON_KINK
    was_active = torch.cat([a.reshape(-1) for a in pattern.active])
    pattern = _changed(pattern, sliding=torch.nonzero(arriving)[:, 0])
    tried = set(pattern.sliding.tolist())
    for _ in range(_TURNS):
        velocity = field(theta, pattern)
        if not len(pattern.sliding):
            break
        repelling = velocity.pull <= 0
        out = torch.where(repelling, 1.0, torch.maximum(-velocity.gates, velocity.gates - 1))
        worst = int(out.argmax())
        if out[worst] <= 0.1 * _GATE:
            break
        unit = int(pattern.sliding[worst])
        side = not bool(was_active[unit]) if repelling[worst] else bool(velocity.gates[worst] > 1)
        if repelling[worst] and unit not in tried:
            side = bool(velocity.gates[worst] > 0.5)
        pattern = _changed(pattern, released=(unit, side))
    return pattern, velocity


def _changed(pattern: Pattern, *, sliding: Tensor | None = None, released: tuple[int, bool] | None = None) -> Pattern:
    active = torch.cat([a.reshape(-1) for a in pattern.active])
    slides = pattern.sliding
    if sliding is not None:
        slides = torch.unique(torch.cat([slides, sliding]))
        active = active.clone()
        active[slides] = False
    if released is not None:
        unit, side = released
        slides, active = slides[slides != unit], active.clone()
        active[unit] = side
    parts = active.split([a.numel() for a in pattern.active])
    return Pattern([part.reshape(a.shape) for part, a in zip(parts, pattern.active, strict=True)], slides)

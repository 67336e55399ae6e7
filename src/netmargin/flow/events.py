"""Events at kinks of gradient flow: pre-activations reach 0, and cross, slide or leave again."""

import torch
from scipy.optimize import brentq
from torch import Tensor

from .dormand_prince import Step
from .field import FlowField, Velocity
from .kinks import Pattern

_ON_KINK = 1e-12
"""Share of the largest pre-activation within which one is at 0: some thousand roundings of float64,
which is what locating and following a kink leaves.
"""
_GATE_TOLERANCE = 1e-9
"""Share by which gates may leave [0, 1], and by which normals count as 0: gates come out of a least
squares problem, and are less accurate than pre-activations.
"""
_GATE_AT_BOUND = 1e-10
"""Distance to 0 or 1 at which a bounded gate is at that end: bvls puts it there up to rounding."""
_EVENT_TOLERANCE = 1e-14
"""Accuracy of the share of a step at which an event lies: as far as float64 goes, because the flow
goes on from there as if it were on the kink.
"""


def violations(z: Tensor, gates: Tensor, pattern: Pattern) -> Tensor:
    """How far each condition of the pattern is violated; what is not positive holds.

    First one entry per pre-activation, relative to the largest (-inf for sliding ones, which have
    no condition), then one per gate for its lower end, then one per gate for its upper end.
    """
    outside = torch.where(pattern.flat(), -z, z) / z.abs().max().clamp(min=1e-300) - _ON_KINK
    outside[pattern.sliding] = -torch.inf
    return torch.cat([outside, -gates - _GATE_TOLERANCE, gates - 1 - _GATE_TOLERANCE])


def first_event(field: FlowField, step: Step, pattern: Pattern) -> float | None:
    """The share of the step at which a condition is first violated, or None if all hold at the
    end: what fails and holds again within the step is not seen.
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
        if of_gates:  # gates take a gradient; pre-activations only a forward pass
            here = field(theta, pattern)
            z, gates = here.z, here.kinks.gates
        else:
            z, gates = field.preactivations(theta, pattern), start.kinks.gates
        return (violations(z, gates, pattern) - allowed).max().item()

    if worst(0.0) >= 0:
        return 0.0
    return float(brentq(worst, 0.0, 1.0, xtol=_EVENT_TOLERANCE, rtol=1e-13))


def settle(field: FlowField, theta: Tensor, pattern: Pattern) -> tuple[Pattern, Velocity]:
    """Decide with which pattern, and so which velocity, the flow goes on from a point on kinks."""
    # All pre-activations at 0 are first tried as sliding. Where both sides push back (convex
    # kinks), the gates in [0, 1] with the least velocity tell which units go on sliding, turn
    # active (gate 1) or inactive (gate 0). A unit that the sides push away crosses. Lower layers
    # are decided first: the gates of the others depend on them.
    velocity = field(theta, pattern)
    was_active = pattern.flat()
    slid = torch.zeros_like(was_active)
    slid[pattern.sliding] = True
    near = violations(velocity.z, velocity.kinks.gates, pattern)[: len(slid)] > -2 * _ON_KINK
    pattern = _change_pattern(pattern, torch.nonzero(slid | near)[:, 0], was_active)
    while True:
        velocity = field(theta, pattern)
        units, kinks = pattern.sliding, velocity.kinks
        # Some are at 0 because all that feeds them is 0, as in a layer after one that dies on a
        # sample. Nothing moves them, so their sides stay as they were.
        moving = torch.linalg.vector_norm(velocity.normals, dim=1) * torch.linalg.vector_norm(theta)
        fixed = moving <= _GATE_TOLERANCE * velocity.z.abs().max()
        if fixed.any():
            leaving, side = fixed, was_active[units]
        elif not kinks.convex.all():
            leaving = ~kinks.convex
            side = torch.where(slid[units], kinks.rising, ~was_active[units])
        else:
            side = kinks.bounded > 0.5
            leaving = torch.where(side, 1 - kinks.bounded, kinks.bounded) <= _GATE_AT_BOUND
        if not leaving.any():
            return pattern, velocity
        calls = pattern.sliding_calls()
        leaving = leaving & (calls == calls[leaving].min())
        active = pattern.flat()
        active[units[leaving]] = side[leaving]
        pattern = _change_pattern(pattern, units[~leaving], active)


def _change_pattern(pattern: Pattern, sliding: Tensor, active: Tensor) -> Pattern:
    """A pattern with these units sliding, and of the others these active; given as flat vectors."""
    active = active.clone()
    active[sliding] = False
    return Pattern(pattern.split(active), sliding)

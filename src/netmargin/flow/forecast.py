"""A forecast of what an exact gradient flow will cost: how many kinks lie on its way."""

import math

from ..core import logspace
from ..core.caller import warn_caller
from ..training.stopping import LogLossBelow
from .exact import ExactFlow

_GRADIENTS_PER_KINK = 9
"""Gradients per kink that is crossed: six of the step that meets it, the settling, the steps
between (measured on digits: 9.3).
"""
_RATE_DISTANCE = 1e-6
"""Distance in s over which the rates of pre-activations are taken: rounding is 1e-10 of that, and
few kinks lie so near.
"""


def warn_if_hopeless(run: ExactFlow) -> None:
    """Warn where the kinks on the way take more gradients than the run may compute.

    The warning says what to do instead.
    """
    remaining = _estimate_remaining_distance(run)
    if remaining is None:
        return
    crossings, kinks = _count_crossings(run, remaining)
    gradients = _GRADIENTS_PER_KINK * crossings
    if gradients > run.most:
        samples = len(run.scored)
        warn_caller(
            f"gradient_flow is not likely to get there: {samples:,} samples times"
            f" {kinks // samples:,} relus are {kinks:,} kinks, of which about {crossings:,} lie on"
            f" the way. Locating each takes about {_GRADIENTS_PER_KINK} gradients, {gradients:,} in"
            f' all, and max_evaluations is {run.most:,}. Use method="proximal", whose long steps'
            " pass all kinks; or fewer samples, or a nearer end."
        )


def _estimate_remaining_distance(run: ExactFlow) -> float | None:
    """The least distance in s to the end, for a net of order L whose loss falls like
    e^{-||theta||^L}.

    None where that is not known: without an order, an end, or a summed loss below 1 to begin with.
    """
    order = run.homogeneity.order
    ends = [
        rule.log10 * logspace.LN10 + math.log(len(run.scored))
        for rule in run.rules
        if isinstance(rule, LogLossBelow)
    ]
    if math.isfinite(run.log_end):
        ends.append(-run.log_end)  # far along the flow, the loss is about 1 / t
    start = run.field(run.field.start, run.field.pattern(run.field.start)).log_loss
    if not ends or order is None or not order > 0 or start >= 0:
        return None
    end = max(ends)  # the first to be reached
    return math.log(end / start) / float(order) if end < start else None


def _count_crossings(run: ExactFlow, remaining: float) -> tuple[int, int]:
    """The number of pre-activations that reach 0 within that distance if they go on as they begin,
    and the number of all.
    """
    field = run.field
    theta = field.start
    pattern = field.pattern(theta)
    velocity = field(theta, pattern)
    ahead = (
        field.preactivations(theta + _RATE_DISTANCE * velocity.direction, pattern)
        if len(velocity.z)
        else velocity.z
    )
    moved = (ahead - velocity.z) / _RATE_DISTANCE * remaining
    return int((velocity.z * (velocity.z + moved) < 0).sum()), len(velocity.z)

"""Gradient flow by a method of order 5 between kinks, which it locates and crosses or follows."""

import math
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq
from torch import Tensor

from ..core import logspace
from ..core.progress import Progress
from ..errors import DivergenceError
from .dormand_prince import LOWER_WEIGHTS, ORDER, WEIGHTS, Step, step
from .events import first_event, settle
from .field import Velocity
from .kinks import Pattern, least_squares
from .run import FlowRun

_FIRST_STEP = 1e-3
"""Length in s of the first step; the error estimate corrects it by factors of 5 at once."""
_SHORTEST_STEP = 1e-10
"""Length in s below which no step is refused: kinks that are no ReLU are passed by such steps.
Their errors are no longer than they are; shorter ones would only lose to rounding.
"""
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 5.0
"""Part of the length at which the error estimate would just be met, and the bounds of its change
per step: the values of Hairer, Norsett and Wanner's DOPRI5, but for the growth, 10 there.
"""
_STALL_EVALUATIONS, _STALL_ADVANCE = 5000, 1e-2
"""A flow that advances less than this in s over so many evaluations has stalled: within it, 5000
evaluations at the shortest step advance 1e-7.
"""
_EVEN_SHARE = 1e-12
"""Share of a step within which time goes by evenly, up to rounding."""
_LARGEST_EXPONENT = 700.0
"""Largest exponent of a number that is compared: e^700 is below the overflow of float64."""


class ExactFlow(FlowRun):
    """The exact method: Dormand and Prince's with fixed gates, whose steps end at kinks."""

    def __init__(self, *given: Any, rtol: float, step_size: float | None, **shared: Any) -> None:
        super().__init__(*given, **shared)
        self.rtol, self.step_size = rtol, step_size

    def _integrate(self, display: Progress) -> None:
        theta = self.theta
        pattern = self.field.pattern(theta)
        velocity = self.field(theta, pattern)
        self._keep(theta, velocity, pattern)
        h = self.step_size or _FIRST_STEP
        while not self._finished():
            self._show(display)
            taken = step(partial(self.field, pattern=pattern), theta, velocity, h)
            errors = taken.error / self.field.length(theta), self._log_time_error(taken)
            ratio = max(errors) / self.rtol if all(map(math.isfinite, errors)) else math.inf
            # Overflow within a long step says nothing of the flow: a shorter one may stay finite.
            if not math.isfinite(ratio):
                if h <= _SHORTEST_STEP:
                    raise DivergenceError(
                        "The velocity of gradient flow is not finite after t ="
                        f" e^{self.log_time:.4g}. Check the data's scale."
                    )
                h = max(_SHRINK * h, _SHORTEST_STEP)
                continue
            proposed = h * min(max(_SAFETY * max(ratio, 1e-12) ** (-1 / ORDER), _SHRINK), _GROW)
            if ratio > 1 and self.step_size is None and h > _SHORTEST_STEP:
                h = max(proposed, _SHORTEST_STEP)
                continue
            # Accepted. Only now are kinks looked for: a step that is refused need not know them.
            event = first_event(self.field, taken, pattern)
            share = 1.0 if event is None else event
            if self._log_time_after(taken, share) > self.log_end:
                # Where t is reached on the dense output is accurate enough to choose the length;
                # the step is taken anew.
                share, event = self._share_at_end(taken, share), None
                taken = step(partial(self.field, pattern=pattern), theta, velocity, share * taken.h)
                share = 1.0
                self.log_time = self.log_end
            else:
                self.log_time = self._log_time_after(taken, share)
            theta, self.s = taken.inside(share), self.s + share * taken.h
            velocity = taken.stages[-1]
            if event is not None:
                self.trajectory.events += 1
                pattern, velocity = settle(self.field, theta, pattern)
            elif len(pattern.sliding):
                # Undo the drift of sliding pre-activations away from 0, to first order.
                N, z = velocity.normals, velocity.z[pattern.sliding]
                theta = theta - N.T @ least_squares(N @ N.T, z)
            # A step that an event cuts short may shorten the next one, but not lengthen it.
            if event is None or proposed < h:
                h = proposed
            h = self.step_size or h
            self._keep(theta, velocity, pattern)

    def _keep(self, theta: Tensor, velocity: Velocity, pattern: Pattern) -> None:
        self._record(theta, velocity.q, velocity.log_loss, velocity.alignment, len(pattern.sliding))

    def _stalled(self) -> str | None:
        rows = self.trajectory.rows
        then = self.evaluations - _STALL_EVALUATIONS
        before = next((row for row in reversed(rows) if row["evaluations"] <= then), None)
        if before is None or self.s - before["s"] >= _STALL_ADVANCE:
            return None
        return (
            f"stalled at t = e^{self.log_time:.4g}, most likely at a kink that is no relu (max"
            " pooling, LeakyReLU, clamp, a normalization whose eps is tiny): only relus can slide;"
            ' method="proximal" passes all kinks'
        )

    def _log_time_after(self, taken: Step, share: float) -> float:
        """Natural log of t at a share of the step."""
        return logspace.log_add(self.log_time, _log_duration(taken, share))

    def _log_time_error(self, taken: Step) -> float:
        """The error of log t at the end of the step, estimated by the embedded method."""
        rates = np.array([stage.log_time_rate for stage in taken.stages])
        scaled = np.exp(rates - rates.max()) * taken.h
        before = math.exp(min(self.log_time - float(rates.max()), _LARGEST_EXPONENT))
        error = abs(float(np.dot(np.subtract(WEIGHTS, LOWER_WEIGHTS), scaled)))
        size = before + abs(float(np.dot(WEIGHTS, scaled)))
        return error / size if size > 0 else math.inf

    def _share_at_end(self, taken: Step, most: float) -> float:
        """The share of the step, up to `most`, at which t reaches the time to stop at."""

        def past_the_end(share: float) -> float:
            return self._log_time_after(taken, share) - self.log_end

        if past_the_end(_EVEN_SHARE) <= 0:
            return float(brentq(past_the_end, _EVEN_SHARE, most, xtol=1e-15))
        wanted = self.log_end + math.log(-math.expm1(self.log_time - self.log_end))
        return _EVEN_SHARE * math.exp(wanted - _log_duration(taken, _EVEN_SHARE))


def _log_duration(taken: Step, share: float) -> float:
    """Natural log of the time of a share of a step, by the method's own quadrature of dt / ds."""
    # Rates are scaled by the largest one, so that none overflows.
    rates = np.array([stage.log_time_rate for stage in taken.stages])
    total = float(np.dot(taken.weights(share), np.exp(rates - rates.max()))) * taken.h
    return math.log(total) + float(rates.max()) if total > 0 else -math.inf

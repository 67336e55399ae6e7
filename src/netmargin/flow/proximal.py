"""Gradient flow by minimizing movements: long steps of first order, past any number of kinks."""

import math
from typing import Any

import torch
from torch import Tensor

from ..core import logspace
from ..core.lbfgs import minimize
from ..core.progress import Progress
from ..losses import Loss
from ..margins import margins
from ..nets.model import scores
from ..nets.net_on_samples import NetOnSamples
from ..training.relative_loss import log_loss
from .run import FlowRun

STEP = 0.02
"""Length of a step in s: an aligned net of order 2 takes 30 from a loss of 1e-30 to 1e-100."""
_ITERATIONS = 100
"""Iterations of L-BFGS in each step. On digits, 30 left a tenth more of the distance to a run of
tiny steps; 300 changed nothing.
"""
_ATTEMPTS, _SHORTENING = 8, 0.25
"""A step in which the minimization finds nothing is tried anew, shorter by this factor, so many
times in all: 0.25^8 = 1e-5 of its length, where the loss does not fall within rounding.
"""
_LEFT_OUT_NATS, _LOG_LEFT_OUT = 40.0, math.log(1e-12)
"""Samples take part but for those that all together weigh less than e^-40 at the beginning of a
step, below rounding; at its end, those left out are checked to weigh less than 1e-12.
"""
_RESTARTS, _RESTART_DISTANCE = 4, 0.1
"""A step that finds nothing starts anew from so many random points, at this share of its length:
near enough to stay in its reach, far enough to leave the kink. A step for which all of them fail is
tried shorter.
"""
_LANDINGS, _LANDING_TOLERANCE = 5, 1e-3
"""Steps that try to end at a time, and how near log t must come; each squares the last miss."""
_EVEN_FALL = 1e-12
"""A fall of log Loss below this counts as none: its formula would divide rounding by rounding."""


class ProximalFlow(FlowRun):
    """The proximal method: implicit Euler steps of d theta / d tau = -grad log Loss.

    A step is theta_1 = argmin log Loss(theta) + |theta - theta_0|^2 / (2 tau): it locates no kink,
    and no stiffness bounds it. Time goes by as dt = d tau / Loss.
    """

    def __init__(self, *given: Any, step_size: float, **shared: Any) -> None:
        super().__init__(*given, **shared)
        self.step_size, self._stuck = step_size, False
        self._random = torch.Generator().manual_seed(0)
        self.objective = _LogLoss(self.scored, self.loss)

    @property
    def evaluations(self) -> int:
        """Gradients of the loss over the samples that carry weight."""
        return self.objective.evaluations

    def _integrate(self, display: Progress) -> None:
        objective, theta = self.objective, self.theta
        q, log_loss = objective.measure(wide=True)
        trained = list(self.field.trained.values())
        gradients = torch.autograd.grad(
            objective.value(), trained, allow_unused=True, materialize_grads=True
        )
        gradient = torch.cat([g.reshape(-1) for g in gradients])
        speed = torch.linalg.vector_norm(gradient).item()  # |V|, V the velocity in tau
        norm = self.field.length(theta) * speed
        self._record(theta, q, log_loss, -(theta @ gradient).item() / norm if norm > 0 else 0.0, 0)
        moved = torch.zeros_like(theta)
        step, failures = self.step_size, 0
        while not self._finished():
            self._show(display)
            rho = self.field.length(theta)
            tau = step * rho**2 / (1 + rho * speed)
            end, q, after = self._step(theta, tau, moved)
            duration = _compute_log_duration(tau, log_loss, after)
            # Past the time to stop at, the step is taken anew, shorter, with the tau that takes the
            # time left if log Loss falls as fast as it just did.
            landed = False
            for _ in range(_LANDINGS):
                if logspace.log_add(self.log_time, duration) <= self.log_end and not landed:
                    break
                landed = True
                wanted = self.log_end + math.log(-math.expm1(self.log_time - self.log_end))
                if abs(duration - wanted) < _LANDING_TOLERANCE:
                    break
                tau = _find_tau(wanted, tau, log_loss, after)
                end, q, after = self._step(theta, tau, moved)
                duration = _compute_log_duration(tau, log_loss, after)
            change = end - theta
            if not change.any():
                failures += 1
                step *= _SHORTENING
                self._stuck = failures >= _ATTEMPTS
                continue
            step, failures, moved = self.step_size, 0, change
            size = torch.linalg.vector_norm(change).item()
            speed, log_loss, theta = size / tau, after, end
            rho = self.field.length(theta)
            self.s += tau * (1 + rho * speed) / rho**2
            self.log_time = self.log_end if landed else logspace.log_add(self.log_time, duration)
            alignment = (theta @ change).item() / (torch.linalg.vector_norm(theta).item() * size)
            self._record(theta, q, log_loss, alignment, 0)

    def _step(self, theta: Tensor, tau: float, moved: Tensor) -> tuple[Tensor, Tensor, float]:
        """Take one step from theta, after the step `moved`; return its end, with q and log-loss."""
        objective, put = self.objective, self.field.put
        put(theta)
        objective.measure(wide=True)
        before = objective.log_loss()

        def lowered() -> bool:
            distance = (self.field.flat() - theta).square().sum().item()
            return objective.log_loss() + distance / (2 * tau) < before

        # The last step, repeated, is a good first guess where it lowers what is minimized.
        put(theta + moved)
        if not lowered():
            put(theta)
        self._descend(theta, tau)
        # On a kink, the gradient of one side may point nowhere. Next to it, on any side, there is a
        # way down.
        for _ in range(_RESTARTS):
            if lowered():
                break
            noise = torch.empty_like(theta, device="cpu").normal_(generator=self._random)
            noise = noise.to(theta.device)
            length = _RESTART_DISTANCE * self.step_size * self.field.length(theta)
            put(theta + length * noise / torch.linalg.vector_norm(noise))
            self._descend(theta, tau)
        if not lowered():
            put(theta)
        q, log_loss = objective.measure(wide=False)
        return self.field.flat().detach(), q, log_loss

    def _descend(self, theta: Tensor, tau: float) -> None:
        """Minimize log Loss + |. - theta|^2 / (2 tau) from where the parameters are."""

        def with_distance() -> Tensor:
            distance = (self.field.flat() - theta).square().sum()
            return self.objective.value() + distance / (2 * tau)

        while True:
            minimize(list(self.field.trained.values()), with_distance, _ITERATIONS)
            self.objective.measure(wide=False)
            if self.objective.left_out <= _LOG_LEFT_OUT:
                return
            self.objective.enter()

    def _stalled(self) -> str | None:
        if not self._stuck:
            return None
        return (
            f"stalled at t = e^{self.log_time:.4g}: no step lowers the loss any more, within the"
            " rounding of float64"
        )


class _LogLoss:
    """Natural log of the summed loss of a net, over the samples that carry weight."""

    def __init__(self, scored: NetOnSamples, loss: Loss) -> None:
        self._twin, self._x, self._y, self._loss = scored.twin, scored.x, scored.y, loss
        self._choose(torch.ones(len(self._x), dtype=torch.bool, device=self._x.device))
        # Natural log of the share of weight that was left out, and gradients so far.
        self.left_out, self.evaluations = -math.inf, 0

    def measure(self, *, wide: bool) -> tuple[Tensor, float]:
        """Margins and log-loss over all samples; `wide` chooses anew which of them carry weight."""
        with torch.no_grad():
            q, soft = margins(scores(self._twin, self._x), self._y)
        log_weights = self._loss.log_slope(soft)
        total = torch.logsumexp(log_weights, 0)
        self._near = log_weights >= total - _LEFT_OUT_NATS - math.log(len(log_weights))
        if wide:
            self._choose(self._near)
        outside = log_weights[~self._carry]
        self.left_out = (torch.logsumexp(outside, 0) - total).item() if len(outside) else -math.inf
        return q, self._loss.log_sum(soft)

    def enter(self) -> None:
        """Let the samples take part, too, that carried weight at the last measurement."""
        # None leaves, so that this happens finitely often in a step.
        self._choose(self._carry | self._near)

    def _choose(self, carry: Tensor) -> None:
        """Let exactly these samples take part; a boolean mask."""
        self._carry, self._xs, self._ys = carry, self._x[carry], self._y[carry]

    def log_loss(self) -> float:
        """The log-loss over the samples that take part, at the present parameters."""
        with torch.no_grad():
            return self._loss.log_sum(margins(scores(self._twin, self._xs), self._ys)[1])

    def value(self) -> Tensor:
        """The log-loss over the samples that take part, differentiable."""
        self.evaluations += 1
        return log_loss(self._loss, scores(self._twin, self._xs), self._ys)


def _compute_log_duration(tau: float, before: float, after: float) -> float:
    """Natural log of int d tau / Loss, the time of a step, with log Loss falling evenly in tau."""
    fall = before - after
    mean = math.log(-math.expm1(-fall) / fall) if fall > _EVEN_FALL else 0.0
    return math.log(tau) - after + mean


def _find_tau(log_duration: float, tau: float, before: float, after: float) -> float:
    """The tau of a step that takes a given time, if log Loss falls as fast as in a known step."""
    rate = (before - after) / tau
    relative = log_duration + before  # t in units of 1 / Loss at the beginning
    if rate * tau <= _EVEN_FALL:
        return math.exp(relative)
    # tau = log(1 + rate e^relative) / rate, also where the exponential overflows
    return float(logspace.log_add(0.0, math.log(rate) + relative)) / rate

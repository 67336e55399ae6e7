"""Gradient flow of any net, integrated far beyond the underflow of its loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor, nn

from .. import logspace
from ..batches import Data
from ..errors import DivergenceError, ModelError
from ..gradients import double_twin
from ..kkt.problem import in_memory
from ..losses import CrossEntropy, Loss
from ..margins import MarginReport, measure, norms
from .dormand_prince import LOWER_WEIGHTS, ORDER, WEIGHTS, Step, step
from .flow_events import first_event, settle
from .flow_field import FlowField, Metric, Pattern, Velocity, least_squares
from .history import History
from .progress import Progress
from .stopping import StoppingRule

_FIRST_STEP = 1e-3
_FLOOR = 1e-10
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 5.0
_PATIENCE, _STILL = 5000, 1e-2
"""A flow that advances less than this in s over so many evaluations has stalled."""


@dataclass
class Trajectory(History):
    """Rows along gradient flow, one per step, the first at the start: every key of `MarginReport.to_dict()`, and

    log_time : natural log of t (None at the start, where t = 0). s : the time of integration, about |d theta| / ||theta||.
    alignment : beta, the cosine of theta and the velocity. sliding : how many pre-activations stay at 0. evaluations : gradients of the
    loss over all samples so far.

    final : the state at the end; states : states where the log10-loss first fell below the levels asked for.
    error : the largest distance, relative to ||theta||, between `final` and the end of a run with halved steps; None if not asked for.
    """

    final: dict[str, Tensor] = field(default_factory=dict)
    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)
    error: float | None = None
    events: int = 0
    evaluations: int = 0
    normal_evaluations: int = 0


def gradient_flow(
    model: nn.Module,
    data: Data,
    *,
    time: float | None = None,
    until: StoppingRule | Sequence[StoppingRule] = (),
    loss: Loss | None = None,
    rtol: float = 1e-8,
    step_size: float | None = None,
    levels: Sequence[float] = (),
    metric: Metric | None = None,
    estimate_error: bool = False,
    max_evaluations: int = 100_000,
    progress: bool = False,
) -> Trajectory:
    """d theta / dt = -grad of the *summed* loss, from the model's parameters; float64, all samples at once. The model is not changed.

    Integrated in loss-normalized time, d theta / ds = V ||theta||^2 / (1 + ||theta|| |V|) with V = -grad of the log-loss, in which a homogeneous net
    moves steadily however small its loss is; t is kept as its logarithm. Dormand and Prince's method of order 5 with fixed gates of the ReLUs: where a pre-activation crosses 0, the
    step ends there. One that both sides push back slides along its kink until its gate leaves [0, 1]. Other kinks (max pooling,
    LeakyReLU, clamp) are passed with steps as small as the error estimate asks for, down to a floor; at one that attracts, the flow stalls and says so.

    Parameters
    ----------
    time : t at which to stop, reached exactly. until : stopping rules as for `train`, such as LogLossBelow(-40). One of them is needed.
    rtol : error per step relative to ||theta||. step_size : instead of that, steps of this length in s (events shorten them).
    levels : log10 of the mean loss at which to keep the state.
    metric : for d theta_i / dt = -M_i(theta) grad_i instead: given the parameters by name, positive factors M by name and of their shapes, 1 for
        what is left out. So mirror flows are written, M the inverse Hessian of the mirror map. estimate_error : integrate once more with halved steps.
    max_evaluations : of the gradient, after which the flow stops and says so. Ctrl-C does the same.
    progress : show log10-loss, margin and log t as they come.

    Raises
    ------
    DataError, ModelError : as `measure`. DivergenceError : a velocity that is not finite.

    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(1, 1, bias=False)
    >>> _ = net.weight.data.fill_(1.0)
    >>> flow = nm.gradient_flow(net, ([[1.0]], [1]), time=10.0, loss=nm.losses.Exponential())       # w(t) = log(e + t)
    >>> abs(flow.final["weight"].item() - torch.log(torch.tensor(10 + 2.718281828459045)).item()) < 1e-6
    True

    Source: Lyu and Li 2019, Section 4.1 and Lemma H.3.
    """
    rules = [until] if isinstance(until, StoppingRule) else list(until)
    if time is None and not rules:
        raise ValueError("Say when to stop: time=..., or until=nm.LogLossBelow(...)")
    if (time is not None and not time > 0) or not 0 < rtol < 1 or (step_size is not None and not step_size > 0):
        raise ValueError(f"time, rtol and step_size must be positive; got {time}, {rtol}, {step_size}")
    log_end = math.inf if time is None else math.log(time)
    run = _Flow(model, data, loss or CrossEntropy(), log_end, rules, rtol, step_size, levels, metric, max_evaluations)
    with Progress(progress, "gradient flow") as display:
        trajectory = run.run(display)
    if estimate_error and run.log_time > -math.inf:
        # To the same time: where a rule stops depends on the steps.
        halved = None if step_size is None else step_size / 2
        finer = _Flow(
            model, data, loss or CrossEntropy(), run.log_time, [], rtol / 2**ORDER, halved, (), metric, 4 * max_evaluations
        )
        other = finer.run(Progress(False, ""))
        a, b = (torch.cat([p.reshape(-1) for p in t.final.values()]) for t in (trajectory, other))
        trajectory.error = float(torch.linalg.vector_norm(a - b) / torch.linalg.vector_norm(b))
    return trajectory


class _Flow:
    def __init__(self, model, data, loss, log_end, rules, rtol, step_size, levels, metric, most):
        self.twin, data, self.loss = double_twin(model), in_memory(data), loss
        self.homogeneity = measure(self.twin, data, loss=loss).homogeneity
        if not any(p.requires_grad for p in self.twin.parameters()):
            raise ModelError("No parameter of the model requires a gradient, so there is no flow. Unfreeze some.")
        self.field = FlowField(self.twin, data, loss, metric)
        self.log_end = log_end
        self.rules, self.rtol, self.step_size, self.most = rules, rtol, step_size, most
        self.levels = sorted(levels, reverse=True)
        self.trajectory = Trajectory()
        self.log_time, self.s = -math.inf, 0.0

    def run(self, display: Progress) -> Trajectory:
        try:
            self._integrate(display)
        except KeyboardInterrupt:
            self.trajectory.status = f"interrupted at log t = {self.log_time:.6g}"
        self.trajectory.final = {n: p.clone() for n, p in self.field.named(self.theta).items()}
        return self.trajectory

    def _integrate(self, display: Progress) -> None:
        theta = self.field.start
        pattern = self.field.pattern(theta)
        velocity = self.field(theta, pattern)
        self._record(theta, velocity, pattern)
        h = self.step_size or _FIRST_STEP
        while not self._finished():
            display.show(self.trajectory.rows[-1], None)
            taken = step(partial(self.field, pattern=pattern), theta, velocity, h)
            ratio = max(taken.error / self.field.length(theta), self._log_time_error(taken)) / self.rtol
            if not math.isfinite(ratio):
                if h <= _FLOOR:
                    raise DivergenceError(
                        f"The velocity of gradient flow is not finite after t = e^{self.log_time:.4g}. Check the data's scale."
                    )
                h = max(_SHRINK * h, _FLOOR)
                continue
            proposed = h * min(max(_SAFETY * max(ratio, 1e-12) ** (-1 / ORDER), _SHRINK), _GROW)
            if ratio > 1 and self.step_size is None and h > _FLOOR:
                h = max(proposed, _FLOOR)
                continue
            event = first_event(self.field, taken, pattern)
            share = 1.0 if event is None else event
            if self._log_time_after(taken, share) > self.log_end:
                # Where t is reached on the dense output is accurate enough to choose the length; the step itself is taken anew.
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
                theta = self._back_to_kinks(theta, velocity, pattern)
            if event is None or proposed < h:
                h = proposed
            h = self.step_size or h
            self._record(theta, velocity, pattern)

    def _log_time_after(self, taken: Step, share: float) -> float:
        """log of t at a share of the step: the quadrature of dt / ds with the weights of the method, scaled by its largest value."""
        rates = np.array([stage.log_time_rate for stage in taken.stages])
        total = float(np.dot(taken.weights(share), np.exp(rates - rates.max()))) * taken.h
        return logspace.log_add(self.log_time, math.log(total) + float(rates.max())) if total > 0 else self.log_time

    def _log_time_error(self, taken: Step) -> float:
        """Of log t at the end of the step, by the embedded method."""
        rates = np.array([stage.log_time_rate for stage in taken.stages])
        scaled = np.exp(rates - rates.max()) * taken.h
        before = math.exp(min(self.log_time - float(rates.max()), 700.0))
        return abs(float(np.dot(np.subtract(WEIGHTS, LOWER_WEIGHTS), scaled))) / (before + abs(float(np.dot(WEIGHTS, scaled))))

    def _share_at_end(self, taken: Step, most: float) -> float:
        return brentq(lambda share: self._log_time_after(taken, share) - self.log_end, 1e-12, most, xtol=1e-15)

    def _back_to_kinks(self, theta: Tensor, velocity: Velocity, pattern: Pattern) -> Tensor:
        """Undo the drift of sliding pre-activations away from 0, to first order."""
        N, z = velocity.normals, velocity.z[pattern.sliding]
        return theta - N.T @ least_squares(N @ N.T, z)

    def _record(self, theta: Tensor, velocity: Velocity, pattern: Pattern) -> None:
        point = self.field.named(theta)
        with torch.no_grad():
            for name, parameter in self.twin.named_parameters():
                if name in point:
                    parameter.copy_(point[name])
        norm, log_norms = norms(self.twin, self.homogeneity)
        report = MarginReport(velocity.q, velocity.log_loss, self.homogeneity, norm, self.loss, log_norms)
        self.theta = theta
        rows = self.trajectory.rows
        head = {"epoch": len(rows), "log_time": self.log_time if rows else None, "s": self.s, "alignment": velocity.alignment}
        counts = {"sliding": len(pattern.sliding), "evaluations": self.field.evaluations}
        rows.append(head | counts | report.to_dict())
        self.trajectory.evaluations, self.trajectory.normal_evaluations = self.field.evaluations, self.field.normal_evaluations
        while self.levels and rows[-1]["log10_mean_loss"] < self.levels[0]:
            self.trajectory.states[self.levels.pop(0)] = {n: p.clone() for n, p in point.items()}

    def _finished(self) -> bool:
        rows = self.trajectory.rows
        reasons = [reason for rule in self.rules if (reason := rule.reached(rows))]
        if self.log_time >= self.log_end:
            reasons.append(f"t reached {logspace.scaled_ratio(1.0, -self.log_end):.6g}")
        before = next((row for row in reversed(rows) if row["evaluations"] <= self.field.evaluations - _PATIENCE), None)
        if before is not None and self.s - before["s"] < _STILL:
            reasons.append(
                f"stalled at t = e^{self.log_time:.4g}, most likely at a kink that is no relu (max pooling, LeakyReLU, clamp, a normalization whose eps is tiny): only relus can slide"
            )
        if self.field.evaluations >= self.most:
            reasons.append(f"stopped after {self.field.evaluations} gradient evaluations; raise max_evaluations to go on")
        self.trajectory.status = reasons[0] if reasons else "running"
        return bool(reasons)

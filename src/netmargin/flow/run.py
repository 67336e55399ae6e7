"""A gradient flow under way: its state, the rows it writes, and when it ends.

Integrators are subclasses that say how it moves.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..core import logspace
from ..core.batches import Data, batches
from ..core.doors import open_door_whole
from ..core.nets import float64_copy, require_differentiable
from ..core.progress import Progress
from ..errors import ModelError
from ..losses import Loss
from ..margins import MarginReport, measure, norms
from ..training.history import History
from ..training.stopping import StoppingRule
from .field import FlowField, Metric

_TREND_ROWS = 20
"""Rows from which the pace is taken to estimate the time left, as in the stopping rules: enough to
average single steps, few enough to follow changes. Only the display uses it.
"""


@dataclass
class Trajectory(History):
    """A gradient flow: one row per step, the first at the start, and the state at the end.

    Attributes
    ----------
    rows : list of dict
        Keys: epoch (index of the row); log_time (natural log of t; None at the start, where t = 0);
        s (the time of integration, about the path length relative to ||theta||); alignment (beta,
        the cosine of theta and the velocity); sliding (number of pre-activations that stay at 0;
        always 0 with proximal steps, which do not follow gates); evaluations (gradients so far);
        and those of `MarginReport.to_dict()`.
    status : str
        How the flow ended.
    final : dict of str to tensor
        The trained parameters at the end by name, float64.
    states : dict of float to dict
        The trained parameters where the log10-loss first fell below a level asked for, by level.
    error : float or None
        Distance, relative to ||theta||, between `final` and the end of a run with halved steps;
        None if it was not asked for, or where Ctrl-C came before it was known.
    events : int
        Number of kinks that were located (always 0 with proximal steps).
    evaluations : int
        Gradients of the loss over all samples; with proximal steps, over those that carry weight.
    normal_evaluations : int
        Evaluations of the gradients of sliding pre-activations.
    """

    final: dict[str, Tensor] = field(default_factory=dict)
    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)
    error: float | None = None
    events: int = 0
    evaluations: int = 0
    normal_evaluations: int = 0

    __repr__ = History.__repr__


class FlowRun(ABC):
    """The part of gradient flow that all integrators share.

    log_end : natural log of the time to stop at.
    rules : stopping rules; the first one reached ends the flow.
    levels : log10 of the mean loss at which states are kept.
    metric : see `FlowField`.
    most : evaluations after which the flow stops.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        loss: Loss,
        *,
        log_end: float,
        rules: list[StoppingRule],
        levels: list[float],
        metric: Metric | None,
        most: int,
    ):
        model, self.samples = open_door_whole(model, data)
        self.twin, self.loss = float64_copy(model), loss
        self.homogeneity = measure(self.twin, self.samples, loss=loss).homogeneity
        if not any(p.requires_grad for p in self.twin.parameters()):
            raise ModelError(
                "No parameter of the model requires a gradient, so there is no flow. Unfreeze some."
            )
        require_differentiable(self.twin, next(batches(self.samples, 1, self.twin))[0])
        self.field = FlowField(self.twin, self.samples, loss, metric)
        self.log_end, self.rules, self.most = log_end, rules, most
        self.levels = sorted(levels, reverse=True)
        self.trajectory = Trajectory()
        self.log_time, self.s = -math.inf, 0.0
        self.interrupted = False

    @abstractmethod
    def _integrate(self, display: Progress) -> None:
        """Move until `_finished`, and `_record` each step."""

    @property
    def evaluations(self) -> int:
        """The number of gradients so far."""
        return self.field.evaluations

    def run(self, display: Progress) -> Trajectory:
        """Integrate to the end, or to Ctrl-C; both return the trajectory so far."""
        try:
            self._integrate(display)
        except KeyboardInterrupt:
            self.interrupted = True
            self.trajectory.status = f"interrupted at log t = {self.log_time:.6g}"
        self.trajectory.final = {n: p.clone() for n, p in self.field.named(self.theta).items()}
        return self.trajectory

    def _show(self, display: Progress) -> None:
        """Draw the progress line for the last row."""
        row = self.trajectory.rows[-1]
        margin = row["normalized_margin"]
        shown = f"q_min {row['q_min']:.4g}" if margin is None else f"margin {margin:.4g}"
        line = f"log10-loss {row['log10_mean_loss']:.3f}  {shown}  log t {self.log_time:.4g}"
        display.draw(row["epoch"], self._rows_left(), f"{line}  {self.evaluations:,} gradients")

    def _rows_left(self) -> float | None:
        """An estimate of the steps to come until a rule, the time or the most evaluations end the
        flow; None where the last rows do not tell.
        """
        rows = self.trajectory.rows
        left = [estimate for rule in self.rules if (estimate := rule.epochs_left(rows)) is not None]
        recent = [row for row in rows[-_TREND_ROWS:] if row["log_time"] is not None]
        if len(recent) > 1:
            steps = len(recent) - 1
            forward = recent[-1]["log_time"] - recent[0]["log_time"]
            spent = recent[-1]["evaluations"] - recent[0]["evaluations"]
            if math.isfinite(self.log_end) and forward > 0:
                left.append((self.log_end - self.log_time) * steps / forward)
            if spent > 0:
                left.append((self.most - self.evaluations) * steps / spent)
        return min(left, default=None)

    def _record(
        self, theta: Tensor, q: Tensor, log_loss: float, alignment: float, sliding: int
    ) -> None:
        """Append a row for a new point, and keep its state where the loss passed a level."""
        point = self.field.named(theta)
        with torch.no_grad():
            for name, parameter in self.twin.named_parameters():
                if name in point:
                    parameter.copy_(point[name])
        norm, log_norms = norms(self.twin, self.homogeneity)
        report = MarginReport(q, log_loss, self.homogeneity, norm, self.loss, log_norms)
        self.theta = theta
        rows = self.trajectory.rows
        head = {
            "epoch": len(rows),
            "log_time": self.log_time if rows else None,
            "s": self.s,
            "alignment": alignment,
        }
        rows.append(head | {"sliding": sliding, "evaluations": self.evaluations} | report.to_dict())
        self.trajectory.evaluations = self.evaluations
        self.trajectory.normal_evaluations = self.field.normal_evaluations
        while self.levels and rows[-1]["log10_mean_loss"] < self.levels[0]:
            self.trajectory.states[self.levels.pop(0)] = {n: p.clone() for n, p in point.items()}

    def _finished(self) -> bool:
        """Whether the flow is over; the reason becomes the status."""
        rows = self.trajectory.rows
        reasons = [reason for rule in self.rules if (reason := rule.reached(rows))]
        if self.log_time >= self.log_end:
            reasons.append(f"t reached {logspace.scaled_ratio(1.0, -self.log_end):.6g}")
        if (stalled := self._stalled()) is not None:
            reasons.append(stalled)
        if self.evaluations >= self.most:
            reasons.append(
                f"stopped after {self.evaluations} gradient evaluations; raise max_evaluations to"
                " go on"
            )
        self.trajectory.status = reasons[0] if reasons else "running"
        return bool(reasons)

    @abstractmethod
    def _stalled(self) -> str | None:
        """A sentence that says why the flow does not advance any more, or None where it does."""

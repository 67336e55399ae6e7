"""A gradient flow under way: its state, the rows it writes, and when it ends."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from torch import Tensor, nn

from ..core import logspace
from ..core.progress import Progress
from ..losses import Loss
from ..margins import make_report, measure
from ..nets.counted_weights import hold_frozen_weights
from ..nets.data import Data
from ..nets.model import require_differentiable
from ..nets.net_on_samples import NetOnSamples
from ..result import Status
from ..training.history import History, describe_row
from ..training.stopping import StoppingRule, fewest, first_reason, rows_to
from .field import FlowField, Metric


@dataclass(repr=False)
class Trajectory(History):
    """A gradient flow: one row per step, the first at the start, and the state at the end.

    Keys of `rows`: epoch (index of the row); log_time (natural log of t; None at the start, where
    t = 0); s (the time of integration, about the path length relative to ||theta||); alignment
    (beta, the cosine of theta and the velocity, which at kinks is the shortest of all: not that of
    `certify`, with one gradient of them); sliding (number of pre-activations that stay at 0;
    always 0 with proximal steps, which do not follow gates); evaluations (gradients so far); and
    those of `MarginReport.to_dict()`. `status` is FINISHED, STALLED, EVALUATION_LIMIT, or
    INTERRUPTED after the last row; `message` says where and why.
    """

    #: The trained parameters at the last row by name, float64
    final: dict[str, Tensor] = field(default_factory=dict)
    #: The trained parameters where the log10-loss first fell below a level asked for, by level
    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)
    #: Distance, relative to ||theta||, between `final` and the end of a run with halved steps; None
    #: if it was not asked for, or where Ctrl-C came before it was known (INTERRUPTED, too)
    error: float | None = None
    events: int = 0  #: Number of kinks that were located (always 0 with proximal steps)
    #: Gradients of the loss over all samples; with proximal steps, over those that carry weight
    evaluations: int = 0
    normal_evaluations: int = 0  #: Of the gradients of sliding pre-activations
    _title, _over = "Gradient flow", ("log_time", "log t")


class FlowRun(ABC):
    """What integrators, its subclasses, share; the options are those of `gradient_flow`."""

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        loss: Loss,
        *,
        log_end: float,
        rules: list[StoppingRule],
        levels: list[float],
        most: int,
        metric: Metric | None = None,
    ) -> None:
        self.scored, self.loss = NetOnSamples(model, data), loss
        self.twin = self.scored.twin
        hold_frozen_weights(self.twin, "no flow")
        found = measure(self.twin, self.scored.samples, loss=loss, statistics="fixed")
        self.homogeneity = found.homogeneity
        require_differentiable(self.twin, self.scored.first_inputs(2))
        self.field = FlowField(self.scored, loss, metric)
        self.log_end, self.rules, self.most = log_end, rules, most
        self.levels = sorted(levels, reverse=True)
        self.trajectory, self.theta = Trajectory(), self.field.flat().detach()
        self.log_time, self.s = -math.inf, 0.0

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
            self.trajectory.status = Status.INTERRUPTED
            rows = self.trajectory.rows
            at = f"log t = {rows[-1]['log_time']:.6g}" if len(rows) > 1 else "the start"
            self.trajectory.message = f"interrupted at {at}"
        self.trajectory.final = self._state()
        return self.trajectory

    def _state(self) -> dict[str, Tensor]:
        """A copy of the trained parameters at the last row, by name."""
        return {n: p.clone() for n, p in self.field.named(self.theta).items()}

    def _show(self, display: Progress) -> None:
        """Draw the progress line for the last row, with the steps that are left."""
        rows = self.trajectory.rows
        row, timed = rows[-1], rows[1:]  # the first one has no time
        left = fewest(
            *(rule.epochs_left(rows) for rule in self.rules),
            rows_to(timed, "log_time", self.log_end),
            rows_to(timed, "evaluations", self.most),
        )
        line = f"{describe_row(row)}  log t {self.log_time:.4g}  {self.evaluations:,} gradients"
        display.draw(row["epoch"], left, line)

    def _record(
        self, theta: Tensor, q: Tensor, log_loss: float, alignment: float, sliding: int
    ) -> None:
        """Append a row for a new point, and keep its state where the loss passed a level."""
        self.field.put(theta)
        report = make_report(self.twin, self.homogeneity, self.loss, q, log_loss)
        rows = self.trajectory.rows
        time = {"epoch": len(rows), "log_time": self.log_time if rows else None, "s": self.s}
        found = {"alignment": alignment, "sliding": sliding, "evaluations": self.evaluations}
        rows.append(time | found | report.to_dict())
        self.theta = theta
        self.trajectory.evaluations = self.evaluations
        self.trajectory.normal_evaluations = self.field.normal_evaluations
        while self.levels and rows[-1]["log10_mean_loss"] < self.levels[0]:
            self.trajectory.states[self.levels.pop(0)] = self._state()

    def _finished(self) -> bool:
        """Whether the flow is over; the first reason becomes its status and message."""
        reasons = []
        if reason := first_reason(self.rules, self.trajectory.rows):
            reasons.append((Status.FINISHED, reason))
        if self.log_time >= self.log_end:
            end = logspace.scaled_ratio(1.0, -self.log_end)
            reasons.append((Status.FINISHED, f"t reached {end:.6g}"))
        if (stalled := self._stalled()) is not None:
            reasons.append((Status.STALLED, stalled))
        if self.evaluations >= self.most:
            said = f"stopped after {self.evaluations} gradient evaluations"
            if self.trajectory.rows[-1]["q_min"]:  # 0: a sample without an active unit
                said += "; raise max_evaluations"
                if events := self.trajectory.events:  # what the exact method pays for
                    said += f", or pass kinks, {events} so far, by the long steps of"
                    said += " method='proximal'"
            reasons.append((Status.EVALUATION_LIMIT, said))
        if reasons:
            self.trajectory.status, self.trajectory.message = reasons[0]
        return bool(reasons)

    @abstractmethod
    def _stalled(self) -> str | None:
        """A sentence that says why the flow does not advance any more, or None where it does."""

"""A gradient flow under way: its state, the rows it writes, and when it ends; integrators say how
it moves.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..core import logspace
from ..core.batches import Data, as_arrays
from ..core.nets import float64_copy
from ..core.progress import Progress
from ..errors import ModelError
from ..losses import Loss
from ..margins import MarginReport, measure, norms
from ..training.history import History
from ..training.stopping import StoppingRule
from .field import FlowField, Metric

_TREND = 20
"""Rows over which the pace towards a time is taken, as in the stopping rules."""


@dataclass
class Trajectory(History):
    """Rows along gradient flow, one per step, the first at the start: every key of
    `MarginReport.to_dict()`, and

    log_time : natural log of t (None at the start, where t = 0).
    s : the time of integration, about |d theta| / ||theta||.
    alignment : beta, the cosine of theta and the velocity.
    sliding : how many pre-activations stay at 0 (always 0 with proximal steps, which do not follow
        gates).
    evaluations : gradients of the loss over all samples so far; of those that carry weight, with
        proximal steps.

    final : the state at the end.
    states : states where the log10-loss first fell below the levels asked for.
    error : the largest distance, relative to ||theta||, between `final` and the end of a run with
        halved steps; None if not asked for.
    """

    final: dict[str, Tensor] = field(default_factory=dict)
    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)
    error: float | None = None
    events: int = 0
    evaluations: int = 0
    normal_evaluations: int = 0

    __repr__ = History.__repr__


class FlowRun(ABC):
    """What every integrator of gradient flow shares.

    log_end : natural log of the time to stop at.
    rules : stopping rules.
    levels : log10 of the mean loss at which states are kept.
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
        self.twin, self.samples, self.loss = float64_copy(model), as_arrays(data), loss
        self.homogeneity = measure(self.twin, self.samples, loss=loss).homogeneity
        if not any(p.requires_grad for p in self.twin.parameters()):
            raise ModelError(
                "No parameter of the model requires a gradient, so there is no flow. Unfreeze some."
            )
        self.field = FlowField(self.twin, self.samples, loss, metric)
        self.log_end, self.rules, self.most = log_end, rules, most
        self.levels = sorted(levels, reverse=True)
        self.trajectory = Trajectory()
        self.log_time, self.s = -math.inf, 0.0

    @abstractmethod
    def _integrate(self, display: Progress) -> None:
        """Move until `_finished`, and `_record` each step."""

    @property
    def evaluations(self) -> int:
        """Gradients so far."""
        return self.field.evaluations

    def run(self, display: Progress) -> Trajectory:
        """To the end, or to Ctrl-C."""
        try:
            self._integrate(display)
        except KeyboardInterrupt:
            self.trajectory.status = f"interrupted at log t = {self.log_time:.6g}"
        self.trajectory.final = {n: p.clone() for n, p in self.field.named(self.theta).items()}
        return self.trajectory

    def _show(self, display: Progress) -> None:
        row = self.trajectory.rows[-1]
        margin = row["normalized_margin"]
        shown = f"q_min {row['q_min']:.4g}" if margin is None else f"margin {margin:.4g}"
        line = f"log10-loss {row['log10_mean_loss']:.3f}  {shown}  log t {self.log_time:.4g}"
        display.draw(row["epoch"], self._rows_left(), f"{line}  {self.evaluations:,} gradients")

    def _rows_left(self) -> float | None:
        """Steps still to come, as far as the last ones tell: to the first of the rules, the time,
        the most evaluations.
        """
        rows = self.trajectory.rows
        left = [estimate for rule in self.rules if (estimate := rule.epochs_left(rows)) is not None]
        recent = [row for row in rows[-_TREND:] if row["log_time"] is not None]
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

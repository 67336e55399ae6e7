"""The stages of an ascent: falling temperatures, steps of multipliers, handing back the best."""

import copy
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..core.lbfgs import minimize
from ..core.progress import Progress
from ..homogeneity import Homogeneity, Kind
from ..margins import MarginReport, measure
from ..nets.arrays import Arrays
from ..nets.net_on_samples import NetOnSamples
from ..training.history import show_row
from .smoothed_margin import SmoothedMargin

_ACTIVE_SET_ROUNDS = 4
"""Times that one temperature is ascended anew because samples outside the active set came near. The
set only grows, and what a round misses the next temperature takes in; the bound keeps the cost of
one stage at so many times `iterations`.
"""
_INITIAL_PENALTY, _PENALTY_GROWTH = 0.3, 1.1
"""Penalty relative to the largest multiplier at first, and its growth per step: weak, so that each
subproblem is well conditioned.
"""
_LOSS_RESERVE = 2.0
"""A net that was separated here ends with at most 1 / this of the loss below which training keeps
it separated: any factor above 1 absorbs rounding, and 2 costs a factor of the norm close to 1.
"""


class Ascent:
    """The state of an ascent; a `fresh` net was trained here, and has no scale of its own."""

    def __init__(
        self,
        model: nn.Module,
        samples: Arrays,
        homogeneity: Homogeneity,
        display: Progress,
        *,
        fresh: bool,
    ) -> None:
        self._model, self._samples = model, samples
        self._homogeneity, self._display = homogeneity, display
        self._layers, self._fresh = homogeneity.kind is Kind.MULTI_HOMOGENEOUS, fresh
        scored = NetOnSamples(model, samples)
        self._twin = scored.twin
        self.smoothed = SmoothedMargin(scored, homogeneity, self._layers)
        self._size = self.smoothed.size()
        # Normalized margins do not depend on the norm, so L-BFGS may have the best conditioned one.
        self.smoothed.normalize()
        self.rows: list[dict[str, Any]] = []
        self._best, self._state, self._left = -math.inf, dict[str, Tensor](), 0

    def margin_of(self, report: MarginReport) -> float:
        """The normalization of the margin that is ascended: by layers, or by the whole norm."""
        margin = report.margins["layers" if self._layers else "global"].value
        assert margin is not None
        return margin

    def keep(self, temperature: float | None) -> None:
        """Append a row for the present point, and keep its parameters if they are the best."""
        report = measure(self._twin, self._samples, homogeneity=self._homogeneity)
        head = {
            "epoch": len(self.rows),
            "temperature": temperature,
            "gradient_samples": self.smoothed.gradient_samples,
        }
        self.rows.append(head | report.to_dict())
        show_row(self._display, self.rows[-1], self._left)
        if self.margin_of(report) > self._best:
            self._best = self.margin_of(report)
            self._state = copy.deepcopy(self._twin.state_dict())

    def cool(self, temperatures: Sequence[float], iterations: int) -> None:
        """Ascend the smoothed margin at one temperature after the other."""
        smoothed = self.smoothed
        for stage, share in enumerate(temperatures):
            # The median, not the smallest margin: that may still be 0 or nearly so.
            temperature = share * smoothed.margins().clamp(min=0).median().item()
            smoothed.active = smoothed.near(temperature)
            for _ in range(_ACTIVE_SET_ROUNDS):
                minimize(smoothed.parameters, partial(smoothed.loss, temperature), iterations)
                near = smoothed.near(temperature)
                if torch.isin(near, smoothed.active).all():
                    break
                smoothed.active = torch.unique(torch.cat([smoothed.active, near]))
            self._left = len(temperatures) - 1 - stage
            self.keep(temperature)

    def step_multipliers(self, temperature: float, steps: int, iterations: int) -> None:
        """Take steps of the method of multipliers from the best point so far."""
        smoothed = self.smoothed
        # The last temperature may have ended below the best: the method converges locally only.
        self._twin.load_state_dict(self._state)
        smoothed.feasible()
        multipliers = smoothed.softmax_multipliers(temperature)
        penalty = _INITIAL_PENALTY * multipliers.max().item()
        for step in range(steps):
            lagrangian = partial(smoothed.augmented_lagrangian, multipliers, penalty)
            minimize(smoothed.parameters, lagrangian, iterations)
            with torch.no_grad():
                multipliers = smoothed.forces(multipliers, penalty)
            penalty *= _PENALTY_GROWTH
            self._left = steps - 1 - step
            self.keep(None)

    def hand_back(self) -> str:
        """Put the best point into the model, at the norm that it had, and say so in a sentence."""
        if not self._state:
            return "the net is as it was"
        self._twin.load_state_dict(self._state)
        smoothed = self.smoothed
        smoothed.normalize(self._size)
        report = measure(self._twin, self._samples, homogeneity=self._homogeneity)
        threshold = report.loss.log_threshold
        # At margin q all constraints together weigh at most n (C - 1) e^{-q}.
        enough = math.log(_LOSS_RESERVE * smoothed.constraints) - threshold
        enough_size = 0.0
        if report.q_min > 0:
            enough_size = self._size * (enough / report.q_min) ** (1 / smoothed.order)
        size = max(self._size, enough_size) if self._fresh else self._size
        said = f"the norm is {size:.4g}" + ("" if self._fresh else ", as it was")
        if not self._fresh and report.log_loss > threshold and report.q_min > 0:
            said += (
                f", and the summed loss {math.exp(report.log_loss):.3g}: training from here may"
                f" lower the margin again. Below a summed loss of {math.exp(threshold):.2g} it"
                f" keeps all samples correct: multiply the parameters by {enough_size / size:.3g}"
                " first, which changes no normalized margin"
            )
        smoothed.normalize(size)
        self._model.load_state_dict(self._twin.state_dict())
        return said

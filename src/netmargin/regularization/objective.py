"""The objective log(mean loss + lambda ||theta||^r) of a net, and its minimization."""

import copy
import math
from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from ..core.lbfgs import minimize
from ..core.matrices import floor_to_powers
from ..homogeneity import analyse
from ..losses import Loss
from ..margins import measure
from ..nets.arrays import Arrays
from ..nets.counted_weights import hold_frozen_weights
from ..nets.gates import Gates, SmoothedReLUs
from ..nets.model import require_differentiable, scores
from ..nets.net_on_samples import NetOnSamples
from ..nets.whole_tensors import euclidean_norm
from ..training.relative_loss import log_loss

_SMOOTHING_WIDTHS = (1e-1, 1e-2, 1e-3, 1e-4)
"""Widths over which ReLUs, and norms with kinks, are smoothed, one L-BFGS run each: from one that
L-BFGS takes for smooth down to one that the last run, on the net itself, hardly sees. More widths
cost runs in proportion.
"""
_LARGEST_LOG_FACTOR = 20.0
"""Natural log of the largest factor of the scores, and the smallest of the parameters, that a
rescaling looks at: e^20 is beyond what one fall of lambda asks for, and the next one goes on.
"""
_SMALLEST_SQUARE = 1e-300
"""Least square norm in the penalty: parameters that are 0, such as biases at the start, have a
penalty without slope there, whose log would be -inf.
"""
_COLLAPSED = 1e-6
"""A net whose log loss is so near to that of outputs 0 is on its way to 0, which is stationary for
every lambda. Nets that fit the data do not come near it.
"""


class RegularizedObjective(ABC):
    """log(mean loss + lambda ||theta||^r) of a float64 copy of a model, over all data."""

    def __init__(self, model: nn.Module, data: Arrays, r: float, norm: str) -> None:
        self.scored, self._r = NetOnSamples(model, data), r
        self.twin = self.scored.twin
        hold_frozen_weights(self.twin, "nothing to regularize")
        self.parameters = list(self.twin.parameters())
        self._norm = norm
        self._x = self.scored.x
        require_differentiable(self.twin, self._x)
        homogeneity = analyse(self.twin, self._x, statistics="fixed")
        whole = homogeneity.whole and not homogeneity.ignored
        self._order = float(homogeneity.order) if whole and homogeneity.order else None
        # Nets without ReLUs need no smoothing, but for some norms.
        with torch.no_grad(), Gates() as gates:
            scores(self.twin, self._x[:1])
        self._has_kinks = bool(gates.inputs) or norm in ("l1", "linf")
        self._first = self.state()

    @abstractmethod
    def _log_mean_loss(self, outputs: Tensor) -> Tensor:
        """Natural log of the mean loss at these scores, differentiable."""

    @abstractmethod
    def measure(self) -> dict[str, Any]:
        """What the row of a path says of the present parameters."""

    def __call__(self, log_lambda: float, width: float = 0.0) -> Tensor:
        """log L_lambda at the present parameters, differentiable, with a smoothed norm."""
        return torch.logaddexp(
            self._log_mean_loss(scores(self.twin, self._x)), log_lambda + self._log_penalty(width)
        )

    def _log_penalty(self, width: float = 0.0) -> Tensor:
        unit = self._unit()
        parts = [
            (p / unit).square().clamp_min(_SMALLEST_SQUARE).reshape(-1) for p in self.parameters
        ]
        log_unit = self._r * math.log(unit)
        if self._norm not in ("l1", "linf"):
            sums = [part.sum() for part in parts]
            sums = sums if self._norm == "layers" else [torch.stack(sums).sum()]
            return log_unit + torch.logsumexp(0.5 * self._r * torch.stack(sums).log(), 0)
        squares = torch.cat(parts)
        if self._norm == "l1":  # kinks are rounded over this part of the typical size
            sizes = (squares + width**2 * squares.detach().mean()).sqrt()
            return log_unit + self._r * sizes.sum().log()
        if not width:
            return log_unit + 0.5 * self._r * squares.max().log()
        # The norm l_p, p = 2 / width.
        return log_unit + 0.5 * self._r * width * torch.logsumexp(squares.log() / width, 0)

    def _unit(self) -> float:
        """The power of 2 below the largest parameter: in its units no square leaves float64."""
        return float(floor_to_powers(max(p.detach().abs().max().item() for p in self.parameters)))

    def descend(self, log_lambda: float, iterations: int) -> None:
        """Move to a local minimizer nearby, if it is better than where the parameters are.

        Minimizes with smoothed ReLUs and norms first, then with themselves. Begins from the first
        parameters where the last lambda was so strong that the net vanished.
        """
        if self._is_collapsed():
            self.twin.load_state_dict(self._first)
            unit = self._unit()
        else:
            unit = self._unit()  # before: the best multiple of a random net is next to 0
            self._rescale(log_lambda)
        before, kept = self(log_lambda).item(), self.state()

        def smoothed(width: float) -> Tensor:
            with SmoothedReLUs(width):
                return self(log_lambda, width)

        for width in _SMOOTHING_WIDTHS if self._has_kinks else ():
            minimize(self.parameters, partial(smoothed, width), iterations, unit)
        minimize(self.parameters, partial(self, log_lambda), iterations, unit)
        self._rescale(log_lambda)
        # `not <=` rather than `>`: a NaN goes back, too.
        if not self(log_lambda).item() <= before:
            self.twin.load_state_dict(kept)

    @torch.no_grad()
    def _is_collapsed(self) -> bool:
        """Whether the net is on its way to 0, where no descent begins."""
        outputs = scores(self.twin, self._x)
        gained = self._log_mean_loss(0 * outputs) - self._log_mean_loss(outputs)
        return abs(gained.item()) <= _COLLAPSED

    def stationarity(self, log_lambda: float) -> float:
        """|grad log L_lambda| ||theta||, which does not change with the units of theta."""
        gradients: tuple[Any, ...] = torch.autograd.grad(
            self(log_lambda), self.parameters, allow_unused=True
        )
        slopes = [euclidean_norm(g) for g in gradients if g is not None]
        return math.hypot(*slopes) * self.size()

    def state(self) -> dict[str, Tensor]:
        """A copy of the net's state dict."""
        return copy.deepcopy(self.twin.state_dict())

    def size(self) -> float:
        """||theta|| over the trained parameters."""
        return math.hypot(*map(euclidean_norm, self.parameters))

    def _rescale(self, log_lambda: float) -> None:
        """Multiply the parameters of a homogeneous net by the best factor; leave others alone."""
        if (order := self._order) is None:
            return
        with torch.no_grad():
            outputs, penalty = scores(self.twin, self._x), self._log_penalty()

            def value(log_factor: float) -> float:
                log_loss = self._log_mean_loss(outputs * math.exp(order * log_factor))
                return torch.logaddexp(log_loss, log_lambda + penalty + self._r * log_factor).item()

            found = minimize_scalar(
                value, bounds=(-_LARGEST_LOG_FACTOR, _LARGEST_LOG_FACTOR / order), method="bounded"
            ).x
            if value(found) < value(0.0):
                for p in self.parameters:
                    p.mul_(math.exp(found))


class MarginObjective(RegularizedObjective):
    """The objective of classification, whose loss is one of the margins."""

    def __init__(self, model: nn.Module, data: Arrays, loss: Loss, r: float, norm: str) -> None:
        super().__init__(model, data, r, norm)
        loss.require_outputs(self.scored.outputs)
        self.loss = loss
        self._y = self.scored.y

    def _log_mean_loss(self, outputs: Tensor) -> Tensor:
        return log_loss(self.loss, outputs, self._y) - math.log(len(outputs))

    def measure(self) -> dict[str, Any]:
        """The margins."""
        return measure(self.twin, self.scored.samples, loss=self.loss).to_dict()

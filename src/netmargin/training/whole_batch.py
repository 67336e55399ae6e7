"""Descent on all samples at once in a fixed order: the pass that measures is the next step's."""

from typing import Any

import torch
from torch import Tensor, nn

from ..core.denormals import flush_denormals
from ..core.memory import advise_on_memory
from ..losses import Loss
from ..margins import measure_scores
from ..nets.model import in_mode, scores
from ..nets.whole_tensors import are_finite
from .module_state import copy_state, restore_state, tensors_of
from .relative_loss import differentiate, take_step


class WholeBatch:
    """All samples, with encoded labels, of a net for which `is_same_in_training` holds."""

    def __init__(self, model: nn.Module, x: Any, y: Tensor, loss: Loss) -> None:
        self._model, self._x, self._y, self._loss = model, x, y, loss
        self._outputs: Any = None  # with their graph, of the last pass
        self._start: list[tuple[Tensor, Tensor, Tensor]] = []

    def is_finite(self) -> bool:
        """Whether all parameters that were moved are finite."""
        return all(are_finite(parameter.detach()) for parameter, *_ in self._start)

    def measure(self) -> tuple[Tensor, float]:
        """Margins (N,) and the log-loss where the parameters are now."""
        with advise_on_memory(len(self._x)):
            self._outputs = None  # whose graph takes as much memory as the new one
            self._outputs = scores(self._model, self._x)  # the same in every mode
            with torch.no_grad():
                return measure_scores(self._outputs, self._y, self._loss)

    def accept(self) -> None:
        """Let the next steps begin where the parameters are now, and were measured."""
        self._start = []

    def step(self, *, log_scale: float, rate: float, shrinkage: float) -> int:
        """Go to the end of a step from the last accepted point; samples of a backward pass."""
        samples = 0 if self._start else len(self._x)
        if not self._start:
            if self._outputs is None:
                self.measure()
            with flush_denormals(), advise_on_memory(len(self._x)):
                parameters = differentiate(
                    self._model, self._outputs, self._y, self._loss, log_scale
                )
            self._start = [(p, p.detach().clone(), p.grad) for p in parameters]
            self._model.zero_grad()
        with flush_denormals(), torch.no_grad():
            for parameter, before, gradient in self._start:
                take_step(parameter.copy_(before), gradient, rate, shrinkage)
        return samples


def is_same_in_training(model: nn.Module, x: Any) -> bool:
    """Whether a net scores x in training mode as in evaluation, and no pass changes its buffers."""
    kept, found = copy_state(model), []
    with torch.no_grad():
        for training in (False, True):
            with in_mode(model, training=training):
                found.append(scores(model, x))
    same = torch.equal(*found) and all(
        torch.equal(tensor, kept[name]) for name, tensor in tensors_of(model).items()
    )
    restore_state(model, kept)
    return same

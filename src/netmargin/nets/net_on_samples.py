"""Samples with labels, and the float64 copy of a net that scores them."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from .data import Data, batches, read_model_and_data
from .labels import Labels
from .model import count_outputs, float64_copy
from .named_inputs import map_floating
from .threads import work_of


class NetOnSamples:
    """A float64 copy of a net, and the samples that it scores.

    What takes a forward pass is computed when it is first asked for, so that a caller decides which
    errors come first. `twin` is the copy, whose parameters may be moved.
    """

    def __init__(self, model: nn.Module, data: Data) -> None:
        model, self.samples = read_model_and_data(model, data)
        self.twin = float64_copy(model)

    def __len__(self) -> int:
        return len(self.samples)

    def first_inputs(self, count: int) -> Any:
        """The inputs of the first samples, at most `count`, on the twin's device, in float64."""
        x, _ = next(batches(self.samples, count, self.twin))
        return x

    @cached_property
    def x(self) -> Any:
        """All inputs as the twin takes them."""
        return self.first_inputs(len(self))

    @cached_property
    def y(self) -> Tensor:
        """All labels on the twin's device: float64 signs for one output, else int64 indices."""
        device = next(self.twin.parameters()).device
        return Labels(self.outputs).encode(self.samples.y).to(device)

    @cached_property
    def outputs(self) -> int:
        """C, the number of outputs of the net."""
        with torch.no_grad():
            return count_outputs(self.twin, self.first_inputs(2))

    @property
    def work(self) -> float:
        """Multiplications of a forward pass on all samples, as `fitting_threads` takes them."""
        return work_of(self.twin, self.first_inputs(1)) * len(self)

    def batches(self, size: int, rows: Tensor | None = None) -> Iterator[tuple[Any, Tensor]]:
        """Yield the samples, or those of some rows, in batches (x, y), as parts of `x` and `y`."""
        if rows is not None:
            yield from (
                (self.inputs(part), self.y[part.to(self.y.device)]) for part in rows.split(size)
            )
            return
        given = batches(self.samples, size, self.twin)
        for (x, _), y in zip(given, self.y.split(size), strict=True):
            yield x, y

    def inputs(self, rows: Tensor) -> Any:
        """The inputs of some samples, as parts of `x`."""
        X = self.samples.X
        return map_floating(Tensor.double, X[rows.to(X.device)].to(self.y.device))

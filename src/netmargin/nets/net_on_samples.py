"""Samples with labels, and the float64 copy of a net that scores them."""

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor, nn

from .data import Data, batches, read_model_and_data
from .labels import Labels
from .model import float64_copy, scores
from .threads import work_of


class NetOnSamples:
    """A float64 copy of a net, and the samples that it scores.

    Certificates, flows, ascents, penalties and radii all begin with these. What takes a forward
    pass is computed when it is first asked for, so that a caller decides which errors come first.

    Parameters
    ----------
    model : nn.Module
        The net; it is copied.
    data : tuple, dict, iterable of batches or Arrays
        Samples and labels, as `open_model_and_data` takes them; batches are read once, before the
        net is copied, and held in memory.

    Attributes
    ----------
    twin : nn.Module
        The copy, in evaluation mode and on the device of the net. Its parameters may be moved; the
        number of its outputs may not.
    samples : Arrays
        All samples, checked, with the dtype and device and the labels that they were given with.

    Raises
    ------
    DataError, ModelError
        The data or the model cannot be used; labels are checked when `y` is first asked for.
    """

    def __init__(self, model: nn.Module, data: Data):
        model, self.samples = read_model_and_data(model, data)
        self.twin = float64_copy(model)

    def __len__(self) -> int:
        return len(self.samples)

    def first_inputs(self, count: int) -> Tensor:
        """The inputs of the first samples, at most `count`, as the twin takes them.

        They are on its device, and those that are no integers in float64.
        """
        x, _ = next(batches(self.samples, count, self.twin))
        return x

    @cached_property
    def x(self) -> Tensor:
        """All inputs as the twin takes them, shape (N, ...)."""
        return self.first_inputs(len(self))

    @cached_property
    def y(self) -> Tensor:
        """All labels on the twin's device, shape (N,).

        They are float64 signs -1, +1 for one output, int64 class indices for several.
        """
        device = next(self.twin.parameters()).device
        return Labels(self.outputs).encode(self.samples.y).to(device)

    @cached_property
    def outputs(self) -> int:
        """C, the number of outputs of the net."""
        # Of two samples, since a net with batch statistics has none of a single one.
        with torch.no_grad():
            return scores(self.twin, self.first_inputs(2)).shape[1]

    @property
    def work(self) -> float:
        """Multiplications of a forward pass on all samples, as `fitting_threads` takes them."""
        return work_of(self.twin, self.first_inputs(1)) * len(self)

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the samples in batches (x, y), in order, as parts of what `x` and `y` hold."""
        for (x, _), y in zip(
            batches(self.samples, size, self.twin), self.y.split(size), strict=True
        ):
            yield x, y

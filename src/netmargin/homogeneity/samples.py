"""The samples on which a net is followed and its exponents are checked."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..nets.arrays import as_inputs
from ..nets.data import batches, open_model_and_data, open_model_and_inputs
from ..nets.model import call_net, device_and_dtype
from ..nets.named_inputs import NamedInputs, map_floating, map_tensors

_AS_IT_IS_SAMPLES = (2, 32)
"""Smallest and largest number of samples on which a net with epsilons or casts is measured as it
is: their effect is largest on the rare sample that makes a value small, so that many are better. In
between ...
"""
_AS_IT_IS_NUMBERS = 2**20
"""... as many samples are taken as make the net compute so many numbers: in float64 that takes some
hundredths of a second, less than what else `analyse` does. Nets with more, weights and numbers for
the least number of samples together, are measured in float32: float64 takes about five times as
long.
"""


def take_samples(model: nn.Module, x: Any, count: int) -> Any:
    """The first samples of x, or of each of several inputs, as tensors for the model."""
    if isinstance(x, tuple):
        return tuple(take_samples(model, part, count) for part in x)
    device, dtype = device_and_dtype(model)
    x = map_tensors(lambda part: part.to(device, copy=True), as_inputs(x)[:count])
    return map_floating(lambda part: part.to(dtype), x)


def find_inputs(model: nn.Module, data: Any) -> Any:
    """A net, unwrapped, and its inputs in data: inputs, a pair (X, y), or batches."""
    batched = isinstance(data, list) and any(isinstance(p, (tuple, Mapping)) for p in data)
    # Of a list the rows, numbers or tensors, of one batch.
    listed = isinstance(data, (tuple, list)) and not batched and not _is_pair(model, data)
    single = isinstance(data, (Tensor, NamedInputs, Mapping)) or hasattr(data, "__array__")
    if listed or single:
        return open_model_and_inputs(model, data)
    model, samples = open_model_and_data(model, data)
    return model, next(batches(samples, _AS_IT_IS_SAMPLES[1], model))[0]


def _is_pair(model: nn.Module, data: tuple[Any, ...] | list[Any]) -> bool:
    """Whether data are inputs and their labels, and not two inputs of a net."""
    if len(data) != 2 or not (hasattr(data[1], "__len__") or hasattr(data[1], "shape")):
        return False
    if isinstance(data[0], Mapping):
        return True
    X, y = (np.shape(part) if hasattr(part, "shape") else np.shape(np.array(part)) for part in data)
    if len(y) != 1 or len(X) < 2 or X[:1] != y:
        return False
    numbers = np.asarray(data[1].cpu() if isinstance(data[1], Tensor) else data[1])
    if numbers.dtype.kind == "f" and (numbers != numbers.round()).any():
        return False
    # A net of two inputs refuses one in its own way; one that refuses both is asked for one.
    for inputs, pair in ((data[0], True), (tuple(data), False)):
        with suppress(Exception), torch.no_grad():
            call_net(model, take_samples(model, inputs, 2))
            return pair
    return True


def count_samples(x: Any) -> int:
    """Count the samples of a batch, or of the first of several inputs."""
    return len(x[0] if isinstance(x, tuple) else x)


def plan_as_it_is(model: nn.Module, numbers: float) -> tuple[int, bool]:
    """On how many samples a net is measured as it is, and whether float64 costs too much."""
    least, most = _AS_IT_IS_SAMPLES
    total = numbers * least + sum(p.numel() for p in model.parameters())
    expensive = device_and_dtype(model)[1] == torch.float32 and total > _AS_IT_IS_NUMBERS
    return int(min(max(_AS_IT_IS_NUMBERS / max(numbers, 1), least), most)), expensive

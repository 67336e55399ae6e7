"""The samples on which a net is followed and its exponents are checked."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..core.batches import as_inputs, batches
from ..core.doors import open_door, open_door_inputs
from ..core.nets import device_and_dtype

_AS_IT_IS_SAMPLES = (2, 32)
"""Smallest and largest number of samples on which a net with epsilons or casts is measured as it
is: their effect is largest on the rare sample that makes a value small, so that many are better. In
between ...
"""
_AS_IT_IS_NUMBERS = 2**20
"""... as many samples are taken as make the net compute so many numbers: in float64 that takes some
hundredths of a second, less than what else `analyse` does. Nets with more, weights and numbers for
the least number of samples together, are measured in float32: float64 takes four to ten times as
long.
"""


def take_samples(model: nn.Module, x, count: int):
    """Take the first samples of x as tensors for the model.

    A tuple holds the several inputs of a model, and stays one.
    """
    if isinstance(x, tuple):
        return tuple(take_samples(model, part, count) for part in x)
    device, dtype = device_and_dtype(model)
    x = as_inputs(x)[:count].to(device, copy=True)
    return x.to(dtype) if x.is_floating_point() else x


def find_inputs(model: nn.Module, data, *, several: bool):
    """Find the inputs in data that are inputs, a pair (X, y), or an iterable of batches.

    Returns the net as it takes them, and the inputs.
    """
    if isinstance(data, Mapping):
        return open_door_inputs(model, data)
    if several or isinstance(data, Tensor) or hasattr(data, "__array__"):
        return model, data
    if isinstance(data, list) and not any(
        hasattr(part, "shape") or isinstance(part, Mapping) for part in data
    ):
        return model, data
    model, samples = open_door(model, data)
    return model, next(batches(samples, _AS_IT_IS_SAMPLES[1], model))[0]


def count_samples(x) -> int:
    """Count the samples of a batch, or of the first of several inputs."""
    return len(x[0] if isinstance(x, tuple) else x)


def count_as_it_is_samples(numbers: float) -> int:
    """Decide on how many samples a net that computes so many numbers for each is measured."""
    least, most = _AS_IT_IS_SAMPLES
    return int(min(max(_AS_IT_IS_NUMBERS / max(numbers, 1), least), most))


def is_expensive(numbers: float, weights: int) -> bool:
    """Whether a net of so many weights and numbers for a sample is not measured in float64."""
    return numbers * _AS_IT_IS_SAMPLES[0] + weights > _AS_IT_IS_NUMBERS


def are_all_equal(x) -> bool:
    """Whether the samples of a batch are copies of one, as blank ones are."""
    if isinstance(x, tuple):
        return all(map(are_all_equal, x))
    return bool((x == x[:1]).all())


def repeat_first_sample(x):
    """Add the first sample once more, where a data set is too small to take another."""
    return tuple(map(repeat_first_sample, x)) if isinstance(x, tuple) else torch.cat([x, x[:1]])

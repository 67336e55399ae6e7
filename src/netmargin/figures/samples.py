"""The samples that pictures are about."""

from typing import Any

from torch import Tensor

from ..errors import DataError
from ..nets.arrays import Arrays
from ..nets.data import open_data


def check_samples(X: Any, y: Any) -> Arrays:
    """The pair (X, y) as checked tensors. Raises DataError."""
    samples = open_data((X, y))
    if not (isinstance(samples, Arrays) and isinstance(samples.X, Tensor)):
        raise DataError("X and y must be arrays, of inputs and of labels.")
    if samples.X.ndim < 2:
        raise DataError(f"X must hold one row for each sample; got shape {tuple(samples.X.shape)}")
    return samples

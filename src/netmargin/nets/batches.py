"""Data as checked batches: finite inputs on the model's device, labels as signs or class
indices.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core.arguments import check_count
from ..core.records import short_repr
from ..errors import DataError
from .data_advice import STREAM_HINT, describe_several_labels, how_to_pair, why_no_data
from .model import device_and_dtype
from .row_order import in_order, require_same_order
from .whole_tensors import are_finite


@dataclass(frozen=True)
class Arrays:
    """A whole data set in memory, checked.

    Attributes
    ----------
    X : Tensor, shape (N, ...)
        Inputs, finite, of the dtype and on the device that they were given.
    y : Tensor, shape (N,)
        Labels, whole numbers.
    """

    X: Tensor
    y: Tensor

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.X)


Data = tuple | Iterable | Arrays
"""Data as callers give them: a pair (X, y), an iterable of batches (x, y), or `Arrays`."""


def open_data(data: Data, *, shuffled: bool = False) -> Arrays | Iterable:
    """The pair (X, y) as checked tensors, or the iterable of batches.

    A loader that shuffles is read in order (`in_order`), unless it is to be `shuffled`.

    Raises DataError for samples and labels that cannot be used, and for what holds no data.
    """
    if isinstance(data, Arrays):
        return data
    # A list of two batches is a list of batches, not a pair of arrays.
    if isinstance(data, (tuple, list)) and len(data) == 2 and not _is_batch(data[0]):
        X, y = read_tensor(data[0], "X"), read_tensor(data[1], "y")
        _check_batch(X, y, "the data")
        return Arrays(X, y.reshape(-1))
    if reason := why_no_data(data):
        raise DataError(f"{reason} {STREAM_HINT}")
    if isinstance(data, torch.utils.data.Dataset) and not isinstance(
        data, torch.utils.data.IterableDataset
    ):
        raise DataError(
            "A Dataset yields single samples. Wrap it: DataLoader(dataset, batch_size=1000)."
        )
    if not isinstance(data, Iterable):
        raise DataError(f"The data are of type {type(data).__name__}. {STREAM_HINT}")
    return data if shuffled else in_order(data)


def batches(
    data: Arrays | Iterable, batch_size: int, model: nn.Module, *, shuffle: bool = False
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches (x, y) on the model's device, x in the model's floating dtype.

    Integer inputs stay integers; y stays as it is. Both may be views of the caller's data.
    Shuffling draws from torch's global generator. An iterable keeps its own batches and order.
    """
    batch_size = check_count("batch_size", batch_size)
    device, dtype = device_and_dtype(model)
    if isinstance(data, Arrays):
        order = torch.randperm(len(data)) if shuffle else None
        for start in range(0, len(data), batch_size):
            chosen = (
                slice(start, start + batch_size)
                if order is None
                else order[start : start + batch_size].to(data.X.device)
            )
            yield _move_to(data.X[chosen], device, dtype), data.y[chosen]
        return
    for x, y in pairs_of(data):
        yield _move_to(x, device, dtype), y


def pairs_of(data: Iterable) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batches of an iterable as checked tensors (x, y), on their own device.

    Raises DataError for a batch that cannot be used, and where there is none.
    """
    empty = True
    for index, batch in enumerate(data):
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise DataError(f"Batch {index} is not a pair (x, y) but {how_to_pair(batch)}")
        x, y = read_tensor(batch[0], "x"), read_tensor(batch[1], "y")
        _check_batch(x, y, f"batch {index}")
        empty = False
        yield x, y.reshape(-1)
    if empty:
        raise DataError(
            "The iterable of batches yielded nothing. A generator can be read only once: pass a"
            " list or a DataLoader, and check that its dataset is not empty."
        )


class Labels:
    """Encoder of labels, as signs -1, +1 (one output) or class indices 0..C-1 (C outputs).

    It remembers the labels of earlier batches, so that {-1, +1} and {0, 1} are not mixed.

    Parameters
    ----------
    outputs : int
        Number of outputs of the net.
    """

    def __init__(self, outputs: int):
        self.outputs = outputs
        self.seen: set[float] = set()

    def encode(self, y: Tensor) -> Tensor:
        """Return the labels of one batch as float64 signs or int64 indices, shape (N,).

        Raises DataError for labels of another kind or number.
        """
        # Over all batches: one batch of a single class does not tell which labels are in use.
        values = torch.unique(y)
        self.seen |= set(values.tolist())
        # With two outputs signs are taken too: -1 is class 0.
        wrong = self.seen - ({-1.0, 0.0, 1.0} if self.outputs <= 2 else set(range(self.outputs)))
        if not wrong and {-1.0, 0.0} <= self.seen:
            wrong = {-1.0, 0.0}  # one of the two is
        if wrong:
            raise DataError(self._describe_wrong_labels(wrong))
        if self.outputs == 1:
            return torch.where(y > 0, 1.0, -1.0).to(torch.float64)
        return y.clamp(min=0).to(torch.int64)

    def _describe_wrong_labels(self, wrong: set[float]) -> str:
        """Which labels will not do, and which would."""
        shown = ", ".join(f"{v:.15g}" for v in sorted(wrong)[:8]) + (
            f" and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        )
        if self.outputs == 1:
            return (
                f"A net with one output takes labels {{-1, +1}} or {{0, 1}}; found {shown}. Recode"
                " them, or use a net with one output per class."
            )
        return (
            f"A net with {self.outputs} outputs takes class indices 0 to {self.outputs - 1} as"
            f" labels; found {shown}. Recode the labels, or give the last layer as many outputs as"
            " there are classes."
        )


def _is_batch(item) -> bool:
    """Whether an item is a pair of arrays, as batches are."""
    return (
        isinstance(item, (tuple, list))
        and len(item) == 2
        and all(hasattr(part, "shape") for part in item)
    )


def as_inputs(values, name: str = "X") -> Tensor:
    """Inputs without labels as a tensor of at least one sample, all finite. Raises DataError."""
    X = read_tensor(values, name)
    _check_inputs(X, name, "")
    return X


def read_tensor(values, name: str) -> Tensor:
    """Arrays, nested lists and tensors as an ordinary real tensor, detached. Raises DataError."""
    if isinstance(values, Tensor):
        tensor = values.detach()
    else:
        try:
            tensor = torch.from_numpy(_as_numpy(values, name))
        except (TypeError, ValueError) as error:
            raise DataError(f"{name} cannot be read as an array of numbers: {error}") from error
    if tensor.is_complex():
        raise DataError(
            f"{name} holds complex numbers; netmargin needs real ones. Pass its real part, or both"
            " parts side by side."
        )
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise DataError(
            f"{name} is a sparse or quantized tensor. Pass an ordinary one: {name}.to_dense() or"
            f" {name}.dequantize()."
        )
    # Few operations of torch take unsigned integers of more than a byte.
    return tensor.long() if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64) else tensor


def _as_numpy(values, name: str):
    """An array of numbers. Raises TypeError or ValueError, DataError for columns of text."""
    import numpy as np

    array = np.ascontiguousarray(values)
    # Frames and series of pandas: columns of mixed types, of its own types and with gaps are
    # objects to numpy.
    if array.dtype != object or not hasattr(values, "to_numpy"):
        # Torch warns of arrays that must not be written to, as those of pandas are.
        return array if array.flags.writeable else array.copy()
    try:
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        columns = (
            [
                str(column)
                for column, kind in getattr(values, "dtypes", {}).items()
                if str(kind) in ("object", "str", "string", "category")
            ]
            if values.ndim == 2
            else [str(getattr(values, "name", None))]
        )
        raise DataError(
            f"{name} holds text in {', '.join(map(repr, columns[:6]))}. Encode classes as"
            " numbers, pandas.factorize(column)[0], and features as columns of numbers,"
            " pandas.get_dummies(frame)."
        ) from None


def _check_batch(X: Tensor, y: Tensor, where: str) -> None:
    """Raise DataError for inputs or labels that cannot be used, or do not match in number."""
    _check_inputs(X, "X", f"{where}: ")
    if X.ndim > 1 and y.ndim > 1 and len(y) == len(X) and y.numel() > len(X):
        raise DataError(f"{where}: y has shape {tuple(y.shape)}: {describe_several_labels(y)}")
    if y.numel() != len(X) or (y.ndim > 1 and y.shape[0] != len(X)):
        swapped = " Are they swapped? The inputs come first." if X.ndim == 1 and y.ndim > 1 else ""
        raise DataError(
            f"{where}: X has {len(X)} samples but y has shape {tuple(y.shape)}. Pass one label per"
            f" sample.{swapped}"
        )
    if y.is_meta:
        raise DataError(
            f"{where}: the labels live on the 'meta' device, which holds no numbers. Load them onto"
            " a real device."
        )
    if y.is_floating_point() and not bool((y == y.round()).all()):
        raise DataError(
            f"{where}: labels must be whole numbers (signs or class indices); y holds NaN or"
            " fractions such as targets of a regression."
        )


def _check_inputs(X: Tensor, name: str, where: str) -> None:
    """Raise DataError for inputs that are empty, on the 'meta' device or not finite."""
    if X.ndim == 0 or len(X) == 0:
        raise DataError(
            f"{where}{name} holds no samples (shape {tuple(X.shape)}). Pass at least one sample."
        )
    if X.is_meta:
        raise DataError(
            f"{where}{name} lives on the 'meta' device, which holds no numbers. Load it onto a real"
            " device."
        )
    if X.is_floating_point() and not are_finite(X):
        bad = torch.nonzero(~torch.isfinite(X.reshape(len(X), -1)).all(1))[:, 0]
        raise DataError(
            f"{where}{name} holds NaN or infinite values in {len(bad)} samples, first sample"
            f" {bad[0].item()}. Drop or impute them."
        )


def _move_to(x: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Inputs on a device, floating ones in the given dtype."""
    return x.to(device, dtype) if x.is_floating_point() else x.to(device)


def as_arrays(data: Data) -> Arrays:
    """All data in memory as a checked pair of tensors, the batches of an iterable joined.

    Raises DataError for data that cannot be used, batches of different shapes, and samples that
    come in another order at each pass.
    """
    samples = open_data(data)
    if isinstance(samples, Arrays):
        return samples
    parts = list(pairs_of(samples))
    sizes = sorted({tuple(x.shape[1:]) for x, _ in parts})
    if len(sizes) > 1:
        raise DataError(
            f"Batches hold inputs of different shapes, {sizes[0]} and {sizes[1]}. Pad or crop them"
            " to one shape."
        )
    y = torch.cat([y for _, y in parts])
    require_same_order(samples, y)
    return Arrays(torch.cat([x for x, _ in parts]), y)

"""Any form of data as batches of rows in order, with the net that takes them."""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from ..core.arguments import check_count
from ..core.generators import GENERATORS, undisturbed
from ..errors import ArgumentError, DataError
from .accepted_models import check_model
from .advice import STREAM_HINT, how_to_pair, why_no_data
from .arrays import Arrays, check_batch, read_tensor
from .model import device_and_dtype
from .named_inputs import (
    LABELS,
    Fields,
    describe_fields,
    pack,
    split_labels,
    view_with_fields,
)
from .row_order import in_order, require_same_order

Function = TypeVar("Function", bound=Callable)

Data = tuple | Iterable | Arrays
"""Data as callers give them: a pair (X, y), an iterable of batches (x, y), or `Arrays`."""


def takes_data(function: Function) -> Function:
    """Let a public function say how to pass samples, where inputs and labels come one by one.

    Examples
    --------
    >>> takes_data(lambda model, data: None)("net", "X", "y")
    Traceback (most recent call last):
    netmargin.errors.ArgumentError: <lambda> takes inputs and labels as one pair: \
<lambda>(model, (X, y)). Options are given by name.
    """
    kinds = inspect.signature(function).parameters.values()
    places = [p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        if len(given) > len(places) or not {"X", "y"}.isdisjoint(named):
            name = function.__qualname__.removesuffix(".__init__")
            shown = [place for place in places if place not in ("self", "heldout")]
            raise ArgumentError(
                f"{name} takes inputs and labels as one pair:"
                f" {name}({', '.join([*shown[:-1], '(X, y)'])}). Options are given by name."
            )
        return function(*given, **named)

    return cast(Function, checked)


def open_model_and_data(
    model: Any, data: Data, *, shuffled: bool = False
) -> tuple[nn.Module, Arrays | Iterable]:
    """A net and its data, freed of their wrappers and of names.

    Every public function that takes a net and data reads them by this one or `read_model_and_data`.

    Parameters
    ----------
    model : object
        The net that the caller gave, which `check_model` unwraps or refuses.
    data : tuple, dict, or iterable of them
        A pair (X, y), a dict with `labels`, a pair of a dict of inputs and labels, or an iterable
        of such batches. Inputs of one dict have one shape.
    shuffled : bool, default False
        Whether a loader that shuffles may do so; otherwise its data set is read in order.

    Returns
    -------
    tuple of nn.Module and Arrays or iterable
        The net itself, or for inputs by name a view that shares its parameters; and its data as
        checked tensors (X, y), or an iterable of batches that `batches` reads.

    Raises
    ------
    ModelError
        If the model is none, or takes no inputs of these names.
    DataError
        If the data cannot be used.

    Examples
    --------
    >>> import torch
    >>> class Sum(torch.nn.Linear):
    ...     def forward(self, left, right):
    ...         return super().forward(left + right)
    >>> data = {"left": torch.ones(3, 2), "right": torch.ones(3, 2), "labels": [1, 1, -1]}
    >>> net, samples = open_model_and_data(Sum(2, 1), data)
    >>> samples.X.shape, net(samples.X).shape
    (torch.Size([3, 2, 2]), torch.Size([3, 1]))
    """
    model = check_model(model)
    fields, samples = pack_data(data, shuffled=shuffled)
    return view_with_fields(model, fields), samples


def read_model_and_data(model: Any, data: Data) -> tuple[nn.Module, Arrays]:
    """A net and all its data in memory, as `open_model_and_data` reads them, batches joined."""
    model, samples = open_model_and_data(model, data)
    return model, as_arrays(samples)


def open_model_and_inputs(model: Any, x: Any) -> tuple[nn.Module, Any]:
    """A net and inputs without labels; labels beside inputs by name are left out.

    Inputs that are no dict are returned as they are.
    """
    model = check_model(model)
    if not isinstance(x, Mapping):
        return model, x
    given = {key: value for key, value in x.items() if key not in LABELS}
    inputs = _read_inputs(given, "The inputs")
    fields = describe_fields(inputs, "The inputs")
    return view_with_fields(model, fields), pack(inputs, fields, "The inputs")


def pack_data(data: Any, *, shuffled: bool = False) -> tuple[Fields | None, Arrays | Iterable]:
    """The fields of data with inputs by name, None for others; and the data, their inputs packed.

    Raises DataError as `open_model_and_data` does.
    """
    if isinstance(data, Mapping) and any(label in data for label in LABELS):
        data = split_labels(data, "The data")
    if _is_named_pair(data):
        inputs = _read_inputs(data[0], "The data")
        fields = describe_fields(inputs, "The data")
        return fields, open_data((pack(inputs, fields, "The data"), data[1]))
    first, data = _peek(data)
    if not (isinstance(first, Mapping) or _is_named_pair(first)):
        return None, open_data(data, shuffled=shuffled)
    named, _ = _split(first, 0)
    fields = describe_fields(_read_inputs(named, "Batch 0"), "Batch 0")
    stream = _PackedBatches(data if shuffled else in_order(data), fields)
    return fields, iter(stream) if isinstance(data, Iterator) else stream


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
        check_batch(X, y, "the data")
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
        check_batch(x, y, f"batch {index}")
        empty = False
        yield x, y.reshape(-1)
    if empty:
        raise DataError(
            "The iterable of batches yielded nothing. A generator can be read only once: pass a"
            " list or a DataLoader, and check that its dataset is not empty."
        )


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


class Opened:
    """Batches that a door has looked at, for those who read them again and again."""

    def __init__(self, source: Iterable):
        self.source = source

    def __iter__(self) -> Iterator:
        return iter(self.source)


class _PackedBatches:
    """Batches of inputs by name, packed one by one; `source` yields them."""

    def __init__(self, data: Iterable, fields: Fields):
        self.source, self._fields = data, fields

    def __iter__(self) -> Iterator[tuple[Tensor, Any]]:
        for index, batch in enumerate(self.source):
            inputs, y = _split(batch, index)
            where = f"Batch {index}"
            yield pack(_read_inputs(inputs, where), self._fields, where), y

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]


def _split(batch: Any, index: int) -> tuple[Mapping, Any]:
    """The inputs by name and the labels of one batch."""
    return batch if _is_named_pair(batch) else split_labels(batch, f"Batch {index}")


def _is_named_pair(item: Any) -> bool:
    """Whether an item is a pair of inputs by name and labels."""
    return (
        isinstance(item, (tuple, list))
        and len(item) == 2
        and isinstance(item[0], Mapping)
        and not isinstance(item[1], Mapping)
    )


def _read_inputs(inputs: Mapping, where: str) -> dict[str, Tensor]:
    """Every input as a tensor of real numbers."""
    return {str(name): read_tensor(value, f"{where}: {name!r}") for name, value in inputs.items()}


def _is_batch(item) -> bool:
    """Whether an item is a pair of arrays, as batches are."""
    return (
        isinstance(item, (tuple, list))
        and len(item) == 2
        and all(hasattr(part, "shape") for part in item)
    )


def _peek(data: Any) -> tuple[Any, Any]:
    """The first batch of an iterable, and an iterable of all; (None, data) where there is none.

    Global random generators are left as they were: who looks twice must not see other data.
    """
    if isinstance(data, (tuple, list)):
        return (data[0] if data else None), data
    if isinstance(data, (Arrays, Mapping, Opened, _PackedBatches, str, bytes)) or not isinstance(
        data, Iterable
    ):
        return None, data
    if hasattr(data, "shape"):  # one array; the rows of it are no batches
        return None, data
    if isinstance(data, Iterator):  # of one pass: what was read is put back in front
        first = list(itertools.islice(data, 1))
        return (first[0] if first else None), itertools.chain(first, data)
    own = getattr(data, "generator", None)
    with undisturbed([own] if isinstance(own, GENERATORS) else []):  # of the loader
        if isinstance(data, torch.utils.data.DataLoader):
            # One sample, collated: a first batch would start the processes of the loader.
            with suppress(Exception):  # of the caller's data set, which may count from elsewhere
                sample = data.dataset[0]
                return data.collate_fn(sample if data.batch_size is None else [sample]), data
        return next(iter(data), None), data


def _move_to(x: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Inputs on a device, floating ones in the given dtype."""
    return x.to(device, dtype) if x.is_floating_point() else x.to(device)

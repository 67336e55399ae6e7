"""What a caller gives, a net and data, as everything behind the doors takes it."""

import functools
import inspect
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError
from .accepted_models import check_model
from .batches import Arrays, Data, as_arrays, open_data, read_tensor
from .named_inputs import (
    LABELS,
    Fields,
    describe_fields,
    pack,
    split_labels,
    view_with_fields,
)
from .row_order import in_order

Function = TypeVar("Function", bound=Callable)


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


def open_door(
    model: Any, data: Data, *, shuffled: bool = False
) -> tuple[nn.Module, Arrays | Iterable]:
    """A net and its data, freed of their wrappers and of names.

    Every public function that takes a net and data reads them by this one, or by `open_door_whole`.

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
    >>> net, samples = open_door(Sum(2, 1), data)
    >>> samples.X.shape, net(samples.X).shape
    (torch.Size([3, 2, 2]), torch.Size([3, 1]))
    """
    model = check_model(model)
    fields, samples = pack_data(data, shuffled=shuffled)
    return view_with_fields(model, fields), samples


def pack_data(data: Any, *, shuffled: bool = False) -> tuple[Fields | None, Arrays | Iterable]:
    """The fields of data with inputs by name, None for others; and the data, their inputs packed.

    Raises DataError as `open_door` does.
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


def open_door_whole(model: Any, data: Data) -> tuple[nn.Module, Arrays]:
    """A net and all its data in memory, as `open_door` reads them, batches joined."""
    model, samples = open_door(model, data)
    return model, as_arrays(samples)


def open_door_inputs(model: Any, x: Any) -> tuple[nn.Module, Any]:
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
    with _undisturbed_randomness(getattr(data, "generator", None)):
        if isinstance(data, torch.utils.data.DataLoader):
            # One sample, collated: a first batch would start the processes of the loader.
            with suppress(Exception):  # of the caller's data set, which may count from elsewhere
                sample = data.dataset[0]
                return data.collate_fn(sample if data.batch_size is None else [sample]), data
        return next(iter(data), None), data


@contextmanager
def _undisturbed_randomness(own: Any) -> Iterator[None]:
    """Put the global generators of torch, numpy and Python, and that of a loader, back after a
    block.
    """
    state = own.get_state() if isinstance(own, torch.Generator) else None
    of_numpy, of_python = np.random.get_state(), random.getstate()
    try:
        with torch.random.fork_rng(devices=[]):  # loaders draw on the CPU
            yield
    finally:
        np.random.set_state(of_numpy)
        random.setstate(of_python)
        if state is not None:
            own.set_state(state)

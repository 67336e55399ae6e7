"""Any form of data as batches of rows in order, with the net that takes them."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from ..core.arguments import check_count
from ..core.caller import warn_caller, warn_once
from ..core.saved_records import Record
from ..errors import ArgumentError, DataError, NetmarginError
from .accepted_models import check_model
from .advice import STREAM_HINT, how_to_pair, why_no_data
from .arrays import Arrays, check_batch, read_tensor
from .labels import text_classes
from .model import device_and_dtype
from .named_inputs import LABELS, NamedInputs, find_label, join_rows, map_tensors, simplify
from .named_scores import name_scores
from .row_order import (
    in_order,
    require_paired_rows,
    require_same_order,
    warn_of_copied_stream,
    warn_of_dropped_rows,
)
from .score_outputs import Choice as Choice, OutputsError, hear_outputs
from .text_labels import encode_text_labels, find_class_names, find_output_names, read_text

Function = TypeVar("Function", bound=Callable[..., Any])

Data = tuple[Any, ...] | Iterable[Any] | Arrays
"""What callers give: a pair (X, y), a dict with labels, an iterable of such, or `Arrays`."""

_NETS = {"model", "models", "make_model", "subject"}
"""Arguments of public functions that hold nets."""

_SAMPLES_AT_ONCE = 200
"""Samples of a batch where a data set is given without a loader, as many as of pairs."""

_within_another: ContextVar[bool] = ContextVar("within_another", default=False)
"""Whether a public function runs for another one, which settles how scores are read."""


def takes_data(function: Function) -> Function:
    """Let a public function take inputs and labels as one pair, and read the right scores."""
    signature = inspect.signature(function)
    kinds = signature.parameters.values()
    places = [p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        if len(given) > len(places) or not {"X", "y"}.difference(places).isdisjoint(named):
            name = function.__qualname__.removesuffix(".__init__")
            shown = [place for place in places if place not in ("self", "heldout")]
            raise ArgumentError(
                f"{name} takes inputs and labels as one pair:"
                f" {name}({', '.join([*shown[:-1], '(X, y)'])}). Options are given by name."
            )
        if (choice := named.pop("scores", None)) is not None:
            given, named = rename(given, named, choice=choice)
        within = _within_another.get()
        # Of several nets each is read in a call of its own, of one net by the outermost function.
        before = _within_another.set(within or "models" not in places)
        classes = text_classes.get()
        try:
            given, named = encode(given, named)
            with hear_outputs() as heard, warn_once():
                found = function(*given, **named) if within else call(given, named)
        finally:
            _within_another.reset(before)
            text_classes.set(classes)
        if heard and isinstance(found, Record):
            found.say_scores("; ".join(heard))
        return found

    def call(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            return function(*given, **named)
        except OutputsError as error:
            arguments = signature.bind_partial(*given, **named).arguments
            data = arguments.get("data", arguments.get("x"))
            # What can be read only once has lost its first batch.
            changes = None if hasattr(data, "__next__") else error.choose(_first_labels(data))
            if changes is None:
                raise
        return call(*rename(given, named, **changes))

    def encode(
        given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with numbers in place of labels that are text, and the classes' names,
        by whose number it is seen whether the net knows other classes.
        """
        try:
            bound = signature.bind_partial(*given, **named)
        except TypeError:  # which the call itself explains
            return given, named
        sets = [name for name in ("data", "heldout", "x") if name in bound.arguments]
        before = [_open_bunch(bound.arguments[name]) for name in sets]
        given_names = bound.arguments.get("class_names")
        for data in before:
            require_paired_rows(data)
        named_too = "class_names" in signature.parameters
        if given_names is None and named_too:
            nets = [bound.arguments[name] for name in _NETS & bound.arguments.keys()]
            brought = (bound.arguments[name] for name in sets)
            found = [*map(find_class_names, brought), *map(find_output_names, nets)]
            given_names = next(filter(None, found), None)
        after, names = encode_text_labels(before, given_names)
        if any(new is not old for new, old in zip(after, before, strict=True)):
            if given_names is None and names and "x" not in sets and _NETS & bound.arguments.keys():
                shown = ", ".join(f"{number} {name!r}" for number, name in enumerate(names[:3]))
                shown += ", ..." * (len(names) > 3)
                remedy = "give class_names" if named_too else "number the labels"
                warn_caller(
                    f"The labels are text, and the classes are numbered {shown}, in the order"
                    " of the categories or of the alphabet. If the outputs of the net are in"
                    f" another order, every number is wrong: {remedy} in theirs."
                )
            text_classes.set(len(names or ()))
        bound.arguments |= dict(zip(sets, after, strict=True))
        if named_too and names is not None:
            bound.arguments["class_names"] = names
        return bound.args, bound.kwargs

    def rename(
        given: tuple[Any, ...], named: dict[str, Any], **changes: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with nets whose scores are read otherwise."""
        places = signature.bind_partial(*given, **named)
        for name in _NETS & places.arguments.keys():
            places.arguments[name] = name_scores(places.arguments[name], **changes)
        return places.args, places.kwargs

    return cast(Function, checked)


def _open_bunch(data: Any) -> Any:
    """The pair (X, y) of a data set of scikit-learn, a dict that holds its description, too."""
    known = isinstance(data, Mapping) and {"data", "target", "DESCR"} <= data.keys()
    return (data["data"], data["target"]) if known else data


def _first_labels(data: Any) -> Tensor | None:
    """All labels of data in memory, or those of the first batch; None where there are none."""
    try:
        samples = open_data(data)
        return samples.y if isinstance(samples, Arrays) else next(_read_batches(samples))[1]
    except (NetmarginError, StopIteration):
        return None


def open_model_and_data(
    model: Any, data: Data, *, shuffled: bool = False
) -> tuple[nn.Module, Arrays | Iterable[Any]]:
    """A net, checked, and its data for `batches`, in order unless they are to be `shuffled`."""
    model = check_model(model)
    return model, open_data(data, model, shuffled=shuffled)


def read_model_and_data(model: Any, data: Data) -> tuple[nn.Module, Arrays]:
    """A net and all its data in memory, as `open_model_and_data` reads them, batches joined."""
    model = check_model(model)
    return model, as_arrays(data, model)


def open_model_and_inputs(model: Any, x: Any) -> tuple[nn.Module, Any]:
    """A net and inputs without labels, or those of a dict; others are returned as they are."""
    model = check_model(model)
    if not isinstance(x, Mapping):
        return model, x
    inputs = {key: value for key, value in x.items() if str(key).lower() not in LABELS}
    return model, simplify(model, _name_inputs(inputs, "The inputs"))


def open_data(
    data: Data, model: nn.Module | None = None, *, shuffled: bool = False
) -> Arrays | Iterable[Any]:
    """Data in memory as checked `Arrays`, or the iterable of batches. Raises DataError."""
    if isinstance(data, Arrays):
        return data
    samples: Any = _collate(data) if _are_samples(data) else data  # type: ignore[arg-type]
    by_name = isinstance(samples, Mapping) and find_label(samples) is not None
    # A list of two batches is a list of batches, not a pair of arrays.
    if by_name or (isinstance(samples, (tuple, list)) and len(samples) == 2 and _is_pair(samples)):
        X, y = read_pair(samples, "the data", "X")
        return Arrays(X if model is None else simplify(model, X), y)
    if reason := why_no_data(data):
        raise DataError(f"{reason} {STREAM_HINT}")
    if isinstance(data, Dataset) and not isinstance(data, IterableDataset):
        return DataLoader(data, _SAMPLES_AT_ONCE, collate_fn=_stack)
    if not isinstance(data, Iterable):
        raise DataError(f"The data are of type {type(data).__name__}. {STREAM_HINT}")
    return data if shuffled else in_order(data)


def batches(
    data: Arrays | Iterable[Any],
    batch_size: int,
    model: nn.Module,
    *,
    shuffle: bool = False,
    place: tuple[torch.device, torch.dtype] | None = None,
) -> Iterator[tuple[Any, Tensor]]:
    """Yield batches (x, y): x on the model's device, and of its type if floating, y as it is.

    Both may be views of the caller's data. An iterable keeps its own batches and order. `place`,
    the device and type, is looked up in the model where it is not known.
    """
    batch_size, place = check_count("batch_size", batch_size), place or device_and_dtype(model)
    if not isinstance(data, Arrays):
        for x, y in _read_batches(data):
            yield _move_to(simplify(model, x), *place), y
        return
    order = torch.randperm(len(data), device="cpu") if shuffle else None
    for start in range(0, len(data), batch_size):
        rows: Any = slice(start, start + batch_size)
        if order is not None:
            rows = order[rows].to(data.X.device)
        yield _move_to(data.X[rows], *place), data.y[rows]


def as_arrays(data: Data, model: nn.Module | None = None) -> Arrays:
    """All data in memory as checked tensors, the batches of an iterable joined."""
    samples = open_data(data, model)
    if isinstance(samples, Arrays):
        return samples
    parts = list(_read_batches(samples))
    configs = (getattr(part, "config", None) for part in (model.modules() if model else ()))
    fill = next(filter(None, (getattr(own, "pad_token_id", 0) for own in configs)), 0)
    X = join_rows([x for x, _ in parts], fill if isinstance(parts[0][0], NamedInputs) else None)
    y = torch.cat([y for _, y in parts])
    warn_of_dropped_rows(samples, len(y))
    require_same_order(samples, y, lambda: [own for _, own in _read_batches(samples, once=True)])
    return Arrays(X if model is None else simplify(model, X), y)


def _read_batches(data: Iterable[Any], *, once: bool = False) -> Iterator[tuple[Any, Tensor]]:
    """Yield the checked batches of an iterable; read `once`, there may be none any more."""
    names, first = None, None
    for index, batch in enumerate(data):
        x, y = read_pair(batch, f"batch {index}", "x")
        if index == 1:
            warn_of_copied_stream(data, first, (x, y))
        first = (x, y) if index == 0 else None
        own = tuple(x.parts) if isinstance(x, NamedInputs) else ()
        if names is not None and own != names:
            raise DataError(
                f"Batch {index} has the inputs {', '.join(own)}, earlier ones have"
                f" {', '.join(names)}. Give every batch the same."
            )
        names = own
        yield x, y
    if names is None and not once:
        if getattr(data, "drop_last", False):
            raise DataError(
                "The loader has drop_last=True and fewer samples than one batch: it yields nothing."
                " Give drop_last=False."
            )
        raise DataError(
            "The iterable of batches yielded nothing. A generator can be read only once: pass a"
            " list or a DataLoader, whose dataset is not empty."
        )


def read_pair(batch: Any, where: str, name: str) -> tuple[Any, Tensor]:
    """The checked inputs and labels of a batch of any form."""
    title = where[0].upper() + where[1:]
    batch = _collate(batch) if _are_samples(batch) else batch
    if isinstance(batch, Mapping):
        label = find_label(batch)
        if label is None:
            keys = ", ".join(repr(str(key)) for key in list(batch)[:6])
            raise DataError(
                f"{title} is a {type(batch).__name__} with the keys {keys}, none of which is for"
                f" labels. Call that one {LABELS[0]!r}, or give the pair (inputs, y)."
            )
        batch = {key: value for key, value in batch.items() if key != label}, batch[label]
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise DataError(f"{title} is not a pair (x, y) but {how_to_pair(batch)}")
    by_name = isinstance(batch[0], Mapping)
    if _are_several(*batch):
        raise DataError(
            f"{title}: X holds {len(batch[0])} inputs. Give them by the names of forward, one row"
            ' for each sample: {"x": ..., "mask": ..., "labels": y}.'
        )
    X = _name_inputs(batch[0], title) if by_name else read_tensor(batch[0], name)
    if read_text(batch[1]):
        raise DataError(
            f"{title} has labels that are text. Let the data set number them, names.index(label),"
            " or give the pair (X, labels)."
        )
    y = read_tensor(batch[1], "y")
    check_batch(X, y, where)
    return X, y.reshape(-1)


def _name_inputs(inputs: Mapping[str, Any], where: str) -> NamedInputs:
    """Inputs by name as tensors of real numbers, text left out. Raises DataError."""
    parts = {
        str(name): read_tensor(part, f"{where}: {name!r}")
        for name, part in inputs.items()
        if not _holds_text(part)
    }
    if not parts:
        text = f" but the text of {', '.join(map(repr, inputs))}: tokenize it" if inputs else ""
        raise DataError(f"{where} holds labels, but no inputs{text}.")
    return NamedInputs(parts)


def _holds_text(part: Any) -> bool:
    """Whether an entry of a dict is text, which stays in rows beside the tokens made of it."""
    if isinstance(part, str) or not isinstance(part, (list, tuple)):
        return isinstance(part, str)
    return any(isinstance(own, str) for own in part)


def _is_pair(items: Sequence[Any]) -> bool:
    """Whether two items are inputs and their labels, and not two batches."""
    first = items[0]
    if isinstance(items[1], Mapping):
        return False
    if isinstance(items[1], Tensor):  # which is no batch
        return True
    batch = isinstance(first, (tuple, list)) and len(first) == 2
    if not batch or _are_several(*first):
        return not batch
    return not (isinstance(first[0], Mapping) or getattr(first[0], "shape", None))


def _are_several(X: Any, y: Any) -> bool:
    """Whether X are several tensors of rows, and not one tensor for each label of y."""
    rows = isinstance(X, (tuple, list)) and hasattr(y, "__len__") and len(X) != len(y)
    return rows and len(X) > 1 and all(isinstance(part, Tensor) and part.ndim for part in X)


def _stack(samples: list[Any]) -> Any:
    """Samples of a data set as one batch. Raises DataError where they are no tensors of a shape."""
    try:
        return default_collate(samples)
    except (TypeError, RuntimeError) as error:
        holds = "None" if any(part is None for part in samples) else type(samples[0]).__name__
        raise DataError(
            f"The samples of the data set ({holds}) cannot be put into one batch: {error}. Let it"
            " yield (tensor of one shape, label), by a transform, leave out others, Subset(dataset,"
            " rows), or give DataLoader(dataset, collate_fn=...)."
        ) from error


def _are_samples(items: Any) -> bool:
    """Whether items are dicts of one sample each, as Hugging Face's data sets hold them."""
    rows = isinstance(items, list) or hasattr(items, "column_names")
    first = items[0] if rows and len(items) else None
    if not isinstance(first, Mapping):
        return False
    label = first.get(find_label(first))
    return isinstance(label, (int, float, str)) or getattr(label, "ndim", 1) == 0


def _collate(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Dicts of one sample each as one dict of rows. Raises DataError for unequal shapes."""
    rows = [samples[index] for index in range(len(samples))]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return {
        key: column
        if _holds_text(column) and str(key).lower() not in LABELS
        else join_rows([read_tensor(value, repr(str(key)))[None] for value in column])
        for key, column in columns.items()
    }


def _move_to(x: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """Inputs on a device, floating ones in the given type."""
    return map_tensors(lambda p: p.to(device, dtype if p.is_floating_point() else p.dtype), x)

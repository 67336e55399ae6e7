"""Inputs by name, such as `input_ids`: tensors of any shapes and types, whose rows are samples."""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ..errors import DataError, ModelError
from .named_scores import read_outputs

Inputs = TypeVar("Inputs")
LABELS = ("labels", "label", "y", "target", "targets")
"""Keys of a dict that hold labels, in the order in which they are looked for."""

UNMOVED = (
    ": they cannot be moved a little. nm.input_margins measures distances in the output of their"
    " embedding;"
)
"""What is said of inputs that are whole numbers, before what to give."""


def find_label(parts: Iterable[str]) -> str | None:
    """The key that holds the labels of a dict or a table, in capitals or not, or None."""
    held = {str(key).lower(): key for key in sorted(parts, key=str)}  # "label" before "Label"
    return next((held[key] for key in LABELS if key in held), None)


class NamedInputs:
    """A batch of inputs by name, a pytree of which rows are taken as of a tensor."""

    def __init__(self, parts: dict[str, Tensor]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    def __getitem__(self, rows: Any) -> "NamedInputs":
        return map_tensors(lambda part: part[rows], self)

    @property
    def device(self) -> torch.device:
        """The device of the first of them; all are on one once `batches` has moved them."""
        return next(iter(self.parts.values())).device

    def is_floating_point(self) -> bool:
        """Whether all of them are floating, so that they can be moved a little."""
        return all(part.is_floating_point() for part in self.parts.values())

    def split(self, size: int) -> Iterator["NamedInputs"]:
        """Parts of so many rows, in order."""
        return (self[start : start + size] for start in range(0, len(self), size))

    def to(self, device: torch.device) -> "NamedInputs":
        """All of them on a device."""
        return map_tensors(lambda part: part.to(device), self)


pytree.register_pytree_node(
    NamedInputs,
    lambda x: (list(x.parts.values()), list(x.parts)),
    lambda parts, names: NamedInputs(dict(zip(names, parts, strict=True))),
)


def map_tensors(function: Callable[[Tensor], Tensor], x: Inputs) -> Inputs:
    """Inputs of any kind (a tensor, several, or by name) with a function applied to each tensor."""
    mapped = function(x) if isinstance(x, Tensor) else pytree.tree_map_only(Tensor, function, x)
    return cast(Inputs, mapped)


def map_floating(function: Callable[[Tensor], Tensor], x: Any) -> Any:
    """Inputs of any kind with a function applied to each floating tensor."""
    return map_tensors(lambda part: function(part) if part.is_floating_point() else part, x)


def tensors_of(x: Any) -> list[Tensor]:
    """The tensors of inputs of any kind."""
    return pytree.tree_leaves(x)


def join_rows(batches: Sequence[Any], fill: int | None = None) -> Any:
    """The rows of several batches of one kind, in order. Tokens beside an attention_mask, which
    leaves out what is added, are padded by `fill` to one length; raises DataError for other shapes.
    """
    if isinstance(batches[0], NamedInputs):
        parts = {name: [x.parts[name] for x in batches] for name in batches[0].parts}
        masks = parts.get("attention_mask", ())
        # Tokens that are padded on the left would be moved to other places by more on the right.
        if not masks or not all(mask.ndim == 2 and mask[:, 0].all() for mask in masks):
            fill = None
        shapes = [mask.shape for mask in masks]
        alike = {name for name, own in parts.items() if [part.shape for part in own] == shapes}
        fills = {name: fill and fill * (name == "input_ids") for name in alike}
        return NamedInputs({name: _join(own, fills.get(name)) for name, own in parts.items()})
    return _join(batches, None)


def _join(parts: Sequence[Tensor], fill: int | None) -> Tensor:
    """The rows of tensors, padded by `fill` to the longest unless it is None."""
    if fill is not None:
        rows = [row for part in parts for row in part]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=fill)
    require_one_shape("Batches hold inputs", {tuple(part.shape[1:]) for part in parts})
    return torch.cat(list(parts))


def require_one_shape(holders: str, shapes: Collection[tuple[int, ...]]) -> None:
    """Raise DataError where inputs have several shapes."""
    if len(shapes) > 1:
        first, second, *_ = sorted(shapes)
        raise DataError(
            f"{holders} of different shapes, {first} and {second}. Pad or crop them to one shape,"
            ' tokens by padding="max_length" of their tokenizer or a collate_fn.'
        )


def arguments_of(
    model: nn.Module, x: Any, dtype: torch.dtype | None = None
) -> tuple[tuple[Any, ...], dict[str, Tensor]]:
    """The arguments, by place and by name, of a pass on inputs; floating ones by name in a type."""
    if not isinstance(x, NamedInputs):
        return (x,), {}
    own = (p.dtype for p in model.parameters() if p.is_floating_point())
    dtype = dtype or next(own, torch.get_default_dtype())
    parts = map_floating(lambda part: part.to(dtype), x).parts
    style = _calling_style(model, tuple(parts))
    if style == "names":
        return (), parts
    return (parts if style == "dict" else next(iter(parts.values())),), {}


def simplify(model: nn.Module, x: Any) -> Any:
    """A tensor in place of a single input by name that the net takes by its place."""
    by_name = isinstance(x, NamedInputs) and len(x.parts) == 1
    if by_name and _calling_style(model, tuple(x.parts)) == "position":
        return next(iter(x.parts.values()))
    return x


class SideBySide(nn.Module):
    """A net whose floating inputs by name come side by side in one tensor, which can be moved."""

    def __init__(self, net: nn.Module, x: NamedInputs) -> None:
        super().__init__()
        self.net = net
        self._shapes = {name: part.shape[1:] for name, part in x.parts.items()}

    def forward(self, x: Tensor) -> Any:
        """What the net returns for x (n, d), the numbers of all inputs of each sample."""
        parts = x.split([math.prod(shape) for shape in self._shapes.values()], 1)
        shaped = zip(self._shapes.items(), parts, strict=True)
        named = NamedInputs({name: part.reshape(-1, *shape) for (name, shape), part in shaped})
        places, names = arguments_of(self.net, named, x.dtype)
        return read_outputs(self.net, lambda: self.net(*places, **names))


def as_one_tensor(model: nn.Module, x: Any) -> tuple[nn.Module, Tensor]:
    """A net and inputs as one tensor, in which they can be moved. Raises DataError."""
    if not isinstance(x, NamedInputs):
        return model, x
    whole = [name for name, part in x.parts.items() if not part.is_floating_point()]
    if whole:
        raise DataError(
            f"The inputs {whole[0]!r} are whole numbers, such as tokens{UNMOVED} here give what is"
            ' looked up for them, such as {"inputs_embeds": ...}, in place of them; a mask beside'
            " these is held by a wrapper of the net, for the samples that have it."
        )
    return SideBySide(model, x), torch.cat([part.flatten(1) for part in x.parts.values()], 1)


def _calling_style(model: nn.Module, names: tuple[str, ...]) -> str:
    """How forward takes the inputs: by "names", as one "dict", or one alone by "position"."""
    parameters = inspect.signature(model.forward).parameters
    kinds = [parameter.kind for parameter in parameters.values()]
    unknown = [name for name in names if name not in parameters]
    takes_any = inspect.Parameter.VAR_KEYWORD in kinds
    if names == tuple(parameters)[:1] or (len(names) == 1 and unknown and not takes_any):
        return "position"
    if takes_any or not unknown:
        return "names"
    required = [p for p in parameters.values() if p.default is p.empty]
    if len(unknown) == len(names) and len(required) == 1:
        return "dict"
    raise ModelError(
        f"The model's forward takes {', '.join(parameters)}, and has no place for"
        f" {', '.join(unknown)}. Leave {'it' if len(unknown) == 1 else 'them'} out of the data."
    )

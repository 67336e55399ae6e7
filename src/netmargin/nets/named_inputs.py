"""Inputs by name, such as `input_ids` and `attention_mask`, packed into one tensor.

Everything behind the doors handles one tensor of inputs per batch: it slices, joins, shuffles and
differentiates it. So the inputs of a dict are stacked at the door, and a view of the net, which
shares every parameter with it, takes them apart again.
"""

import copy
import inspect
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..core.records import short_repr
from ..errors import DataError, ModelError

LABELS = ("labels", "label", "y", "target", "targets")
"""Keys of a dict that hold labels, in the order in which they are looked for."""


@dataclass(frozen=True)
class Fields:
    """The inputs of a net that takes them by name.

    Attributes
    ----------
    names : tuple of str
        Their keys, in the order in which they are stacked.
    dtypes : tuple of torch.dtype
        The types that the net is given them in.
    """

    names: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]

    __repr__ = short_repr

    def unpack(self, x: Tensor, floating: torch.dtype) -> dict[str, Tensor]:
        """The inputs by name; floating ones in the given type, that of the net.

        Raises DataError for whole numbers that were turned into fractions on their way.
        """
        parts = (x,) if len(self.names) == 1 else x.unbind(1)
        found = {}
        for name, dtype, part in zip(self.names, self.dtypes, parts, strict=True):
            if x.is_floating_point() and not dtype.is_floating_point:
                raise DataError(
                    f"The inputs {name!r} are whole numbers, such as tokens: they cannot be moved"
                    " a little, nor be differentiated in. Give what is looked up for them, such as"
                    ' {"inputs_embeds": ...}, in place of them.'
                )
            found[name] = part.to(floating if dtype.is_floating_point else dtype)
        return found


def split_labels(batch: Mapping, where: str) -> tuple[dict[str, Any], Any]:
    """The inputs of a dict by name, and its labels. Raises DataError where there is no such key."""
    label = next((key for key in LABELS if key in batch), None)
    if label is None:
        keys = ", ".join(repr(str(key)) for key in list(batch)[:6])
        raise DataError(
            f"{where} is a {type(batch).__name__} with the keys {keys}, none of which is for"
            f" labels. Call that one {LABELS[0]!r}, or give the pair (inputs, y) with the dict"
            " first."
        )
    return {key: value for key, value in batch.items() if key != label}, batch[label]


def describe_fields(inputs: Mapping[str, Tensor], where: str) -> Fields:
    """The names and types of inputs. Raises DataError where there are none, or not of one shape."""
    if not inputs:
        raise DataError(f"{where} holds labels, but no inputs.")
    shapes = {str(name): tuple(part.shape) for name, part in inputs.items()}
    if len(set(shapes.values())) > 1:
        raise DataError(
            f"{where}: inputs of a dict must be of one shape; got"
            f" {', '.join(f'{name} {shape}' for name, shape in shapes.items())}. Put them side by"
            " side into one tensor, and let a wrapper take it apart; to leave out a mask would be"
            " to run the net without it. Here inputs_embeds (n, T, d) and attention_mask (n, T):\n"
            "  class OneInput(torch.nn.Module):\n"
            "      def __init__(self, net): super().__init__(); self.net = net\n"
            "      def forward(self, x):\n"
            "          embeds, mask = x[..., :-1], x[..., -1].long()\n"
            "          return self.net(inputs_embeds=embeds, attention_mask=mask)\n"
            "  X = torch.cat([inputs_embeds, attention_mask[..., None]], -1)\n"
            "What looks for near inputs (robustness, input_margins) would move the mask as well:"
            " there let the wrapper hold one mask, and call it for the samples that have it."
        )
    return Fields(tuple(shapes), tuple(part.dtype for part in inputs.values()))


def pack(inputs: Mapping[str, Tensor], fields: Fields, where: str) -> Tensor:
    """The inputs stacked, shape (n, k, ...) for k of them; one alone as it is.

    They are floating where all of them are, and whole numbers otherwise, so that tokens stay exact
    in a net of half precision. Raises DataError for another choice of names than that of `fields`,
    and for fractions beside whole numbers.
    """
    if tuple(map(str, inputs)) != fields.names:
        raise DataError(
            f"{where} has the inputs {', '.join(map(str, inputs))}, earlier ones have"
            f" {', '.join(fields.names)}. Give every batch the same."
        )
    describe_fields(inputs, where)  # of one shape
    parts = list(inputs.values())
    if len(parts) == 1:
        return parts[0]
    if not all(part.is_floating_point() for part in parts):
        for name, part in inputs.items():
            if part.is_floating_point() and not bool((part == part.round()).all()):
                raise DataError(
                    f"{where}: {name!r} holds fractions, and other inputs whole numbers. Wrap the"
                    " net in a module that takes one of them and knows the others."
                )
        parts = [part.long() for part in parts]
    return torch.stack(parts, 1)


def view_with_fields(model: nn.Module, fields: Fields | None) -> nn.Module:
    """A view of a net that takes one packed tensor, with the parameters and modules of the net.

    Without fields, or with its first input only, it is the net itself. Raises ModelError if its
    forward takes no inputs of these names.
    """
    if fields is None:
        return model
    style = _calling_style(model, fields.names)
    if style == "position":
        return model
    view = copy.copy(model)  # shallow: parameters, buffers and modules are shared
    # The hooks are the view's own: the caller's net stays as it is.
    view._forward_pre_hooks = OrderedDict(view._forward_pre_hooks)
    view._forward_pre_hooks_with_kwargs = OrderedDict(view._forward_pre_hooks_with_kwargs)
    # Functions by name, which copies and processes can take along.
    view.register_forward_pre_hook(
        partial(_call_by_name, fields=fields, style=style), with_kwargs=True, prepend=True
    )
    return view


def _call_by_name(module: nn.Module, args: tuple, _: dict, *, fields: Fields, style: str):
    """The arguments of a forward pass on a packed tensor: a hook before it."""
    (x,) = args
    floating = next(
        (p.dtype for p in module.parameters() if p.is_floating_point()), torch.get_default_dtype()
    )
    inputs = fields.unpack(x, floating)
    return ((), inputs) if style == "names" else ((inputs,), {})


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

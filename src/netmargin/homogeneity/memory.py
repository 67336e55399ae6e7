"""What was found about a model, for as long as nothing changed that it could depend on.

What is remembered are degrees and conditions, never numbers: how well the exponents hold is
measured anew at the present weights, so that memory alone never answers.
"""

import hashlib
import sys
from collections.abc import Hashable
from functools import partial
from types import BuiltinFunctionType, FunctionType
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from .derivation import Derivation
from .modes import iterate_tensors
from .registry import RULES

_MOST = 4
"""Findings that are kept for a model: in training and evaluation mode, with statistics that follow
or are fixed.
"""
_found: WeakKeyDictionary[nn.Module, dict[Hashable, Derivation]] = WeakKeyDictionary()


def recall(model: nn.Module, key: Hashable) -> Derivation | None:
    """What `remember` was given for a model and a key; None where nothing, or the key is None."""
    return None if key is None else _found.get(model, {}).get(key)


def remember(model: nn.Module, key: Hashable, found: Derivation) -> None:
    """Keep a derivation for as long as the model lives."""
    if key is None:
        return
    kept = _found.setdefault(model, {})
    kept[key] = found
    while len(kept) > _MOST:
        del kept[next(iter(kept))]


def describe_structure(model: nn.Module, x, *settings: Hashable) -> Hashable:
    """Describe all that degrees and conditions can depend on, weights excepted.

    That is every module with its type, mode and plain attributes, the shapes of the parameters and
    which are shared, the buffers, the shapes of the samples, and the rules. Returns None where a
    module holds anything else (hooks, tensors, functions of its own, other objects), so that
    nothing is remembered of it.
    """
    try:
        modules = tuple(_describe_module(name, module) for name, module in model.named_modules())
    except _UnknownError:
        return None
    first: dict[int, str] = {}
    parameters = tuple(
        (name, p.shape, p.dtype, p.device, first.setdefault(p.data_ptr(), name))
        for name, p in model.named_parameters(remove_duplicate=False)
    )
    inputs = tuple((part.shape, part.dtype, part.device.type) for part in iterate_tensors(x))
    autocast = tuple(torch.is_autocast_enabled(kind) for *_, kind in inputs)
    surroundings = (torch.get_default_dtype(), autocast, *RULES.values())
    return modules, parameters, inputs, surroundings, settings


class _UnknownError(Exception):
    """A module holds something of which it is not known what depends on it."""


def _describe_module(name: str, module: nn.Module) -> Hashable:
    forward = getattr(type(module).forward, "__code__", None)
    attributes = tuple(
        (key, _describe_value(value))
        for key, value in vars(module).items()
        if key not in ("_parameters", "_buffers", "_modules")
    )
    # Batch norms are followed by a rule, to which it does not matter what they have stored.
    buffers = tuple(
        (key, None if isinstance(module, _NormBase) else _hash(buffer))
        for key, buffer in module._buffers.items()
        if buffer is not None
    )
    return name, type(module), forward, attributes, buffers


def _describe_value(value: object) -> Hashable:
    if isinstance(value, (bool, int, float, str, type, torch.dtype, torch.device, type(None))):
        return type(value), value
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(_describe_value, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(map(_describe_value, value))
    if isinstance(value, dict):
        return type(value), tuple((key, _describe_value(held)) for key, held in value.items())
    if isinstance(value, partial):
        return partial, *map(_describe_value, (value.func, value.args, value.keywords))
    # A function of a module can be named; one made on the fly may hold anything, the net included.
    if isinstance(value, (FunctionType, BuiltinFunctionType)):
        home = sys.modules.get(value.__module__ or "")
        if getattr(home, value.__qualname__, None) is value:
            return value
    raise _UnknownError


def _hash(buffer: Tensor) -> Hashable:
    numbers = buffer.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return buffer.shape, buffer.dtype, hashlib.blake2b(numbers.tobytes()).digest()

"""A search through a caller's data set for what changes from pass to pass: random generators,
iterators, counters.
"""

import io
import random
import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from ..core.records import short_repr

GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
_MAX_OBJECTS, _MAX_ITEMS, _MAX_DEPTH = 10_000, 1000, 10
"""How far the search goes, which bounds its time. Longer sequences hold samples, and what lies
deeper belongs to libraries.
"""
_MAX_BYTES = 10_000_000
"""Size above which arrays are not watched: they hold samples, which do not change, and hashing them
takes time.
"""
_LIBRARIES = ("torch", "numpy", "builtins", "collections", "functools", "abc", "typing")
"""Packages whose own classes draw from no generator of their module."""


@dataclass
class HeldState:
    """The state in an object that may change, by where it was found: "data.sampler.generator".

    generators : random generators, whose state can be saved.
    stateful : objects with state_dict() and load_state_dict().
    iterators : places of iterators, whose state cannot be saved.
    fingerprints : of plain values and small arrays; one that changes is hidden state.
    """

    generators: dict[str, Any] = field(default_factory=dict)
    stateful: dict[str, Any] = field(default_factory=dict)
    iterators: list[str] = field(default_factory=list)
    fingerprints: dict[str, Any] = field(default_factory=dict)

    __repr__ = short_repr


def look_through(root: Any, name: str) -> HeldState:
    """Search `root` and everything within reach of it for what may change from pass to pass.

    Looks at attributes, items, closures, and globals that methods use; breadth first, so that what
    is near is found before the bounds of the search are reached.
    """
    # Objects by id, not only ids: a temporary one must not lend its id to another.
    found, seen = HeldState(), dict[int, Any]()
    waiting = deque([(root, name, True, 0)])
    while waiting and len(seen) < _MAX_OBJECTS:
        thing, where, watched, depth = waiting.popleft()
        if watched and (value := _take_fingerprint(thing)) is not None:
            found.fingerprints[where] = value
        if id(thing) in seen or depth > _MAX_DEPTH:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, GENERATORS):
            if isinstance(thing, random.SystemRandom):  # draws from the machine
                found.iterators.append(where)
            else:
                found.generators[where] = thing
        elif isinstance(thing, Iterator) and not isinstance(thing, io.IOBase):
            found.iterators.append(where)
        else:
            if _is_stateful(thing):
                found.stateful[where], watched = thing, False  # it says itself what is to be saved
            waiting += [
                (child, where + key, watched and not _is_of_torch(thing), depth + 1)
                for key, child in _list_children(thing)
            ]
    return found


def _is_stateful(thing: Any) -> bool:
    """Whether it can save and load its own state; modules are the model's affair."""
    methods = (getattr(type(thing), name, None) for name in ("state_dict", "load_state_dict"))
    return not isinstance(thing, nn.Module) and all(map(callable, methods))


def _is_of_torch(thing: Any) -> bool:
    """Whether it is one of torch's own loaders or samplers, which need not be watched.

    What they change is drawn from generators, or forgotten after each pass.
    """
    return type(thing).__module__.startswith("torch.utils.data")


def _list_children(thing: Any) -> list[tuple[str, Any]]:
    """The objects to look at next, with the text by which each is reached."""
    if isinstance(thing, (type, types.ModuleType, Tensor, np.ndarray, str, bytes)):
        return []
    if isinstance(thing, (list, tuple, deque, set, frozenset)):
        return (
            [(f"[{index}]", item) for index, item in enumerate(thing)]
            if len(thing) <= _MAX_ITEMS
            else []
        )
    if isinstance(thing, dict):
        return (
            [(f"[{key!r}]", item) for key, item in thing.items()]
            if len(thing) <= _MAX_ITEMS
            else []
        )
    if isinstance(thing, types.FunctionType):
        return [(f".{name}", value) for name, value in _list_reached(thing)]
    if isinstance(thing, types.MethodType):
        return [(".self", thing.__self__), ("", thing.__func__)]
    if isinstance(thing, partial):
        return [(".func", thing.func), (".args", thing.args), (".keywords", thing.keywords)]
    children = [(f".{key}", value) for key, value in getattr(thing, "__dict__", {}).items()]
    if isinstance(thing, DataLoader):
        # Persistent workers keep their iterator there; `Randomness` names them itself.
        children = [(key, value) for key, value in children if key != "._iterator"]
    for kind in type(thing).__mro__:
        if kind.__module__.split(".")[0] in _LIBRARIES:
            continue
        slots = kind.__dict__.get("__slots__", ())
        slots = (slots,) if isinstance(slots, str) else slots
        children += [(f".{name}", getattr(thing, name)) for name in slots if hasattr(thing, name)]
        for name, value in vars(kind).items():
            if isinstance(value, types.FunctionType):
                children += [
                    (f".{name}.{other}", held)
                    for other, held in _list_reached(value)
                    if isinstance(held, GENERATORS)
                ]
            elif isinstance(value, GENERATORS):
                children.append((f".{name}", value))
    return children


def _list_reached(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The objects that a function closes over, and the random generators among the globals that its
    code names.
    """
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    reached = [(name, cell.cell_contents) for name, cell in cells if _is_filled(cell)]
    named, codes = list[str](), [function.__code__]
    while codes:
        code = codes.pop()
        named += code.co_names
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    space = function.__globals__
    return reached + [
        (name, space[name]) for name in named if isinstance(space.get(name), GENERATORS)
    ]


def _is_filled(cell: Any) -> bool:
    """Whether a closure's cell has a value; one of a recursive function may not yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _take_fingerprint(thing: Any) -> Any:
    """A value that differs when `thing` does; None for what is not watched: samples, and dicts,
    which are often caches.
    """
    if isinstance(thing, (bool, int, float, str, bytes)):
        return repr(thing)
    if isinstance(thing, Tensor):
        small = thing.layout is torch.strided and thing.numel() * thing.element_size() <= _MAX_BYTES
        return (
            hash(bytes(thing.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))
            if small
            else None
        )
    if isinstance(thing, np.ndarray):
        return (
            hash(thing.tobytes()) if thing.nbytes <= _MAX_BYTES and thing.dtype != object else None
        )
    if isinstance(thing, (list, tuple, deque)):
        try:
            return hash(tuple(thing))
        except TypeError:  # of unhashable items
            return None
    return None

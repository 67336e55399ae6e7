"""What a training run draws from, saved with it and restored on resume."""

import io
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from torch import nn
from torch.utils.data import DataLoader

from ..core.caller import warn_caller
from ..core.generators import (
    GENERATORS,
    read_global_states,
    read_state,
    set_global_states,
    set_state,
    undisturbed,
)
from ..errors import CheckpointError
from ..nets.arrays import Arrays

_PARTS = ("dataset", "sampler", "batch_sampler", "collate_fn")
"""Attributes of a loader, a sampler and a `Subset` that are looked at themselves."""


class Randomness:
    """The global generators, the attributes of the data's parts and of the model's modules that are
    generators, and those of the data that have `state_dict`; named as "data.sampler.generator".
    """

    def __init__(self, data: Any, model: nn.Module) -> None:
        self._data = data
        self._parts = {} if isinstance(data, Arrays) else _list_parts(data, "data")
        held = _list_attributes(self._parts)
        modules = {f"model.{name}".rstrip("."): module for name, module in model.named_modules()}
        self._generators = {
            name: value
            for name, value in (held | _list_attributes(modules)).items()
            if isinstance(value, GENERATORS) and not isinstance(value, random.SystemRandom)
        }
        self._stateful = {
            name: value for name, value in (self._parts | held).items() if _is_stateful(value)
        }
        self._before = self._read_plain_values()

    def undisturbed(self) -> AbstractContextManager[None]:
        """Put all generators back after a block; objects with state may be in mid-pass."""
        return undisturbed(self._generators.values())

    def state(self) -> dict[str, Any]:
        """The state of everything that is covered, as plain values and tensors."""
        return read_global_states() | {
            "generators": {name: read_state(g) for name, g in self._generators.items()},
            "stateful": {name: thing.state_dict() for name, thing in self._stateful.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state. Raises CheckpointError where other generators are there."""
        # All checks before the first change: a refused resume leaves every generator as it was.
        for kind, own in (("generators", self._generators), ("stateful", self._stateful)):
            if differing := sorted(set(state[kind]) ^ set(own)):
                raise CheckpointError(
                    f"Only one of the saved run and this one draws from {differing[0]}. "
                    "Build the data and the model as they were, or start in a new folder."
                )
        set_global_states(state)
        for name, generator in self._generators.items():
            set_state(generator, state["generators"][name])
        for name, thing in self._stateful.items():
            thing.load_state_dict(state["stateful"][name])

    def warn_of_unrestored(self) -> None:
        """Warn where a resumed run will differ, as far as the attributes show after a pass."""
        told = [
            f"{name} is a {type(value).__name__}, whose state cannot be saved"
            for name, value in _list_attributes(self._parts).items()
            if isinstance(value, (Iterator, random.SystemRandom))
            and not isinstance(value, io.IOBase)
        ]
        after = self._read_plain_values()
        told += [
            f"{name} changes while they are read"
            for name, old in self._before.items()
            if after.get(name) != old
        ]
        if isinstance(self._data, DataLoader) and self._data.num_workers > 0:
            if self._data.persistent_workers:
                told.append("persistent workers keep random states of their own")
            if not getattr(self._data, "in_order", True):
                told.append("in_order=False takes batches as workers finish them")
        if told:
            more = f" (and {len(told) - 2} more)" if len(told) > 2 else ""
            warn_caller(
                "A killed run will go on from its checkpoint, but not bit for bit:"
                f" {'; '.join(told[:2])}{more}. Draw from the global generators or from one that is"
                " an attribute of the data set, or give it state_dict() and load_state_dict()."
            )

    def _read_plain_values(self) -> dict[str, Any]:
        """The numbers and words among the attributes of the data, where nothing saves them."""
        # What torch's own loaders and samplers change is drawn from generators, or forgotten.
        unsaved = {
            name: part
            for name, part in self._parts.items()
            if not _is_stateful(part) and not type(part).__module__.startswith("torch.utils.data")
        }
        return {
            name: value
            for name, value in _list_attributes(unsaved).items()
            if isinstance(value, (bool, int, float, str))
        }


def _list_parts(thing: Any, where: str) -> dict[str, Any]:
    """A loader or another iterable, its sampler, data set and collate function, and theirs."""
    found, waiting = dict[str, Any](), [(where, thing)]
    for name, part in waiting:
        if not any(part is other for other in found.values()):
            found[name] = part
            own = getattr(part, "__dict__", {})
            waiting += [(f"{name}.{key}", own[key]) for key in _PARTS if key in own]
    return found


def _list_attributes(parts: dict[str, Any]) -> dict[str, Any]:
    """The attributes of some objects by name; not the iterator that a loader's workers leave."""
    return {
        f"{where}.{key}": value
        for where, part in parts.items()
        for key, value in getattr(part, "__dict__", {}).items()
        if not (key == "_iterator" and isinstance(part, DataLoader))
    }


def _is_stateful(thing: Any) -> bool:
    """Whether it can save and load its own state; modules are the model's affair."""
    methods = (getattr(type(thing), name, None) for name in ("state_dict", "load_state_dict"))
    return not isinstance(thing, nn.Module) and all(map(callable, methods))

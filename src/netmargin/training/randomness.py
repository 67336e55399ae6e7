"""The random generators of a training run: saved with it, restored on resume, and given back to the
caller afterwards.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from ..errors import CheckpointError
from ..nets.arrays import Arrays
from .held_state import GENERATORS, HeldState, look_through


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Start the global generators of torch, numpy and Python from `seed`; afterwards they are as
    before.
    """
    of_numpy, of_python = np.random.get_state(), random.getstate()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # numpy's global generator takes 32 bits
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(of_numpy)
            random.setstate(of_python)


class Randomness:
    """All generators that a run draws from: the global ones, and those that the data and the
    modules of the model hold, named by where they are found.
    """

    def __init__(self, data: Any, model: nn.Module):
        self._data = data
        self._held = self._look()
        self._generators = dict(self._held.generators)
        for name, module in model.named_modules():
            own = {
                key: value for key, value in vars(module).items() if isinstance(value, GENERATORS)
            }
            self._generators |= {
                f"model.{name}.{key}".replace("..", "."): value for key, value in own.items()
            }

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Put all generators back after a block that reads the data and calls the model.

        Objects with a state of their own are left alone: one may be in the middle of its pass.
        """
        saved = {name: _read_state(generator) for name, generator in self._generators.items()}
        of_numpy, of_python = np.random.get_state(), random.getstate()
        try:
            with torch.random.fork_rng(devices=[]):  # loaders draw on the CPU, nets not at all
                yield
        finally:
            np.random.set_state(of_numpy)
            random.setstate(of_python)
            for name, generator in self._generators.items():
                _set_state(generator, saved[name])

    def state(self) -> dict:
        """The state of all generators, as plain numbers and tensors."""
        # Only where a GPU is in use: asking would begin to use it, which takes seconds and memory.
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return {
            "torch": torch.get_rng_state(),
            "cuda": cuda,
            "numpy": _replace_arrays(np.random.get_state(legacy=False)),
            "python": random.getstate(),
            "generators": {
                name: _read_state(generator) for name, generator in self._generators.items()
            },
            "stateful": {name: thing.state_dict() for name, thing in self._held.stateful.items()},
        }

    def restore(self, state: dict) -> None:
        """Go on from a saved state.

        Raises CheckpointError where the data hold other generators than those of the saved run.
        """
        # All checks before the first change: a refused resume leaves every generator as it was.
        for kind, own in (("generators", self._generators), ("stateful", self._held.stateful)):
            if differing := sorted(set(state[kind]) ^ set(own)):
                raise CheckpointError(
                    f"Only one of the saved run and this one draws from {differing[0]}. "
                    "Build the data and the model as they were, or start in a new folder."
                )
        torch.set_rng_state(state["torch"])
        if state["cuda"]:
            torch.cuda.set_rng_state_all(state["cuda"])
        np.random.set_state(_restore_arrays(state["numpy"]))
        random.setstate(state["python"])
        for name, generator in self._generators.items():
            _set_state(generator, state["generators"][name])
        for name, thing in self._held.stateful.items():
            thing.load_state_dict(state["stateful"][name])

    def not_restored(self) -> list[str]:
        """List why a resumed run cannot be promised to be the same, in clauses.

        As far as one pass over the data since the beginning shows.
        """
        told = [
            f"{name} is an iterator, which goes on from wherever it is"
            for name in self._held.iterators
        ]
        after = self._look().fingerprints
        told += [
            f"{name} changes while they are read"
            for name, old in self._held.fingerprints.items()
            if after.get(name) != old
        ]
        if isinstance(self._data, DataLoader) and self._data.num_workers > 0:
            if self._data.persistent_workers:
                told.append(
                    "persistent workers keep random states of their own (persistent_workers=False"
                    " has none)"
                )
            if not getattr(self._data, "in_order", True):
                told.append("in_order=False takes batches as workers finish them")
        return told

    def _look(self) -> HeldState:
        """Search the data; arrays, which training shuffles itself, hold nothing."""
        return HeldState() if isinstance(self._data, Arrays) else look_through(self._data, "data")


def _read_state(generator: Any) -> Any:
    """The state of one generator, without arrays."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return _replace_arrays(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return _replace_arrays(generator.get_state(legacy=False))
    return generator.getstate()


def _set_state(generator: Any, state: Any) -> None:
    """Put one generator into a state that `_read_state` gave."""
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = _restore_arrays(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(_restore_arrays(state))
    else:
        generator.setstate(state)


def _replace_arrays(state: Any) -> Any:
    """Replace the arrays of numpy's state dicts by lists, as a checkpoint holds no arrays."""
    if isinstance(state, dict):
        return {key: _replace_arrays(value) for key, value in state.items()}
    return (
        {"dtype": str(state.dtype), "values": state.tolist()}
        if isinstance(state, np.ndarray)
        else state
    )


def _restore_arrays(state: Any) -> Any:
    """Make arrays again of the lists that `_replace_arrays` put in their place."""
    if not isinstance(state, dict):
        return state
    if set(state) == {"dtype", "values"}:
        return np.array(state["values"], dtype=state["dtype"])
    return {key: _restore_arrays(value) for key, value in state.items()}

"""Random generators of torch, numpy and Python: their states, and blocks that leave them alone."""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)


@contextmanager
def undisturbed(own: Iterable[Any] = (), *, on_gpus: bool = False) -> Iterator[None]:
    """Put the global generators, and some of one's own, back after a block."""
    saved = [(generator, read_state(generator)) for generator in own]
    of_numpy, of_python = np.random.get_state(), random.getstate()
    try:
        with torch.random.fork_rng(None if on_gpus else []):
            yield
    finally:
        np.random.set_state(of_numpy)
        random.setstate(of_python)
        for generator, state in saved:
            set_state(generator, state)


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Start the global generators from `seed`; afterwards they are as before."""
    with undisturbed(on_gpus=True):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # numpy's global generator takes 32 bits
        random.seed(seed)
        yield


def read_global_states() -> dict:
    """The states of the global generators, without arrays."""
    # Only where a GPU is in use: asking would begin to use it, which takes seconds and memory.
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {
        "torch": torch.get_rng_state(),
        "cuda": cuda,
        "numpy": _without_arrays(np.random.get_state(legacy=False)),
        "python": random.getstate(),
    }


def set_global_states(states: dict) -> None:
    """Put the global generators into states that `read_global_states` gave."""
    torch.set_rng_state(states["torch"])
    if states["cuda"]:
        torch.cuda.set_rng_state_all(states["cuda"])
    np.random.set_state(states["numpy"])
    random.setstate(states["python"])


def read_state(generator: Any) -> Any:
    """The state of one generator, without arrays."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return _without_arrays(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return _without_arrays(generator.get_state(legacy=False))
    return generator.getstate()


def set_state(generator: Any, state: Any) -> None:
    """Put one generator into a state that `read_state` gave."""
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)


def _without_arrays(state: Any) -> Any:
    """Lists in place of arrays, which checkpoints do not hold; numpy takes them as well."""
    if isinstance(state, dict):
        return {key: _without_arrays(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state

"""Random generators of torch, numpy and Python: their states, and blocks that leave them alone."""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
_GLOBAL = {
    "torch": torch.default_generator,
    "numpy": np.random.mtrand._rand,  # as scikit-learn reads it
    "python": random._inst,
}


@contextmanager
def undisturbed(own: Iterable[Any] = (), *, on_gpus: bool = False) -> Iterator[None]:
    """Put the global generators, and some of one's own, back after a block."""
    saved = [(generator, read_state(generator)) for generator in (*_GLOBAL.values(), *own)]
    try:
        with torch.random.fork_rng(None if on_gpus else []):
            yield
    finally:
        for generator, state in saved:
            set_state(generator, state)


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Start the global generators from `seed`; afterwards they are as before."""
    with undisturbed(on_gpus=True):
        seed_torch(seed)
        np.random.seed(seed % 2**32)  # numpy's global generator takes 32 bits
        random.seed(seed)
        yield


def seed_torch(seed: int) -> None:
    """Seed torch on the devices in use; others would cost a millisecond."""
    gpus = torch.cuda.is_initialized() or torch.xpu.is_initialized()
    everywhere = gpus or torch.backends.mps.is_available()
    (torch.manual_seed if everywhere else torch.default_generator.manual_seed)(seed)


def read_global_states() -> dict[str, Any]:
    """The states of the global generators, without arrays."""
    # Only where a GPU is in use: asking would begin to use it, which takes seconds and memory.
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {"cuda": cuda} | {name: read_state(generator) for name, generator in _GLOBAL.items()}


def set_global_states(states: dict[str, Any]) -> None:
    """Put the global generators into states that `read_global_states` gave."""
    if states["cuda"]:
        torch.cuda.set_rng_state_all(states["cuda"])
    for name, generator in _GLOBAL.items():
        set_state(generator, states[name])


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
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


def _without_arrays(state: Any) -> Any:
    """Lists in place of arrays, which checkpoints do not hold; numpy takes them as well."""
    if isinstance(state, dict):
        return {key: _without_arrays(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state

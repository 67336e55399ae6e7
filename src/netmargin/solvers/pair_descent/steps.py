"""The loop of steps: compiled where numba is installed (the extra `fast`), by numpy where not."""

import functools
import importlib.util
from collections.abc import Callable


@functools.cache
def load_steps() -> tuple[Callable, Callable, Callable]:
    """The functions `take_steps`, `measure_gap` and `copy_part`; numba is loaded by the first who
    descends.
    """
    name = "numpy_steps" if importlib.util.find_spec("numba") is None else "compiled_steps"
    steps = importlib.import_module(f".{name}", __package__)
    return steps.take_steps, steps.measure_gap, steps.copy_part

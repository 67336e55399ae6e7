"""The loop of steps: compiled where numba is installed (the extra `fast`), by numpy where not."""

import functools
from collections.abc import Callable


@functools.cache
def load_steps() -> tuple[Callable, Callable]:
    """The functions `take_steps` and `measure_gap`; numba is loaded by the first who descends."""
    try:
        from .compiled_steps import measure_gap, take_steps
    except ImportError:
        from .numpy_steps import measure_gap, take_steps
    return take_steps, measure_gap

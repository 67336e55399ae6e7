"""Step sizes of a run, as an array of its times."""

import operator
from collections.abc import Callable

import numpy as np


def step_sizes(steps: int, rate: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The step sizes that `rate` gives for t = 0 .. steps - 1, float64 of shape (steps,).

    Raises ValueError where one is not positive and finite, or the shape is another.
    """
    steps = operator.index(steps)
    if not callable(rate):
        raise ValueError(
            "rate must be a function of the array of times, such as lambda t: 0.5 / np.sqrt(t +"
            f" 1); got {rate!r}"
        )
    if steps < 1:
        raise ValueError(f"steps must be at least 1; got {steps}")
    found = np.asarray(rate(np.arange(steps)), dtype=np.float64)
    if found.shape not in ((), (steps,)) or not (np.isfinite(found) & (found > 0)).all():
        raise ValueError(
            "rate must give positive, finite step sizes for all t = 0 .. steps - 1, one number or"
            " an array of them"
        )
    return np.broadcast_to(found, steps)

"""What the arguments of training mean: how many runs there are, their neurons and steps."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from ..core.arguments import check_count
from ..core.matrices import SolverData, binary_data
from ..errors import ArgumentError, DataError


def count_runs(*options: Any) -> int:
    """The number R of runs that lists of options ask for. Raises ArgumentError."""
    lengths = {len(value) for value in options if _is_list(value) and len(value) != 1}
    if len(lengths) > 1 or 0 in lengths:
        raise ArgumentError(
            "width, rate and seeds must have one entry, or one for each run; got lengths"
            f" {sorted(lengths)}"
        )
    return max(lengths, default=1)


def one_per_run(value: Any, count: int) -> list[Any]:
    """A list with one entry per run: those given, or the single one repeated."""
    entries = list(value) if _is_list(value) else [value]
    return entries * count if len(entries) == 1 else entries


Rate = Callable[[np.ndarray], np.ndarray] | float
"""A step size, or a function that gives them for an array of times."""


def step_sizes(steps: int, rate: Rate) -> np.ndarray:
    """The step sizes, positive and finite, that `rate` gives for t = 0 .. steps - 1, (steps,)."""
    steps = check_count("steps", steps)
    given: Any = rate
    if not callable(given) and not isinstance(given, Real):
        raise ArgumentError(f"rate must be a number, or a function of the times; got {rate!r}")
    found = np.asarray(rate(np.arange(steps)) if callable(rate) else rate, dtype=np.float64)
    if found.shape not in ((), (steps,)) or not (np.isfinite(found) & (found > 0)).all():
        raise ArgumentError(
            "rate must give positive, finite step sizes, one number or an array for all steps"
        )
    return np.broadcast_to(found, steps)


def draw_neurons(
    dimension: int, m: int, *, paired: bool, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Unit neurons a (m, dimension) and signs b (m,); paired ones with opposite signs."""
    random, drawn = np.random.default_rng(seed), m // 2 if paired else m
    a = random.normal(size=(drawn, dimension))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = random.choice([-1.0, 1.0], drawn)
    if paired:
        a, b = np.concatenate([a, a]), np.concatenate([b, -b])
    return a, b


def check_resample(
    resample: Callable[[int], tuple[Any, ...]], data: SolverData, bias: bool
) -> Callable[[int], SolverData]:
    """The user's function of the time, which returns checked data now. Raises ArgumentError where
    it gives other samples for the same time, which a run that goes back meets again.
    """

    def samples(t: int) -> SolverData:
        found = binary_data(*resample(t), bias=bias)
        if found.Z.shape[1] != data.Z.shape[1]:
            raise DataError(
                f"resample({t}) gave inputs of dimension {found.Z.shape[1] - bias}, the data have"
                f" {data.Z.shape[1] - bias}"
            )
        return found

    if not np.array_equal(samples(0).Z, samples(0).Z):
        raise ArgumentError(
            "resample must give the same samples whenever it is asked for the same t: seed what it"
            " draws with t."
        )
    return samples


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether the value has one entry for each run."""
    return isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)

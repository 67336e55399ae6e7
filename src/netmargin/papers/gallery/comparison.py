"""Comparisons that several figures make: results by a parameter, over seeds, with their errors."""

from typing import Any

import numpy as np

from .figure import Row


def tabulate(rows: list[Row], name: str, by: str) -> tuple[list[Any], np.ndarray]:
    """The values of the parameter `by`, and a result (seeds, values, ...), with NaN for None."""
    values = sorted({row[by] for row in rows})
    found = [[row[name] for row in rows if row[by] == value] for value in values]
    return values, np.array(found, dtype=np.float64).swapaxes(0, 1)


def larger_half(rows: list[Row], by: str, *names: str) -> tuple[list[Any], list[np.ndarray]]:
    """The larger half of the values of a parameter, and means of results over it, one a seed."""
    found = [tabulate(rows, name, by) for name in names]
    values, half = found[0][0], slice(len(found[0][0]) // 2, None)
    return values[half], [results[:, half].mean(1) for _, results in found]


def standard_errors(values: np.ndarray) -> Any:
    """Standard errors of means over the first axis; 0 for a single run, whose error is unknown."""
    return values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0


def is_positive(gain: np.ndarray, errors: float = 2.0) -> bool:
    """Whether the mean of a gain over seeds is positive by more than so many standard errors."""
    return bool(gain.mean() > errors * standard_errors(gain))


def draw_means(axis: Any, x: list[Any], values: np.ndarray, **style: Any) -> None:
    """Draw the means of values (seeds, len(x)) with two standard errors."""
    bars = {"marker": "o", "markersize": 3, "capsize": 2}
    axis.errorbar(x, values.mean(0), 2 * standard_errors(values), **(bars | style))

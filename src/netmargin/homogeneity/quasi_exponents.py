"""Exponents of a scaling that multiplies the outputs by c, although parameters scale unevenly."""

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .conditions import Conditions
from .degree import Degree
from .sentences import Exponent, tidy

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_DENOMINATOR = 5040
"""Exponents are rounded to fractions up to this denominator: 5040 is a multiple of all numbers up
to 10, and 1 / 5040^2 is still far above the accuracy of the solver.
"""
_RISE = 1e-4
"""Exponents that can be larger than the smallest one are raised by so much to tell them from those
that cannot: far above the accuracy of the solver, far below the fractions that occur.
"""
_NAMED = 3
"""Conditions that contradict each other and are named: more would hide them."""
_REMEMBERED = 64
"""Nets whose exponents are kept, as nets are measured often: one of 200 parameters takes 0.5 MB."""


def find_quasi_exponents(
    conditions: Conditions, degree: Degree
) -> tuple[dict[str, Exponent] | None, str]:
    """Parameter -> lambda >= 0 with f(c^lambda theta) = c f(theta), and ""; or None and why not.

    The smallest is as large as possible, then the second smallest, and so on: that is unique.
    """
    names, gain = conditions.names, conditions.weights(degree)
    system = np.vstack([conditions.matrix, gain])
    if not gain.any() or (values := _find_values(len(names), system.tobytes())) is None:
        return None, _name_conflict(conditions, degree)
    if values:
        rounded = (tidy(Fraction(v).limit_denominator(_DENOMINATOR)) for v in values)
        exponents = dict(zip(names, rounded, strict=True))
        # The solver is not trusted: its candidate is validated in rational arithmetic.
        valid = degree.under(exponents) == 1 and conditions.hold(exponents)
        if valid and min(exponents.values()) >= 0:
            return exponents, ""
    return None, "the exponents are not determined: some parameters divide the outputs"


@lru_cache(_REMEMBERED)
def _find_values(columns: int, numbers: bytes) -> tuple[float, ...] | None:
    """Exponents of a system whose last row is 1 and others 0; () if undetermined, None if none."""
    system = np.frombuffer(numbers).reshape(-1, columns)
    target = np.append(np.zeros(len(system) - 1), 1.0)
    if _solve(np.zeros(columns), system, target).x is None:
        return None
    # What has a part in a scaling by factors of at least 1 that changes nothing. Any such may be
    # repeated, so that the first share of each exponent, which is counted, is 0 or 1.
    found = _solve(
        np.append(-np.ones(columns), np.zeros(columns)),
        np.hstack([system, system]),
        np.zeros(len(system)),
        bounds=[(0, 1)] * columns + [(0, None)] * columns,
    )
    values = _find_most_even(system, target, np.asarray(found.x[:columns]) > 0.5)
    return () if values is None else tuple(values.tolist())


def _name_conflict(conditions: Conditions, degree: Degree) -> str:
    """Name the last conditions on the parameters that the outputs grow with."""
    if not degree:
        return "the outputs do not grow with the parameters"
    alone = [
        c
        for c in conditions.constraints
        if any(c.difference.exponents.get(name) for name in degree.exponents)
    ]
    told = list(dict.fromkeys(f"{c.where or 'the model'}: {c.reason}" for c in alone))[::-1]
    named = f" ({'; '.join(told[:_NAMED])})" if told else ""
    return f"no exponents of at least 0 make the outputs follow a power of c{named}"


def _find_most_even(
    system: np.ndarray, target: np.ndarray, useless: np.ndarray
) -> np.ndarray | None:
    """Raise the smallest exponent, then the second smallest, until all are determined."""
    fixed, values = useless.copy(), np.zeros(len(useless))
    while not fixed.all():
        free = ~fixed
        part, left = system[:, free], target - system[:, fixed] @ values[fixed]
        count = part.shape[1]
        smallest = _solve(  # the last unknown is the smallest exponent
            np.append(np.zeros(count), -1.0),
            np.hstack([part, np.zeros((len(part), 1))]),
            left,
            A_ub=np.hstack([-np.eye(count), np.ones((count, 1))]),
            b_ub=np.zeros(count),
        )
        if smallest.x is None:
            return None
        least = smallest.x[-1]
        raised = _solve(  # in the first share of an exponent above the smallest
            np.append(-np.ones(count), np.zeros(count)),
            np.hstack([part, part]),
            left - part.sum(1) * least,
            bounds=[(0, _RISE)] * count + [(0, None)] * count,
        )
        if raised.x is None:
            return None
        values[free] = least + raised.x[:count] + raised.x[count:]
        stuck = raised.x[:count] < _RISE / 2
        if not stuck.any():
            return None
        values[np.flatnonzero(free)[stuck]] = least
        fixed[np.flatnonzero(free)[stuck]] = True
        rest = system[:, ~fixed]
        # Before numpy 2 an empty matrix has no rank.
        if rest.size and np.linalg.matrix_rank(rest) == rest.shape[1]:
            break
    return values


def _solve(
    cost: np.ndarray, equations: np.ndarray, target: np.ndarray, **kwargs: Any
) -> "OptimizeResult":
    from scipy.optimize import linprog

    return linprog(cost, A_eq=equations, b_eq=target, **kwargs)

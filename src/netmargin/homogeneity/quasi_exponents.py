"""Exponents of a scaling that multiplies the outputs by c, although parameters scale unevenly."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from .degree import Constraint, Degree

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult
    from scipy.sparse import csr_array

_DENOMINATOR = 5040
"""Exponents are rounded to fractions up to this denominator: 5040 is a multiple of all numbers up
to 10, and 1 / 5040^2 is still far above the accuracy of the solver.
"""
_PRICE = 1e-9
"""Multipliers above it say that a bound holds with equality in every solution: they are sums of a
few fractions, far from it unless they are 0.
"""
_NAMED = 3
"""Conditions that contradict each other and are named: more would hide them."""


class QuasiExponents:
    """The canonical exponents lambda >= 0 with f(c^lambda theta) = c f(theta).

    A parameter that the net can do without scaling, because multiplying it (alone or with others)
    changes nothing, has exponent 0: such are the weights before a normalization. The others are as
    even as they can be: the smallest exponent is as large as possible, then the second smallest,
    and so on. That solution is unique.

    Parameters
    ----------
    names : sequence of str
        The parameters.
    degree : Degree
        The degree of the outputs.
    constraints : sequence of Constraint
        The conditions that a scaling must satisfy.

    Attributes
    ----------
    exponents : dict of str to Fraction, or None
        Parameter -> lambda; None where there are none.
    reason : str
        Why there are none, in a sentence; "" otherwise.

    Source: Kunin et al. 2023 (asymmetric maximum margin bias), for the idea of the margin.
    """

    def __init__(self, names: Sequence[str], degree: Degree, constraints: Sequence[Constraint]):
        self._names, self._degree = names, degree
        # Layers of one kind impose the same condition over and over.
        self._constraints = list(
            {frozenset(c.difference.exponents.items()): c for c in constraints}.values()
        )
        self._gain = _rows([degree], names)
        self._matrix = _rows([c.difference for c in self._constraints], names)
        self.exponents: dict[str, Fraction] | None = None
        self.reason = self._find_conflict()
        if self.reason:
            return
        found = self._most_even(self._useless())
        self.exponents = None if found is None else self._validate(found)
        if self.exponents is None:
            self.reason = "no exponents are determined: some parameters divide the outputs"

    def _find_conflict(self) -> str:
        """Name the conditions that no exponents of at least 0 satisfy; "" where some do."""
        from scipy.optimize import linprog
        from scipy.sparse import eye_array, hstack, vstack

        rows = self._matrix.shape[0] + 1
        system = vstack([self._matrix, self._gain])
        found = linprog(
            np.append(np.zeros(len(self._names)), np.ones(2 * rows)),
            A_eq=hstack([system, eye_array(rows), -eye_array(rows)]),
            b_eq=np.append(np.zeros(rows - 1), 1.0),
        )
        if found.fun < _PRICE:
            return ""
        prices = np.abs(found.eqlin.marginals[:-1])
        named = [self._constraints[i] for i in np.argsort(-prices, kind="stable") if prices[i] > 0]
        told = list(dict.fromkeys(f"{c.where or 'the model'}: {c.reason}" for c in named))[:_NAMED]
        sentence = "no exponents of at least 0 make the outputs follow a power of c"
        return f"{sentence} ({'; '.join(told)})" if told else sentence

    def _useless(self) -> np.ndarray:
        """Find the parameters in any scaling with factors of at least 1 that changes nothing."""
        from scipy.optimize import linprog
        from scipy.sparse import hstack, vstack

        count = len(self._names)
        twice = vstack([self._matrix, self._gain])
        found = linprog(
            np.append(-np.ones(count), np.zeros(count)),
            A_eq=hstack([twice, twice]),
            b_eq=np.zeros(twice.shape[0]),
            bounds=[(0, 1)] * count + [(0, None)] * count,
        )
        return found.x[:count] > 0.5  # a scaling may be repeated, so that shares are 0 or 1

    def _most_even(self, useless: np.ndarray) -> np.ndarray | None:
        """Raise the smallest exponent, then the second smallest, until all are determined."""
        from scipy.sparse import vstack

        fixed = useless.copy()
        values = np.zeros(len(fixed))
        system = vstack([self._matrix, self._gain]).tocsc()
        target = np.append(np.zeros(self._matrix.shape[0]), 1.0)
        while not fixed.all():
            free = ~fixed
            left, part = target - system @ np.where(fixed, values, 0.0), system[:, free]
            found = _raise_smallest(part, left)
            if found.x is None:
                return None
            values[free] = found.x[:-1]
            stuck = np.flatnonzero(free)[-found.ineqlin.marginals > _PRICE]
            values[stuck] = found.x[-1]
            fixed[stuck] = True
            rest = system[:, ~fixed].toarray()
            if not len(stuck) or np.linalg.matrix_rank(rest) == rest.shape[1]:
                break
        return values

    def _validate(self, values: np.ndarray) -> dict[str, Fraction] | None:
        """Round to fractions and check them in rational arithmetic; the solver is not trusted."""
        exponents = {
            name: Fraction(value).limit_denominator(_DENOMINATOR)
            for name, value in zip(self._names, values.tolist(), strict=True)
        }
        holds = self._degree.under(exponents) == 1 and min(exponents.values()) >= 0
        holds = holds and not any(c.difference.under(exponents) for c in self._constraints)
        return exponents if holds else None


def _raise_smallest(system: "csr_array", target: np.ndarray) -> "OptimizeResult":
    """Maximize the smallest of the exponents that satisfy a system; it is the last unknown."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    rows, count = system.shape
    return linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=hstack([-eye_array(count), np.ones((count, 1))]),
        b_ub=np.zeros(count),
        A_eq=hstack([system, csr_array((rows, 1))]),
        b_eq=target,
    )


def _rows(degrees: Sequence[Degree], names: Sequence[str]) -> "csr_array":
    """Degrees as rows of exponents, shape (degrees, parameters)."""
    from scipy.sparse import csr_array

    columns = {name: index for index, name in enumerate(names)}
    entries = [
        (row, columns[name], float(exponent))
        for row, degree in enumerate(degrees)
        for name, exponent in degree.exponents.items()
        if name in columns
    ]
    rows, places, values = zip(*entries, strict=True) if entries else ((), (), ())
    return csr_array((values, (rows, places)), shape=(len(degrees), len(names)))

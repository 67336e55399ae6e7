"""The conditions on scalings with exponents of at least 0, solved as far as that is easy."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from .degree import Constraint, Degree


class Conditions:
    """Which parameters must stay, which must scale alike, and what is left to solve.

    Conditions are that sums of exponents are 0. One whose terms all have one sign says that its
    parameters stay, and one that is a difference ties two parameters; most nets are solved by that,
    in rational arithmetic.

    names : the parameters, as given.
    constraints : the conditions, each once.
    tied : first parameter -> those that scale alike, itself included, in the order of `names`.
        Those that must stay are left out.
    matrix : the conditions that are left, on the exponents of `tied`, (conditions, len(tied)).
    """

    def __init__(self, names: Sequence[str], constraints: Sequence[Constraint]):
        self.names = names
        # Layers of one kind impose the same condition over and over.
        self.constraints = list(
            {tuple(c.difference.exponents.items()): c for c in constraints}.values()
        )
        known = set(names)
        self._first = {name: name for name in names}
        self._stay: set[str] = set()
        rows = [
            {n: e for n, e in c.difference.exponents.items() if n in known}
            for c in self.constraints
        ]
        while len(kept := [row for row in map(self._reduce, rows) if row]) < len(rows):
            rows = kept
        self.tied: dict[str, tuple[str, ...]] = {}
        for name in names:
            first = self._find(name)
            if first not in self._stay:
                self.tied[first] = (*self.tied.get(first, ()), name)
        self.matrix = np.array(
            [[float(row.get(first, 0)) for first in self.tied] for row in kept]
        ).reshape(len(kept), len(self.tied))

    def sums_over_tied(self, degree: Degree) -> np.ndarray:
        """Sum the exponents of a degree over the parameters that scale alike, one sum for each."""
        return np.array(
            [
                float(sum(degree.exponents.get(name, 0) for name in names))
                for names in self.tied.values()
            ]
        )

    def _find(self, name: str) -> str:
        while (first := self._first[name]) != name:
            self._first[name] = self._first[first]
            name = first
        return name

    def _reduce(self, row: dict[str, Fraction]) -> dict[str, Fraction]:
        """Write a condition in the first parameters of those tied; {} once it is used up."""
        left: dict[str, Fraction] = {}
        for name, exponent in row.items():
            first = self._find(name)
            if first not in self._stay:
                left[first] = left.get(first, Fraction(0)) + exponent
        left = {name: exponent for name, exponent in left.items() if exponent}
        if len({exponent > 0 for exponent in left.values()}) == 1:
            self._stay.update(left)
            return {}
        if len(left) == 2 and not sum(left.values()):
            one, other = left
            self._first[other] = one
            return {}
        return left

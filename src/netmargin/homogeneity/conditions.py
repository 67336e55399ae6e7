"""The conditions on scalings, in rational numbers and as a matrix for solvers."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from .degree import CONSTANT, Constraint, Degree
from .sentences import Exponent


class Conditions:
    """Conditions that weighted sums of the exponents of parameters are 0."""

    def __init__(self, names: Sequence[str], constraints: Sequence[Constraint]) -> None:
        self.names = names  # in the order of the columns of the matrix
        self._places = {name: place for place, name in enumerate(names)}
        # Layers of one kind impose the same condition over and over.
        self.constraints = list(
            {tuple(c.difference.exponents.items()): c for c in constraints}.values()
        )
        rows = [self.weights(c.difference) for c in self.constraints]
        self.matrix = np.array(rows).reshape(len(rows), len(names))

    def weights(self, degree: Degree) -> np.ndarray:
        """The exponents of a degree as a row over the parameters."""
        row = np.zeros(len(self.names))
        for name in self._places.keys() & degree.exponents.keys():
            row[self._places[name]] = degree.exponents[name]
        return row

    def hold(self, scaling: Mapping[str, Exponent]) -> bool:
        """Whether a scaling, parameter -> exponent, satisfies all conditions exactly."""
        return not any(c.difference.under(scaling) for c in self.constraints)

    def select(
        self, cost: np.ndarray, *, without: Collection[str] = (), unchanged: Degree = CONSTANT
    ) -> dict[str, Exponent]:
        """At least cost, parameters that can be scaled by c together, not those of `without`."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        found = milp(
            cost,
            constraints=LinearConstraint(np.vstack([self.matrix, self.weights(unchanged)]), 0, 0),
            integrality=np.ones(len(cost)),
            bounds=Bounds(0, [float(name not in without) for name in self.names]),
        )
        if found.x is None:
            return {}
        shares = zip(self.names, found.x, strict=True)
        chosen: dict[str, Exponent] = {name: 1 for name, share in shares if share > 0.5}
        # The solver works in floating point: its candidate is validated in rational arithmetic.
        valid = self.hold(chosen) and not unchanged.under(chosen)
        return chosen if valid else {}

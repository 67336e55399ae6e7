"""Dual weights on few samples whose largest response to known neurons is within a level: a linear
program that grows by rows.

A proof takes time that grows exponentially with the number of dual weights. All dual weights prove
a bound: the best ones are the fewest that prove what is wanted. A linear cost per weight makes them
few: 1 / (q_i + small), q the weights before, counts those above 0 (Candes, Wakin and Boyd 2008).
"""

import math
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from ..simplex import Simplex

_FIRST_SMALL, _SMALL = 0.3, 0.1
"""What is small, in units of the mean weight: at first, where many small ones count, and later."""
_EXCESS_COST = 1e4
"""Cost of a level above the one that is wanted, against at most one per weight that is not 0."""
_VIOLATED = 1e-6
"""Responses that exceed the level by less are rounding of the linear program."""
_ROWS_AT_ONCE, _MOST_ROWS = 100, 1500
"""The most violated neurons added at once, and from how many on the program is begun anew."""
_MOST_SOLUTIONS = 50
"""A brake: each solution adds rows, and some ten suffice."""
_NONE = 1e-9
"""Weights below this part of their sum are rounding of the linear program."""


class SparseWeights:
    """The program over dual weights p >= 0 with p . target = 1 and p_i <= slack_cost level, which
    begins with `weights` (n,); with `unit`, a typical level, tolerances mean the same for all.
    """

    def __init__(
        self, target: np.ndarray, slack_cost: float, weights: np.ndarray, unit: float
    ) -> None:
        self._target, self._slack_cost, self._unit = target, slack_cost, unit
        self._last, self._sum = weights, float(weights.sum())
        self._costs = 1 / (weights / self._sum + _FIRST_SMALL / len(weights))
        self._rows, self._program = self._begin()

    def sharpen(self, weights: np.ndarray) -> None:
        """From now on, count the weights that are not 0 by these."""
        self._costs = 1 / (weights / self._sum + _SMALL / len(weights))

    def solve(
        self, responses: np.ndarray, level: float, deadline: float = math.inf
    ) -> tuple[np.ndarray, float]:
        """Find weights (n,) with few that are not 0 and responses up to `level`, or the least level
        that is possible; returns them and the level that they keep, the last ones where the solver
        fails.

        The responses of known neurons are `responses`.T @ p; columns of earlier calls come first.
        """
        n = len(self._target)
        if len(self._rows) > _MOST_ROWS:
            self._rows, self._program = self._begin()
        costs = np.append(self._costs / self._sum, _EXCESS_COST)
        self._program.change_costs(costs)
        reached = level / self._unit
        self._program.changeColBounds(n, reached, highspy.kHighsInf)
        weights, solved = self._last, False
        for _ in range(_MOST_SOLUTIONS):
            values = np.abs(responses.T @ weights) / self._unit
            missing = np.setdiff1d(np.arange(len(values)), self._rows)
            if solved:
                missing = missing[values[missing] > reached * (1 + _VIOLATED)]
                if not len(missing):
                    break
            largest = missing[np.argsort(-values[missing], kind="stable")[:_ROWS_AT_ONCE]]
            scaled = responses[:, largest].T / self._unit
            _require_below_level(self._program, np.concatenate([scaled, -scaled]))
            self._rows = np.concatenate([self._rows, largest])
            solved = self._program.solve_until(deadline)
            solution = np.array(self._program.getSolution().col_value)
            if self._program.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                self._rows, self._program = self._begin()
                return self._last, level * float(values.max(initial=0.0)) / reached
            weights = np.where(solution[:n] > _NONE * self._sum, solution[:n], 0.0)
            weights, reached = weights / float(weights @ self._target), float(solution[n])
        self._last = weights
        return weights, self._unit * reached

    def _begin(self) -> tuple[np.ndarray, Simplex]:
        """A program without neurons, over p and the level, and the indices of its neurons: none."""
        program, n = Simplex(presolve="off"), len(self._target)
        program.add_columns(sparse.csc_matrix((0, n + 1)))
        program.add_rows(np.append(self._target, 0.0)[None], np.ones(1), np.ones(1))
        if np.isfinite(self._slack_cost):
            _require_below_level(program, sparse.eye(n) / (self._slack_cost * self._unit))
        return np.zeros(0, dtype=int), program


def _require_below_level(program: Simplex, matrix: Any) -> None:
    """Add the rows matrix @ p - level <= 0."""
    count = matrix.shape[0]
    rows = sparse.hstack([sparse.csr_matrix(matrix), -np.ones((count, 1))])
    program.add_rows(rows, np.full(count, -highspy.kHighsInf), np.zeros(count))

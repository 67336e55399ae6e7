"""The restricted problem over a finite set of neurons: a linear program that grows by columns."""

import math
from dataclasses import dataclass

import highspy
import numpy as np
from scipy import sparse

from ...core.matrices import Floats
from ..simplex import PRIMAL, Simplex

_ITERATIONS_PER_ROW, _OF_EQUALITIES = 10, (20, 100)
"""Limit of iterations, for equalities per row and added to it: rounds take a few per row, but on
nearly degenerate data the simplex method can cycle for ever. 20 per row of a margin take four times
as long on 150 points in the plane with random labels.
"""
_EQUALITIES: dict[str, int | str] = {"simplex_scale_strategy": 0, "presolve": "off"}
"""Where rows are equalities, scaled columns take twice as many iterations or more (of 200 points on
a line 40 seconds in place of 4), and presolve finds nothing.
"""


@dataclass(frozen=True)
class Constraints:
    """The constraints signs_i f(x_i) + slack_i >= t target_i of all samples i, in units of t.

    Weights and slacks share a mass of 1, a unit of slack costs slack_cost (no slack where that is
    infinite). So 1 / max t is the smallest sum w + slack_cost sum |slack| at which the rows hold
    with t = 1: maximum margin, soft margin and least norm are one problem.
    """

    signs: Floats  # (n,): the labels, -1 or +1
    target: Floats  # (n,): what each labelled output must reach, in units of t
    slack_cost: float = np.inf
    equal: bool = False  # whether it must be that, no more; then without slacks


class MasterLP:
    """The linear program over the neurons found so far, the restricted master problem.

    It is max t subject to the rows, over given columns signs_i s_j relu(u_j . z_i), w >= 0, slack
    >= 0. The simplex method restarts from the last basis. Its answers are candidates: the caller
    recomputes margins and bounds. `options` of HiGHS are for a program that does not grow.
    """

    def __init__(self, rows: Constraints, **options: float) -> None:
        self._samples, infinity = len(rows.target), highspy.kHighsInf
        per_row, least = _OF_EQUALITIES if rows.equal else (_ITERATIONS_PER_ROW, 0)
        self._program = Simplex(
            **PRIMAL
            | (_EQUALITIES if rows.equal else {})
            | {"simplex_iteration_limit": per_row * self._samples + least}
            | options
        )
        self._program.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._program.add_rows(
            sparse.csr_matrix((self._samples + 1, 0)),
            np.append(np.zeros(self._samples), -infinity),
            np.append(np.full(self._samples, 0.0 if rows.equal else infinity), 1.0),
        )
        self._program.add_columns(np.append(-rows.target, 0.0)[:, None], cost=1.0, lower=-infinity)
        self._neurons, self._slacks = 0, 0
        if np.isfinite(rows.slack_cost):
            self._slacks = self._samples
            costs = np.full((1, self._slacks), rows.slack_cost)
            self._program.add_columns(sparse.vstack([sparse.eye(self._slacks), costs]))

    def add(self, columns: np.ndarray) -> None:
        """Add neurons; columns has shape (n, k)."""
        self._program.add_columns(np.vstack([columns, np.ones(columns.shape[1])]))
        self._neurons += columns.shape[1]

    def solve(self, deadline: float = math.inf) -> tuple[float, np.ndarray, np.ndarray]:
        """Solve for t, the weights (k,), and the dual weights (n,) up to a factor; at the deadline
        (time.monotonic) what is reached, which the primal simplex method keeps feasible.
        """
        self._program.solve_until(deadline)
        return self.read()

    def read(self) -> tuple[float, np.ndarray, np.ndarray]:
        """What `solve` has reached, also where Ctrl-C has ended it."""
        # From the second round on presolve would only discard the basis.
        self._program.setOptionValue("presolve", "off")
        solution = self._program.getSolution()
        values = np.array(solution.col_value)
        weights = values[1 + self._slacks :]
        # The solver takes no entries of 1e15 and more, and breaks down on some.
        if len(weights) != self._neurons or not np.isfinite(values).all():
            return 0.0, np.zeros(self._neurons), np.zeros(self._samples)
        return values[0], weights, np.array(solution.row_dual)[: self._samples]

"""The least norm over a finite set of neurons: a linear program that grows by columns and always
has a solution.
"""

import numpy as np
from scipy import sparse

from .simplex import PRIMAL, Simplex

_ITERATIONS_PER_ROW, _LEAST_ITERATIONS = 20, 100
"""Limit of iterations, per row and added to it: rounds take a few per row, but on nearly degenerate
data the simplex method can cycle for ever.
"""


class ElasticProgram:
    """min sum w + slack_cost sum |slack| subject to A w + slack = target, over given columns A, w
    >= 0.

    Slacks make every target reachable, so that there are dual weights p to price with from the
    first round on; |p_i| <= slack_cost keeps these from jumping about. Where slack_cost exceeds the
    largest dual weight of the problem without slacks, both have the same solutions. The simplex
    method restarts from the last basis. Its answers are candidates: the caller recomputes norms and
    bounds.
    """

    def __init__(self, target: np.ndarray, slack_cost: float):
        self._samples = len(target)
        self._program = Simplex(
            # The columns are of unit size; scaled ones take twice as many iterations.
            simplex_scale_strategy=0,
            # Dense columns leave presolve nothing to find, and it knows no time limit.
            presolve="off",
            **PRIMAL,
            simplex_iteration_limit=_ITERATIONS_PER_ROW * self._samples + _LEAST_ITERATIONS,
        )
        self._program.add_rows(sparse.csr_matrix((self._samples, 0)), target, target)
        slacks = sparse.hstack([sparse.eye(self._samples), -sparse.eye(self._samples)])
        self._program.add_columns(slacks, cost=slack_cost)

    def add(self, columns: np.ndarray) -> None:
        """Add neurons; columns has shape (n, k)."""
        self._program.add_columns(columns, cost=1.0)

    def change_slack_cost(self, slack_cost: float) -> None:
        """Let a unit of slack cost this much from now on; the basis is kept."""
        self._program.change_costs(np.full(2 * self._samples, slack_cost))

    def solve(self, deadline: float) -> tuple[np.ndarray, float, np.ndarray]:
        """Weights of the neurons, the sum of |slack|, and dual weights of the samples.

        Raises TimeoutError where the linear program is not solved at the deadline (time.monotonic).
        """
        if not self._program.solve_until(deadline):
            raise TimeoutError
        solution = self._program.getSolution()
        values, slacks = np.array(solution.col_value), 2 * self._samples
        return values[slacks:], float(values[:slacks].sum()), np.array(solution.row_dual)

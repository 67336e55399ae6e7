"""Linear programs by the simplex method of HiGHS: the one place that knows its interface."""

import math
import time
from functools import partial
from typing import Any

import highspy
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..core.interrupts import run_apart

PRIMAL = {
    "simplex_strategy": 4,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
"""Options of a program that grows by columns: the primal simplex method stays feasible when they
are added; HiGHS allows no tolerances below 1e-10.
"""


class Simplex(highspy.Highs):
    """A linear program that grows, solved from its last basis; `options` are those of HiGHS."""

    def __init__(self, **options: float | str) -> None:
        super().__init__()
        for name, value in {"solver": "simplex", **options}.items():
            self.setOptionValue(name, value)

    def enableCallbacks(self) -> None:  # noqa: N802, the name is that of HiGHS
        """Called by the constructor: HiGHS 1.16 prints a banner unless output is off before."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()

    def add_columns(
        self,
        columns: Any,
        *,
        cost: ArrayLike = 0.0,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = math.inf,
    ) -> None:
        """Add variables with these columns, dense or sparse, a cost and bounds each or for all."""
        # Half the outputs of neurons are 0.
        columns = sparse.csc_matrix(columns)
        count = columns.shape[1]
        self.addCols(
            count, np.full(count, cost), np.full(count, lower), np.full(count, upper),
            columns.nnz, columns.indptr[:-1].astype(np.int32), columns.indices.astype(np.int32),
            columns.data,
        )  # fmt: skip

    def add_rows(self, rows: Any, lower: np.ndarray, upper: np.ndarray) -> None:
        """Add rows of coefficients, dense or sparse, with bounds (m,) of their values."""
        rows = sparse.csr_matrix(rows)
        self.addRows(
            rows.shape[0], lower, upper, rows.nnz,
            rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32), rows.data,
        )  # fmt: skip

    def change_costs(self, costs: np.ndarray) -> None:
        """Change the costs of the first variables."""
        self.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs)

    def change_bounds(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Change the bounds of all variables."""
        self.changeColsBounds(len(lower), np.arange(len(lower), dtype=np.int32), lower, upper)

    def solve_until(self, deadline: float = math.inf) -> bool:
        """Solve from the last basis, or without it where that cycles; whether there was time. Where
        Ctrl-C comes, the solution is what has been reached.
        """
        for again in (True, False):
            # The limit of this solver counts the seconds of all its runs together.
            left = max(deadline - time.monotonic(), 0.0)
            self.setOptionValue("time_limit", left + self.getRunTime())
            run_apart(self.run, partial(self.setOptionValue, "time_limit", 0.0))
            status = self.getModelStatus()
            if not (again and status == highspy.HighsModelStatus.kIterationLimit):
                break
            self.clearSolver()
        return status != highspy.HighsModelStatus.kTimeLimit

"""The restricted problem over a finite set of neurons: a linear program that grows by columns."""

import math
import time
from dataclasses import dataclass

import highspy
import numpy as np
from scipy import sparse

_ITERATIONS_PER_ROW = 10
"""Limit of iterations: rounds take a few per row; on nearly degenerate data the simplex method can
cycle for ever.
"""


@dataclass(frozen=True)
class MarginConstraints:
    """The constraints signs_i f(x_i) + slack_i >= t target_i of all samples i, in units of t.

    Weights and slacks share a mass of 1, a unit of slack costs slack_cost (no slack where that is
    infinite). So 1 / max t is the smallest sum w + slack_cost sum slack at which the rows hold with
    t = 1: maximum margin and soft margin are one problem.

    Attributes
    ----------
    signs : ndarray of shape (n,)
        The labels, -1 or +1.
    target : ndarray of shape (n,)
        What each labelled output must reach, in units of t.
    slack_cost : float
        Cost of a unit of slack; no slack where it is infinite.
    """

    signs: np.ndarray
    target: np.ndarray
    slack_cost: float = np.inf


class MasterLP:
    """The linear program over the neurons found so far, the restricted master problem.

    It is max t subject to the rows, over given columns signs_i s_j relu(u_j . z_i), w >= 0, slack
    >= 0. The simplex method restarts from the last basis. Its answers are candidates: the caller
    recomputes margins and bounds.
    """

    def __init__(self, rows: MarginConstraints):
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("solver", "simplex")
        # The primal simplex method stays feasible when columns are added.
        self._highs.setOptionValue("simplex_strategy", 4)
        # HiGHS allows no tolerances below 1e-10.
        self._highs.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._highs.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self._highs.setOptionValue(
            "simplex_iteration_limit", _ITERATIONS_PER_ROW * len(rows.target)
        )
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._samples, infinity = len(rows.target), highspy.kHighsInf
        none = np.array([], dtype=np.int32)
        lower = np.append(np.zeros(self._samples), -infinity)
        upper = np.append(np.full(self._samples, infinity), 1.0)
        self._highs.addRows(
            len(lower),
            lower,
            upper,
            0,
            np.zeros(len(lower), dtype=np.int32),
            none,
            none.astype(float),
        )
        self._add(np.append(-rows.target, 0.0)[:, None], cost=1.0, lower=-infinity)
        self._slacks = 0
        if np.isfinite(rows.slack_cost):
            self._slacks = self._samples
            costs = np.full((1, self._samples), rows.slack_cost)
            self._add(sparse.vstack([sparse.eye(self._samples), costs]))

    def add(self, columns: np.ndarray) -> None:
        """Add neurons; columns has shape (n, k)."""
        self._add(np.vstack([columns, np.ones(columns.shape[1])]))

    def solve(self, deadline: float = math.inf) -> tuple[float, np.ndarray, np.ndarray]:
        """Solve for t, the weights of the neurons (k,) and the dual weights of the samples (n,), as
        the solver gives them (duals up to a common factor).

        At the deadline (time.monotonic) these are what the simplex method has reached: feasible, as
        it is the primal one.
        """
        run_simplex(self._highs, deadline)
        # From the second round on presolve would only discard the basis.
        self._highs.setOptionValue("presolve", "off")
        solution = self._highs.getSolution()
        values = np.array(solution.col_value)
        return values[0], values[1 + self._slacks :], np.array(solution.row_dual)[: self._samples]

    def _add(self, columns, *, cost: float = 0.0, lower: float = 0.0) -> None:
        """Add variables with these columns of the rows and of the mass."""
        add_columns(self._highs, columns, cost=cost, lower=lower)


def add_columns(highs: highspy.Highs, columns, *, cost: float = 0.0, lower: float = 0.0) -> None:
    """Add variables with no upper bound and these columns of coefficients, dense or sparse."""
    # Half the outputs of neurons are 0.
    columns = sparse.csc_matrix(columns)
    count = columns.shape[1]
    highs.addCols(
        count, np.full(count, cost), np.full(count, lower), np.full(count, highspy.kHighsInf),
        columns.nnz, columns.indptr[:-1].astype(np.int32), columns.indices.astype(np.int32),
        columns.data,
    )  # fmt: skip


def run_simplex(highs: highspy.Highs, deadline: float) -> bool:
    """Solve from the last basis, and without it where that cycles; returns whether there was time
    for that.
    """
    for again in (True, False):
        # The limit of this solver counts the seconds of all its runs together.
        highs.setOptionValue(
            "time_limit", max(deadline - time.monotonic(), 0.0) + highs.getRunTime()
        )
        highs.run()
        status = highs.getModelStatus()
        if not (again and status == highspy.HighsModelStatus.kIterationLimit):
            break
        highs.clearSolver()
    return status != highspy.HighsModelStatus.kTimeLimit

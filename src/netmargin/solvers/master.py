"""The restricted problem over a finite set of neurons: a linear program that grows by columns."""

import highspy
import numpy as np


class Master:
    """max t subject to sum_j w_j A_ij >= t for all samples i, sum w <= 1, w >= 0.

    A_ij = s_j y_i relu(u_j . z_i). The simplex method restarts from the last basis. Its
    answers are proposals: the caller recomputes margins and bounds.
    """

    def __init__(self, samples: int):
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("solver", "simplex")
        self._highs.setOptionValue("simplex_strategy", 4)  # primal: stays feasible when columns are added
        self._highs.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._highs.setOptionValue("dual_feasibility_tolerance", 1e-10)
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        infinity, rows = highspy.kHighsInf, samples + 1
        none = np.array([], dtype=np.int32)
        lower = np.append(np.zeros(samples), -infinity)
        upper = np.append(np.full(samples, infinity), 1.0)
        self._highs.addRows(rows, lower, upper, 0, np.zeros(rows, dtype=np.int32), none, none.astype(float))
        index = np.arange(samples, dtype=np.int32)
        self._highs.addCols(
            1,
            np.ones(1),
            np.full(1, -infinity),
            np.full(1, infinity),
            samples,
            np.zeros(1, dtype=np.int32),
            index,
            -np.ones(samples),
        )
        self._samples = samples

    def add(self, columns: np.ndarray) -> None:
        """Add neurons; columns has shape (n, k)."""
        count = columns.shape[1]
        entries = np.vstack([columns, np.ones(count)])
        starts = np.arange(count, dtype=np.int32) * len(entries)
        index = np.tile(np.arange(len(entries), dtype=np.int32), count)
        self._highs.addCols(
            count, np.zeros(count), np.zeros(count), np.full(count, highspy.kHighsInf),
            entries.size, starts, index, entries.T.ravel(),
        )  # fmt: skip

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the neurons and dual weights of the samples, both as the solver gives them."""
        self._highs.run()
        self._highs.setOptionValue("presolve", "off")  # from the second round on it would only discard the basis
        solution = self._highs.getSolution()
        return np.array(solution.col_value)[1:], np.abs(np.array(solution.row_dual)[: self._samples])

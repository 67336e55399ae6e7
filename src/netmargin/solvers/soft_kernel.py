"""Soft max margin in a reproducing kernel space, without an intercept."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arguments import check_number
from ..core.deadline import Deadline
from ..core.matrices import EPS, Floats, check_sample_weight, kernel_values
from ..errors import ArgumentError
from ..result import SoftSolution, Status, judge_bracket
from .extended import multiply_extended, round_down
from .kernel_engine import KernelProblem, solve_kernel
from .kernel_matrix import KernelMatrix, bound_sums
from .kernel_problem import validate_kernel

_RELIABLE_OUTPUT = 1e-6
"""Factors 1 / output of f above 1e6 are not tried: outputs that are so small are rounding."""


@dataclass(frozen=True, kw_only=True)
class SoftKernelSolution(SoftSolution):
    """The function f = sum_n coefficients_n k(x_n, .) of small norm and hinge loss."""

    coefficients: np.ndarray  #: (n,), float64: y * dual times a factor near 1, or 0 for f = 0

    def decision_function(self, K: Any) -> np.ndarray:
        """Values f (N,) at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def kernel_soft_margin(
    K: Any,
    y: Any,
    *,
    C: float = 1.0,
    sample_weight: Any = None,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> SoftKernelSolution:
    """The function in the space of a kernel that has the least squared norm plus hinge loss.

    It minimizes ||f||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)): a support vector machine without an
    intercept. Its dual, max sum p - p' (yy' * K) p / 2 over 0 <= p <= C, proves the lower bound.

    Parameters
    ----------
    K, y : array_like
        Kernel matrix (n, n) and labels (n,), as of `kernel_max_margin`.
    C : float, default 1.0
        Cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC` (which fits an intercept). 1 /
        mean K_nn lets a sample with full weight move its own output by 1.
    sample_weight : array_like of shape (n,), optional
        Factors >= 0 of C, one per sample; 1 by default.
    tol, time_limit : optional
        As of `kernel_max_margin`; the gap is that of the objective and its lower bound.

    Returns
    -------
    SoftKernelSolution
        Coefficients and dual weights (float64 of shape (n,)), the objective recomputed in float64,
        its proved lower bound, the hinge loss and the margin.

    Raises
    ------
    DataError
        For other shapes, NaN, or a kernel with a clearly negative eigenvalue.
    ArgumentError
        For C <= 0, and sample_weight, tol or time_limit out of range.

    Examples
    --------
    >>> from netmargin.solvers import kernel_soft_margin
    >>> K = [[1.0, 1.0], [1.0, 1.0]]
    >>> soft = kernel_soft_margin(K, [1, -1], C=2.0)  # equal samples, different labels: f = 0
    >>> round(soft.objective, 6), soft.certified
    (4.0, True)

    Beyond the papers.
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    C, tol = check_number("C", C, above=0), check_number("tol", tol, above=0, below=1)
    matrix, y = validate_kernel(K, y)
    caps = C * check_sample_weight(sample_weight, len(y))
    (found,) = solve_kernel([SoftMargin(matrix, y, caps, tol)], deadline=deadline)
    return replace(found, seconds=time.monotonic() - started)


class SoftMargin(KernelProblem[SoftKernelSolution]):
    """The soft margin of a matrix for labels (n,), with weights up to `costs` (n,)."""

    def __init__(self, matrix: KernelMatrix, y: np.ndarray, costs: np.ndarray, tol: float) -> None:
        # In units of values and of p * scale the problem keeps its form, with caps * scale and an
        # objective times scale.
        with np.errstate(over="ignore", under="ignore"):
            caps = costs * matrix.scale
        if not (caps / matrix.scale == costs).all():  # the scale is a power of 2
            raise ArgumentError(
                f"C = {costs.max():g} times entries of K of size {matrix.scale:.0e} is beyond"
                " float64. Multiply K by a power of 10, and divide C by it."
            )
        super().__init__(matrix, y, caps, tol)

    def rate(self, weights: np.ndarray) -> tuple[float, float]:
        """The gap."""
        outputs = self.y * self.matrix.multiply((self.y * weights)[:, None])[:, 0]
        return self._bracket(weights, outputs).gap, 0.0

    def judge(
        self, weights: np.ndarray, outputs: np.ndarray, ended: Status, seconds: float
    ) -> SoftKernelSolution:
        """The solution with these weights."""
        found = self._bracket(weights, outputs)
        status, certified = judge_bracket(found.bracket, self.tol, ended=ended)
        return replace(found, status=status, certified=certified, seconds=seconds)

    def _bracket(self, dual: np.ndarray, outputs: np.ndarray) -> SoftKernelSolution:
        """Both ends in float64, or in longer floats where its rounding keeps them apart."""
        matrix, y = self.matrix, self.y
        # |K_ij| <= sqrt(K_ii K_jj)
        sizes = matrix.lengths * (matrix.lengths @ dual)
        found = self._bracket_at(dual, outputs, bound_sums(len(y), matrix.entry_error) * sizes)
        if found.gap > self.tol and matrix.affords_extended:
            ideal = self._bracket_at(dual, outputs, np.zeros(len(y)))
            if ideal.gap <= self.tol:
                outputs, errors = multiply_extended(matrix.values, y * dual)
                found = self._judge_rounded(self._bracket_at(dual, y * outputs, errors))
        return found

    def _bracket_at(
        self, dual: np.ndarray, outputs: np.ndarray, errors: np.ndarray
    ) -> SoftKernelSolution:
        """Both ends of the bracket from labelled outputs (n,) known up to `errors` (n,)."""
        y, unit = self.y, self.matrix.scale
        eps = (len(y) + 4) * float(np.finfo(outputs.dtype).eps)
        exact, sums = max(float(dual @ outputs), 0.0), 1 + eps
        square = exact + float(dual @ (errors + eps * np.abs(outputs)))
        total = float(dual.sum()) / sums
        shrink = min(1.0, total / square) if square > 0 else 1.0
        lower = max(shrink * total - 0.5 * shrink**2 * square, 0.0)
        # Where C is huge, the last of the hinge losses are cheaper to remove by scaling f. In its
        # scale, their sum is convex and bends at 1 / output.
        least = outputs - errors
        scales = np.concatenate([[0.0, 1.0], 1 / least[least > _RELIABLE_OUTPUT]])
        costs = 0.5 * scales**2 * square + _sum_hinges(scales, least, self.caps)
        factor = float(scales[np.argmin(costs)])
        hinges = np.maximum(1 - factor * least, 0.0)
        return SoftKernelSolution(
            objective=float(0.5 * factor**2 * square + self.caps @ hinges * sums) / unit,
            lower_bound=lower / unit,
            certified=False,
            status=Status.STALLED,
            dual=shrink * dual / unit,
            seconds=0.0,
            hinge=float(hinges.sum()),
            margin=float(outputs.min()) * float(np.sqrt(unit / exact)) if exact and factor else 0.0,
            coefficients=factor * y * dual / unit,
        )

    def _judge_rounded(self, found: SoftKernelSolution) -> SoftKernelSolution:
        """The solution judged at its own coefficients and weights, which scaling has rounded."""
        matrix, y, unit = self.matrix, self.y, self.matrix.scale
        a, p = found.coefficients * unit, found.dual * unit
        outputs, errors = multiply_extended(matrix.values, a)
        square = float(a @ outputs + np.abs(a) @ errors)
        hinges = np.maximum(1 - (y * outputs - errors), 0.0)
        sums = 1 + (len(y) + 4) * EPS
        objective = float((0.5 * square + self.caps @ hinges) * sums) / unit
        outputs, errors = multiply_extended(matrix.values, y * p)
        eps = (len(y) + 4) * np.finfo(np.longdouble).eps
        largest = p @ (y * outputs + errors + eps * np.abs(outputs))
        lower = (1 - eps) * p.astype(np.longdouble).sum() - 0.5 * (1 + eps) * largest
        return replace(
            found,
            objective=objective,
            lower_bound=round_down(max(lower, 0.0) / unit),
            hinge=float(hinges.sum()),
        )


def _sum_hinges(scales: Floats, outputs: Floats, caps: Floats) -> Floats:
    """The hinge losses sum_i caps_i max(0, 1 - scale outputs_i) at many scales, by one sort."""
    order = np.argsort(outputs)
    ascending = outputs[order]
    costs = np.concatenate([[0.0], np.cumsum(caps[order])])
    sums = np.concatenate([[0.0], np.cumsum(caps[order] * ascending)])
    below = np.searchsorted(
        ascending, np.divide(1, scales, out=np.full_like(scales, np.inf), where=scales > 0)
    )
    return costs[below] - sums[below] * scales

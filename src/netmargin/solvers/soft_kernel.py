"""Soft max margin in a reproducing kernel space, without an intercept."""

import time
from dataclasses import dataclass, replace

import numpy as np

from ..core.arguments import check_number
from ..core.deadline import Deadline
from ..core.matrices import check_sample_weight, kernel_values
from ..core.records import short_repr
from ..result import SoftSolution, Status, judge_bracket
from .class_problems import search_all
from .cone_fallback import AFFORDABLE, drop_dust, propose_in_box
from .hinge_bracket import bracket_hinges
from .kernel_matrix import KernelMatrix
from .kernel_problem import validate_kernel
from .pair_descent import descend

_AIM = 0.9
"""Part of the tolerance that the search aims at: the judge counts roundings on top of it."""


@dataclass(frozen=True, kw_only=True)
class SoftKernelSolution(SoftSolution):
    """The function f = sum_n coefficients_n k(x_n, .) of small norm and hinge loss.

    Attributes
    ----------
    coefficients : ndarray of shape (n,), float64
        y * dual up to a common factor near 1. The other fields are those of `SoftSolution`.
    """

    coefficients: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values f (N,) at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def kernel_soft_margin(
    K,
    y,
    *,
    C: float = 1.0,
    sample_weight=None,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> SoftKernelSolution:
    """The function in the space of a kernel that has the least squared norm plus hinge loss.

    It minimizes ||f||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)): a support vector machine without an
    intercept. Its dual, max sum p - p' (yy' * K) p / 2 over 0 <= p <= C, proves the lower bound.
    Ctrl-C returns the best bracket so far, with `Status.INTERRUPTED`; at worst that of f = 0.

    Parameters
    ----------
    K : array_like of shape (n, n)
        Symmetric positive semidefinite kernel matrix; computations are in float64. Where rounding
        leaves it asymmetric, the mean of it and its transpose is what is solved and judged.
    y : array_like of shape (n,)
        Labels {-1, +1} or {0, 1}.
    C : float, default 1.0
        Cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC` (which fits an intercept). 1 /
        mean K_nn lets a sample with full weight move its own output by 1.
    sample_weight : array_like of shape (n,), optional
        Factors >= 0 of C, one per sample; 1 by default.
    tol : float, default 1e-6
        Relative gap between the objective and its lower bound up to which the status is OPTIMAL.
    time_limit : float, optional
        Seconds after which the best bracket so far is returned, as in `kernel_max_margin`.

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
    (found,) = solve_soft(matrix, y[:, None], caps, tol=tol, deadline=deadline)
    return replace(found, seconds=time.monotonic() - started)


def solve_soft(
    matrix: KernelMatrix,
    labels: np.ndarray,
    caps: np.ndarray,
    *,
    tol: float,
    deadline: Deadline,
    starts: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> list[SoftKernelSolution]:
    """Solve one problem for each column of `labels` (n, k), -1.0 and +1.0, with one kernel.

    Weights are at most `caps` (n,). Each problem gets an equal part of the time that is left.
    `starts` (n, k) are weights to begin with. Ctrl-C ends the search, with the best so far.
    """
    n, count = labels.shape
    # In units of values and of p * scale the problem keeps its form, with caps * scale and an
    # objective times scale.
    caps = caps * matrix.scale
    weights = np.zeros((count, n)) if starts is None else starts.T * matrix.scale
    weights = np.ascontiguousarray(np.clip(weights, 0.0, caps))
    ended = search_all(
        lambda k, limit: _search(matrix, labels[:, k], caps, weights[k], tol, limit),
        count,
        deadline,
        n_jobs,
    )
    outputs = labels * matrix.multiply(labels * weights.T)
    solutions = []
    for k, (status, seconds) in enumerate(ended):
        found = _judge(matrix, labels[:, k], caps, weights[k], tol, outputs[:, k])
        status, certified = judge_bracket(found.bracket, tol, ended=status)
        solutions.append(replace(found, status=status, certified=certified, seconds=seconds))
    return solutions


def _search(
    matrix: KernelMatrix,
    y: np.ndarray,
    caps: np.ndarray,
    weights: np.ndarray,
    tol: float,
    limit: Deadline,
) -> None:
    """Find weights (n,), in place, whose gap is `tol` or as small as it gets."""
    gap = descend(matrix.values, y, caps, weights, tol=_AIM * tol, deadline=limit.at)
    # Steps of nearly equal samples can end in NaN: the cone program goes on from 0 there.
    weights[np.isnan(weights)] = 0.0
    if gap <= tol or limit.passed or len(y) > AFFORDABLE or matrix.compute is not None:
        return
    best = _judge(matrix, y, caps, weights, tol).gap
    for proposed in propose_in_box(matrix.labelled(y), caps, limit.at):
        for p in drop_dust(proposed):
            gap = _judge(matrix, y, caps, p, tol).gap
            if gap < best:
                weights[:], best = p, gap
            if best <= 0.1 * tol:
                return
        if best <= tol or limit.passed:
            return


def _judge(
    matrix: KernelMatrix,
    y: np.ndarray,
    caps: np.ndarray,
    dual: np.ndarray,
    tol: float,
    outputs: np.ndarray | None = None,
) -> SoftKernelSolution:
    """The solution with these dual weights, its numbers recomputed in float64, and in longer floats
    where the rounding of float64 is what keeps the bracket open.
    """
    if outputs is None:
        outputs = y * matrix.multiply((y * dual)[:, None])[:, 0]
    errors = matrix.bound_rounding(dual[:, None])[:, 0]
    found = _bracket_objective(matrix.scale, y, caps, dual, outputs, errors)
    if found.gap > tol and matrix.affords_extended:
        ideal = _bracket_objective(matrix.scale, y, caps, dual, outputs, np.zeros(len(y)))
        if ideal.gap <= tol:
            outputs, errors = matrix.multiply_extended(y * dual)
            found = _bracket_objective(matrix.scale, y, caps, dual, y * outputs, errors)
            found = _judge_rounded(matrix, y, caps, found)
    return found


def _judge_rounded(
    matrix: KernelMatrix, y: np.ndarray, caps: np.ndarray, found: SoftKernelSolution
) -> SoftKernelSolution:
    """The solution with the objective of its coefficients as they are: scaled ones were rounded,
    by more than longer floats lose.
    """
    a = found.coefficients * matrix.scale
    outputs, errors = matrix.multiply_extended(a)
    square = float(a @ outputs + np.abs(a) @ errors)
    hinges = np.maximum(1 - (y * outputs - errors), 0.0)
    sums = 1 + (len(y) + 4) * float(np.finfo(float).eps)
    objective = float((0.5 * square + caps @ hinges) * sums) / matrix.scale
    return replace(found, objective=objective, hinge=float(hinges.sum()))


def _bracket_objective(
    unit: float,
    y: np.ndarray,
    caps: np.ndarray,
    dual: np.ndarray,
    outputs: np.ndarray,
    errors: np.ndarray,
) -> SoftKernelSolution:
    """Both ends of the bracket from labelled outputs (n,) that are known up to `errors` (n,)."""
    eps = (len(y) + 4) * float(np.finfo(outputs.dtype).eps)
    square = max(float(dual @ outputs), 0.0)
    largest_square = square + float(dual @ (errors + eps * np.abs(outputs)))
    found = bracket_hinges(caps, float(dual.sum()), largest_square, outputs - errors, eps)
    return SoftKernelSolution(
        objective=found.objective / unit,
        lower_bound=found.lower / unit,
        certified=False,
        status=Status.STALLED,
        dual=found.shrink * dual / unit,
        seconds=0.0,
        hinge=found.hinge,
        margin=float(outputs.min()) * float(np.sqrt(unit / square)) if square > 0 else 0.0,
        coefficients=found.factor * y * dual / unit,
    )

"""Hard max margin of linear classifiers, in the l2 and the l1 norm."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arguments import check_choice, check_flag, check_number
from ..core.deadline import Deadline
from ..core.matrices import binary_data, evaluation_inputs
from ..result import Bracket, MarginSolution, Status, judge_bracket
from .contradictions import Contradictions, recommended_cost
from .linear_search import Best, search


@dataclass(frozen=True, kw_only=True)
class LinearSolution(MarginSolution):
    """The linear function x -> weights . x~ of norm 1 with the largest min_n y_n weights . x~_n."""

    #: (d,), or (d + 1,) with a bias, float64: Of norm 1 in the chosen norm; 0 where none that
    #: separates the samples was found
    weights: np.ndarray
    bias: bool  #: Whether x~ is (x, 1), and not x

    def decision_function(self, X: Any) -> np.ndarray:
        """Values weights . x~, shape (N,), at inputs X of shape (N, d)."""
        return self.weights @ evaluation_inputs(X, len(self.weights), bias=self.bias).T


def linear_max_margin(
    X: Any,
    y: Any,
    *,
    norm: str = "l2",
    bias: bool = False,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> LinearSolution:
    """The linear classifier with the largest margin in the l2 or the l1 norm.

    It is max over ||w|| <= 1 of min_n y_n w . x~_n; a bias counts in the norm. The proved upper
    bound is the dual norm of sum_n p_n y_n x~_n for probability weights p.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs; computations are in float64.
    y : array_like of shape (n,)
        Labels {-1, +1} or {0, 1}.
    norm : {"l2", "l1"}
        The norm of w.
    bias : bool, default False
        Whether x~ is (x, 1) instead of x.
    tol : float, default 1e-6
        Relative gap between margin and upper bound up to which the status is OPTIMAL.
    time_limit : float, optional
        Seconds after which the best bracket so far is returned. No limit by default.

    Returns
    -------
    LinearSolution
        Weights (float64 of shape (d,), or (d + 1,) with a bias), their margin, the proved upper
        bound and dual weights p of shape (n,). Data that nothing separates give margin 0, p that
        prove it, and a `note` that names the samples.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, NaN, or one class only.
    ArgumentError
        For norm, bias, tol or time_limit out of range.

    Examples
    --------
    >>> from netmargin.solvers import linear_max_margin
    >>> solution = linear_max_margin([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> round(solution.margin, 9), round(3 / 2**0.5, 9)
    (2.121320344, 2.121320344)

    Beyond the papers.
    """
    check_choice("norm", norm, ("l1", "l2"))
    bias, tol = check_flag("bias", bias), check_number("tol", tol, above=0, below=1)
    started, deadline = time.monotonic(), Deadline(time_limit)
    data = binary_data(X, y, bias=bias)
    contradictions = Contradictions.among(data, bias=bias)
    margin, upper, interrupted = 0.0, 0.0, False
    weights, dual = np.zeros(data.Z.shape[1]), contradictions.weights
    if dual is None:
        best = Best(data.y[:, None] * data.Z, norm)
        try:
            dual = search(best, tol, deadline)
        except KeyboardInterrupt:
            interrupted = True
        if dual is None:
            margin, upper, weights, dual = best.margin, best.upper, best.weights, best.dual
    ended = Status.TIME_LIMIT if deadline.passed else Status.STALLED
    ended = Status.INTERRUPTED if interrupted else ended
    status, certified = judge_bracket(Bracket(margin, upper), tol, ended=ended, zero=0.0)
    note = ""
    if status is Status.NOT_SEPARABLE:
        C = recommended_cost(data.mean_square)
        note = contradictions.note(
            dual,
            f"For a soft margin: kernel_soft_margin(X @ X.T{' + 1' if bias else ''}, y, C={C:g}),"
            " or a net instead of a linear function.",
        )
    return LinearSolution(
        margin=margin,
        upper_bound=upper,
        certified=certified,
        status=status,
        dual=dual,
        seconds=time.monotonic() - started,
        note=note,
        weights=weights,
        bias=bias,
    )

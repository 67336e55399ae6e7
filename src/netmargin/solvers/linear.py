"""Hard max margin of linear classifiers, in the l2 and the l1 norm."""

import time
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from ..core.arguments import check_choice, check_flag, check_number
from ..core.matrices import binary_data, evaluation_inputs
from ..core.records import short_repr
from ..result import Bracket, MarginSolution, Status, judge_bracket
from .contradictions import Contradictions, recommended_cost
from .kernel import kernel_max_margin

_ZERO_BOUND = 1e-9
"""A bound below this, relative to the largest entry, is 0: the dual weights solve linear equations
at a vertex, which rounds a bound of 0 to less.
"""


@dataclass(frozen=True, kw_only=True)
class LinearSolution(MarginSolution):
    """The linear function x -> weights . x~ of norm 1 with the largest min_n y_n weights . x~_n.

    Attributes
    ----------
    weights : ndarray of shape (d,), or (d + 1,) with a bias, float64
        Of norm 1 in the chosen norm; 0 where nothing separates the samples. The other fields are
        those of `MarginSolution`.
    bias : bool
        Whether x~ is (x, 1) instead of x.
    """

    weights: np.ndarray
    bias: bool

    __repr__ = short_repr

    def decision_function(self, X) -> np.ndarray:
        """Values weights . x~, shape (N,), at inputs X of shape (N, d)."""
        return evaluation_inputs(X, len(self.weights), bias=self.bias) @ self.weights


def linear_max_margin(
    X, y, *, norm: str = "l2", bias: bool = False, tol: float = 1e-6
) -> LinearSolution:
    """The linear classifier with the largest margin in the l2 or the l1 norm.

    It is max over ||w|| <= 1 of min_n y_n w . x~_n. A bias counts in the norm, as in the nets of
    this library. The proved upper bound is the dual norm of sum_n p_n y_n x~_n for probability
    weights p. Ctrl-C returns the bracket of equal weights p, with `Status.INTERRUPTED`.

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

    Returns
    -------
    LinearSolution
        Weights (float64 of shape (d,), or (d + 1,) with a bias), the margin recomputed in float64,
        the proved upper bound and dual weights p of shape (n,). Data that no such classifier
        separates give margin 0, p that prove it, and a `note` that names the samples.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, NaN, or one class only.
    ArgumentError
        For norm, bias or tol out of range.

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
    started = time.monotonic()
    data = binary_data(X, y, bias=bias)
    scale = data.size
    signed = data.y[:, None] * data.Z / scale
    order, dual_order = (2, 2) if norm == "l2" else (1, np.inf)
    interrupted = False
    try:
        weights, dual = _solve_l2(signed) if norm == "l2" else _solve_l1(signed)
        if norm == "l2" and (signed @ weights).min() <= 0:
            # Where 0 is in the hull of the samples, the vertex that linear programming finds is a
            # proof; a least norm is found to a square root only.
            dual = _solve_l1(signed)[1]
    except KeyboardInterrupt:
        dual, interrupted = np.full(len(data), 1 / len(data)), True
        weights = dual @ signed
    size = np.linalg.norm(weights, order)
    weights = weights / size if size > 0 else weights
    margin = max(float((signed @ weights).min()), 0.0)
    upper = float(np.linalg.norm(dual @ signed, dual_order))
    ended = Status.INTERRUPTED if interrupted else Status.STALLED
    status, certified = judge_bracket(Bracket(margin, upper), tol, ended=ended, zero=_ZERO_BOUND)
    if interrupted:
        weights = weights * (margin > 0)
    note = ""
    if status is Status.NOT_SEPARABLE:
        weights = np.zeros_like(weights)
        C = recommended_cost(float((signed**2).sum(1).mean()) * scale * scale)
        formula = (
            f"kernel_soft_margin(X @ X.T{' + 1' if bias else ''}, y, C={C:g}), or a net instead of"
            " a linear function"
        )
        note = Contradictions.among(data, bias=bias).note(dual, f"For a soft margin: {formula}.")
    return LinearSolution(
        margin=margin * scale,
        upper_bound=upper * scale,
        certified=certified,
        status=status,
        dual=dual,
        seconds=time.monotonic() - started,
        note=note,
        weights=weights,
        bias=bias,
    )


def _solve_l2(signed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (D,) and dual weights (n,): the least norm in the hull of the signed samples."""
    found = kernel_max_margin(signed @ signed.T, np.ones(len(signed)))
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found.dual @ signed, found.dual


def _solve_l1(signed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (D,) and dual weights (n,) of the signed samples by a linear program."""
    n, dimension = signed.shape
    # max t subject to signed (u - v) >= t, sum(u + v) <= 1, u, v >= 0
    A = np.vstack(
        [np.hstack([-signed, signed, np.ones((n, 1))]), np.append(np.ones(2 * dimension), 0.0)]
    )
    bounds = [(0, None)] * (2 * dimension) + [(None, None)]
    found = linprog(
        np.append(np.zeros(2 * dimension), -1.0),
        A_ub=A,
        b_ub=np.append(np.zeros(n), 1.0),
        bounds=bounds,
        method="highs",
    )
    dual = np.maximum(-found.ineqlin.marginals[:n], 0.0)
    return found.x[:dimension] - found.x[dimension : 2 * dimension], dual / dual.sum()

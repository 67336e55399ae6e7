"""The least squared loss of infinitely wide two-layer ReLU nets with a price on their variation
norm.
"""

import time
from dataclasses import dataclass

import numpy as np

from ..core.arguments import check_flag, check_number
from ..core.matrices import (
    SolverData,
    check_sample_weight,
    regression_data,
    split_lengths,
    warn_of_size,
)
from ..result import Bracket, RegularizedSolution, judge_bracket
from .attained import attained_squared_objective
from .columns.engine import generate_columns
from .columns.losses import SquaredLoss
from .columns.options import read_options
from .columns.regularized_problem import RegularizedProblem
from .solution import ReLUMeasure, describe_proof

_UNEXPLAINED = 0.01
"""Part of the mean square of y to which the tolerance refers where nothing is to be proved: at a
tolerance of 1e-2, R^2 is then within 1e-4 of what search believes to be possible.
"""


@dataclass(frozen=True, kw_only=True)
class SquaredVariationNormSolution(ReLUMeasure, RegularizedSolution):
    """A measure with a small mean squared loss and small mass, which is ||theta||^2 of the net.

    Attributes
    ----------
    loss : float
        Half the weighted mean of the squared residuals.
    lower_bound_from : str
        How the lower bound was proved, as in `VariationNormSolution`. The other fields are those of
        `ReLUMeasure` and `RegularizedSolution`; `dual` are residuals over n, shrunk until they
        prove the bound.
    """

    loss: float
    lower_bound_from: str


def f1_squared(
    X,
    y,
    *,
    regularization: float,
    sample_weight=None,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    seed: int = 0,
    progress: bool = False,
) -> SquaredVariationNormSolution:
    """The least mean_n w_n (f(x_n) - y_n)^2 / 2 + regularization ||theta||^2 / 2 of two-layer ReLU
    nets of any width.

    By balancing layers the second term is regularization sum_j |alpha_j| over f = sum_j alpha_j
    relu(u_j . x~), |u_j| = 1: the lasso over all neurons. The mean of the weights is 1.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs; computations are in float64.
    y : array_like of shape (n,)
        Real values.
    regularization : float
        Price of the norm, > 0.
    sample_weight : array_like of shape (n,), optional
        Weights w_n >= 0, divided by their mean; 1 by default.
    bias : bool, default True
        Whether neurons have a bias.
    tol, time_limit, pricing, seed, progress
        As in `f1_logistic`.

    Returns
    -------
    SquaredVariationNormSolution
        A measure of k neurons (`atoms`, float64 of shape (k, D)), its `objective`, and the proved
        `lower_bound`.

    Raises
    ------
    DataError
        For X, y or sample_weight of a wrong shape or kind, or NaN.
    ArgumentError
        For regularization <= 0, and other arguments out of range.

    Examples
    --------
    >>> from netmargin.solvers.squared import f1_squared
    >>> one = f1_squared([[1.0]], [1.0], regularization=0.25, bias=False)  # f(1) = 1 - 0.25
    >>> one.certified, round(float(one.decision_function([[1.0]])[0]), 9)
    (True, 0.75)

    Beyond the papers.
    """
    started = time.monotonic()
    price = check_number("regularization", regularization, above=0)
    options = read_options(tol, time_limit, pricing, seed)
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = regression_data(X, y, bias=bias)
    warn_of_size(len(data), "The regularized regression")
    weights = check_sample_weight(sample_weight, len(data))
    roots = np.sqrt(weights / weights.mean())
    # sqrt(w) f(z) = f(sqrt(w) z): a weight is a longer sample with a larger value.
    Z, target = roots[:, None] * data.Z, roots * data.y
    length = float(split_lengths(Z)[0].max()) or 1.0
    size = float(np.abs(target).max()) or 1.0
    Z, target, unit = Z / length, target / size, size * size
    worth = _UNEXPLAINED * options.tol * float((target**2).mean()) / 2
    best = RegularizedProblem(
        Z,
        SquaredLoss(target),
        price / (size * length),
        options,
        enough=worth if options.pricing == "local" else 0.0,
    )
    ending = generate_columns(
        best,
        progress=progress,
        title="regularized squared loss",
        in_units=lambda bracket: Bracket(bracket.lower * unit, bracket.upper * unit),
    )
    # In units of the largest value, which may be beyond the squares of float64.
    measure = ReLUMeasure(
        atoms=np.column_stack([best.U, best.s]) / np.sqrt(2),
        weights=2 * best.alphas / length,
        bias=False,
    )
    in_units = SolverData(data.Z, data.y / size)
    shares = weights / weights.mean()
    objective = attained_squared_objective(measure, in_units, shares, price / size)
    used, nothing = best.alphas > 0, float((target**2).mean()) / 2
    if not objective <= nothing:  # what f = 0 has is better than what rounding has left
        used, objective = np.zeros_like(used), nothing
    lower = min(best.lower, objective)
    status, certified = judge_bracket(Bracket(lower, objective), options.tol, ended=ending.status)
    residuals = best.A[:, used] @ best.alphas[used] - target
    return SquaredVariationNormSolution(
        objective=objective * unit,
        lower_bound=lower * unit,
        certified=certified,
        status=status,
        dual=best.dual * size * roots / len(target),
        seconds=time.monotonic() - started,
        atoms=measure.atoms[used],
        weights=measure.weights[used] * size,
        bias=bias,
        loss=float((residuals**2).mean()) / 2 * unit,
        lower_bound_from=describe_proof(best.dual, best.proof),
    )

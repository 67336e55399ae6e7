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
from .solution import ReLUMeasure, build_measure, describe_proof

_UNEXPLAINED = 0.01
"""Part of the mean square of y to which the tolerance refers where nothing is to be proved: at a
tolerance of 1e-2, R^2 is then within 1e-4 of what search believes to be possible.
"""


@dataclass(frozen=True, kw_only=True)
class SquaredVariationNormSolution(ReLUMeasure, RegularizedSolution):
    """A measure with a small mean squared loss and small mass, which is ||theta||^2 of the net.

    `loss` is half the weighted mean of the squared residuals, and `dual` are residuals over n,
    shrunk until they prove the bound; other fields are those of `SoftVariationNormSolution`.
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
    nets of any width: the lasso over all neurons. Other arguments are those of `f1_soft_margin`,
    with real y (n,); the mean of the weights w is 1.
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
    measure = build_measure(best.U, best.s, best.alphas / length)
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

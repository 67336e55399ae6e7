"""The least loss of infinitely wide two-layer ReLU nets with a price on their variation norm,
logistic and squared, by column generation.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arguments import check_flag, check_number
from ..core.matrices import (
    SolverData,
    binary_data,
    check_sample_weight,
    regression_data,
    warn_of_size,
)
from ..errors import DataError
from ..losses import Logistic
from ..result import Bracket, RegularizedSolution, Status, judge_bracket
from .attained import attained_logistic_objective, attained_squared_objective
from .columns.engine import Ending, generate_columns
from .columns.options import read_options
from .columns.regularized_problem import RegularizedProblem
from .neurons.labels import Signs
from .neurons.losses import LogisticLoss, squared_loss
from .neurons.samples import Samples
from .solution import LogisticVariationNormSolution, ReLUMeasure, build_measure, describe_proof

_LEAST_PRODUCT = 1e-290
"""Products below it, and above its inverse, lose digits when they are multiplied once more."""
_LOG_2 = float(np.nextafter(np.log(2), 1))
"""At least ln 2, the loss of f = 0."""


@dataclass(frozen=True, kw_only=True)
class SquaredVariationNormSolution(ReLUMeasure, RegularizedSolution):
    """A measure with a small mean squared loss and small mass, which is ||theta||^2 of the net.

    `dual` are residuals over n, shrunk until they prove the bound.
    """

    loss: float  #: Half the weighted mean of the squared residuals
    local_gap: float  #: As in `VariationNormSolution`
    lower_bound_from: str  #: How the lower bound was proved


def f1_logistic(
    X: Any,
    y: Any,
    *,
    regularization: float,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    seed: int = 0,
    progress: bool = False,
    power: int = 1,
    n_jobs: int | None = None,
    activation: Any = "relu",
) -> LogisticVariationNormSolution:
    """The least regularized logistic loss of two-layer ReLU nets of any width.

    It is the minimum of mean_n log(1 + exp(-y_n f(x_n))) + regularization nu(sphere), f(x) = int b
    relu(a . x~)^power d nu(a, b), over nonnegative measures nu on the sphere: the least mean loss +
    regularization ||theta||^2 of nets (power 2: without the output signs). As regularization -> 0,
    f / nu(sphere) tends to the solution of `f1_max_margin`, where the data separate.

    The lower bound is mean_n H(p_n), H the binary entropy in nats, of weights p with |mean_n p_n
    y_n relu(u . x~_n)| <= 2 regularization for all unit u (power 2: regularization, and squares).

    Parameters
    ----------
    X, y
        As in `f1_max_margin`.
    regularization : float
        Price of a unit of ||theta||^2, > 0.
    bias, tol, time_limit, pricing, seed, progress, power, n_jobs, activation
        As in `f1_max_margin`; the tolerance is that of the objective and its lower bound.

    Returns
    -------
    LogisticVariationNormSolution
        A measure of k neurons (`atoms`, float64 of shape (k, D)), its `objective`, the proved
        `lower_bound` with dual weights p / n of shape (n,), and the log of its mean loss.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, NaN, or one class only where two are needed.
    ArgumentError
        For regularization <= 0, and other arguments out of range.

    Examples
    --------
    >>> from netmargin.solvers import f1_logistic
    >>> one = f1_logistic([[1.0]], [1], regularization=0.1, bias=False)  # p = 2 lambda: H(0.2)
    >>> one.certified, round(one.objective, 6)
    (True, 0.500402)
    >>> f1_logistic([[1.0], [1.0]], [1, -1], regularization=0.1).mass  # f = 0 is best
    0.0

    Source: Wei et al. 2018, Example 4.2 and Theorem E.4 (the mean, as in its proofs).
    """
    started = time.monotonic()
    regularization = check_number("regularization", regularization, above=0)
    options = read_options(tol, time_limit, pricing, seed, n_jobs, activation, power)
    phi = options.activation
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The regularized logistic problem")
    if phi.power == 2:
        data.require_squares()
    # On unit points and neurons a unit of weight costs 2 lambda |z|, or lambda |z|^2 (power 2).
    unit = data.longest**phi.power
    cost = 2 / phi.power * regularization / unit
    _require_digits(cost)
    loss = LogisticLoss(Signs(data.y[:, None]), np.full((len(data), 1), 1 / (len(data) * cost)))
    samples = Samples(data.scaled, loss, phi)
    best = RegularizedProblem(samples, options)
    ending = generate_columns(
        best,
        progress=progress,
        title="regularized logistic loss",
        in_units=lambda bracket: Bracket(bracket.lower * cost, bracket.upper * cost),
    )
    signs, sizes = np.sign(best.A[:, 0]), np.abs(best.A[:, 0]) / unit
    measure = build_measure(best.W, signs, sizes, phi, bias)
    attained = attained_logistic_objective(measure, data, regularization)
    used, objective, lower, status, certified = _settle(best, ending, cost, attained, _LOG_2)
    return LogisticVariationNormSolution(
        objective=objective,
        lower_bound=lower,
        certified=certified,
        status=status,
        dual=data.y * best.dual * cost,
        seconds=time.monotonic() - started,
        **vars(replace(measure, atoms=measure.atoms[used], weights=measure.weights[used])),
        log_loss=Logistic().log_sum(data.y * samples.outputs(best.W[used], best.A[used])[:, 0])
        - float(np.log(len(data))),
        local_gap=max(0.0, best.searched_bracket.gap),
        lower_bound_from=describe_proof(best.dual, best.proof),
    )


def f1_squared(
    X: Any,
    y: Any,
    *,
    regularization: float,
    sample_weight: Any = None,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    seed: int = 0,
    progress: bool = False,
    activation: Any = "relu",
) -> SquaredVariationNormSolution:
    """The least mean_n w_n (f(x_n) - y_n)^2 / 2 + regularization ||theta||^2 / 2 of two-layer ReLU
    nets of any width: the lasso over all neurons. Other arguments are those of `f1_soft_margin`,
    with real y (n,); the mean of the weights w is 1.
    """
    started = time.monotonic()
    price = check_number("regularization", regularization, above=0)
    options = read_options(tol, time_limit, pricing, seed, activation=activation)
    phi = options.activation
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = regression_data(X, y, bias=bias)
    warn_of_size(len(data), "The regularized regression")
    weights = check_sample_weight(sample_weight, len(data))
    roots = np.sqrt(weights / weights.mean())
    # sqrt(w) f(z) = f(sqrt(w) z): a weight is a longer sample with a larger value.
    weighted = SolverData(roots[:, None] * data.Z, roots * data.y)
    length, size = weighted.longest, float(np.abs(weighted.y).max()) or 1.0
    target, unit, product = weighted.y / size, size * size, size * length
    cost = price / product if product > 0 else np.inf
    _require_digits(unit, product, cost)
    loss = squared_loss(target[:, None], np.full(len(target), 1 / (len(target) * cost)))
    samples = Samples(weighted.scaled, loss, phi)
    best = RegularizedProblem(samples, options)
    ending = generate_columns(
        best,
        progress=progress,
        title="regularized squared loss",
        in_units=lambda bracket: Bracket(bracket.lower * cost * unit, bracket.upper * cost * unit),
    )
    # In units of the largest value, which may be beyond the squares of float64.
    signs, sizes = np.sign(best.A[:, 0]), np.abs(best.A[:, 0]) / length
    measure = build_measure(best.W, signs, sizes, phi, bias)
    in_units = SolverData(data.Z, data.y / size)
    attained = attained_squared_objective(measure, in_units, roots**2, price / size)
    nothing = float((target**2).mean()) / 2
    used, objective, lower, status, certified = _settle(best, ending, cost, attained, nothing)
    residuals = samples.outputs(best.W[used], best.A[used])[:, 0] - target
    return SquaredVariationNormSolution(
        objective=objective * unit,
        lower_bound=lower * unit,
        certified=certified,
        status=status,
        dual=best.dual * cost * size * roots,
        seconds=time.monotonic() - started,
        **vars(replace(measure, atoms=measure.atoms[used], weights=measure.weights[used] * size)),
        loss=float((residuals**2).mean()) / 2 * unit,
        local_gap=max(0.0, best.searched_bracket.gap),
        lower_bound_from=describe_proof(best.dual, best.proof),
    )


def _require_digits(*products: float) -> None:
    """Raise DataError unless float64 holds all products of inputs, values and prices well."""
    if not all(_LEAST_PRODUCT < product < 1 / _LEAST_PRODUCT for product in products):
        raise DataError(
            "Products of the inputs, the values and the regularization are beyond float64."
            " Multiply X, y or the regularization by a power of 10."
        )


def _settle(
    best: RegularizedProblem, ending: Ending, cost: float, objective: float, nothing: float
) -> tuple[slice, float, float, Status, bool]:
    """The neurons in use, both ends and their status; f = 0 has an objective of `nothing`."""
    used = slice(None)
    if not objective <= nothing:  # what f = 0 has is better than what rounding has left
        used, objective = slice(0), nothing
    lower = min(best.lower * cost, objective)
    bracket = Bracket(lower, objective)
    return used, objective, lower, *judge_bracket(bracket, best.tol, ended=ending.status)

"""The least regularized logistic loss of infinitely wide two-layer ReLU nets, by column
generation.
"""

import time

import numpy as np

from ..core.arguments import check_flag, check_number
from ..core.matrices import binary_data, warn_of_size
from ..result import Bracket, judge_bracket
from .attained import attained_logistic_objective
from .columns.engine import generate_columns
from .columns.losses import LogisticLoss, log_mean_loss
from .columns.options import check_power, read_options
from .columns.regularized_problem import RegularizedProblem
from .solution import LogisticVariationNormSolution, build_measure, describe_proof


def f1_logistic(
    X,
    y,
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
    bias, tol, time_limit, pricing, seed, progress, power, n_jobs
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
    power, options = check_power(power), read_options(tol, time_limit, pricing, seed, n_jobs)
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The regularized logistic problem")
    if power == 2:
        data.require_squares()
    # Features of unit-norm points and neurons; a unit of weight alpha costs 2 lambda |z| (power 2:
    # lambda |z|^2) of mass.
    unit, cost = (
        (data.longest, 2 * regularization / data.longest)
        if power == 1
        else (data.longest**2, regularization / data.longest**2)
    )
    loss = LogisticLoss(data.y)
    best = RegularizedProblem(data.scaled, loss, cost, options, power=power)
    ending = generate_columns(
        best,
        progress=progress,
        title="regularized logistic loss",
        in_units=lambda bracket: bracket,
    )
    measure = build_measure(best.U, best.s, best.alphas / unit, power)
    used = best.alphas > 0
    objective = attained_logistic_objective(measure, data, regularization)
    if not objective <= np.log(2):  # what f = 0 has is better than what rounding has left
        used, objective = np.zeros_like(used), float(np.log(2))
    lower = min(best.lower, objective)
    status, certified = judge_bracket(Bracket(lower, objective), options.tol, ended=ending.status)
    return LogisticVariationNormSolution(
        objective=objective,
        lower_bound=lower,
        certified=certified,
        status=status,
        dual=data.y * best.dual / len(data),
        seconds=time.monotonic() - started,
        atoms=measure.atoms[used],
        weights=measure.weights[used],
        bias=bias,
        power=power,
        log_loss=log_mean_loss(data.y * (best.A[:, used] @ best.alphas[used])),
        lower_bound_from=describe_proof(best.dual, best.proof),
    )

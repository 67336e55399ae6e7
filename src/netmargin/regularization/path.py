"""Minimizers of loss + lambda ||theta||^r for falling lambda, which find the max margin."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from ..errors import DataError
from ..losses import Loss, as_loss
from ..margins import measure
from ..nets.arrays import Arrays
from ..nets.data import Data, as_arrays, pack_data, takes_data
from ..nets.model import with_gradients
from ..nets.named_inputs import view_with_fields
from .following import RegularizationPath, check_path_options, follow_path
from .objective import MarginObjective, RegularizedObjective, SquaresObjective


@takes_data
@with_gradients
def regularization_path(
    make_model: Callable[[], nn.Module],
    data: Data,
    *,
    lambdas: Sequence[float],
    r: float = 2.0,
    norm: str = "global",
    loss: Loss | str | nn.Module | None = None,
    starts: int = 5,
    iterations: int = 100,
    seed: int = 0,
    progress: bool = True,
) -> RegularizationPath:
    """Minimize L_lambda = mean_n l(q_n) + lambda ||theta||^r along falling lambda.

    Takes several starts, in float64, with all samples at once. The minimization is of log L_lambda,
    in the log domain, so that neither term can underflow: lambda = 1e-300 is as good as 1e-3. Each
    lambda begins with the best multiple of the minimizer for the last one, and goes on by L-BFGS,
    through nets with less and less smoothed ReLUs: minima lie on kinks. They are local, as nets are
    not convex; the best start is kept. For two-layer nets `solvers.f1_logistic` has the global
    minimum (r = 2). Ctrl-C returns the rows so far, with `Status.INTERRUPTED`.

    Parameters
    ----------
    make_model : callable
        Makes a net with fresh random weights; called once per start, without arguments, under
        `torch.manual_seed(seed + start)`.
    data : pair or iterable
        Inputs and labels as for `measure`, also by name (docs/inputs.md); read into memory once.
    lambdas : sequence of float
        Strengths lambda > 0 of the penalty, in any order; taken from the largest down.
    r : float, default 2.0
        Power of the norm in the penalty, > 0.
    norm : {"global", "layers"}, default "global"
        Norm in the penalty: ||theta|| over all parameters that require gradients, or "layers",
        lambda sum_i ||W_i||^r over these parameters one by one.
    loss : Loss, str or torch.nn.Module, optional
        Loss of the margins; cross-entropy by default, for one output the logistic loss.
    starts : int, default 5
        Number of starts.
    iterations : int, default 100
        Iterations of L-BFGS for each lambda, start and smoothing.
    seed : int, default 0
        Seed of the first start; the next ones have the next numbers.
    progress : bool, default True
        Whether to show lambda, the objective and the best start as they come.

    Returns
    -------
    RegularizationPath
        One row per lambda, from the largest down; margins are those of the best start.

    Raises
    ------
    DataError, ModelError
        The data or a net cannot be used, as for `measure`; a net has nothing to train.
    ArgumentError
        A parameter is out of its range, or `make_model` makes no net.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> make = lambda: torch.nn.Linear(2, 1, bias=False)
    >>> data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> path = nm.regularization_path(make, data, lambdas=[1e-3, 1e-12], starts=1, progress=False)
    >>> abs(path.rows[-1]["normalized_margin"] - 3 / 2**0.5) < 1e-3  # the max margin
    True

    Source: Wei et al. 2018, (2.1) with the mean loss, as its proofs have it, and Theorem 2.1.
    """
    fields, samples = pack_data(data)
    samples, chosen = as_arrays(samples), as_loss(loss)

    def row(objective: RegularizedObjective) -> dict:
        return measure(objective.twin, samples, loss=chosen).to_dict()

    def make(model: nn.Module, r: float, norm: str) -> RegularizedObjective:
        return MarginObjective(view_with_fields(model, fields), samples, chosen, r, norm)

    options = check_path_options(lambdas, r, norm, starts, iterations, seed, progress)
    return follow_path(make_model, make, row, options)


@takes_data
def interpolation_path(
    make_model: Callable[[], nn.Module],
    data: tuple,
    *,
    lambdas: Sequence[float],
    r: float = 2.0,
    norm: str = "global",
    starts: int = 5,
    iterations: int = 100,
    seed: int = 0,
    progress: bool = True,
) -> RegularizationPath:
    """Minimize mean_n (f(x_n) - y_n)^2 + lambda ||theta||^r along falling lambda, for real y.

    Works as `regularization_path` does, for a net with one output. As lambda -> 0, the global
    minimizer of a wide two-layer net becomes the interpolation of least norm, ||theta||^2 -> 2
    |alpha|_1 of `solvers.min_norm_interpolation`; begin with a large lambda, and take several
    starts. Differences end at about 1e-16 of y, below which smaller lambdas change nothing.

    Ctrl-C ends the path early: the rows so far are returned, with `Status.INTERRUPTED`.

    Parameters
    ----------
    make_model : callable
        Makes a net with fresh random weights; called once per start, without arguments, under
        `torch.manual_seed(seed + start)`.
    data : pair (X, y)
        Inputs X of shape (n, ...), as for `measure`, and real values y of shape (n,).
    lambdas : sequence of float
        Strengths lambda > 0 of the penalty, in any order; taken from the largest down.
    r : float, default 2.0
        Power of the norm in the penalty, > 0.
    norm : {"global", "layers"}, default "global"
        Norm in the penalty: ||theta|| over all parameters that require gradients, or "layers",
        lambda sum_i ||W_i||^r over these parameters one by one.
    starts : int, default 5
        Number of starts.
    iterations : int, default 100
        Iterations of L-BFGS for each lambda, start and smoothing.
    seed : int, default 0
        Seed of the first start; the next ones have the next numbers.
    progress : bool, default True
        Whether to show lambda, the objective and the best start as they come.

    Returns
    -------
    RegularizationPath
        One row per lambda, from the largest down; `norm` is that of the
        trained parameters, and `log_mean_loss` the natural log of the mean square.

    Raises
    ------
    DataError
        The data are no pair, y does not hold one finite value per sample, or the net has several
        outputs.
    ModelError
        A net cannot be used, or has nothing to train.
    ArgumentError
        A parameter is out of its range, or `make_model` makes no net.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> make = lambda: torch.nn.Linear(2, 1, bias=False)
    >>> data = ([[1.0, 1.0]], [2.0])
    >>> path = nm.interpolation_path(make, data, lambdas=[1e-2, 1e-8], starts=1, progress=False)
    >>> abs(path.rows[-1]["norm"] - 2**0.5) < 1e-6  # the least norm with w . (1, 1) = 2
    True

    Source: Wei et al. 2018, Theorem D.3.
    """
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise DataError(
            f"The data must be a pair (X, y) of inputs and real values; got {type(data).__name__}."
        )
    try:
        X, values = data[0], torch.as_tensor(data[1], dtype=torch.float64).reshape(-1)
        # Labels of 0 stand in for y, which need not be labels here.
        inputs = as_arrays((X, torch.zeros(len(X)))).X
    except (TypeError, ValueError, RuntimeError) as error:
        raise (
            error
            if isinstance(error, DataError)
            else DataError(f"The data cannot be read as numbers: {error}.")
        ) from error
    if len(values) != len(inputs) or not torch.isfinite(values).all():
        raise DataError(
            f"y must hold one finite value per sample; got {len(values)} for {len(inputs)} samples"
        )
    samples = Arrays(inputs, values)

    def row(objective: RegularizedObjective) -> dict:
        return {"log_mean_loss": objective.log_mean_loss(), "norm": objective.size()}

    def make(model: nn.Module, r: float, norm: str) -> RegularizedObjective:
        return SquaresObjective(model, samples, r, norm)

    options = check_path_options(lambdas, r, norm, starts, iterations, seed, progress)
    return follow_path(make_model, make, row, options)

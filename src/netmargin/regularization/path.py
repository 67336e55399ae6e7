"""Minimizers of loss + lambda ||theta||^r for falling lambda, which find the max margin."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from joblib import Parallel, delayed
from torch import Tensor, nn

from ..core.arguments import (
    check_choice,
    check_count,
    check_flag,
    check_instance,
    check_number,
    check_numbers,
    check_seed,
)
from ..core.batches import Arrays, Data, as_arrays
from ..core.denormals import flush_denormals
from ..core.doors import pack_data
from ..core.grad_mode import with_gradients
from ..core.named_inputs import view_with_fields
from ..core.progress import Progress
from ..core.threads import fitting_threads
from ..errors import ArgumentError, DataError
from ..losses import Loss, as_loss
from ..margins import measure
from ..result import Status
from ..training.history import History
from .objective import MarginObjective, RegularizedObjective, SquaresObjective


@dataclass
class RegularizationPath(History):
    """Minimizers along a falling lambda: one row per lambda, of the best start there.

    Attributes
    ----------
    rows : list of dict
        Keys: epoch (index of lambda); regularization (lambda); log_objective (natural log of
        L_lambda); stationarity (|grad log L_lambda| ||theta||, 0 at smooth stationary points, but
        not on kinks of ReLU); start (index of the best start). Beside them those of
        `MarginReport.to_dict()`, or, of `interpolation_path`, log_mean_loss and norm.
    status : Status
        How the path ended: FINISHED, or INTERRUPTED after the last row.
    message : str
        A sentence that says where it ended.
    states : dict of float to state dict
        The parameters of the best start by lambda, in float64.
    """

    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)

    __repr__ = History.__repr__


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

    return _follow(make_model, make, row, lambdas, r, norm, starts, iterations, seed, progress)


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

    return _follow(make_model, make, row, lambdas, r, norm, starts, iterations, seed, progress)


def _follow(
    make_model: Callable[[], nn.Module],
    make: Callable[[nn.Module, float, str], RegularizedObjective],
    row: Callable[[RegularizedObjective], dict],
    lambdas: Sequence[float],
    r: float,
    norm: str,
    starts: int,
    iterations: int,
    seed: int,
    progress: bool,
) -> RegularizationPath:
    """Check the arguments, and minimize for one lambda after the other from every start.

    make : the objective of a model, given r and norm.
    row : the keys of a row that depend on what is minimized.
    """
    ordered = sorted(set(check_numbers("lambdas", lambdas, above=0)), reverse=True)
    r, norm = check_number("r", r, above=0), check_choice("norm", norm, ("global", "layers"))
    starts, iterations = check_count("starts", starts), check_count("iterations", iterations)
    seed, progress = check_seed(seed), check_flag("progress", progress)
    # A net is callable, too, but every start would share its weights.
    if isinstance(make_model, nn.Module) or not callable(make_model):
        raise ArgumentError(
            "make_model must be a function without arguments that makes a net with fresh random"
            f" weights, such as lambda: nm.models.mlp([2, 20, 1]); got {type(make_model).__name__}"
        )
    path, runs = RegularizationPath(), []
    for start in range(starts):
        with torch.random.fork_rng():
            torch.manual_seed(seed + start)
            runs.append(make(_call_make_model(make_model), r, norm))
    with (
        fitting_threads(runs[0].scored.work),
        flush_denormals(),
        Progress(progress, "regularization path") as display,
    ):
        try:
            for index, value in enumerate(ordered):
                log_lambda = math.log(value)
                # All starts go on, not only the best: which is best changes with lambda. One after
                # the other, unless the caller's joblib.parallel_config says where else.
                runs = list(
                    Parallel()(delayed(_descend)(run, log_lambda, iterations) for run in runs)
                )
                objectives = [run(log_lambda).item() for run in runs]
                best = min(range(starts), key=lambda k: objectives[k])
                head = {
                    "epoch": index,
                    "regularization": value,
                    "log_objective": objectives[best],
                    "stationarity": runs[best].stationarity(log_lambda),
                    "start": best,
                }
                found = head | row(runs[best])
                # Row and state are kept at one moment: Ctrl-C finds both of a lambda, or neither.
                path.states[value] = {
                    n: p.detach().clone() for n, p in runs[best].twin.state_dict().items()
                }
                path.rows.append(found)
                display.draw(
                    index,
                    len(ordered) - 1 - index,
                    f"lambda {value:g}  log L {objectives[best]:.6g}  start {best}",
                )
            path.status = Status.FINISHED
            path.message = f"{len(ordered)} values of lambda down to {ordered[-1]:g}"
        except KeyboardInterrupt:
            path.status = Status.INTERRUPTED
            path.message = f"interrupted after {len(path.rows)} values of lambda"
    return path


def _descend(run: RegularizedObjective, log_lambda: float, iterations: int) -> RegularizedObjective:
    """The objective after a descent, in whatever process: a copy comes back from another one."""
    run.descend(log_lambda, iterations)
    return run


def _call_make_model(make_model: Callable[[], nn.Module]) -> nn.Module:
    """The net that the caller's function makes. Raises ArgumentError where it makes none."""
    try:
        model = make_model()
    except TypeError as error:
        raise ArgumentError(
            f"make_model() failed: {error}. It is called without arguments, once for each start."
        ) from error
    return check_instance("make_model()", model, nn.Module, "a torch.nn.Module")

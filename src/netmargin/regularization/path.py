"""Minimizers of loss + lambda ||theta||^r for falling lambda: weak regularization finds the max
margin.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
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
from ..core.progress import Progress
from ..core.threads import fitting_threads
from ..errors import ArgumentError, DataError
from ..losses import Loss, as_loss
from ..margins import measure
from ..training.history import History
from .objective import MarginObjective, RegularizedObjective, SquaresObjective


@dataclass
class RegularizationPath(History):
    """Rows, one per lambda, of the best start there; the keys of `MarginReport.to_dict()`, and

    regularization : lambda. log_objective : natural log of L_lambda. stationarity : |grad log
        L_lambda| ||theta||, 0 at smooth stationary points, but not on kinks of ReLU.
    start : which one was best.
    states : the parameters there, by lambda.
    """

    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)

    __repr__ = History.__repr__


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
    """Minimize L_lambda = mean_n l(q_n) + lambda ||theta||^r for each lambda, from several starts,
    each begun where the one before ended; float64, all samples at once.

    What is minimized is log L_lambda, in the log domain, so that neither term can underflow: lambda
    = 1e-300 is as good as 1e-3. Each lambda begins with the best multiple of the last minimizer,
    and goes on by L-BFGS, through nets with less and less smoothed ReLUs: minima lie on kinks. They
    are local, as nets are not convex; the best start is kept. For two-layer nets
    `solvers.f1_logistic` has the global minimum (r = 2).

    Parameters
    ----------
    make_model : makes a net with fresh random weights; called once per start, under
        torch.manual_seed(seed + start).
    lambdas : > 0; taken from the largest down.
    r : of the penalty, > 0.
    norm : "global", ||theta|| over all parameters that require gradients, or "layers", lambda sum_i
        ||W_i||^r over them one by one.
    loss : `CrossEntropy()` by default, for one output the logistic loss.
    starts : how many.
    iterations : of L-BFGS, for each lambda, start and smoothing.

    Raises DataError, ModelError : as `measure`. ValueError : parameters out of range. Ctrl-C
        returns the rows so far.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> make = lambda: torch.nn.Linear(2, 1, bias=False)
    >>> path = nm.regularization_path(make, ([[2.0, 1.0], [-1.0, -2.0]], [1, -1]), lambdas=[1e-3, 1e-12], starts=1, progress=False)
    >>> abs(path.rows[-1]["normalized_margin"] - 3 / 2**0.5) < 1e-3          # the max margin
    True

    Source: Wei et al. 2018, (2.1) with the mean loss, as its proofs have it, and Theorem 2.1.
    """
    samples, chosen = as_arrays(data), as_loss(loss)

    def row(objective: RegularizedObjective) -> dict:
        return measure(objective.twin, samples, loss=chosen).to_dict()

    def make(model: nn.Module, r: float, norm: str) -> RegularizedObjective:
        return MarginObjective(model, samples, chosen, r, norm)

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
    """Minimize mean_n (f(x_n) - y_n)^2 + lambda ||theta||^r for each lambda, as
    `regularization_path` does, for real y and a net with one output.

    As lambda -> 0, the global minimizer of a wide two-layer net becomes the interpolation of least
    norm, ||theta||^2 -> 2 |alpha|_1 of `solvers.min_norm_interpolation`; begin with a large lambda,
    and take several starts. Squares of differences end at about 1e-16 of those of y, below which
    smaller lambdas change nothing. Rows have regularization, log_objective, log_mean_loss, norm (of
    what is trained), stationarity and start. Parameters and errors : as `regularization_path`;
    DataError for several outputs.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> make = lambda: torch.nn.Linear(2, 1, bias=False)
    >>> path = nm.interpolation_path(make, ([[1.0, 1.0]], [2.0]), lambdas=[1e-2, 1e-8], starts=1, progress=False)
    >>> abs(path.rows[-1]["norm"] - 2**0.5) < 1e-6                     # the least norm through w . (1, 1) = 2
    True

    Source: Wei et al. 2018, Theorem D.3.
    """
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise DataError(
            f"The data must be a pair (X, y) of inputs and real values; got {type(data).__name__}."
        )
    try:
        X, values = data[0], torch.as_tensor(data[1], dtype=torch.float64).reshape(-1)
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
    ordered = sorted(set(check_numbers("lambdas", lambdas, above=0)), reverse=True)
    r, norm = check_number("r", r, above=0), check_choice("norm", norm, ("global", "layers"))
    starts, iterations = check_count("starts", starts), check_count("iterations", iterations)
    seed, progress = check_seed(seed), check_flag("progress", progress)
    if isinstance(make_model, nn.Module) or not callable(make_model):
        raise ArgumentError(
            "make_model must be a function without arguments that makes a net with fresh random"
            f" weights, such as lambda: nm.models.mlp([2, 20, 1]); got {type(make_model).__name__}"
        )
    path, runs = RegularizationPath(), []
    for start in range(starts):
        with torch.random.fork_rng():
            torch.manual_seed(seed + start)
            runs.append(make(_made(make_model), r, norm))
    with (
        fitting_threads(runs[0].work),
        flush_denormals(),
        Progress(progress, "regularization path") as display,
    ):
        try:
            for index, value in enumerate(ordered):
                log_lambda = math.log(value)
                for run in runs:
                    run.descend(log_lambda, iterations)
                objectives = [run(log_lambda).item() for run in runs]
                best = min(range(starts), key=lambda k: objectives[k])
                head = {
                    "epoch": index,
                    "regularization": value,
                    "log_objective": objectives[best],
                    "stationarity": runs[best].stationarity(log_lambda),
                    "start": best,
                }
                path.rows.append(head | row(runs[best]))
                path.states[value] = {
                    n: p.detach().clone() for n, p in runs[best].twin.state_dict().items()
                }
                display.draw(
                    index,
                    len(ordered) - 1 - index,
                    f"lambda {value:g}  log L {objectives[best]:.6g}  start {best}",
                )
            path.status = f"{len(ordered)} values of lambda down to {ordered[-1]:g}"
        except KeyboardInterrupt:
            path.status = f"interrupted after {len(path.rows)} values of lambda"
    return path


def _made(make_model: Callable[[], nn.Module]) -> nn.Module:
    try:
        model = make_model()
    except TypeError as error:
        raise ArgumentError(
            f"make_model() failed: {error}. It is called without arguments, once for each start."
        ) from error
    return check_instance("make_model()", model, nn.Module, "a torch.nn.Module")

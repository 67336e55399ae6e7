"""A path of minimizers: from one lambda to the next, from several starts at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from joblib import Parallel, delayed
from torch import Tensor, nn

from ..core.arguments import check_count, check_flag, check_instance, check_numbers, check_seed
from ..core.progress import Progress
from ..errors import ArgumentError
from ..nets.threads import fitting_threads
from ..result import Status
from ..training.history import History
from .objective import RegularizedObjective


@dataclass(repr=False)
class RegularizationPath(History):
    """Minimizers along a falling lambda: one row per lambda, of the best start there.

    Keys of `rows`: epoch (index of lambda); regularization (lambda); log_objective (natural log of
    L_lambda); stationarity (|grad log L_lambda| ||theta||, 0 at smooth stationary points, but not
    on kinks of ReLU); start (index of the best start); those of `MarginReport.to_dict()`. `status`
    is FINISHED, or INTERRUPTED after the last row; `message` says where it ended.
    """

    #: The parameters of the best start by lambda, in float64
    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)
    _title, _over = "Regularization path", ("regularization", "lambda")


def follow_path(
    make_model: Callable[[], nn.Module],
    make: Callable[[nn.Module], RegularizedObjective],
    *,
    lambdas: Sequence[float],
    starts: int,
    iterations: int,
    seed: int,
    progress: bool,
) -> RegularizationPath:
    """Minimize `make(model)` for one lambda after the other from every start, and keep the best."""
    ordered = sorted(set(check_numbers("lambdas", lambdas, above=0)), reverse=True)
    starts, iterations = check_count("starts", starts), check_count("iterations", iterations)
    seed, shown = check_seed(seed), check_flag("progress", progress)
    # A net is callable, too, but every start would share its weights.
    if isinstance(make_model, nn.Module) or not callable(make_model):
        raise ArgumentError(
            "make_model must be a function without arguments that makes a net with fresh random"
            f" weights, such as lambda: nm.models.mlp([2, 20, 1]); got {type(make_model).__name__}"
        )
    runs = []
    for start in range(starts):
        with torch.random.fork_rng():
            torch.manual_seed(seed + start)
            runs.append(make(_call_make_model(make_model)))
    path = RegularizationPath()
    work = runs[0].scored.work
    with fitting_threads(work), Progress(shown, "regularization path") as display:
        try:
            for index, value in enumerate(ordered):
                log_lambda = math.log(value)
                # All starts go on, not only the best: which is best changes with lambda. One after
                # the other, unless the caller's joblib.parallel_config says where else.
                tasks = (delayed(_descend)(run, log_lambda, iterations) for run in runs)
                runs = list(Parallel()(tasks))
                objectives = [run(log_lambda).item() for run in runs]
                best = min(range(len(runs)), key=lambda k: objectives[k])
                head = {
                    "epoch": index,
                    "regularization": value,
                    "log_objective": objectives[best],
                    "stationarity": runs[best].stationarity(log_lambda),
                    "start": best,
                }
                found = head | runs[best].measure()
                # Row and state are kept at one moment: Ctrl-C finds both of a lambda, or neither.
                path.states[value] = runs[best].state()
                path.rows.append(found)
                line = f"lambda {value:g}  log L {objectives[best]:.6g}  start {best}"
                display.draw(index, len(ordered) - 1 - index, line)
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

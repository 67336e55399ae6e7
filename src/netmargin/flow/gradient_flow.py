"""Gradient flow of any net, integrated far beyond the underflow of its loss."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..core.arguments import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_numbers,
    check_optional,
)
from ..core.progress import Progress
from ..errors import ArgumentError
from ..losses import Loss, as_loss
from ..nets.data import Choice, Data, takes_data
from ..nets.equal_samples import warn_of_contradictions
from ..nets.model import with_gradients
from ..nets.threads import fitting_threads
from ..result import Status
from ..training.stopping import StoppingRule, as_stopping_rules
from .dormand_prince import ORDER
from .exact import ExactFlow
from .field import Metric
from .proximal import STEP, ProximalFlow
from .run import FlowRun, Trajectory

__all__ = ["Trajectory", "gradient_flow"]


@takes_data
@with_gradients
def gradient_flow(
    model: nn.Module,
    data: Data,
    *,
    time: float | None = None,
    until: StoppingRule | Sequence[StoppingRule] = (),
    loss: Loss | str | nn.Module | None = None,
    method: str = "exact",
    rtol: float = 1e-8,
    step_size: float | None = None,
    levels: Sequence[float] = (),
    metric: Metric | None = None,
    estimate_error: bool = False,
    max_evaluations: int = 100_000,
    progress: bool = True,
    scores: Choice | None = None,
) -> Trajectory:
    """Integrate gradient flow of the *summed* loss from the model's parameters on.

    The model is not changed: `model.load_state_dict(flow.final, strict=False)` puts the parameters
    at the end into it.

    Solves d theta / dt = -grad Loss(theta) in float64. It is integrated in loss-normalized time, d
    theta / ds = V ||theta||^2 / (1 + ||theta|| |V|) with V minus the gradient of the log-loss, in
    which a homogeneous net moves steadily however small its loss is; t is kept as its logarithm.

    method="exact" is Dormand and Prince's method of order 5 with fixed gates of the ReLUs. Where a
    pre-activation crosses 0 the step ends; one that both sides push back slides along its kink
    until its gate leaves [0, 1]. Other kinks (max pooling, LeakyReLU, clamp) are passed with short
    steps; at one that attracts, the flow stalls and says so. For up to some ten thousand kinks.

    method="proximal" takes long implicit steps, argmin log Loss + |theta - theta_0|^2 / (2 tau),
    each by about 100 gradients of L-BFGS, whatever kinks lie on the way; where samples lose all
    their units, its course may take another branch. Its error falls in proportion to `step_size`.

    Ctrl-C ends the flow early: the trajectory so far is returned, with `Status.INTERRUPTED`.

    Parameters
    ----------
    model : torch.nn.Module
        The net, homogeneous or not, in evaluation mode: stored statistics of BatchNorm are held.
        Its parameters are the start, and those that are frozen stay.
    data : pair or iterable
        Inputs and labels as for `measure`, also by name (docs/inputs.md); read into memory once.
    time : float, optional
        Time t > 0 at which to stop, reached exactly. One of `time` and `until` is needed.
    until : StoppingRule or sequence of StoppingRule, default ()
        Stopping rules as for `train`, such as `LogLossBelow(-40)`; the first one reached ends it.
    loss : Loss, str or torch.nn.Module, optional
        Loss of the margins; cross-entropy by default, for one output the logistic loss.
    method : {"exact", "proximal"}, default "exact"
        How to integrate.
    rtol : float, default 1e-8
        Error per step relative to ||theta||, of the exact method.
    step_size : float, optional
        Length of a step in s, at most 1, at which theta moves by its own length. Exact: used
        instead of `rtol`, and shortened by events. Proximal: 0.02 by default.
    levels : sequence of float, default ()
        Values of log10 of the mean loss; the state where it first falls below one is kept.
    metric : callable, optional
        For d theta_i / dt = -M_i(theta) grad_i instead, with method="exact": given the parameters
        by name, positive factors M by name and of their shapes, 1 for what is left out. So mirror
        flows are written, with M the inverse Hessian of the mirror map.
    estimate_error : bool, default False
        Integrate once more to the same t with halved steps, for `Trajectory.error`; not after
        Ctrl-C.
    max_evaluations : int, default 100_000
        Evaluations of the gradient after which the flow stops and says so.
    progress : bool, default True
        Whether to show log10-loss, margin, log t and the time left as they come.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    Trajectory
        One row per step, the state at the end, and how it ended.

    Raises
    ------
    ArgumentError, DataError, ModelError
        An argument cannot be used, as for `measure`, or nothing says when to stop.
    DivergenceError
        A velocity is not finite.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(1, 1, bias=False)
    >>> _ = net.weight.data.fill_(1.0)
    >>> data, loss = ([[1.0]], [1]), nm.losses.Exponential()
    >>> flow = nm.gradient_flow(net, data, time=10.0, loss=loss, progress=False)
    >>> exact = torch.log(torch.tensor(10 + 2.718281828459045)).item()  # w(t) = log(e + t)
    >>> abs(flow.final["weight"].item() - exact) < 1e-6
    True

    Source: Lyu and Li 2019, Section 4.1 and Lemma H.3; proximal steps are the minimizing movements
    of De Giorgi (1993).
    """
    check_optional(check_number, "time", time, above=0)
    if _is_empty(until) and time is None:
        raise ArgumentError("Say when to stop: time=..., or until=nm.LogLossBelow(...)")
    rules = [] if _is_empty(until) else as_stopping_rules(until)
    check_choice("method", method, ("exact", "proximal"))
    check_number("rtol", rtol, above=0, below=1)
    check_optional(check_number, "step_size", step_size, above=0, at_most=1)
    given: Any = metric
    if given is not None and not (callable(given) and method == "exact"):
        raise ArgumentError(
            'metric must be a function of the parameters by name, and method "exact": got'
            f" {metric!r}, {method!r}"
        )
    levels = [] if _is_empty(levels) else check_numbers("levels", levels)
    check_flag("estimate_error", estimate_error)
    check_count("max_evaluations", max_evaluations)
    check_flag("progress", progress)
    loss = as_loss(loss)

    def prepare(halved: bool, **where: Any) -> FlowRun:
        share = 0.5 if halved else 1.0
        if method == "proximal":
            return ProximalFlow(model, data, loss, step_size=share * (step_size or STEP), **where)
        tolerance, length = rtol * share**ORDER, step_size and share * step_size
        where |= {"metric": metric, "rtol": tolerance, "step_size": length}
        return ExactFlow(model, data, loss, **where)

    log_end = math.inf if time is None else math.log(time)
    run = prepare(False, log_end=log_end, rules=rules, levels=levels, most=max_evaluations)
    warn_of_contradictions(run.twin, run.scored.samples)
    with fitting_threads(run.scored.work), Progress(progress, "gradient flow") as display:
        trajectory = run.run(display)
    # Ctrl-C is meant for all of it, the second run included.
    whole = trajectory.status is not Status.INTERRUPTED
    if estimate_error and whole and run.log_time > -math.inf:
        # To the same time: where a rule stops depends on the steps.
        finer = prepare(True, log_end=run.log_time, rules=[], levels=[], most=4 * max_evaluations)
        with fitting_threads(run.scored.work), Progress(progress, "its error") as display:
            other = finer.run(display)
        if other.status is Status.INTERRUPTED:
            trajectory.status = Status.INTERRUPTED
            trajectory.message += "; interrupted before its error was known"
        else:
            ends = (trajectory.final, other.final)
            coarse, fine = (torch.cat([p.reshape(-1) for p in end.values()]) for end in ends)
            trajectory.error = ((coarse - fine).norm() / fine.norm()).item()
    return trajectory


def _is_empty(given: Any) -> bool:
    """Whether a list or tuple holds nothing."""
    return isinstance(given, (list, tuple)) and not given

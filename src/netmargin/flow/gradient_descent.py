"""Full-batch gradient descent with a constant rate, or with that of the theory, under which the
margin provably never falls.
"""

import math

import torch
from torch import Tensor, nn

from ..core import logspace
from ..core.arguments import check_count, check_number
from ..core.records import plural
from ..errors import DivergenceError, NotHomogeneousError
from ..losses import Exponential
from ..margins import make_report, measure
from ..nets.accepted_models import check_model
from ..nets.counted_weights import hold_frozen_weights
from ..nets.data import Choice, Data, takes_data
from ..nets.model import with_gradients
from ..nets.net_on_samples import NetOnSamples
from ..result import Status
from ..training.history import History
from .field import FlowField, Velocity
from .theory_rate import SmoothnessBounds, TheoryRate

_LARGEST_LOG_STEP = 700.0
"""Natural log of the largest step along the field that is taken: e^709 overflows float64."""


@takes_data
@with_gradients
def gradient_descent(
    model: nn.Module,
    data: Data,
    *,
    steps: int,
    rate: float | SmoothnessBounds,
    relative: float = 1.0,
    scores: Choice | None = None,
) -> History:
    """Descend the *summed* exponential loss over all samples by full-batch gradient steps.

    theta <- theta - eta grad Loss, in float64; the model is changed in place, at the end. With
    bounds on the net's smoothness for `rate`, eta is `relative` times the largest rate that
    condition (S5) allows: then gamma-hat never falls. Ctrl-C ends the run early: the steps so far
    are returned, with `Status.INTERRUPTED`, and the model is as at the last of them.

    Parameters
    ----------
    model : torch.nn.Module
        A homogeneous net; with bounds it must be C^2 away from 0.
    data : pair or iterable
        Inputs and labels as for `measure`, also by name (docs/inputs.md); read into memory once.
    steps : int
        Number of steps, at least 0.
    rate : float or SmoothnessBounds
        The rate eta > 0, or bounds with which the theory chooses it.
    relative : float, default 1.0
        Factor of the theory's rate, > 0; above 1 the theorem promises nothing. Not used with a
        number for `rate`.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    History
        One row per step, the first before any. Keys: epoch (steps so far), log_rate (natural log of
        eta), log_time (natural log of the sum of rates so far), with bounds log_gamma_hat (natural
        log of gamma-hat), and those of `MarginReport.to_dict()`. Where the summed loss rises above
        1, which the theory's rate excludes, the run ends there and `message` says so.

    Raises
    ------
    DataError, ModelError, ArgumentError
        An argument cannot be used, as for `measure`; with bounds, the summed loss is not below 1.
    NotHomogeneousError
        The net has no homogeneity order.
    DivergenceError
        The steps grow beyond float64.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[1.0, 0.0]]))
    >>> data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> history = nm.flow.gradient_descent(net, data, steps=100, rate=0.5)
    >>> len(history), history.message
    (101, 'ran 100 steps')
    >>> history.rows[-1]["normalized_margin"] > history.rows[0]["normalized_margin"]
    True

    Source: Lyu and Li 2019, Theorem E.2.
    """
    steps = check_count("steps", steps, at_least=0)
    relative = check_number("relative", relative, above=0)
    if not isinstance(rate, SmoothnessBounds):
        rate = check_number("rate", rate, above=0)
    model = check_model(model)
    scored, loss = NetOnSamples(model, data), Exponential()
    twin = scored.twin
    hold_frozen_weights(twin, "no descent")
    homogeneity = measure(twin, scored.samples, loss=loss, statistics="fixed").homogeneity
    if not homogeneity.whole or homogeneity.ignored:
        kind = f"This one is {homogeneity.kind}."
        raise NotHomogeneousError(
            "The theory is about homogeneous nets."
            f" {homogeneity.statistics_sentence or homogeneity.bias_sentence or kind}"
        )
    assert homogeneity.order is not None  # of every whole net
    field, history = FlowField(scored, loss), History()
    theta, log_time, first, rule = field.flat().detach(), -math.inf, math.inf, None
    point: dict[str, Tensor] = {}
    try:
        for index in range(steps + 1):
            here = field(theta, field.pattern(theta))
            field.put(theta)
            report = make_report(twin, homogeneity, loss, here.q, here.log_loss)
            row = {"epoch": index, "log_time": log_time} | report.to_dict()
            log_rate, over = -math.inf, False
            if isinstance(rate, SmoothnessBounds):
                log_loss, log_norm = here.log_loss, math.log(report.norm)
                if rule is None:
                    first, order = log_loss, float(homogeneity.order)
                    rule = TheoryRate(log_loss, log_norm, order, rate)
                # Happens only far beyond the rate that (S5) allows.
                over = not log_loss < 0
                if not over:
                    log_rate = math.log(relative) + rule.log_rate(log_loss)
                    row["log_gamma_hat"] = rule.log_gamma_hat(min(log_loss, first), log_norm)
            else:
                log_rate = math.log(rate)
            row["log_rate"] = log_rate
            history.rows.append(row)
            point = field.named(theta)
            history.message = f"ran {plural(index, 'step')}"
            if over:
                history.message += ": there the summed loss was above 1"
                break
            if index < steps:
                theta = _step(theta, here, log_rate, index)
                log_time = logspace.log_add(log_time, log_rate)
        history.status = Status.FINISHED
    except KeyboardInterrupt:
        history.status = Status.INTERRUPTED
        history.message = f"interrupted after {plural(max(len(history) - 1, 0), 'step')}"
    with torch.no_grad():
        for name, values in point.items():
            model.get_parameter(name).copy_(values)
    return history


def _step(theta: Tensor, here: Velocity, log_rate: float, done: int) -> Tensor:
    """The point after a step. Raises DivergenceError where it leaves float64."""
    log_step = log_rate - here.log_time_rate
    # The field is -grad / Loss, times its pace.
    after = theta + here.direction * math.exp(min(log_step, _LARGEST_LOG_STEP))
    if log_step > _LARGEST_LOG_STEP or not torch.isfinite(after.square().sum()):
        raise DivergenceError(
            f"Step {done + 1} left float64: the summed loss was e^{here.log_loss:.4g} before."
            " Take a smaller rate."
        )
    return after

"""Gradients of a loss far below float underflow, of it over a known scale, exp(log L_B - F)."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..core.logspace import as_float64, log_mean, scaled_ratio
from ..losses import Loss
from ..margins import margins, score_gaps, soft_margins
from ..nets.model import scores
from ..nets.whole_tensors import euclidean_norm


def descend(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    loss: Loss,
    log_scale: float,
    rate: float,
    shrinkage: float = 1.0,
) -> None:
    """Take one step on the relative loss of a batch, from `shrinkage` times the parameters."""
    parameters = differentiate(model, scores(model, x), y, loss, log_scale)
    with torch.no_grad():
        for parameter in parameters:
            take_step(parameter, parameter.grad, rate, shrinkage)
            parameter.grad = None


def take_step(parameter: Tensor, gradient: Any, rate: float, shrinkage: float) -> None:
    """Subtract rate times a gradient from `shrinkage` times a parameter, in place."""
    if shrinkage != 1.0:
        parameter.mul_(shrinkage)
    if rate <= torch.finfo(parameter.dtype).max:
        parameter.sub_(gradient, alpha=rate)
    else:  # torch refuses such an alpha; the product may be finite all the same
        parameter.sub_(gradient * rate)


def relative_loss_and_slope(
    model: nn.Module, x: Tensor, y: Tensor, *, loss: Loss, log_scale: float
) -> tuple[float, float]:
    """R_B of a batch and |grad R_B|^2 in the parameters, as `descend` would step along it."""
    outputs = scores(model, x)
    parameters = differentiate(model, outputs, y, loss, log_scale)
    square = math.fsum(euclidean_norm(p.grad) ** 2 for p in parameters)
    model.zero_grad()
    log_sum = loss.log_sum(margins(outputs.detach(), y.to(outputs.device))[1])
    return scaled_ratio(1.0, log_scale - log_mean(log_sum, len(x))), square


def differentiate(
    model: nn.Module, outputs: Tensor, y: Tensor, loss: Loss, log_scale: float
) -> list[Any]:
    """Give parameters the gradients of the relative loss at scores; those that got one."""
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.grad = None
    outputs.backward(relative_gradient(loss, outputs, y.to(outputs.device), log_scale))
    return [parameter for parameter in parameters if parameter.grad is not None]


def relative_gradient(loss: Loss, outputs: Tensor, y: Tensor, log_scale: float) -> Tensor:
    """The gradient of R_B = e^{-F} (1/|B|) sum_n l(q~_n) in the scores (N, C), in closed form.

    A step on R_B with rate alpha is a step on the mean batch loss with rate alpha e^{-F}; with
    F = `log_scale` the log of the mean training loss, every number involved is moderate however
    small the loss is: in float64, F is subtracted from the log of each sample's slope before the
    exponential. y holds signs (C = 1) or class indices.

    Source: Lyu and Li 2019, Appendix K.2, without its batch-wide switch at margin 30.
    """
    with torch.no_grad():
        gaps = score_gaps(outputs, y)
        soft = soft_margins(gaps)
        # -e^{-F} l'(q~_n) / |B|
        slopes = torch.exp(loss.log_slope(soft) - log_scale) / len(outputs)
        if outputs.shape[1] == 1:
            gradient = (-y * slopes)[:, None]
        else:
            slopes = slopes.unsqueeze(1)
            gradient = slopes * torch.exp(soft.unsqueeze(1) - gaps)
            gradient.scatter_(1, y.unsqueeze(1), -slopes)
        return gradient.to(outputs.dtype)


def log_loss(loss: Loss, outputs: Tensor, y: Tensor) -> Tensor:
    """The natural log of the summed loss at scores, float64; its gradient does not underflow."""
    return _LogLoss.apply(outputs, y, loss)


class _LogLoss(torch.autograd.Function):
    """The log-loss of scores, with its gradient in closed form."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, y: Tensor, loss: Loss) -> Tensor:
        value = loss.log_sum(margins(outputs, y)[1])
        ctx.dtype = outputs.dtype
        # Relative to the loss itself, and rounded to the type of the scores only in the end. Where
        # even the log underflows, all slopes are 0.
        scale = log_mean(value, len(outputs)) if value > -math.inf else 0.0
        ctx.save_for_backward(relative_gradient(loss, as_float64(outputs), y, scale))
        return torch.tensor(value, dtype=torch.float64, device=outputs.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Any, ...]:
        (gradient,) = ctx.saved_tensors
        return (upstream[0] * gradient).to(ctx.dtype), None, None


def initial_log_scale(loss: Loss, log_mean_loss: float, classes: int) -> float:
    """F before the first epoch: log of log C, of a net that knows nothing, or of its own mean."""
    # A loss whose slope grows with itself would overflow in steps relative to log C.
    return min(log_mean_loss, math.log(math.log(classes))) if loss.bounded_slope else log_mean_loss

"""The loss of an own training loop, relative to a scale that follows it: `backward` goes on where
the loss underflows.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..core import logspace
from ..core.arguments import check_number
from ..core.batches import Labels
from ..core.devices import where_float64_is
from ..core.processes import gather_from_processes
from ..core.score_outputs import rows_of_scores
from ..errors import ArgumentError, DataError, DivergenceError
from ..losses import Loss, as_loss
from ..margins import margins
from ..margins.of_outputs import require_finite_margins
from .relative_loss import initial_log_scale, relative_gradient


class RelativeLoss(nn.Module):
    """The mean loss of a batch divided by e^F, whose gradient does not underflow.

    It takes the place of `torch.nn.CrossEntropyLoss()` in a loop of your own. F follows the
    training: `rescale()` after each epoch sets it to the log of the mean loss of that epoch, so
    that losses of 1e-800 give gradients of ordinary size. A step of an optimizer on this loss is a
    step on the mean loss with a rate e^-F times larger, which is how losses get that small.

    Values and gradients are computed in float64 from the scores as they are; the gradient is
    returned in the type of the scores. Only batches in training mode count for the next scale; what
    comes after `eval()` changes nothing.

    Parameters
    ----------
    loss : Loss, str, torch.nn.Module or None, default None
        The loss; the cross-entropy (logistic for one output) by default.

    Attributes
    ----------
    log_scale : float or None
        F, a natural log; None before the first batch in training mode, which sets it to the log of
        log C, the loss of a net of C classes that knows nothing, or to its own if that is smaller.
    log_loss : float or None
        The natural log of the mean loss of the last batch.

    Raises
    ------
    ArgumentError
        If `loss` is none; if `rescale` is called before a batch.
    DataError, ModelError
        If labels or scores cannot be used, as in `measure`.
    NonFiniteOutputError
        If scores are NaN or infinite.
    DivergenceError
        If a batch's loss is so far above e^F that the quotient overflows float64.

    Notes
    -----
    `state_dict` holds F, so that a resumed run goes on with it. In a distributed run all processes
    share one scale: each has to call `rescale`.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(1, 1, bias=False)
    >>> _ = net.weight.data.fill_(5000.0)
    >>> criterion = nm.RelativeLoss()
    >>> loss = criterion(net(torch.ones(1, 1)), torch.tensor([1]))  # the loss is e^-5000
    >>> loss.backward()
    >>> criterion.log_loss, loss.item(), net.weight.grad.item()
    (-5000.0, 1.0, -1.0)

    Source: Lyu and Li 2019, Appendix K.
    """

    log_scale: float | None
    log_loss: float | None

    def __init__(self, loss: Loss | str | nn.Module | None = None):
        super().__init__()
        self.loss = as_loss(loss)
        self.log_scale = self.log_loss = None
        self._labels: Labels | None = None
        self._epoch_log_sum, self._epoch_samples = -math.inf, 0

    def forward(self, scores: Any, y: Any) -> Tensor:
        """Return the mean loss of a batch divided by e^F, a float64 scalar.

        The scores have shape (N,) or (N, 1) for a binary net, (N, C) for C classes; an output that
        holds them, as `measure` reads it, will do. The labels y have shape (N,): signs, {0, 1} or
        class indices.
        """
        y = torch.as_tensor(y).detach()
        if y.ndim == 0 or y.numel() != len(y) or not len(y):
            raise DataError(f"y has shape {tuple(y.shape)}. Pass one label per sample.")
        outputs = where_float64_is(rows_of_scores(scores, len(y)))
        self.loss.require_outputs(outputs.shape[1])
        # Labels of earlier batches are remembered: one batch does not tell 0 and -1 apart.
        if self._labels is None or self._labels.outputs != outputs.shape[1]:
            self._labels = Labels(outputs.shape[1])
        targets = self._labels.encode(y.reshape(-1)).to(outputs.device)
        soft = margins(outputs.detach(), targets)[1]
        require_finite_margins(soft, measured=0)
        log_sum = self.loss.log_sum(soft)
        self.log_loss = logspace.log_mean(log_sum, len(y))
        scale = self.log_scale
        if scale is None:
            scale = self._find_first_scale(log_sum, *outputs.shape)
        if self.training:
            self.log_scale = scale
            self._epoch_log_sum = logspace.log_add(self._epoch_log_sum, log_sum)
            self._epoch_samples += len(y)
        value = logspace.scaled_ratio(1.0, scale - self.log_loss)
        if value == math.inf:
            raise DivergenceError(
                f"The loss of this batch is e^{self.log_loss:.6g}, and the scale e^"
                f"{scale:.6g}: their quotient overflows. The steps are too long: lower"
                " the rate, or call rescale() more often."
            )
        return _Relative.apply(outputs, targets, self.loss, scale, value)

    def rescale(self, log_mean_loss: float | None = None) -> float:
        """Set F, which every loss from now on is relative to, and return it.

        It is the natural log of a mean loss; by default of the batches since the last call. Raises
        ArgumentError where there were none.
        """
        log_mean_loss = check_number("log_mean_loss", log_mean_loss, optional=True)
        if log_mean_loss is None:
            log_mean_loss = _mean_over_processes(self._epoch_log_sum, self._epoch_samples)
            if log_mean_loss is None:
                raise ArgumentError(
                    "rescale() takes the mean loss of the batches since the last call, and there"
                    " were none in training mode. Call it after an epoch, or give log_mean_loss."
                )
        self._epoch_log_sum, self._epoch_samples = -math.inf, 0
        self.log_scale = log_mean_loss
        return self.log_scale

    def get_extra_state(self) -> Tensor:
        """F as a float64 tensor, NaN before the first batch."""
        # No buffer: `module.half()` would round it, and e^F with it by factors.
        scale = math.nan if self.log_scale is None else self.log_scale
        return torch.tensor(scale, dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        """Go on with a saved F."""
        scale = float(state)
        self.log_scale = None if math.isnan(scale) else scale

    def _find_first_scale(self, log_sum: float, n: int, outputs: int) -> float:
        """F of the first batch, the same in all processes that train."""
        mean = _mean_over_processes(log_sum, n) if self.training else logspace.log_mean(log_sum, n)
        assert mean is not None  # of n > 0 samples
        return initial_log_scale(self.loss, mean, max(outputs, 2))


def _mean_over_processes(log_sum: float, n: int) -> float | None:
    """The natural log of the mean of n losses in each process; None where there are none at all."""
    total, samples = -math.inf, 0
    for part, count in gather_from_processes((log_sum, n)):
        total, samples = logspace.log_add(total, part), samples + count
    return logspace.log_mean(total, samples) if samples else None


class _Relative(torch.autograd.Function):
    """The relative loss of scores, with its gradient in closed form."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, y: Tensor, loss: Loss, log_scale: float, value: float):
        ctx.save_for_backward(relative_gradient(loss, outputs, y, log_scale))
        return torch.tensor(value, dtype=torch.float64, device=outputs.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple:
        (gradient,) = ctx.saved_tensors
        return upstream[0].to(gradient.dtype) * gradient, None, None, None, None

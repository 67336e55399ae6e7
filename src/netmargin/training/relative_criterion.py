"""The loss of a training loop over a scale that follows it: `backward` goes on past underflow."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core import logspace
from ..core.arguments import check_number, check_optional
from ..core.devices import where_float64_is
from ..errors import ArgumentError, DataError, DivergenceError, ModelError
from ..losses import Loss, as_loss
from ..margins import margins
from ..margins.of_outputs import require_finite_margins
from ..nets.labels import Labels
from ..nets.score_outputs import OutputsError, rows_of_scores, take_output
from ..nets.shared import gather_from_processes
from .relative_loss import initial_log_scale, log_loss

_TENFOLD = math.log(10)
"""A jump is a mean loss ten times that of an earlier epoch. In wrecked runs of MLPs on digits it
was 11 to 55 times, at rates of 0.05 to 1; good ones rise by less, or far below log C.
"""
_DEVIATIONS = 3.0
"""Standard errors of both means that are taken off first: noise of few samples is no jump."""


class RelativeLoss(nn.Module):
    """The mean loss of a batch divided by e^F, whose gradient does not underflow.

    It takes the place of `torch.nn.CrossEntropyLoss()` in a loop of your own, but not with the same
    rate. F follows the training: `rescale()` after each epoch sets it to the log of the mean loss
    of that epoch, so that losses of 1e-800 give gradients of ordinary size. A step of SGD on this
    loss is a step on the mean loss with a rate e^-F times larger, which is how losses get that
    small.

    These gradients do not vanish as the data are fitted, so that a constant rate of SGD wrecks nets
    that are not linear. Take `torch.optim.Adam` at 1e-3, or the rate of docs/training-loops.md.

    Values and gradients are computed in float64 from the scores as they are; the gradient is
    returned in the type of the scores. Only batches in training mode count for the next scale; what
    comes after `eval()` changes nothing.

    Parameters
    ----------
    loss : Loss, str, torch.nn.Module or None, default None
        The loss; the cross-entropy (logistic for one output) by default.

    Attributes
    ----------
    log_scale, log_loss : float or None
        F, a natural log: None before the first batch in training mode, which sets it to the log of
        log C, the loss of a net of C classes that knows nothing, or to its own if that is smaller;
        and the natural log of the mean loss of the last batch.

    Raises
    ------
    ArgumentError
        If `loss` is none; if `rescale` is called before a batch.
    DataError, ModelError, NonFiniteOutputError
        If labels or scores cannot be used, as in `measure`.
    DivergenceError
        If a batch's loss is so far above e^F that the quotient overflows float64; if `rescale()`
        finds that the mean loss has jumped, as docs/training-loops.md says.

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
    _epoch: tuple[np.ndarray, int]
    """The natural logs of the sums of the losses and of their squares, and the number of losses."""

    def __init__(self, loss: Loss | str | nn.Module | None = None) -> None:
        super().__init__()
        self.loss = as_loss(loss)
        self.log_scale = self.log_loss = None
        self._labels: Labels | None = None
        self._forget_epoch()
        self._lowest = math.inf
        """The log of the least mean loss of an epoch, with its standard errors."""

    def forward(self, scores: Any, y: Any) -> Tensor:
        """Return the mean loss of a batch divided by e^F, a float64 scalar.

        The scores have shape (N,) or (N, 1) for a binary net, (N, C) for C classes; an output that
        holds them, as `measure` reads it, will do. The labels y have shape (N,): signs, {0, 1} or
        class indices.
        """
        y = (y if isinstance(y, Tensor) else torch.as_tensor(y, device="cpu")).detach()
        if y.ndim == 0 or y.numel() != len(y) or not len(y):
            raise DataError(f"y has shape {tuple(y.shape)}. Pass one label per sample.")
        try:
            rows = rows_of_scores(scores, len(y))
        except OutputsError as error:
            if (choice := error.choose(y)) is None:
                raise ModelError(f"{str(error).partition(' Name')[0]} Pass that one.") from error
            rows = rows_of_scores(take_output(scores, choice["choice"])[0], len(y))
        outputs = where_float64_is(rows)
        self.loss.require_outputs(outputs.shape[1])
        # Labels of earlier batches are remembered: one batch does not tell 0 and -1 apart.
        if self._labels is None or self._labels.outputs != outputs.shape[1]:
            self._labels = Labels(outputs.shape[1])
        targets = self._labels.encode(y.reshape(-1)).to(outputs.device)
        soft = margins(outputs.detach(), targets)[1]
        require_finite_margins(soft, outputs, targets, measured=0)
        log_sum = log_loss(self.loss, outputs, targets)
        log_mean = log_sum - math.log(len(y))
        self.log_loss = log_mean.item()
        log_squares = torch.logsumexp(-2 * self.loss.f(soft), 0).item()
        batch = np.array([log_sum.item(), log_squares]), len(y)
        scale = self.log_scale
        if scale is None:
            # While training, the same in all processes.
            first = _add([batch] if not self.training else gather_from_processes(batch))
            mean = logspace.log_mean(float(first[0][0]), first[1])
            scale = initial_log_scale(self.loss, mean, max(outputs.shape[1], 2))
        if self.training:
            self.log_scale, self._epoch = scale, _add([self._epoch, batch])
        if logspace.scaled_ratio(1.0, scale - self.log_loss) == math.inf:
            raise DivergenceError(
                f"The loss of this batch, e^{self.log_loss:.6g}, over the scale, e^{scale:.6g},"
                " overflows. The steps are too long: lower the rate, or call rescale() more often."
            )
        return torch.exp(log_mean - scale)

    def rescale(self, log_mean_loss: float | None = None) -> float:
        """Set F, which every loss from now on is relative to, and return it.

        It is the natural log of a mean loss; by default of the batches since the last call. Raises
        ArgumentError where there were none, DivergenceError where the loss has jumped.
        """
        log_mean_loss = check_optional(check_number, "log_mean_loss", log_mean_loss)
        if log_mean_loss is None:
            log_mean_loss = self._end_epoch()
        else:
            self._lowest = math.inf
        self._forget_epoch()
        self.log_scale = log_mean_loss
        return self.log_scale

    def _end_epoch(self) -> float:
        """The log of the mean loss since the last call. Raises DivergenceError where it jumped."""
        sums, n = _add(gather_from_processes(self._epoch))
        if not n:
            raise ArgumentError(
                "rescale() takes the mean loss of the batches since the last call, and there were"
                " none in training mode. Call it after an epoch, or give log_mean_loss."
            )
        log_mean, log_mean_square = (logspace.log_mean(float(total), n) for total in sums)
        # One loss that is all of the mean leaves a variance of n - 1 times its square.
        variance = max(math.exp(min(log_mean_square - 2 * log_mean, math.log(n))) - 1, 0.0)
        error = _DEVIATIONS * math.sqrt(variance / n)
        assert self._labels is not None  # there were batches
        unknown = self.loss.log_sum([-math.log(max(self._labels.outputs, 2) - 1)])
        if (
            error < 1
            and log_mean + math.log1p(-error) > self._lowest + _TENFOLD
            and log_mean > unknown - math.log(2)
        ):
            raise DivergenceError(
                f"The mean loss jumped to {math.exp(min(log_mean, 700)):.3g}: that of an earlier"
                f" epoch was e^{self._lowest:.4g} at most, and a net that knows nothing has"
                f" {math.exp(unknown):.3g}. The steps are too long: lower the rate as the loss"
                " falls, or take torch.optim.Adam at 1e-3."
            )
        self._lowest = min(self._lowest, log_mean + math.log1p(error))
        return log_mean

    def _forget_epoch(self) -> None:
        """Begin the next epoch."""
        self._epoch = np.full(2, -math.inf), 0

    def get_extra_state(self) -> Tensor:
        """F as a float64 tensor, NaN before the first batch."""
        # No buffer: `module.half()` would round it, and e^F with it by factors.
        scale = math.nan if self.log_scale is None else self.log_scale
        return torch.tensor(scale, dtype=torch.float64, device="cpu")

    def set_extra_state(self, state: Tensor) -> None:
        """Go on with a saved F."""
        scale = float(state)
        self.log_scale = None if math.isnan(scale) else scale
        self._lowest = math.inf if math.isnan(scale) else scale


def _add(parts: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """The logs of sums, and the number of samples, of all parts together."""
    return np.logaddexp.reduce([logs for logs, _ in parts]), sum(count for _, count in parts)

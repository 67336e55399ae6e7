"""The smooth margin S(q) = -log mean_n l(q_n) that two-layer nets ascend, for losses with an
exponential tail.
"""

import torch
from torch import Tensor

from ..losses import Exponential, Logistic, Loss


def margin_loss(loss: Loss | None) -> Loss:
    """`Exponential()` by default. Raises ValueError for losses other than it and `Logistic()`."""
    loss = loss or Exponential()
    if not isinstance(loss, (Exponential, Logistic)) or loss.power != 1:
        raise ValueError(f"loss must be Exponential() or Logistic(); got {loss!r}")
    return loss


def sample_weights(minus_q: Tensor, loss: Loss) -> Tensor:
    """grad S: -l'(q_n) / sum_k l(q_k), shape (R, n), a new tensor. Of the exponential loss they sum
    to 1. Where minus_q is -inf they are 0.
    """
    if isinstance(loss, Exponential):
        return torch.softmax(minus_q, 1)
    log_losses = torch.where(
        minus_q < -36, minus_q, torch.log(torch.nn.functional.softplus(minus_q))
    )
    return torch.exp(
        torch.nn.functional.logsigmoid(minus_q) - torch.logsumexp(log_losses, 1, keepdim=True)
    )

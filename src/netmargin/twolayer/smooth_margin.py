"""The smooth margin S(q) = -log mean_n l(q_n) that two-layer nets ascend.

The losses l have an exponential tail.
"""

import torch
from torch import Tensor

from ..errors import ArgumentError
from ..losses import Exponential, Logistic, Loss


def margin_loss(loss: Loss | None) -> Loss:
    """The loss, `Exponential()` for None. Raises ArgumentError unless its tail is exponential."""
    loss = loss or Exponential()
    if not isinstance(loss, (Exponential, Logistic)) or loss.power != 1:
        raise ArgumentError(f"loss must be Exponential() or Logistic(); got {loss!r}")
    return loss


def sample_weights(minus_q: Tensor, loss: Loss) -> Tensor:
    """The gradient of S: weights -l'(q_n) / sum_k l(q_k) (R, n) at -q, 0 where that is -inf; those
    of the exponential loss sum to 1.
    """
    q = -minus_q
    return torch.exp(loss.log_slope(q) - torch.logsumexp(-loss.f(q), 1, keepdim=True))

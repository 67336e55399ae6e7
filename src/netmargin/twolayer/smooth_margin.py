"""The smooth margin S(q) = -log mean_n l(q_n) that two-layer nets ascend, l with a tail of e^-q."""

import torch
from torch import Tensor

from ..errors import ArgumentError
from ..losses import Exponential, Loss, as_loss

_FAR = torch.tensor([50.0, 500.0, 5000.0], dtype=torch.float64, device="cpu")
"""Margins at which a loss has to be e^-q up to a factor: e^-50 is below the rounding of 1."""
_WRONG = torch.tensor([-50.0, -5.0, -0.5, 0.0], dtype=torch.float64, device="cpu")
"""Margins at which the slope of a loss has to stay away from 0, as the cubic one's does not."""


def margin_loss(loss: Loss | str | None) -> Loss:
    """The loss that is meant, `Exponential()` for None. Raises ArgumentError unless its tail is
    exponential (Chizat and Bach 2020, (A2)).
    """
    loss = as_loss(loss or Exponential())
    offsets = loss.f(_FAR) - _FAR
    tail = (offsets - offsets[0]).abs().max() < 1e-6 and (loss.f_prime(_FAR) - 1).abs().max() < 1e-6
    # e^-10 at least: a constant c > 0 with l' >= c, where margins are negative.
    if not (tail and loss.log_slope(_WRONG).min() > -10):
        raise ArgumentError(
            "loss must be e^-q up to a factor for large q, with a slope that stays away from 0 for"
            f" q <= 0, as Exponential() and Logistic() are; got {loss!r}"
        )
    return loss


def sample_weights(minus_q: Tensor, loss: Loss) -> Tensor:
    """The gradient of S: weights -l'(q_n) / sum_k l(q_k) (R, n) at -q, 0 where that is -inf; those
    of the exponential loss sum to 1.
    """
    q = -minus_q.double()  # a loss of one's own is a function of float64 tensors
    weights = torch.exp(loss.log_slope(q) - torch.logsumexp(-loss.f(q), 1, keepdim=True))
    return weights.to(minus_q.dtype)

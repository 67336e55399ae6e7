"""The contract of a loss: f, f' and f^-1, from which all else follows in log domain."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..core import logspace
from ..core.arguments import check_instance, check_number
from ..errors import ArgumentError
from .assumption_b3 import B3Report, check_b3, find_flaw


class Loss:
    """A loss l(q) = e^{-f(q)}, given by f, its derivative f' and its inverse g.

    The loss of a data set is the *sum* of l(q_n) over its margins q_n, which are not normalized.

    Parameters
    ----------
    f, f_prime, g : callable
        The function f, its derivative, and its inverse on [b_f, infinity) at least: elementwise
        from a float64 tensor to a float64 tensor of the same shape.
    b_f : float, default 0
        A margin of at least 0 beyond which f'(q) q does not decrease; the data are separated once
        the *summed* loss is below l(b_f).
    name : str, default "user loss"
        How reports call the loss.

    Raises
    ------
    ArgumentError
        If f, f_prime or g is no function, b_f is negative or not finite, or the name is no text.

    Examples
    --------
    >>> import torch
    >>> from netmargin.losses import Loss
    >>> steep = Loss(
    ...     lambda q: 2 * q, lambda q: torch.full_like(q, 2.0), lambda x: x / 2, name="e^{-2q}"
    ... )
    >>> round(steep.inverse_link(steep.log_sum([9.0])), 12)
    9.0
    >>> print(steep.check_b3())
    (B3) holds up to q = 10000 with b_f = 0, b_g = 0, K = 1

    Source: Lyu and Li 2019, assumption (B3).
    """

    bounded_slope = False
    """True if |l'| stays bounded for negative margins, as for the logistic loss."""
    binary_only = ""
    """The name of a criterion of torch that is a loss of margins with one output only, if it is."""

    def __init__(
        self,
        f: Callable[[Tensor], Tensor],
        f_prime: Callable[[Tensor], Tensor],
        g: Callable[[Tensor], Tensor],
        *,
        b_f: float = 0.0,
        name: str = "user loss",
    ) -> None:
        for argument, function in (("f", f), ("f_prime", f_prime), ("g", g)):
            if not callable(function):
                raise ArgumentError(
                    f"{argument} must be a function from float64 tensors to float64 tensors; got"
                    f" {function!r}"
                )
        self.f, self.f_prime, self.g = f, f_prime, g
        self.b_f = check_number("b_f", b_f, at_least=0)
        self.name = check_instance("name", name, str, "a text")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def require_outputs(self, outputs: int) -> None:
        """Raise ArgumentError where a net has more outputs than the loss is one of margins for."""
        if self.binary_only and outputs > 1:
            raise ArgumentError(
                f"loss: {self.binary_only} of a net with {outputs} outputs is the sum of one"
                " logistic loss for each, which is not the loss of a margin that this library"
                " knows. Pass torch.nn.CrossEntropyLoss(), or train a net with one output."
            )

    def log_sum(self, q: Any) -> float:
        """Return the natural log of the summed loss, log sum_n l(q_n), of margins of shape (N,)."""
        return torch.logsumexp(-self.f(logspace.as_float64(q)), 0).item()

    def log_slope(self, q: Tensor) -> Tensor:
        """Return log(-l'(q)) = log f'(q) - f(q), elementwise, float64."""
        return torch.log(self.f_prime(q)) - self.f(q)

    def weights(self, q: Any) -> Tensor:
        """Return minus the gradient of the summed loss in the margins, normalized to sum 1.

        Shape (N,), float64. All weights are 0 where the gradient itself is 0 (all margins 0 with a
        cubic loss).
        """
        return normalize_slopes(self.log_slope(logspace.as_float64(q)))

    def inverse_link(self, log_loss: float) -> float:
        """Return the margin l^{-1}(e^log_loss) = g(-log_loss) of a single sample with that loss.

        The argument is the natural log of the loss, since the loss itself may underflow.
        """
        return self.g(-logspace.as_float64(log_loss)).item()

    @property
    def log_threshold(self) -> float:
        """The natural log of l(b_f), below which a summed loss proves that the data are separated.

        This is assumption (B4) of Lyu and Li 2019; the monotone phase of the margin starts here.
        """
        return -self.f(logspace.as_float64(self.b_f)).item()

    @cached_property
    def flaw(self) -> str:
        """The first contradiction between f, f' and g at a few margins, in one sentence, or ""."""
        # Once for each loss: one whose derivative is another one's would train without a word.
        return find_flaw(self)

    def check_b3(self, *, largest_q: float = 1e4) -> B3Report:
        """Check assumption (B3) numerically on margins up to `largest_q`: evidence, not a proof."""
        return check_b3(self, largest_q)


def normalize_slopes(log_slopes: Tensor) -> Tensor:
    """Return weights of sum 1 in proportion to e^log_slopes, all 0 if every slope is 0; (N,)."""
    # softmax of nothing but -infinity is NaN: no sample has a slope, so none has a weight.
    return torch.softmax(log_slopes, 0).nan_to_num(nan=0.0)

"""The losses of the papers: exponential and logistic with odd powers, and the cross-entropy.

A new one is a class here (or a `Loss` built from its f, f' and g) and a line of `BY_NAME`.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core import logspace
from ..core.arguments import check_count
from ..core.saved_records import save_by_name
from ..errors import ArgumentError
from .loss import Loss, normalize_slopes


class _OddPower(Loss, ABC):
    """A loss l(q) = e^{-F(h)} of h = q^power for an odd power; subclasses give F."""

    _names: ClassVar[dict[int, str]] = {}

    def __init__(self, power: int = 1) -> None:
        power = check_count("power", power)
        if power % 2 == 0:
            raise ArgumentError(
                "power must be a positive odd integer, so that the loss decreases in q; got"
                f" {power!r}"
            )
        self.power = power
        name = self._names.get(power) or f"{type(self).__name__.lower()}({power})"
        super().__init__(self._f, self._f_prime, self._g, name=name)

    @abstractmethod
    def _f(self, q: Tensor) -> Tensor:
        """Return f(q) = F(q^power), elementwise."""

    @abstractmethod
    def _f_prime(self, q: Tensor) -> Tensor:
        """Return f'(q), elementwise."""

    @abstractmethod
    def _g(self, x: Tensor) -> Tensor:
        """Return the margin q with f(q) = x, elementwise."""

    @abstractmethod
    def _log_slope_difference(self, smallest: Tensor, difference: Tensor) -> Tensor:
        """Return (log F' - F)(h + difference) - (log F' - F)(h), slopes in h = smallest^power."""

    def _power_prime(self, q: Tensor) -> Tensor:
        return self.power * q ** (self.power - 1)

    def _power(self, q: Tensor) -> Tensor:
        return q if self.power == 1 else q**self.power

    def _root(self, x: Tensor) -> Tensor:
        return x if self.power == 1 else torch.sign(x) * x.abs() ** (1 / self.power)

    def weights(self, q: Any) -> Tensor:
        """Return minus the gradient of the summed loss in the margins, normalized to sum 1.

        Shape (N,), float64, accurate also where margins are so large that their slopes round.
        """
        q = logspace.as_float64(q)
        smallest = q.min()
        # Slopes relative to that of the smallest margin: the softmax ignores a common factor, and
        # the differences keep digits that exponents of size 1e5 would lose.
        # q^p - r^p = (q - r)(q^{p-1} + q^{p-2} r + ... + r^{p-1}) keeps those that powers round.
        mixed = sum(q**i * smallest ** (self.power - 1 - i) for i in range(self.power))
        gap = self._log_slope_difference(smallest, (q - smallest) * mixed)
        return normalize_slopes(torch.log(self._power_prime(q)) + gap)


class Exponential(_OddPower):
    """The exponential loss l(q) = e^{-q^power}, with power 1, or 3 for the cubic one.

    For power 3, f'(0) = 0, so (B3.2) holds beyond b_f = 0 only.

    Parameters
    ----------
    power : int, default 1
        A positive odd number.

    Raises
    ------
    ArgumentError
        If the power is no positive odd number.

    Examples
    --------
    >>> from netmargin.losses import Exponential
    >>> Exponential().inverse_link(Exponential().log_sum([3.0, 800.0]))
    3.0

    Source: Lyu and Li 2019, Remark A.1.
    """

    _names: ClassVar = {1: "exponential", 3: "exponential-cubic"}

    def _f(self, q: Tensor) -> Tensor:
        return self._power(q)

    _f_prime, _g = _OddPower._power_prime, _OddPower._root

    def _log_slope_difference(self, smallest: Tensor, difference: Tensor) -> Tensor:
        return -difference


class Logistic(_OddPower):
    """The logistic loss l(q) = log(1 + e^{-q^power}), with power 1, or 3 for the cubic one.

    On the soft margins of a net with several outputs, power 1 is the cross-entropy.

    Parameters
    ----------
    power : int, default 1
        A positive odd number, as of `Exponential`.

    Examples
    --------
    >>> from netmargin.losses import Logistic
    >>> Logistic().log_sum([250_000.0])          # the loss is about 1e-108574
    -250000.0

    Source: Lyu and Li 2019, Remark A.2 and Appendix F.
    """

    _names: ClassVar = {1: "logistic", 3: "logistic-cubic"}

    def __init__(self, power: int = 1) -> None:
        super().__init__(power)
        self.bounded_slope = power == 1

    def _f(self, q: Tensor) -> Tensor:
        return -logspace.log_softplus(-self._power(q))

    def _f_prime(self, q: Tensor) -> Tensor:
        return torch.exp(self.log_slope(q) + self._f(q))

    def _g(self, x: Tensor) -> Tensor:
        return self._root(logspace.neg_log_expm1_exp(-x))

    def inverse_link(self, log_loss: float) -> float:
        """Return the margin of a single sample with that log-loss: a number, without tensors."""
        found = logspace.neg_log_expm1_exp(float(log_loss))
        return math.copysign(abs(found) ** (1 / self.power), found)

    def log_slope(self, q: Tensor) -> Tensor:
        """Return log(-l'(q)) = log(power q^{power-1}) - log(1 + e^{q^power}), elementwise."""
        # With h = q^power, -l'(q) = h'(q) / (1 + e^h): a closed form, from which f' above follows.
        if self.power == 1:
            return -logspace.softplus(q)
        return torch.log(self._power_prime(q)) - logspace.softplus(q**self.power)

    def _log_slope_difference(self, smallest: Tensor, difference: Tensor) -> Tensor:
        return -logspace.softplus_difference(smallest**self.power, difference)


class CrossEntropy(Logistic):
    """The cross-entropy sum_n -log softmax(Phi(x_n))_{y_n}, the logistic loss of soft margins.

    For a net with one output it is the logistic loss.

    Examples
    --------
    >>> from netmargin.losses import CrossEntropy
    >>> round(CrossEntropy().log_sum([0.0, 0.0]), 12)          # log(2 log 2)
    0.326634259978

    Source: Lyu and Li 2019, Appendix F (its display has e^{-Phi} where e^{+Phi} is meant; see
    docs/errata.md).
    """

    _names: ClassVar = {1: "cross-entropy"}

    def __init__(self) -> None:
        super().__init__(power=1)


def find_loss(name: str) -> Loss | None:
    """The loss of this file that has a name, such as "cross-entropy" or "logistic(5)"; or None."""
    kind, _, power = name.partition("(")
    if name in BY_NAME or not power.rstrip(")").isdigit():
        return BY_NAME.get(name)
    made = {"exponential": Exponential, "logistic": Logistic}.get(kind)
    return made(int(power.rstrip(")"))) if made else None


BY_NAME = {
    loss.name: loss
    for loss in (CrossEntropy(), Logistic(), Exponential(), Exponential(3), Logistic(3))
}
"""Every loss that can be chosen by a word, here and on the command line."""

save_by_name(Loss, find_loss)

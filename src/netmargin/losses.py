"""Losses with an exponential tail, l(q) = e^{-f(q)}, kept in log domain.

A loss acts on margins: q_n = y_n Phi(x_n) for a net with one output, and the soft margin q~_n =
-log sum_{j != y_n} e^{-(Phi_{y_n} - Phi_j)} for a net with several (Lyu and Li 2019, Appendix F),
so that `Logistic` on soft margins *is* the cross-entropy. Sums, not means, over samples; natural
logarithms.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .assumption_b3 import B3Report, check_b3, find_flaw
from .core import logspace
from .core.arguments import check_count, check_instance, check_number, suggest_word
from .errors import ArgumentError


class Loss:
    """A loss l(q) = e^{-f(q)} (Lyu and Li 2019, assumption (B3)), given by f, f' and the inverse g
    of f.

    Parameters
    ----------
    f, f_prime, g : callables from float64 tensors to float64 tensors, elementwise. `g` inverts `f`
        on [b_f, infinity) at least.
    b_f : float, at least 0. Beyond it f'(q) q does not decrease; the data are separated once the
        *summed* loss is below l(b_f).
    name : how reports call the loss.

    Examples
    --------
    >>> import torch
    >>> from netmargin.losses import Loss
    >>> steep = Loss(lambda q: 2 * q, lambda q: torch.full_like(q, 2.0), lambda x: x / 2, name="e^{-2q}")
    >>> round(steep.inverse_link(steep.log_sum([9.0])), 12)
    9.0
    >>> print(steep.check_b3())
    (B3) holds up to q = 10000 with b_f = 0, b_g = 0, K = 1
    """

    bounded_slope = False
    """True if |l'| stays bounded for negative margins, as for the logistic loss."""

    def __init__(
        self,
        f: Callable[[Tensor], Tensor],
        f_prime: Callable[[Tensor], Tensor],
        g: Callable[[Tensor], Tensor],
        *,
        b_f: float = 0.0,
        name: str = "user loss",
    ):
        for argument, function in (("f", f), ("f_prime", f_prime), ("g", g)):
            if not callable(function):
                raise ArgumentError(
                    f"{argument} must be a function from float64 tensors to float64 tensors; got"
                    f" {function!r}"
                )
        self.f, self.f_prime, self.g = f, f_prime, g
        self.b_f, self.name = (
            check_number("b_f", b_f, at_least=0),
            check_instance("name", name, str, "a text"),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def log_sum(self, q) -> float:
        """Natural log of the summed loss, log sum_n l(q_n), from margins of shape (N,)."""
        return torch.logsumexp(-self.f(logspace.as_float64(q)), 0).item()

    def log_slope(self, q: Tensor) -> Tensor:
        """log(-l'(q)) = log f'(q) - f(q), elementwise."""
        return torch.log(self.f_prime(q)) - self.f(q)

    def weights(self, q) -> Tensor:
        """Minus the gradient of the summed loss in the margins, normalized to sum 1; shape (N,),
        float64.

        All 0 where the gradient itself is 0 (all margins 0 with a cubic loss).
        """
        return _normalized(self.log_slope(logspace.as_float64(q)))

    def inverse_link(self, log_loss: float) -> float:
        """The margin l^{-1}(Loss) = g(-log Loss) of a single sample with that loss; takes the
        natural log of it.
        """
        return self.g(-logspace.as_float64(log_loss)).item()

    @property
    def log_threshold(self) -> float:
        """log l(b_f): a summed log-loss below it proves separation (assumption (B4)) and starts the
        monotone phase.
        """
        return -self.f(logspace.as_float64(self.b_f)).item()

    @cached_property
    def flaw(self) -> str:
        """What is wrong with f' or g at a few margins, in one sentence; empty where they agree with
        f.

        Computed once for each loss: a loss whose derivative is another one's would train without a
        word.
        """
        return find_flaw(self.f, self.f_prime, self.g, self.log_slope, self.b_f)

    def check_b3(self, *, largest_q: float = 1e4) -> B3Report:
        """Check assumption (B3) numerically on margins up to `largest_q`: evidence, not a proof."""
        return check_b3(self.f, self.f_prime, self.g, self.b_f, largest_q=largest_q)


class _OddPower(Loss, ABC):
    """l(q) = e^{-F(h)} with h = q^power, power odd; subclasses give F. Differences of powers are
    taken factored.
    """

    _names: ClassVar[dict[int, str]] = {}

    def __init__(self, power: int = 1):
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
    def _f(self, q: Tensor) -> Tensor: ...

    @abstractmethod
    def _f_prime(self, q: Tensor) -> Tensor: ...

    @abstractmethod
    def _g(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def _log_slope_difference(self, smallest: Tensor, difference: Tensor) -> Tensor:
        """log F'(smallest^p + difference) - F(...) minus the same at smallest^p, the outer slope
        without that of the power.
        """

    def _power_prime(self, q: Tensor) -> Tensor:
        return self.power * q ** (self.power - 1)

    def _root(self, h: Tensor) -> Tensor:
        return h if self.power == 1 else torch.sign(h) * h.abs() ** (1 / self.power)

    def _power_difference(self, q: Tensor, r: Tensor) -> Tensor:
        # q^p - r^p = (q - r)(q^{p-1} + q^{p-2} r + ... + r^{p-1}) keeps the digits that the two
        # powers would round away.
        return (q - r) * sum(q**i * r ** (self.power - 1 - i) for i in range(self.power))

    def weights(self, q) -> Tensor:
        q = logspace.as_float64(q)
        smallest = q.min()
        gap = self._log_slope_difference(smallest, self._power_difference(q, smallest))
        return _normalized(torch.log(self._power_prime(q)) + gap)


def _normalized(log_slopes: Tensor) -> Tensor:
    return torch.softmax(log_slopes, 0).nan_to_num(nan=0.0)


class Exponential(_OddPower):
    """l(q) = e^{-q^power}: the exponential loss (power 1) and e^{-q^3} (power 3).

    For power 3, f'(0) = 0, so (B3.2) holds beyond b_f = 0 only. Source: Lyu and Li 2019, Remark
    A.1.

    Examples
    --------
    >>> from netmargin.losses import Exponential
    >>> Exponential().inverse_link(Exponential().log_sum([3.0, 800.0]))
    3.0
    """

    _names: ClassVar = {1: "exponential", 3: "exponential-cubic"}

    def _f(self, q: Tensor) -> Tensor:
        return q**self.power

    def _f_prime(self, q: Tensor) -> Tensor:
        return self._power_prime(q)

    def _g(self, x: Tensor) -> Tensor:
        return self._root(x)

    def _log_slope_difference(self, smallest: Tensor, difference: Tensor) -> Tensor:
        return -difference


class Logistic(_OddPower):
    """l(q) = log(1 + e^{-q^power}): the logistic loss (power 1) and log(1 + e^{-q^3}) (power 3).

    On the soft margins of a net with several outputs, power 1 is the cross-entropy.
    Source: Lyu and Li 2019, Remark A.2 and Appendix F.

    Examples
    --------
    >>> from netmargin.losses import Logistic
    >>> Logistic().log_sum([250_000.0])          # the loss is about 1e-108574
    -250000.0
    """

    _names: ClassVar = {1: "logistic", 3: "logistic-cubic"}

    def __init__(self, power: int = 1):
        super().__init__(power)
        self.bounded_slope = power == 1

    def _f(self, q: Tensor) -> Tensor:
        return -logspace.log_softplus(-(q**self.power))

    def _f_prime(self, q: Tensor) -> Tensor:
        return torch.exp(self.log_slope(q) + self._f(q))

    def _g(self, x: Tensor) -> Tensor:
        return self._root(logspace.neg_log_expm1_exp(-x))

    def log_slope(self, q: Tensor) -> Tensor:
        return torch.log(self._power_prime(q)) - logspace.softplus(q**self.power)

    def _log_slope_difference(self, smallest: Tensor, difference: Tensor) -> Tensor:
        return -logspace.softplus_difference(smallest**self.power, difference)


class CrossEntropy(Logistic):
    """The cross-entropy sum_n -log softmax(Phi(x_n))_{y_n}, written as the logistic loss of the
    soft margins.

    For a net with one output it is the logistic loss. Source: Lyu and Li 2019, Appendix F (its
    display has e^{-Phi} where e^{+Phi} is meant; see docs/errata.md).
    """

    _names: ClassVar = {1: "cross-entropy"}

    def __init__(self):
        super().__init__(power=1)


BY_NAME = {
    loss.name: loss
    for loss in (CrossEntropy(), Logistic(), Exponential(), Exponential(3), Logistic(3))
}


_CLASSES = (CrossEntropy, Logistic, Exponential)
"""Their derivatives and inverses are held by our own tests, so no call has to check them again."""
_OF_TORCH = {
    nn.CrossEntropyLoss: CrossEntropy,
    nn.BCEWithLogitsLoss: Logistic,
    nn.SoftMarginLoss: Logistic,
}
"""Losses of torch that are one of these; the labels are encoded by us, as signs or class
indices.
"""
_WANTED = (
    f"a loss: None, one of the names {', '.join(BY_NAME)}, a netmargin.losses.Loss, or"
    " torch.nn.CrossEntropyLoss()"
)


def as_loss(loss: Any) -> Loss:
    """The loss that a caller means; every public function reads its argument `loss` by this one.

    Parameters
    ----------
    loss : None (the cross-entropy), a name from `BY_NAME`, a `Loss`, or torch's CrossEntropyLoss,
        BCEWithLogitsLoss or SoftMarginLoss with their default options.

    Returns
    -------
    A `Loss` whose derivative and inverse agree with its values at a few margins.

    Raises
    ------
    ArgumentError : for anything else; class weights or label smoothing, which change what a margin
        is; and a loss whose derivative or inverse is wrong, with the margin where that is seen.

    Examples
    --------
    >>> from netmargin.losses import as_loss
    >>> as_loss("exponential"), as_loss(None), as_loss(torch.nn.CrossEntropyLoss())
    (<Exponential exponential>, <CrossEntropy cross-entropy>, <CrossEntropy cross-entropy>)
    """
    if loss is None:
        return CrossEntropy()
    if isinstance(loss, str):
        if loss not in BY_NAME:
            raise ArgumentError(
                " ".join(
                    filter(
                        None,
                        (f"loss must be {_WANTED}; got {loss!r}.", suggest_word(loss, BY_NAME)),
                    )
                )
            )
        return BY_NAME[loss]
    if type(loss) in _OF_TORCH:
        return _from_torch(loss)
    if isinstance(loss, type) and loss in _OF_TORCH:
        raise ArgumentError(
            f"loss must be {_WANTED}; got the class {loss.__name__}. Write {loss.__name__}()."
        )
    check_instance("loss", loss, Loss, _WANTED)
    if type(loss) not in _CLASSES and loss.flaw:
        raise ArgumentError(f"loss {loss.name!r} contradicts itself: {loss.flaw}")
    return loss


def _from_torch(loss: nn.Module) -> Loss:
    own, usual = vars(loss), vars(type(loss)())
    # ignore_index drops samples, and a margin is at stake for each of them; the reduction only
    # scales the loss.
    names = ("weight", "pos_weight", "label_smoothing", "ignore_index", "reduction")
    given = {**own, **loss._buffers}  # weights are buffers
    default = {**usual, **dict.fromkeys(("weight", "pos_weight"))}
    for name in names:
        value = given.get(name)
        if isinstance(value, Tensor) or value != default.get(name):
            shown = (
                f"a tensor of {value.numel()} weights" if isinstance(value, Tensor) else repr(value)
            )
            raise ArgumentError(
                f"loss: {type(loss).__name__} with {name}={shown} is not the loss of a margin that"
                f" this library knows. Pass {type(loss).__name__}() with its default options."
            )
    return _OF_TORCH[type(loss)]()

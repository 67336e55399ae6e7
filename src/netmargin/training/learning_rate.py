"""Rules that choose the learning rate of each epoch and decide whether the epoch counts."""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..core import logspace
from ..core.arguments import check_count, check_instance, check_number
from ..errors import ArgumentError


class LearningRate(ABC):
    """A rule for the learning rate, relative to the loss.

    An epoch takes steps of rate `relative_rate(F)` on the loss divided by e^F, where F is the
    natural log of the mean training loss one epoch ago. Subclasses hold plain numbers as
    attributes, which is what a checkpoint keeps.
    """

    def __repr__(self) -> str:
        held = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({held})"

    @abstractmethod
    def relative_rate(self, log_scale: float) -> float:
        """The rate on the relative loss, where `log_scale` is F."""

    @abstractmethod
    def accept(self, before: float, after: float) -> bool:
        """Decide whether an epoch counts, and adapt the rate to how it went.

        before, after : natural logs of the mean training loss before and after the epoch; infinite
            where it is not finite. False means that the epoch is undone and tried again.
        """

    def begin(  # noqa: B027 (most rules need no such thing)
        self, log_loss: float, polyak_step: Callable[[], float]
    ) -> None:
        """Adapt to a net that separates the data already, before the first epoch of its run.

        log_loss : natural log of its mean loss.
        polyak_step : computes the relative rate at which one step would bring the linearized loss
            of a batch to 0: the smallest over the batches, at the cost of one pass.
        """

    def state_dict(self) -> dict[str, Any]:
        """The state that a resumed run needs: the attributes, which should be plain numbers."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from the state that `state_dict` gave."""
        vars(self).update(state)

    @property
    def exhausted(self) -> bool:
        """Whether the rate is so small that trying again is hopeless."""
        return False

    @property
    def shrinkage(self) -> float:
        """The factor of the parameters in each step of this epoch, 1 without weight decay."""
        return 1.0


class ConstantLR(LearningRate):
    """Plain SGD: every step has the same rate on the mean batch loss, and every epoch counts.

    Deep in training it stands still: its steps are proportional to the loss.

    Parameters
    ----------
    rate : float, default 0.01
        The rate, > 0.

    Examples
    --------
    >>> import netmargin as nm
    >>> nm.ConstantLR(0.1)
    ConstantLR(rate=0.1)
    """

    def __init__(self, rate: float = 0.01) -> None:
        self.rate = check_number("rate", rate, above=0)

    def relative_rate(self, log_scale: float) -> float:
        """The rate times e^F: a step on the loss itself."""
        return logspace.scaled_ratio(self.rate, -log_scale)

    def accept(self, before: float, after: float) -> bool:
        """Accept every epoch, whether or not the loss fell."""
        return True


class LossBasedLR(LearningRate):
    """The rate eta(t) = alpha(t) / mean loss(t-1), with a line search on alpha over whole epochs.

    An epoch that does not lower the training loss is undone and repeated with alpha / r_d; one that
    does is kept and multiplies alpha by r_u.

    The paper starts from random weights. A run that starts from a net whose summed loss already
    proves separation begins at the Polyak step where that is smaller than alpha (deep in training,
    where it is tiny, at the step that lowers the linearized log-loss by 3%): there scores react to
    a step far more, and a line search from above would spend its first hundred tries, and some of
    the margin, on steps that are too long.

    Parameters
    ----------
    alpha : float, default 0.1
        The relative rate at first, > 0.
    r_u, r_d : float, default 2^(1/5) and 2^(1/10)
        Factors by which alpha grows after an epoch that lowers the loss, >= 1, and shrinks after
        one that does not, > 1.

    Examples
    --------
    >>> import netmargin as nm
    >>> lr = nm.LossBasedLR(alpha=0.1, r_u=2.0, r_d=4.0)
    >>> lr.accept(before=-1.0, after=-2.0), lr.alpha
    (True, 0.2)
    >>> lr.accept(before=-2.0, after=-1.0), lr.alpha
    (False, 0.05)

    Source: Lyu and Li 2019, Appendix K.1, whose constants are the defaults.
    """

    SMALLEST = 1e-30
    """Alpha below which trying again is hopeless: steps so small change no float64 parameter,
    unless gradients of the relative loss are huge. By the default r_d, it takes about 960 tries.
    """
    FIRST_FALL = 0.03
    """Share of the log-loss by which the first step may lower it: between 0.004 and 0.14, at which
    line searches from above ended at log10-losses of -20 to -1e5.
    """

    def __init__(
        self, alpha: float = 0.1, r_u: float = 2 ** (1 / 5), r_d: float = 2 ** (1 / 10)
    ) -> None:
        self.alpha = check_number("alpha", alpha, above=0)
        self.r_u, self.r_d = check_number("r_u", r_u, at_least=1), check_number("r_d", r_d, above=1)

    def begin(self, log_loss: float, polyak_step: Callable[[], float]) -> None:
        """Lower alpha to the Polyak step, or deep in training to a multiple of it."""
        # One Polyak step lowers the linearized log-loss by 1.
        self.alpha = min(self.alpha, polyak_step() * max(1.0, self.FIRST_FALL * abs(log_loss)))

    def relative_rate(self, log_scale: float) -> float:
        """The present alpha, a step on the loss relative to its last mean."""
        return self.alpha

    def accept(self, before: float, after: float) -> bool:
        """Whether the loss fell; alpha grows if so, and shrinks if not."""
        fell = after < before
        self.alpha = self.alpha * self.r_u if fell else self.alpha / self.r_d
        return fell

    @property
    def exhausted(self) -> bool:
        """Whether alpha is so small that no step changes anything."""
        return self.alpha < self.SMALLEST


class AnnealedLR(LearningRate):
    """Plain SGD with weight decay, both falling by factors at given epochs.

    Annealed decay ends weakly regularized, after strong decay has chosen where. A step is theta -
    rate (grad L + weight_decay theta), as of torch.optim.SGD: the penalty is weight_decay
    ||theta||^2 / 2.

    Parameters
    ----------
    rate, weight_decay : float, default 0.1 and 2e-4
        Rate of each step on the mean batch loss, and weight decay, below 1 / rate, at first.
    rate_drops, decay_drops : dict of int to float, optional
        Factors in (0, 1] of both, by the number of accepted epochs after which they apply; the
        paper's for CIFAR-10 by default.

    Examples
    --------
    >>> import netmargin as nm
    >>> lr = nm.AnnealedLR(0.1, weight_decay=1.0, rate_drops={}, decay_drops={1: 0.5})
    >>> first = lr.shrinkage
    >>> _ = lr.accept(0.0, 0.0)
    >>> first, lr.shrinkage
    (0.9, 0.95)

    Source: Wei et al. 2018, Appendix F.
    """

    def __init__(
        self,
        rate: float = 0.1,
        *,
        weight_decay: float = 2e-4,
        rate_drops: dict[int, float] | None = None,
        decay_drops: dict[int, float] | None = None,
    ) -> None:
        self.rate = check_number("rate", rate, above=0)
        self.weight_decay = check_number(
            "weight_decay", weight_decay, at_least=0, below=1 / self.rate
        )
        self.epoch = 0
        self.rate_drops = _check_drops("rate_drops", rate_drops, {60: 0.2, 120: 0.2, 160: 0.2})
        self.decay_drops = _check_drops(
            "decay_drops", decay_drops, {60: 0.2, 90: 0.5, 120: 0.5, 140: 0.5, 160: 0.5}
        )

    def relative_rate(self, log_scale: float) -> float:
        """The annealed rate times e^F: a step on the loss itself."""
        return logspace.scaled_ratio(self._apply_drops(self.rate, self.rate_drops), -log_scale)

    def accept(self, before: float, after: float) -> bool:
        """Accept every epoch, whether or not the loss fell."""
        self.epoch += 1
        return True

    @property
    def shrinkage(self) -> float:
        """1 - rate times weight decay, both as annealed so far."""
        return 1 - self._apply_drops(self.rate, self.rate_drops) * self._apply_drops(
            self.weight_decay, self.decay_drops
        )

    def _apply_drops(self, value: float, drops: dict[int, float]) -> float:
        """A value after the drops of the epochs so far."""
        return value * math.prod(factor for epoch, factor in drops.items() if epoch <= self.epoch)


def as_learning_rate(lr: Any) -> LearningRate:
    """The rule that a caller means: None is `LossBasedLR()`, a number a `ConstantLR` of it."""
    if lr is None:
        return LossBasedLR()
    if isinstance(lr, numbers.Real) and not isinstance(lr, bool):
        return ConstantLR(check_number("lr", lr, above=0))
    kind = lr if isinstance(lr, type) else type(lr)
    if issubclass(kind, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)):
        raise ArgumentError(
            f"lr: {kind.__name__} belongs to torch.optim, whose steps vanish with the loss;"
            " nm.train takes its own steps of gradient descent relative to the loss. Pass a number"
            " for a constant rate, or nm.LossBasedLR()."
        )
    return check_instance(
        "lr", lr, LearningRate, "a number, nm.LossBasedLR(), nm.ConstantLR(0.1) or nm.AnnealedLR()"
    )


def _check_drops(name: str, drops: Any, usual: dict[int, float]) -> dict[int, float]:
    """Factors by epochs, `usual` if none are given. Raises ArgumentError."""
    if drops is None:
        return usual
    check_instance(name, drops, Mapping, "a dict of factors by epochs, such as {60: 0.2}")
    return {
        check_count(f"{name}: an epoch", epoch, at_least=0): check_number(
            f"{name}[{epoch}]", factor, above=0, at_most=1
        )
        for epoch, factor in drops.items()
    }

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
    """A rate relative to the loss: an epoch takes steps of rate `relative_rate(F)` on the loss
    divided by e^F.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @abstractmethod
    def relative_rate(self, log_scale: float) -> float:
        """The rate on the relative loss; `log_scale` is F, the natural log of the mean training
        loss one epoch ago.
        """

    @abstractmethod
    def accept(self, before: float, after: float) -> bool:
        """Told the log-losses around an epoch, adapt; False means: undo this epoch and try it
        again.
        """

    def begin(self, log_loss: float, polyak_step: Callable[[], float]) -> None:  # noqa: B027 (most rules need no such thing)
        """Told, before the first epoch of a run that starts from a separated net, its log mean loss
        and how to find the Polyak step.

        That is the relative rate at which one step would bring the linearized loss of a batch to 0:
        the smallest over the batches, at the cost of one pass.
        """

    def state_dict(self) -> dict:
        """What a resumed run needs: the attributes, which should be plain numbers."""
        return dict(vars(self))

    def load_state_dict(self, state: dict) -> None:
        """Go on from a saved state."""
        vars(self).update(state)

    @property
    def exhausted(self) -> bool:
        """True if trying again is hopeless."""
        return False

    @property
    def shrinkage(self) -> float:
        """What parameters are multiplied by in each step of this epoch: 1, or 1 - rate times weight
        decay.
        """
        return 1.0


class ConstantLR(LearningRate):
    """Plain SGD: every step has rate `rate` on the mean batch loss, and every epoch counts.

    Deep in training it stands still: its steps are proportional to the loss.
    """

    def __init__(self, rate: float = 0.01):
        self.rate = check_number("rate", rate, above=0)

    def relative_rate(self, log_scale: float) -> float:
        return logspace.scaled_ratio(self.rate, -log_scale)

    def accept(self, before: float, after: float) -> bool:
        return True


class LossBasedLR(LearningRate):
    """eta(t) = alpha(t) / mean loss(t-1), with a line search on alpha over whole epochs.

    An epoch that does not lower the training loss is undone and repeated with alpha / r_d; one that
    does is kept and multiplies alpha by r_u. Source: Lyu and Li 2019, Appendix K.1 (alpha(0) = 0.1,
    r_u = 2^{1/5}, r_d = 2^{1/10}).

    The paper starts from random weights. A run that starts from a net whose summed loss already
    proves separation begins at the Polyak step where that is smaller than alpha (deep in training,
    where it is tiny, at the step that lowers the linearized log-loss by 3%): there scores react to
    a step far more, and a line search from above would spend its first hundred tries, and some of
    the margin, on steps that are too long.
    """

    SMALLEST = 1e-30
    FIRST_FALL = 0.03
    """Between the shares of the log-loss, 0.004 to 0.14, at which line searches from above ended at
    log10-losses of -20 to -1e5.
    """

    def __init__(self, alpha: float = 0.1, r_u: float = 2 ** (1 / 5), r_d: float = 2 ** (1 / 10)):
        self.alpha = check_number("alpha", alpha, above=0)
        self.r_u, self.r_d = check_number("r_u", r_u, at_least=1), check_number("r_d", r_d, above=1)

    def begin(self, log_loss: float, polyak_step: Callable[[], float]) -> None:
        # One Polyak step lowers the linearized log-loss by 1.
        self.alpha = min(self.alpha, polyak_step() * max(1.0, self.FIRST_FALL * abs(log_loss)))

    def relative_rate(self, log_scale: float) -> float:
        return self.alpha

    def accept(self, before: float, after: float) -> bool:
        fell = after < before
        self.alpha = self.alpha * self.r_u if fell else self.alpha / self.r_d
        return fell

    @property
    def exhausted(self) -> bool:
        return self.alpha < self.SMALLEST


class AnnealedLR(LearningRate):
    """Plain SGD with weight decay, both falling by factors at given epochs.

    Annealed decay ends weakly regularized, after strong decay has chosen where. A step is theta -
    rate (grad L + weight_decay theta), as of torch.optim.SGD: the penalty is weight_decay
    ||theta||^2 / 2.

    Parameters
    ----------
    rate : of each step on the mean batch loss, at first.
    weight_decay : at first; below 1 / rate.
    rate_drops, decay_drops : factors in (0, 1] by the number of accepted epochs after which they
        apply. The defaults are the paper's for CIFAR-10.

    Examples
    --------
    >>> lr = AnnealedLR(0.1, weight_decay=1.0, rate_drops={}, decay_drops={1: 0.5})
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
    ):
        self.rate = check_number("rate", rate, above=0)
        self.weight_decay, self.epoch = (
            check_number("weight_decay", weight_decay, at_least=0, below=1 / self.rate),
            0,
        )
        self.rate_drops = _checked_drops("rate_drops", rate_drops, {60: 0.2, 120: 0.2, 160: 0.2})
        self.decay_drops = _checked_drops(
            "decay_drops", decay_drops, {60: 0.2, 90: 0.5, 120: 0.5, 140: 0.5, 160: 0.5}
        )

    def relative_rate(self, log_scale: float) -> float:
        return logspace.scaled_ratio(self._now(self.rate, self.rate_drops), -log_scale)

    def accept(self, before: float, after: float) -> bool:
        self.epoch += 1
        return True

    @property
    def shrinkage(self) -> float:
        return 1 - self._now(self.rate, self.rate_drops) * self._now(
            self.weight_decay, self.decay_drops
        )

    def _now(self, value: float, drops: dict[int, float]) -> float:
        return value * math.prod(factor for epoch, factor in drops.items() if epoch <= self.epoch)


def as_learning_rate(lr: Any) -> LearningRate:
    """The rule that a caller means: None is `LossBasedLR()`, a number a `ConstantLR` of it. Raises
    ArgumentError.

    Examples
    --------
    >>> from netmargin.training.learning_rate import as_learning_rate
    >>> as_learning_rate(0.1)
    ConstantLR(rate=0.1)
    """
    if lr is None:
        return LossBasedLR()
    if isinstance(lr, numbers.Real) and not isinstance(lr, bool):
        return ConstantLR(check_number("lr", lr, above=0))
    if isinstance(lr, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)) or (
        isinstance(lr, type)
        and issubclass(lr, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler))
    ):
        kind = lr.__name__ if isinstance(lr, type) else type(lr).__name__
        raise ArgumentError(
            f"lr: {kind} belongs to torch.optim, whose steps vanish with the loss; nm.train takes"
            " its own steps of gradient descent relative to the loss. Pass a number for a constant"
            " rate, or nm.LossBasedLR()."
        )
    return check_instance(
        "lr", lr, LearningRate, "a number, nm.LossBasedLR(), nm.ConstantLR(0.1) or nm.AnnealedLR()"
    )


def _checked_drops(name: str, drops: Any, usual: dict[int, float]) -> dict[int, float]:
    if drops is None:
        return usual
    check_instance(name, drops, Mapping, "a dict of factors by epochs, such as {60: 0.2}")
    return {
        check_count(f"{name}: an epoch", epoch, at_least=0): check_number(
            f"{name}[{epoch}]", factor, above=0, at_most=1
        )
        for epoch, factor in drops.items()
    }

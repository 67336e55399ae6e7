"""Rules that choose the learning rate of each epoch and decide whether the epoch counts."""

import math
from abc import ABC, abstractmethod

from .. import logspace


class LearningRate(ABC):
    """A rate relative to the loss: an epoch takes steps of rate `relative_rate(F)` on the loss divided by e^F."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @abstractmethod
    def relative_rate(self, log_scale: float) -> float:
        """The rate on the relative loss; `log_scale` is F, the natural log of the mean training loss one epoch ago."""

    @abstractmethod
    def accept(self, before: float, after: float) -> bool:
        """Told the log-losses around an epoch, adapt; False means: undo this epoch and try it again."""

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
        """What parameters are multiplied by in each step of this epoch: 1, or 1 - rate times weight decay."""
        return 1.0


class ConstantLR(LearningRate):
    """Plain SGD: every step has rate `rate` on the mean batch loss, and every epoch counts.

    Deep in training it stands still: its steps are proportional to the loss.
    """

    def __init__(self, rate: float = 0.01):
        if not rate > 0:
            raise ValueError(f"rate must be positive; got {rate}")
        self.rate = rate

    def relative_rate(self, log_scale: float) -> float:
        return logspace.scaled_ratio(self.rate, -log_scale)

    def accept(self, before: float, after: float) -> bool:
        return True


class LossBasedLR(LearningRate):
    """eta(t) = alpha(t) / mean loss(t-1), with a line search on alpha over whole epochs.

    An epoch that does not lower the training loss is undone and repeated with alpha / r_d; one that does is kept and multiplies
    alpha by r_u. Source: Lyu and Li 2019, Appendix K.1 (alpha(0) = 0.1, r_u = 2^{1/5}, r_d = 2^{1/10}).
    """

    SMALLEST = 1e-30

    def __init__(self, alpha: float = 0.1, r_u: float = 2 ** (1 / 5), r_d: float = 2 ** (1 / 10)):
        if not (alpha > 0 and r_u >= 1 and r_d > 1):
            raise ValueError(f"need alpha > 0, r_u >= 1, r_d > 1; got {alpha}, {r_u}, {r_d}")
        self.alpha, self.r_u, self.r_d = alpha, r_u, r_d

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
    """Plain SGD with weight decay, both falling by factors at given epochs: annealed decay ends weakly regularized, after strong decay has chosen where.

    A step is theta - rate (grad L + weight_decay theta), as of torch.optim.SGD: the penalty is weight_decay ||theta||^2 / 2. rate_drops, decay_drops : factors
    by the number of accepted epochs after which they apply. The defaults are the paper's for CIFAR-10.

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
        if not (rate > 0 and 0 <= weight_decay < 1 / rate):
            raise ValueError(f"rate must be positive, and weight_decay between 0 and 1 / rate; got {rate}, {weight_decay}")
        self.rate, self.weight_decay, self.epoch = rate, weight_decay, 0
        self.rate_drops = {60: 0.2, 120: 0.2, 160: 0.2} if rate_drops is None else dict(rate_drops)
        self.decay_drops = {60: 0.2, 90: 0.5, 120: 0.5, 140: 0.5, 160: 0.5} if decay_drops is None else dict(decay_drops)
        if not all(0 < factor <= 1 for factor in (*self.rate_drops.values(), *self.decay_drops.values())):
            raise ValueError(f"drops must be factors in (0, 1]; got {self.rate_drops}, {self.decay_drops}")

    def relative_rate(self, log_scale: float) -> float:
        return logspace.scaled_ratio(self._now(self.rate, self.rate_drops), -log_scale)

    def accept(self, before: float, after: float) -> bool:
        self.epoch += 1
        return True

    @property
    def shrinkage(self) -> float:
        return 1 - self._now(self.rate, self.rate_drops) * self._now(self.weight_decay, self.decay_drops)

    def _now(self, value: float, drops: dict[int, float]) -> float:
        return value * math.prod(factor for epoch, factor in drops.items() if epoch <= self.epoch)

"""Rules that choose the learning rate of each epoch and decide whether the epoch counts."""

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

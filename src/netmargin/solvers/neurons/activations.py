"""Activations of two-layer nets, as the problems over neurons use them: they know no loss."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Activation:
    """phi(t) = t^power for t >= 0 and (slope t)^power below, the positively homogeneous activations
    up to a factor, a turn of the neuron, and for the others a linear function.
    """

    slope: float = 0.0
    power: int = 1

    def feature(self, t: np.ndarray) -> np.ndarray:
        """phi(t), elementwise, in the type of t."""
        # Not by np.where, which takes ten times as long.
        bend = np.maximum if self.slope <= 1 else np.minimum
        bent = bend(t, self.slope * t if self.slope else 0)
        return bent if self.power == 1 else bent * bent

    def derivative(self, t: np.ndarray) -> np.ndarray:
        """phi'(t), elementwise, in the type of t; at 0 the one from the left."""
        sides = (t > 0).astype(t.dtype)
        if self.slope:
            sides *= 1 - self.slope
            sides += self.slope
        return sides if self.power == 1 else 2 * sides * sides * t

    @property
    def largest(self) -> float:
        """The largest |phi(t)| for |t| <= 1, which is the Lipschitz constant for power 1."""
        return max(1.0, abs(self.slope)) ** self.power

    @property
    def kink(self) -> float:
        """What the derivative jumps by at 0: phi(t) is half of it times |t|, and a linear rest."""
        return 1 - self.slope if self.power == 1 else 0.0

    @property
    def line(self) -> float:
        """The slope of the linear rest of a feature of power 1."""
        return (1 + self.slope) / 2


RELU = Activation()
ABSOLUTE = Activation(slope=-1.0)
LINEAR = Activation(slope=1.0)


def leaky(slope: float) -> Activation:
    """The leaky ReLU of this slope below 0."""
    return Activation(slope=slope)


def squared(activation: Activation) -> Activation:
    """The square of an activation of power 1."""
    return Activation(slope=activation.slope, power=2)

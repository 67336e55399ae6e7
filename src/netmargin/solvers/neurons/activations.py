"""Activations of two-layer nets, as the problems over neurons use them: they know no loss."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...errors import ArgumentError

_POINTS = (1.0, 2.0, 7.0, 1000.0)
"""Where a function is tried: none that is bent at a point other than 0 passes them all."""
_EQUAL = 1e-12
"""Relative differences up to this are rounding."""


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
        bent: np.ndarray = bend(t, self.slope * t if self.slope else 0)
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


def squared(activation: Activation) -> Activation:
    """The square of an activation of power 1."""
    return Activation(slope=activation.slope, power=2)


_NAMED = {"relu": RELU, "abs": ABSOLUTE, "linear": LINEAR, "squared_relu": squared(RELU)}


def read_activation(activation: Any, *, squares: bool = True) -> Activation:
    """The activation that a name, a module or a function of tensors stands for; `squares` says
    whether powers of 2 are allowed. Raises ArgumentError for any other, with the reason.
    """
    if isinstance(activation, Activation):
        return activation
    if isinstance(activation, str):
        if activation not in _NAMED:
            raise ArgumentError(
                f"There is no activation {activation!r}: pass {', '.join(map(repr, _NAMED))}, or a"
                " function of tensors, such as torch.nn.LeakyReLU(0.1)."
            )
        found = _NAMED[activation]
    else:
        found = _measure(activation)
    if found.power == 2 and not squares:
        raise ArgumentError("This problem is for activations of degree 1, not for their squares.")
    return found


def _measure(activation: Any) -> Activation:
    """The activation that a function of tensors computes, from its values on both sides of 0."""
    points = torch.tensor(_POINTS, dtype=torch.float64, device="cpu")
    try:
        right, left = (activation(sign * points).detach().numpy() for sign in (1, -1))
    except (TypeError, RuntimeError, AttributeError) as error:
        raise ArgumentError(
            f"activation must be a name or a function of float64 tensors; got {activation!r}"
        ) from error
    for power in (1, 2):
        powers = np.array(_POINTS) ** power
        sides = [np.allclose(side, side[0] * powers, _EQUAL) for side in (right, left)]
        if not all(sides) or (power == 2 and right[0] * left[0] < 0):
            continue
        if abs(right[0] - 1) > _EQUAL:
            raise ArgumentError(
                "activation must be 1 at 1, so that norms have one unit; it is"
                f" {right[0]:g} there. Divide it by that, or turn its argument if it is 0."
            )
        return Activation(float(-left[0] if power == 1 else np.sqrt(left[0])), power)
    raise ArgumentError(
        "activation must be positively homogeneous, phi(2 t) = 2 phi(t) on either side of 0, or the"
        f" square of such a function; {activation!r} is not. ReLU, leaky ReLU and |t| are."
    )

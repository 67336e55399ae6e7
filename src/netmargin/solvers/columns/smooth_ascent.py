"""Neurons to begin a search with: a net with many of them, whose smooth margin is ascended.

Column generation finds neurons one after the other, and is slow as long as few are known. Gradient
ascent moves many at once, and gets within some percent of the largest margin in a few hundred
steps; what it lacks is the last of the margin, which the linear program over its neurons finds.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...nets.threads import fitting_threads

# Nothing is proved here: the numbers below decide how good the first neurons are. They were set by
# trial on clusters of 256 samples in 15 and 30 dimensions, within a few percent of the best margin.

_FIRST_SHARPNESS, _LAST_SHARPNESS = 100.0, 3000.0
"""The factor of the outputs in the softmax, in units of the median length of a sample, first and
last: small enough for all neurons to be of use, and so large that the samples with the least margin
alone count.
"""
_FIRST_RATE, _LAST_RATE = 0.1, 0.02
"""How far a neuron moves in a step, in units of its length, first and last."""
_MOMENTUM, _MEMORY = 0.9, 0.99
"""The two averages of Adam (Kingma and Ba 2015)."""
_SHORTEST = 0.2
"""Neurons shorter than this part of the typical length move like one of that length, and can
grow.
"""
_FEWEST, _MOST = 64, 1000
"""Neurons: enough for few samples, and no more than are of use."""
_MOST_WORK = 3e10
"""Multiplications of one ascent: some five seconds of one core. Beyond it there are fewer
neurons.
"""
_WORK_PER_SECOND = 5e9
"""About how much of it one core does."""
_TINY = 1e-30
"""Keeps what is 0 from dividing by 0, in float32."""


@dataclass(frozen=True)
class Ascent:
    """How many neurons are moved for each sample, within limits, and in how many steps."""

    per_sample: int
    steps: int

    def width(self, Z: np.ndarray) -> int:
        """The number of neurons for samples Z (n, D)."""
        affordable = int(_MOST_WORK / (Z.size * self.steps))
        return min(max(self.per_sample * len(Z), _FEWEST), _MOST, affordable)

    def seconds(self, Z: np.ndarray) -> float:
        """About how long it takes."""
        return self.width(Z) * Z.size * self.steps / _WORK_PER_SECOND


@dataclass(frozen=True)
class AscendedNet:
    """The heaviest neurons of the net, and the weights of its smooth margin."""

    U: np.ndarray  # (k, D): unit directions
    s: np.ndarray  # (k,): output signs
    dual: np.ndarray  # (n,): the weights of the softmax, with sum 1


def ascend_margin(
    Z: np.ndarray,
    signs: np.ndarray,
    ascent: Ascent,
    random: np.random.Generator,
    deadline: float = math.inf,
) -> AscendedNet:
    """Ascend the softmin of signs_i f(z_i) over ||a||^2 for f(z) = sum_j s_j |a_j| relu(a_j . z),
    to the deadline (time.monotonic); half of the output signs are negative. Returns at most as many
    neurons as there are samples: as many as an optimal net may need.
    """
    normal = random.normal(size=(ascent.width(Z), Z.shape[1]))
    with torch.no_grad(), fitting_threads(float(normal.size * len(Z))):
        net = _Net(Z, signs, normal)
        for step in range(ascent.steps):
            net.move(step, step / max(ascent.steps - 1, 1))
            if time.monotonic() > deadline:
                break
        a, s, dual = net.a.double().numpy(), net.s.double().numpy(), net.dual.double().numpy()
    lengths = np.linalg.norm(a, axis=1)
    heaviest = np.argsort(-lengths, kind="stable")[: len(Z)]
    heaviest = heaviest[lengths[heaviest] > 0]
    return AscendedNet(a[heaviest] / lengths[heaviest, None], s[heaviest], dual / dual.sum())


class _Net:
    """The neurons, with the averages of Adam; float32, since nothing rests on their last digits."""

    def __init__(self, Z: np.ndarray, signs: np.ndarray, directions: np.ndarray):
        lengths = np.linalg.norm(Z, axis=1)
        unit = float(np.median(lengths[lengths > 0]))
        self._Z = torch.from_numpy(Z / unit).float()
        self._columns = self._Z.T.contiguous()
        self._signs = torch.from_numpy(signs).float()
        a = torch.from_numpy(directions).float()
        self.a = a / (a.norm(dim=1, keepdim=True) * math.sqrt(len(a)))
        self.s = torch.ones(len(a))
        self.s[::2] = -1.0
        self.dual = torch.full((len(Z),), 1 / len(Z))
        self._mean, self._squares = torch.zeros_like(self.a), torch.zeros(len(a), 1)

    def move(self, step: int, part: float) -> None:
        """Take one step, after this part of all steps."""
        sharpness = _FIRST_SHARPNESS * (_LAST_SHARPNESS / _FIRST_SHARPNESS) ** part
        rate = _FIRST_RATE * (_LAST_RATE / _FIRST_RATE) ** part
        lengths = self.a.norm(dim=1, keepdim=True)
        gradient = self._find_gradient(lengths[:, 0], sharpness)
        self._mean.lerp_(gradient, 1 - _MOMENTUM)
        # One speed for a neuron: its direction turns with the gradient, whatever the coordinates.
        self._squares.lerp_(gradient.square().sum(1, keepdim=True), 1 - _MEMORY)
        speed = (self._squares / (1 - _MEMORY ** (step + 1))).sqrt()
        mean = self._mean / (1 - _MOMENTUM ** (step + 1))
        shortest = _SHORTEST / math.sqrt(len(self.a))
        self.a = self.a + rate * lengths.clamp_min(shortest) * mean / (speed + _TINY)
        self.a /= self.a.norm()

    def _find_gradient(self, lengths: Tensor, sharpness: float) -> Tensor:
        """The gradient (m, D) of the softmin at a with ||a|| = 1; keeps the weights."""
        hidden = torch.relu_(self.a @ self._columns)
        outputs = self._signs * ((self.s * lengths) @ hidden)
        self.dual = torch.softmax(-sharpness * outputs, 0)
        coefficients = self.dual * self._signs
        # The value of each direction is divided by its length: in f, b_j = |a_j| moves with a_j.
        values = self.s * (hidden @ coefficients) / lengths.clamp_min(_TINY)
        moved = (hidden.sign_() * coefficients) @ self._Z
        shrink = 2 * float(self.dual @ outputs)
        return (self.s * lengths)[:, None] * moved + (values - shrink)[:, None] * self.a

"""Neurons to begin a search with: a net with many of them, whose smooth margin is ascended.

Column generation finds neurons one after the other, and is slow as long as few are known. Gradient
ascent moves many at once, and gets within some percent of the largest margin in a few hundred
steps; what it lacks is the last of the margin, which the linear program over its neurons finds.
"""

import math
import time

import numpy as np
import torch
from torch import Tensor, nn

from ...nets.threads import fitting_threads

# Nothing is proved here: the numbers below decide how good the first neurons are. They were set by
# trial on clusters of 256 samples in 15 and 30 dimensions, within a few percent of the best margin.

_FIRST_SHARPNESS, _LAST_SHARPNESS = 100.0, 3000.0
"""The factor of the outputs in the softmax, in units of the median length of a sample, first and
last: small enough for all neurons to be of use, and so large that the least margins alone count.
"""
_FIRST_RATE, _LAST_RATE = 0.1, 0.02
"""How far a neuron moves in a step, in units of its length, first and last."""
_MOMENTUM, _MEMORY = 0.9, 0.99
"""The two averages of Adam (Kingma and Ba 2015)."""
_SHORTEST = 0.2
"""Neurons shorter than this part of the typical length move as if of that length, and can grow."""
_PER_SAMPLE, _MOST, _STEPS = 2, 1000, 600
"""Neurons for each sample, and in all, and their steps: on 256 clusters in 15 and 30 dimensions
these lead to 99% of the largest margin in half a second, where rounds without them take 5 to 10.
"""
_WORK_PER_SECOND, _OF_ALL, _MOST_SECONDS, _SHARE = 5e9, 32, 5.0, 0.3
"""About how many multiplications one core does, where all else that is done with a product counts
as 32 of them; and the most seconds of an ascent, also as a share of those left, for fewer neurons.
"""
_TINY = 1e-30
"""Keeps what is 0 from dividing by 0, in float32."""


def ascend_margin(
    Z: np.ndarray,
    signs: np.ndarray,
    random: np.random.Generator,
    deadline: float = math.inf,
    *,
    slope: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ascend the softmin of signs_i f(z_i) over ||a||^2 for f(z) = sum_j s_j |a_j| phi(a_j . z),
    phi with this slope below 0, to the deadline (time.monotonic). Returns the heaviest unit
    directions (k, D), at most one per sample as an optimal net may need, their signs s (k,), and
    the softmax weights (n,).
    """
    lengths, (n, D) = np.linalg.norm(Z, axis=1), Z.shape
    seconds = max(min(_MOST_SECONDS, _SHARE * (deadline - time.monotonic())), 0.0)
    affordable = int(seconds * _WORK_PER_SECOND / (n * (D + _OF_ALL) * _STEPS))
    normal = random.normal(size=(min(_PER_SAMPLE * n, _MOST, max(affordable, 2)), D))
    with torch.no_grad(), fitting_threads(float(normal.size * len(Z))):
        # float32, since nothing rests on the last digits.
        inputs = torch.from_numpy(Z / float(np.median(lengths[lengths > 0]))).float()
        labels, a = torch.from_numpy(signs).float(), torch.from_numpy(normal).float()
        a = a / (a.norm(dim=1, keepdim=True) * math.sqrt(len(a)))
        s, shortest = torch.ones_like(a[:, 0]), _SHORTEST / math.sqrt(len(a))
        s[::2] = -1.0
        dual = torch.full((len(Z),), 1 / len(Z), device="cpu")
        mean, squares = torch.zeros_like(a), torch.zeros(len(a), 1, device="cpu")
        for step in range(_STEPS):
            part = step / (_STEPS - 1)
            sharpness = _FIRST_SHARPNESS * (_LAST_SHARPNESS / _FIRST_SHARPNESS) ** part
            rate = _FIRST_RATE * (_LAST_RATE / _FIRST_RATE) ** part
            gradient, dual = _find_gradient(a, s, inputs, labels, sharpness, slope)
            mean.lerp_(gradient, 1 - _MOMENTUM)
            # One speed for a neuron: it turns with the gradient, whatever the coordinates.
            squares.lerp_(gradient.square().sum(1, keepdim=True), 1 - _MEMORY)
            speed = (squares / (1 - _MEMORY ** (step + 1))).sqrt()
            move = a.norm(dim=1, keepdim=True).clamp_min(shortest) * mean
            a = a + rate * move / (1 - _MOMENTUM ** (step + 1)) / (speed + _TINY)
            a /= a.norm()
            if time.monotonic() > deadline:
                break
    U, p = a.double().numpy(), dual.double().numpy()
    lengths = np.linalg.norm(U, axis=1)
    heaviest = np.argsort(-lengths, kind="stable")[: len(Z)]
    heaviest = heaviest[lengths[heaviest] > 0]
    return U[heaviest] / lengths[heaviest, None], s.double().numpy()[heaviest], p / p.sum()


def _find_gradient(
    a: Tensor, s: Tensor, inputs: Tensor, labels: Tensor, sharpness: float, slope: float
) -> tuple[Tensor, Tensor]:
    """The gradient (m, D) of the softmin at a with ||a|| = 1, and the weights (n,) in it."""
    lengths, products = a.norm(dim=1), a @ inputs.T
    hidden = nn.functional.leaky_relu(products, slope)
    outputs = labels * ((s * lengths) @ hidden)
    dual = torch.softmax(-sharpness * outputs, 0)
    coefficients = dual * labels
    # The value of each direction is divided by its length: in f, b_j = |a_j| moves with a_j.
    values = s * (hidden @ coefficients) / lengths.clamp_min(_TINY)
    sides = products.sign_().mul_((1 - slope) / 2).add_((1 + slope) / 2)
    moved = sides.mul_(coefficients) @ inputs
    shrink = 2 * float(dual @ outputs)
    return (s * lengths)[:, None] * moved + (values - shrink)[:, None] * a, dual

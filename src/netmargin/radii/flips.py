"""Flips: inputs that are misclassified in exact arithmetic, whatever rounding did to the scores."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor, nn

from .exact.chain import Chain
from .lipschitz import run_layers
from .rounding import rounding_errors

_MOST_FRACTIONS = 200_000
"""Weights up to which a sample is judged in rational arithmetic, which takes a second for these."""

BoundedScores = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Of inputs (N, ...) the scores (N, C), and how far each is at most from the exact one."""


def bound_margins(judge: BoundedScores, x: Tensor, y: Tensor) -> Tensor:
    """Upper bounds of the smallest score gaps in exact arithmetic, (N,); y are classes or signs."""
    with torch.no_grad():
        z, errors = judge(x)
        if z.shape[1] == 1:
            sign = y if y.is_floating_point() else 2 * y - 1
            return sign * z[:, 0] + errors[:, 0]
        own, own_error = z.gather(1, y[:, None]), errors.gather(1, y[:, None])
        gaps = (own - z) + (own_error + errors)
        return gaps.scatter(1, y[:, None], torch.inf).amin(1)


def are_misclassified(
    judge: BoundedScores | None, chain: Chain | None, x: Tensor, y: Tensor, margins: Tensor
) -> Tensor:
    """Which samples are wrong beyond rounding; small chains are judged in rational arithmetic."""
    wrong = margins <= 0
    if judge is None or not wrong.any():
        return wrong
    certain = wrong & (bound_margins(judge, x, y) <= 0)
    # Where the chain is the net itself, and small enough.
    few = chain is not None and sum(weight.size for weight in chain.weights) <= _MOST_FRACTIONS
    if chain and few and not any(e.any() for e in (*chain.weight_errors, *chain.bias_errors)):
        for n in torch.nonzero(wrong & ~certain)[:, 0].tolist():
            label = int(y[n].sign() if y.is_floating_point() else y[n])
            certain[n] = _is_misclassified(chain, x[n].flatten().tolist(), label)
    return certain


def _is_misclassified(chain: Chain, x: list[float], label: int) -> bool:
    """Whether a chain misclassifies an input, or scores tie, in rational arithmetic."""
    values = np.array([Fraction(value) for value in x], dtype=object)
    exact = np.vectorize(Fraction, otypes=[object])
    for k, (weight, bias) in enumerate(zip(chain.weights, chain.biases, strict=True)):
        values = exact(weight) @ values + exact(bias)
        if k < len(chain.slopes):
            values = np.where(values > 0, values, exact(chain.slopes[k]) * values)
    if len(values) == 1:
        return bool(label * values[0] <= 0)
    return bool(np.delete(values, label).max() >= values[label])


def bound_layer_scores(
    net: list[nn.Module], norms: list[float], x: Tensor
) -> tuple[Tensor, Tensor]:
    """The scores of a chain of layers, and their errors."""
    return run_layers(net, x).reshape(len(x), -1), rounding_errors(net, x, norms)

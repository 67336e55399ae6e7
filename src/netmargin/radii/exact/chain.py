"""A net as a chain: dense float64 layers with one kink per hidden unit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...core.matrices import Floats
from ...errors import ModelError
from ...nets.model import scores
from ..products import SMALLEST_NORMAL, share
from ..traced_layers import trace_layers
from .fold_layers import fold_layers

_MOST_BITS = 400
"""Weights of K layers that are not 0 lie between 2^-(400 / K) and 2^(400 / K), so that no product
of them, of radii and of multipliers leaves the float64 numbers where proofs are judged.
"""
_AGREEMENT = 1e-9
"""Share of the largest score by which chain and net may differ on the data: far more than rounding,
far less than a layer that was misread.
"""


@dataclass(frozen=True)
class Chain:
    """Dense layers z_k = W_k a_{k-1} + b_k, a_0 = x, with a_k = max(z_k, 0) + s_k min(z_k, 0).

    The last layer has no activation: its z are the scores.
    """

    weights: tuple[np.ndarray, ...]  # W_1 .. W_{K+1}, (n_k, n_{k-1}), for K hidden layers
    biases: tuple[np.ndarray, ...]  # b_1 .. b_{K+1}, (n_k,)
    # s_1 .. s_K, (n_k,): 0 for ReLU, s for LeakyReLU and PReLU, -1 for the absolute value
    slopes: tuple[np.ndarray, ...]
    # how far weights are at most from those of the net: 0, but for what rounding added when layers
    # were folded into one
    weight_errors: tuple[np.ndarray, ...]
    bias_errors: tuple[np.ndarray, ...]  # the same for biases

    @property
    def widths(self) -> tuple[int, ...]:
        """n_0 .. n_{K+1}: numbers of inputs, of units of each hidden layer, and of scores."""
        return (self.weights[0].shape[1], *(len(weight) for weight in self.weights))

    def evaluate(self, x: np.ndarray) -> list[np.ndarray]:
        """Compute z_1 .. z_{K+1} of inputs (N, ...), each (N, n_k); the last one is the scores."""
        values, a = [], np.asarray(x, dtype=np.float64).reshape(len(x), -1)
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values.append(a @ weight.T + bias)
            if index < len(self.slopes):
                a = activate(values[-1], self.slopes[index])
        return values

    def bound_errors(
        self, x: np.ndarray, values: list[np.ndarray], changes: Sequence[np.ndarray] = ()
    ) -> np.ndarray:
        """Bound |score of the net - computed score|, (N, n_{K+1}), for inputs (N, n_0).

        values : what `evaluate` computed of them. changes : what else each layer may be off by.
        """
        a, errors = np.abs(x), np.zeros_like(x)
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            size, some = np.abs(weight), (a.any(1) | errors.any(1))[:, None]
            rounded = share(a.shape[1] + 1) * (a @ size.T + np.abs(bias)) + SMALLEST_NORMAL * some
            errors = errors @ size.T + (a + errors) @ self.weight_errors[k].T + self.bias_errors[k]
            errors = errors + rounded + (changes[k] if changes else 0.0)
            errors = errors * (1 + share(a.shape[1]))
            if k < len(self.slopes):
                errors = np.maximum(1.0, np.abs(self.slopes[k])) * errors
                if not changes:  # ReLUs are 0 where they are 0 for certain
                    off = (self.slopes[k] == 0) & (values[k] + errors <= 0)
                    errors = np.where(off, 0.0, errors)
                a = np.abs(activate(values[k], self.slopes[k]))
        return errors


def activate(z: Floats, slope: Floats) -> Floats:
    """Compute max(z, 0) + slope min(z, 0)."""
    return np.maximum(z, 0.0) + np.minimum(z, 0.0) * slope


def pull_back(
    functional: np.ndarray,
    weights: Sequence[np.ndarray],
    slopes: Sequence[np.ndarray],
    values: Sequence[np.ndarray],
) -> np.ndarray:
    """The slope of c . scores in the inputs, where the hidden layers have these values."""
    slope: np.ndarray = weights[-1].T @ functional
    for k in reversed(range(len(slopes))):
        slope = weights[k].T @ np.where(values[k] >= 0, slope, slopes[k] * slope)
    return slope


def read_chain(net: nn.Module, x: Tensor) -> Chain:
    """Read a float64 net as a chain, and check on samples x, (N, ...), that both compute the same.

    Linear layers, convolutions, average pools, BatchNorm, Dropout, reshaping, and constants added
    or multiplied are folded into dense layers. Raises ModelError for other nets.
    """
    with torch.no_grad():
        affines, slopes = fold_layers(trace_layers(net, x), x)
        theirs = scores(net, x).cpu().numpy()
    bits = _MOST_BITS // len(affines)
    weights, weight_errors, biases, bias_errors = zip(
        *(
            (*_settle(weight, weight_error, bits), *_settle(bias, bias_error, bits))
            for weight, bias, weight_error, bias_error in (a.write_out() for a in affines)
        ),
        strict=True,
    )
    chain = Chain(weights, biases, tuple(slopes), weight_errors, bias_errors)
    with np.errstate(over="ignore", invalid="ignore"):  # which no comparison lets through
        values = chain.evaluate(x.cpu().numpy())
        ours = values[-1]
        allowed = _AGREEMENT * np.abs(theirs).max()
        # Numbers that were taken as 0 are no disagreement.
        allowed = allowed + chain.bound_errors(x.flatten(1).cpu().numpy(), values)
    agree = ours.shape == theirs.shape and np.isfinite(ours).all()
    if not (agree and (np.abs(ours - theirs) <= allowed).all()):
        raise ModelError(
            "The net is not the chain of layers that was read from it: their scores differ on the"
            " data. Exact radii need a net that does the same with every sample: no branches on"
            " its values, and no state that its forward changes."
        )
    return chain


def _settle(values: np.ndarray, errors: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Take numbers below 2^-bits as errors. ModelError for larger ones than 2^bits, or none."""
    size = np.abs(values)
    small, matrix = size < 2.0**-bits, values.ndim == 2
    if not (size <= 2.0**bits).all() or (matrix and size.any() and small.all()):
        raise ModelError(
            f"A layer has weights of size {size.max():.1g}, whose products leave the range of"
            f" float64 where proofs are judged; between {2.0**-bits:.1g} and {2.0**bits:.1g} they"
            " do not. Multiply layers by numbers that leave the net's answers as they are, or give"
            " the inputs another unit."
        )
    return np.where(small, 0.0, values), np.where(small, errors + size, errors)

"""Samples with their loss, and the sums over them that neurons are found by."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.matrices import Floats
from .activations import Activation
from .losses import Loss

_ENTRIES_AT_ONCE = 2**16
"""Features of samples and neurons that are computed at once: 512 KB in float64, which stay in the
cache of a core. Larger arrays come from the system anew each time, which took up to three times as
long for 256 samples and 600 neurons, and no less for 100,000 samples.
"""


@dataclass(frozen=True)
class Samples:
    """Inputs Z (n, D) with a loss of their outputs, and the activation of all neurons.

    Products are computed in the type of Z, sums over losses and neurons in float64.
    """

    Z: np.ndarray
    loss: Loss
    activation: Activation

    def take(self, rows: Any) -> "Samples":
        """These samples alone, an index or a slice."""
        return Samples(self.Z[rows], self.loss.take(rows), self.activation)

    def blocks(self, width: int) -> Iterator["Samples"]:
        """Parts of the samples, in order, small enough for so many neurons."""
        for rows in slices(len(self.Z), width):
            yield self.take(rows)

    def features(self, W: np.ndarray) -> np.ndarray:
        """The features (n, k) of neurons W (k, D), in the type of Z."""
        return self.activation.feature(self.Z @ W.T.astype(self.Z.dtype))

    def outputs(self, W: np.ndarray, A: np.ndarray) -> np.ndarray:
        """The outputs F (n, K) of neurons W (k, D) with output weights A (k, K)."""
        if not len(W):
            return np.zeros((len(self.Z), A.shape[1]))
        A = A.astype(self.Z.dtype)
        parts = [part.features(W) @ A for part in self.blocks(len(W))]
        return np.concatenate(parts).astype(np.float64)


def slices(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows of so many columns, in order, each of which can be held at once."""
    step = max(1, _ENTRIES_AT_ONCE // max(width, 1))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))


def respond(Z: np.ndarray, C: np.ndarray, W: np.ndarray, activation: Activation) -> Floats:
    """The responses sum_n phi(W_j . Z_n) C_n of neurons W (k, D) to C, (n,) or (n, K)."""
    G = np.zeros((len(W), *C.shape[1:]))
    C, W = C.astype(Z.dtype), W.astype(Z.dtype)
    for rows in slices(len(Z), len(W)):
        G += activation.feature(Z[rows] @ W.T).T @ C[rows]
    return G


def pull(
    Z: np.ndarray, C: np.ndarray, V: np.ndarray, t: np.ndarray, activation: Activation
) -> np.ndarray:
    """The gradients sum_n phi'(t_nj) (C_n . V_j) Z_n (k, D) of neurons at t = Z W' (n, k)."""
    bent = activation.derivative(t)
    single = V.shape[1] == 1
    bent *= C if single else C @ V.T
    pulled: np.ndarray = bent.T @ Z
    return V * pulled if single else pulled

"""A proved bound of what any neuron is worth: loose, but cheap, for every activation."""

import numpy as np

from .activations import Activation

_ROUNDING = 1e-12
"""Room for the rounding of sums and of singular values: some 1e-15 of the largest."""
_TINY = 1e-300
"""Keeps samples without weight from dividing by 0."""


def bound_responses(Z: np.ndarray, C: np.ndarray, activation: Activation) -> float:
    """At least |sum_n phi(w . z_n) C_n| for every neuron w of length 1; C (n, K).

    phi(t) is a linear function and a multiple of |t|, or at most a multiple of t^2. In a direction
    b of length 1, sum |w . z_n| |C_n . b| is by Cauchy-Schwarz at most the root of sum |C_n| (w .
    z_n)^2 times that of sum (C_n . b)^2 / |C_n|, each of which has a largest value over all w, b.
    """
    sizes = np.linalg.norm(C, axis=1)
    roots = np.sqrt(sizes)[:, None]
    spread = float(np.linalg.norm(roots * Z, 2))
    if activation.power == 2:
        bound = activation.largest * spread**2
    else:
        turned = float(np.linalg.norm(C / np.maximum(roots, _TINY), 2))
        straight = float(np.linalg.norm(Z.T @ C, 2))
        bound = abs(activation.line) * straight + abs(activation.kink) / 2 * spread * turned
    return bound * (1 + _ROUNDING * len(Z))

"""Chains of given arrays, for tests of exact radii."""

import numpy as np

from netmargin.radii.exact.chain import Chain


def make_chain(weights, biases, slopes) -> Chain:
    """Make a chain of the arrays of its layers, which are taken as exact."""
    weights = tuple(np.array(weight, dtype=np.float64) for weight in weights)
    biases = tuple(np.array(bias, dtype=np.float64) for bias in biases)
    return Chain(
        weights,
        biases,
        tuple(float(slope) for slope in slopes),
        tuple(np.zeros_like(weight) for weight in weights),
        tuple(np.zeros_like(bias) for bias in biases),
    )

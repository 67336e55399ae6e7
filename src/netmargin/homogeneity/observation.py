"""What an operation without a rule does when its inputs are scaled: exponents seen over many orders of magnitude."""

import math
from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

FACTORS = (2.0, 1e-6, 1e6)
"""A single operation is cheap, so factors may be far from 1: what saturates or holds a small number shows there."""
_TOLERANCE = 1e-9
"""Rounding of one operation in float64, with room; a level that does not scale misses by far more at these factors."""
_DENOMINATOR = 12
"""Exponents are sought among fractions up to this denominator: roots of higher order do not occur in nets."""


def observe_exponents(func, args, kwargs, scales: Sequence[bool]) -> tuple[Fraction, ...] | None:
    """Exponents of the outputs of `func` in those of its tensor arguments that `scales` marks, all scaled together.

    Parameters
    ----------
    func : an operation, called as func(*args, **kwargs) on copies in float64.
    scales : one truth value for each tensor among the arguments, in order.

    Returns
    -------
    One exponent for each output tensor, 0 for outputs that are not floating numbers and stay the same; or None where
    there is none, the outputs tell nothing (zeros), or the operation works in place or does not take float64.
    """
    if func._schema.is_mutable:
        return None
    leaves, structure = tree_flatten((args, kwargs))
    positions = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    scaled = [index for index, marked in zip(positions, scales, strict=True) if marked]
    if not all(leaves[index].is_floating_point() for index in scaled):
        return None

    def outputs_at(factor: float) -> list[Tensor]:
        here = [leaf.double() if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf for leaf in leaves]
        for index in scaled:
            here[index] = here[index] * factor
        new_args, new_kwargs = tree_unflatten(here, structure)
        return [leaf for leaf in tree_flatten(func(*new_args, **new_kwargs))[0] if isinstance(leaf, Tensor)]

    try:
        with torch.random.fork_rng():  # the pass that is followed draws its own numbers
            at_one, *elsewhere = [outputs_at(factor) for factor in (1.0, *FACTORS)]
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None
    exponents = [_exponent(outputs) for outputs in zip(at_one, *elsewhere, strict=True)]
    return None if not exponents or None in exponents else tuple(k for k in exponents if k is not None)


def _exponent(outputs: Sequence[Tensor]) -> Fraction | None:
    """The k with f(c x) = c^k f(x), from outputs at 1 and at each of FACTORS; None if there is none."""
    first = outputs[0]
    if any(output.shape != first.shape for output in outputs):
        return None
    if not first.is_floating_point():
        return Fraction(0) if all(torch.equal(first, output) for output in outputs) else None
    sizes = [output.abs().max().item() if output.numel() else 0.0 for output in outputs]
    if not all(0 < size < math.inf for size in sizes):
        return None
    k = Fraction(math.log2(sizes[1] / sizes[0])).limit_denominator(_DENOMINATOR)
    for factor, output in zip(FACTORS, outputs[1:], strict=True):
        if abs(float(k) * math.log10(factor)) > 300:
            return None
        expected = first * factor ** float(k)
        if not (output - expected).abs().max().item() <= _TOLERANCE * expected.abs().max().item():
            return None
    return k

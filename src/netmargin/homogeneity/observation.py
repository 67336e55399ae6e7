"""Exponents of operations without a rule, observed over many orders of magnitude."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from ..core.devices import draw_normal
from ..core.generators import seed_torch

_DECADES = 6.0
"""Decades on both sides of 1 at which an exponent is confirmed: one operation is cheap to run, and
what saturates or holds a small number shows far from 1 ...
"""
_LARGEST_POWER = 200.0
"""... as long as its outputs change by fewer decades than these, to stay within float64 (1e308)."""
_TOLERANCE = 1e-9
"""Relative miss that counts as rounding of one operation in float64, with room; a level that does
not scale misses by far more at these factors.
"""
_DENOMINATOR = 12
"""Exponents are sought among fractions up to this denominator: nets have no higher roots."""


def observe_exponents(
    func: Any, args: Any, kwargs: Any, scales: Sequence[bool]
) -> tuple[Fraction | None, ...] | None:
    """The exponent of each output where marked inputs are scaled, None for one that follows no
    power; None in place of all where nothing can be observed.
    """
    if func._schema.is_mutable:
        return None
    leaves, structure = tree_flatten((args, kwargs))
    positions = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    scaled = [index for index, marked in zip(positions, scales, strict=True) if marked]
    if not all(leaves[index].is_floating_point() for index in scaled):
        return None

    def outputs_at(factor: float, *, generic: bool) -> list[Tensor]:
        here = [
            leaf.double() if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf
            for leaf in leaves
        ]
        for index in scaled:
            if generic:  # positive numbers around 1
                source = torch.Generator().manual_seed(index)
                here[index] = draw_normal(leaves[index].double(), source).exp()
            here[index] = here[index] * factor
        new_args, new_kwargs = tree_unflatten(here, structure)
        seed_torch(0)  # the same draws at every factor
        found = tree_flatten(func(*new_args, **new_kwargs))[0]
        return [leaf for leaf in found if isinstance(leaf, Tensor)]

    # Any operation may come here, with arguments that it takes in one dtype only.
    refused = suppress(RuntimeError, TypeError, ValueError, NotImplementedError)
    with refused, torch.random.fork_rng():  # the pass that is followed draws its own numbers
        for generic in (False, True):  # at values such as 0 an operation may tell nothing
            found = _read_exponents(partial(outputs_at, generic=generic))
            if found is not None:
                return found
    return None


def _read_exponents(
    outputs_at: Callable[[float], list[Tensor]],
) -> tuple[Fraction | None, ...] | None:
    """Read exponents off at 2, and confirm them far from 1; None in place of all at 0."""
    first, twice = outputs_at(1.0), outputs_at(2.0)
    exponents: list[Fraction] = []
    for here, there in zip(first, twice, strict=True):
        if not (here.is_floating_point() or here.is_complex()):
            exponents.append(Fraction(0))
            continue
        exponent = read_exponent(here, there)
        if exponent is None:
            return None
        exponents.append(exponent)
    steepest = max((abs(float(k)) for k in exponents), default=0.0)
    far = 10 ** min(_DECADES, _LARGEST_POWER / max(steepest, 1.0))
    seen = [(2.0, twice), *((factor, outputs_at(factor)) for factor in (1 / far, far))]
    return (
        tuple(
            k
            if all(_follows(a, outputs[i], factor ** float(k)) for factor, outputs in seen)
            else None
            for i, (a, k) in enumerate(zip(first, exponents, strict=True))
        )
        or None
    )


def read_exponent(first: Tensor, twice: Tensor) -> Fraction | None:
    """Read the exponent off outputs at the factors 1 and 2; None where one of them is 0."""
    sizes = [output.abs().max().item() if output.numel() else 0.0 for output in (first, twice)]
    if not all(0 < size < math.inf for size in sizes):
        return None
    return Fraction(math.log2(sizes[1] / sizes[0])).limit_denominator(_DENOMINATOR)


def _follows(first: Tensor, output: Tensor, expected: float) -> bool:
    """Whether an output is the expected multiple of the first one; whole numbers must stay."""
    if output.shape != first.shape or not (first.is_floating_point() or first.is_complex()):
        return torch.equal(output, first)
    target = first * expected
    return bool((output - target).abs().max() <= _TOLERANCE * target.abs().max())

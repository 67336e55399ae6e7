"""Scalings of groups of parameters, and their factors."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import torch

from .scaling import FACTORS, ScalingProbe, draw_noise
from .vocabulary import Kind

_LARGEST_POWER = 60.0
"""Drawn factors change outputs by at most so many decades: squares still fit in float64 (1e308)."""
Scaling = tuple[dict[str, float], float]
"""The factor of each parameter, and the factor by which the outputs must change."""


Claim = Any
"""A `Homogeneity`; its file imports the check, and no two files import each other."""


def scale_groups(answer: Claim, factors: Mapping[str, float]) -> Scaling:
    """Scale the parameters of each group by its factor."""
    expected = math.prod(c ** float(answer.groups[name]) for name, c in factors.items())
    return {n: c for name, c in factors.items() for n in answer.members[name]}, expected


def scale_quasi(answer: Claim, c: float) -> Scaling:
    """Scale every parameter p by c^{lambda_p}, with the quasi-homogeneous exponents."""
    return {name: c ** float(k) for name, k in answer.quasi_exponents.items() if k}, c


def compose(scalings: Sequence[Scaling]) -> Scaling:
    """Apply scalings one after the other."""
    factors: dict[str, float] = {}
    for here, _ in scalings:
        for name, c in here.items():
            factors[name] = factors.get(name, 1.0) * c
    return factors, math.prod(expected for _, expected in scalings)


def draw_near(answer: Claim, seed: int) -> list[Scaling]:
    """Scalings near 1: all groups by 1/2; with casts also by 2, and by factors between."""
    scalings = [scale_groups(answer, dict.fromkeys(answer.groups, c)) for c in FACTORS]
    between = draw_factors(answer, math.log10(2), (seed, 1))
    return [*scalings, between] if answer.casts else scalings[:1]


def draw_factors(answer: Claim, decades: float, stream: tuple[int, int]) -> Scaling:
    """Independent factors for the groups, up to so many decades from 1, by a seed and a number."""
    total = sum(abs(float(k)) for k in answer.groups.values())
    decades = min(decades, _LARGEST_POWER / max(total, 1.0))
    generator = torch.Generator().manual_seed(1000 * stream[0] + stream[1])
    exponents = draw_noise((len(answer.groups),), generator)
    logs = zip(answer.groups, exponents.tolist(), strict=True)
    return scale_groups(answer, {name: 10 ** (decades * u) for name, u in logs})


def read_groups(
    probe: ScalingProbe, layers: dict[str, tuple[str, ...]]
) -> tuple[Kind, Fraction, dict[str, Fraction]]:
    """Read the exponents of layers off a net; return the kind, the order, and group exponents."""
    names = [name for members in layers.values() for name in members]
    exponents = {layer: probe.exponent(members) for layer, members in layers.items()}
    order = probe.exponent(names)
    single = {layer: k for layer, k in exponents.items() if k is not None}
    if order is not None and order > 0:
        separate = len(single) == len(exponents) > 1 and sum(single.values()) == order
        kind = Kind.MULTI_HOMOGENEOUS if separate else Kind.HOMOGENEOUS
        groups = single if separate else {"all": order}
    else:
        groups = {layer: k for layer, k in single.items() if k > 0}
        together = [n for layer in groups for n in layers[layer]]
        order = sum(groups.values(), Fraction(0))
        kind = Kind.PARTIAL if groups and probe.exponent(together) == order else Kind.UNKNOWN
    return kind, order, groups

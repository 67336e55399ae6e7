"""Quantiles of numbers that are given per sample, over all samples and class by class."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..nets.labels import name_labels

LEVELS = (0.10, 0.25, 0.50)
"""The shares of samples at which margins are compared. The smallest margin is one sample, often a
mislabelled one, and says nothing about test errors; these quantiles of input margins do
(docs/comparing.md).
"""
LEVEL_NAMES = tuple(f"{100 * level:g}%" for level in LEVELS)
"""The headings of these quantiles."""


def quantiles(values: Tensor, levels: Sequence[float] = LEVELS) -> tuple[float, ...]:
    """Quantiles of numbers without NaN, which may be infinite, interpolated linearly."""
    ordered = torch.sort(values.double().reshape(-1)).values
    found = []
    for level in levels:
        place = level * (len(ordered) - 1)
        low, high = ordered[math.floor(place)].item(), ordered[math.ceil(place)].item()
        share = place - math.floor(place)
        # At a sample there is nothing to interpolate, and from minus infinity on no way to.
        at_sample = low == high or not share or low == -math.inf
        found.append(low if at_sample else (1 - share) * low + share * high)
    return tuple(found)


def class_table(values: Tensor, labels: Tensor, class_names: Sequence[str] | None = None) -> Any:
    """Quantiles of numbers (n,) class by class, as a pandas DataFrame: n, 10%, 25%, 50%."""
    import pandas

    present = torch.unique(labels)
    parts = [values[labels == label] for label in present]
    rows = [[len(own), *quantiles(own)] for own in parts]
    index = pandas.Index(name_labels(present, class_names), name="class")
    return pandas.DataFrame(rows, index=index, columns=["n", *LEVEL_NAMES])

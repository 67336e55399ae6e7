"""Quantiles of numbers that are given per sample, over all samples and class by class."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..nets.labels import name_labels

LEVELS = (0.10, 0.25, 0.50)
"""The shares of samples at which margins are compared. The smallest margin is one sample, often a
mislabelled one, and says nothing about test errors; these quantiles of input margins do
(docs/comparing.md).
"""


def quantiles(values: Tensor, levels: Sequence[float] = LEVELS) -> tuple[float, ...]:
    """Quantiles of n numbers, which may be infinite, interpolated linearly.

    Parameters
    ----------
    values : Tensor, shape (n,)
        Numbers without NaN; n may exceed the 16 million that torch.quantile takes.
    levels : sequence of float, default (0.10, 0.25, 0.50)
        Shares of samples, between 0 and 1.

    Returns
    -------
    tuple of float
        One number per level.

    Examples
    --------
    >>> quantiles(torch.tensor([3.0, 1.0, 2.0, math.inf]), (0.5, 0.9))
    (2.5, inf)
    """
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


def quantile_names(levels: Sequence[float] = LEVELS) -> list[str]:
    """The headings of quantiles, such as '25%'."""
    return [f"{100 * level:g}%" for level in levels]


def class_table(values: Tensor, labels: Tensor, class_names: Sequence[str] | None = None):
    """Quantiles of numbers class by class, as a pandas DataFrame.

    Parameters
    ----------
    values : Tensor, shape (n,)
        Numbers without NaN.
    labels : Tensor, shape (n,), int64
        The class of each sample.
    class_names : sequence of str or None, default None
        What the rows are called, in the order of the class indices; None for the indices.

    Returns
    -------
    pandas.DataFrame
        One row per class that occurs, with the columns n, 10%, 25%, 50%.

    Examples
    --------
    >>> table = class_table(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4, 4, 7]))
    >>> table.loc[4].tolist(), table.loc[7].tolist()
    ([2.0, 1.1, 1.25, 1.5], [1.0, 3.0, 3.0, 3.0])
    """
    import pandas

    present = torch.unique(labels)
    rows = []
    for label in present:
        own = values[labels == label]
        rows.append([len(own), *quantiles(own)])
    index = pandas.Index(name_labels(present, class_names), name="class")
    return pandas.DataFrame(rows, index=index, columns=["n", *quantile_names()])

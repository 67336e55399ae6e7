"""How well a number ranks nets by their test error: Kendall's tau over chosen pairs of nets."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

RESAMPLES = 2000
"""Of the nets: the ends of a 95% interval rest on 50 of them on either side."""
_SEED = 0

Pairs = np.ndarray
"""Indices of two nets in each row, shape (pairs, 2)."""


def pair_by_setting(settings: Sequence[Mapping[str, object]]) -> dict[str, Pairs]:
    """The pairs of nets that differ in exactly one setting, by the name of that setting."""
    found = defaultdict(list)
    for i, j in combinations(range(len(settings)), 2):
        differing = [name for name in settings[i] if settings[i][name] != settings[j][name]]
        if len(differing) == 1:
            found[differing[0]].append((i, j))
    return {name: np.array(pairs) for name, pairs in found.items()}


def pair_within(settings: Sequence[Mapping[str, object]], names: Sequence[str]) -> Pairs:
    """All pairs of nets that agree in these settings, whatever else they differ in."""
    kinds = [tuple(setting[name] for name in names) for setting in settings]
    found = [(i, j) for i, j in combinations(range(len(kinds)), 2) if kinds[i] == kinds[j]]
    return np.array(found, dtype=int).reshape(-1, 2)


def agree(numbers: np.ndarray, errors: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Whether larger numbers come with smaller errors, pair by pair.

    Parameters
    ----------
    numbers : ndarray, shape (nets,) or (nets, draws)
        What should predict, larger for the better net; several draws are averaged at the end.
    errors : ndarray, shape (nets,)
        Test errors.
    pairs : ndarray, shape (pairs, 2)
        The nets that are compared.

    Returns
    -------
    ndarray, shape (pairs,)
        1 where they agree, -1 where they do not, 0 for ties; the mean over draws. Its mean over
        pairs is Kendall's tau.
    """
    first, second = pairs.T
    numbers = numbers.reshape(len(numbers), -1)
    signs = np.sign(numbers[first] - numbers[second])
    return (signs * np.sign(errors[second] - errors[first])[:, None]).mean(1)


@dataclass(frozen=True)
class Taus:
    """Averages of Kendall's tau over groups of pairs, for several numbers and resampled nets.

    Attributes
    ----------
    values : ndarray, shape (numbers,)
        The mean over groups of the mean agreement in the pairs of a group.
    drawn : ndarray, shape (RESAMPLES, numbers)
        The same for nets drawn with replacement.
    pairs : int
        How many pairs there are.
    """

    values: np.ndarray
    drawn: np.ndarray
    pairs: int

    @property
    def intervals(self) -> np.ndarray:
        """95% of the resampled numbers lie within, shape (2, numbers)."""
        return np.nanquantile(self.drawn, [0.025, 0.975], axis=0)

    def difference(self, first: int, second: int) -> tuple[float, float, float]:
        """How much larger one tau is than another in the same nets, with its 95% interval."""
        drawn = self.drawn[:, first] - self.drawn[:, second]
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        return float(self.values[first] - self.values[second]), float(low), float(high)


def average_tau(groups: Sequence[Pairs], agreements: Sequence[np.ndarray], nets: int) -> Taus:
    """Average tau over groups of pairs, and over resampled nets.

    Parameters
    ----------
    groups : sequence of ndarray, shape (pairs, 2)
        Pairs of nets; every group has the same weight.
    agreements : sequence of ndarray, shape (pairs, numbers)
        What `agree` says of each group, one column for each number; NaN where a net lacks it.
    nets : int
        The number of nets.

    Returns
    -------
    Taus
        A pair of a resample counts as often as both nets were drawn, one times the other.
    """
    random = np.random.default_rng(_SEED)
    counts = random.multinomial(nets, np.full(nets, 1 / nets), size=RESAMPLES).astype(float)
    values, drawn = [], []
    for pairs, agreement in zip(groups, agreements, strict=True):
        known = ~np.isnan(agreement)
        filled = np.where(known, agreement, 0.0)
        weights = counts[:, pairs[:, 0]] * counts[:, pairs[:, 1]]
        # Without a pair there is no tau, in a group or in all of them.
        with np.errstate(invalid="ignore"):
            values.append(filled.sum(0) / known.sum(0))
            drawn.append((weights @ filled) / (weights @ known))
    total = sum(map(len, groups))
    return Taus(_mean(np.stack(values)), _mean(np.stack(drawn)), total)


def _mean(groups: np.ndarray) -> np.ndarray:
    """The mean over groups that exist, NaN where none does."""
    there = ~np.isnan(groups)
    with np.errstate(invalid="ignore"):
        return np.where(there, groups, 0.0).sum(0) / there.sum(0)

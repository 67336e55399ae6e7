"""Which differences between nets are more than chance: 95% intervals of numbers of margins.

The interval of a difference D of two nets on the same samples is D -+ c, with c the larger of two:
the 95% quantile of what a coin for each sample, whose margin is whose, makes of D, which equal nets
exceed in at most 5% of data sets; and the jackknife, for nets that differ. A quantile has none:
that of distances is drawn anew, samples of both nets together. docs/comparing.md measures both.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

CONFIDENCE = 0.95
"""Share of data sets whose interval covers the true error, or the true difference."""
DRAWS = 1999
"""Drawn swaps, or data sets: with the nets as they are, 100 of 2,000 lie beyond the quantile."""
_AT_ONCE = 5_000_000
"""Drawn coins, or rows, that are held at once, 40 MB."""
_SEED = 0
"""Of what is drawn: two calls agree to the last digit."""

Interval = tuple[float, float]
ERROR, Z, WEIGHTED_ERROR, INPUT = "error", "z", "margin-weighted error", "input margin 25%"

Number = tuple[
    Callable[[np.ndarray], list[np.ndarray]], Callable[[Sequence[np.ndarray]], np.ndarray]
]
NUMBERS: Mapping[str, Number] = {
    ERROR: (lambda q: [np.where(q <= 0, 1.0, 0.0)], lambda mean: mean[0]),
    Z: (
        lambda q: [q, q * q],
        lambda mean: mean[0] / np.sqrt(np.maximum(mean[1] - mean[0] ** 2, 0.0)),
    ),
    WEIGHTED_ERROR: (
        lambda q: [np.where(q <= 0, np.abs(q), 0.0), np.abs(q)],
        lambda mean: mean[0] / mean[1],
    ),
}
"""Each number of margins: terms of every sample, and what it is of their means."""


def difference_intervals(
    name: str, values: Sequence[np.ndarray]
) -> dict[tuple[int, int], Interval | None]:
    """The 95% interval of the difference of a number, for every pair of nets by their indices.

    values : a number for every sample, (n,), net by net. None where a net has no such number.
    """
    pairs = list(combinations(range(len(values)), 2))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if name == INPUT:
            quarters = [_drawn_quarters(net) for net in values]  # of the same samples for all nets
            return {(i, j): _middle(quarters[i] - quarters[j]) for i, j in pairs}
        found, of_means = NUMBERS[name]
        terms = [np.stack(found(_without_scale(q)), axis=1) for q in values]
        if name == ERROR:
            coins = [_swapped_errors(terms[i], terms[j]) for i, j in pairs]
        else:
            coins = _swapped(of_means, terms, pairs)
        results = {}
        for (i, j), coin in zip(pairs, coins, strict=True):
            difference = of_means(terms[i].mean(axis=0)) - of_means(terms[j].mean(axis=0))
            half = max(coin, _jackknife_width(name, terms[i], terms[j]))
            if np.array_equal(values[i], values[j]):  # no sample could tell such nets apart
                half = 0.0
            ends = _finite(difference - half, difference + half)
            if ends and name in (ERROR, WEIGHTED_ERROR):  # shares differ by 1 at most
                ends = (max(ends[0], -1.0), min(ends[1], 1.0))
            results[i, j] = ends
        return results


def count_samples_that_tell(share: float, gap: float) -> float:
    """The samples with which two nets look different with probability 80%, of which one alone is
    wrong on a `share` of all samples, and whose errors differ by `gap` (Connor 1987).
    """
    level, power = 1.96, 0.84  # normal quantiles of 97.5% and of 80%
    found: float = ((level * share**0.5 + power * (share - gap**2) ** 0.5) / gap) ** 2
    # Five samples on which one alone is wrong may all speak for one net by chance: 2 / 2^5 > 5%.
    return max(found, 6 / share)


def _swapped_errors(first: np.ndarray, second: np.ndarray) -> float:
    """What the difference of the errors of equal nets is above in at most 5% of data sets: exact,
    so that the interval leaves out 0 where McNemar's exact test at 5% does.
    """
    from scipy.stats import binom  # late: scipy.stats takes half a second to load

    only_one = np.count_nonzero(first != second)
    most = 2 * binom.ppf((1 + CONFIDENCE) / 2, only_one, 0.5) - only_one
    return float(most) / len(first) * (1 + 1e-12)  # rounding of a difference must not exceed it


def _swapped(
    of_means: Callable[..., Any], terms: Sequence[np.ndarray], pairs: Sequence[Any]
) -> list[float]:
    """The same of another number, for each pair, by drawn swaps of the margins of two nets."""
    means = [np.mean(net, axis=0) for net in terms]
    moves = np.stack([terms[j] - terms[i] for i, j in pairs])
    return [
        _quantile(of_means((means[i] + moved).T) - of_means((means[j] - moved).T))
        for (i, j), moved in zip(pairs, _mean_of_swapped(moves), strict=True)
    ]


def _without_scale(q: np.ndarray) -> np.ndarray:
    """Margins over the median of their sizes: a swap of nets of other temperature is fair."""
    q = q / (np.abs(q).max() or 1.0)  # the largest may be beyond what float64 can square
    return q / (np.median(np.abs(q)) or 1.0)


def _mean_of_swapped(moves: np.ndarray) -> np.ndarray:
    """For each draw the means of the terms that a coin for each sample moves, (pairs, DRAWS, k)."""
    pairs, n, k = moves.shape
    rng = np.random.default_rng(_SEED)
    total = np.zeros((DRAWS, pairs * k))
    step = max(1, _AT_ONCE // DRAWS)
    for start in range(0, n, step):
        part = moves[:, start : start + step].transpose(1, 0, 2)
        coins = rng.integers(0, 2, size=(DRAWS, len(part))).astype(float)
        total += coins @ part.reshape(len(part), -1)
    return (total / float(n)).reshape(DRAWS, pairs, k).transpose(1, 0, 2)


def _quantile(drawn: np.ndarray) -> float:
    """What a difference of equal nets is above in at most 5% of data sets."""
    # A swap that has no number counts as one with a larger difference.
    sizes = np.sort(np.nan_to_num(np.abs(drawn), nan=np.inf, posinf=np.inf))
    return float(sizes[int(np.ceil(CONFIDENCE * (DRAWS + 1))) - 1])


def _jackknife_width(name: str, first: np.ndarray, second: np.ndarray) -> float:
    """Half of the interval from leaving out one sample at a time, terms of shape (n, k)."""
    from scipy.stats import t  # late: scipy.stats takes half a second to load

    nets = [first, second]
    # A rate of 0 is not known exactly: one sample in favour of either net (Bonett and Price 2012).
    if name in (ERROR, WEIGHTED_ERROR):
        added = np.stack(NUMBERS[name][0](np.array([-1.0, 1.0])), axis=1)
        nets = [np.vstack([nets[0], added]), np.vstack([nets[1], added[::-1]])]
    n = len(nets[0])
    if n == 1:
        return np.nan
    parts = [NUMBERS[name][1](((net.sum(axis=0) - net) / (n - 1)).T) for net in nets]
    spread = np.sqrt((n - 1) * np.var(parts[0] - parts[1]))
    return float(t.ppf((1 + CONFIDENCE) / 2, n - 1) * spread)


def _drawn_quarters(distances: np.ndarray) -> np.ndarray:
    """The 25% quantile, as one of the numbers, of samples drawn with replacement."""
    rng = np.random.default_rng(_SEED)
    n = len(distances)
    step = max(1, _AT_ONCE // n)
    drawn = []
    for start in range(0, DRAWS, step):
        rows = rng.integers(n, size=(min(step, DRAWS - start), n))
        # Some may be infinite.
        drawn.append(np.quantile(distances[rows], 0.25, axis=1, method="lower"))
    return np.concatenate(drawn)


def _middle(drawn: np.ndarray) -> Interval | None:
    """The interval that holds the middle 95% of drawn numbers; None where some do not exist."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], method="nearest")
    return None if np.isnan(drawn).any() else _finite(low, high)


def _finite(low: np.ndarray, high: np.ndarray) -> Interval | None:
    """Two ends as floats; None where one of them does not exist."""
    return (float(low), float(high)) if np.isfinite([low, high]).all() else None

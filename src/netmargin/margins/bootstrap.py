"""Paired bootstrap over samples: which differences between nets are more than chance."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .heldout import CONFIDENCE

RESAMPLES = 2000
"""Drawn data sets: the ends of a 95% interval rest on 50 of them on either side, and so are known
to about a tenth of its width.
"""
_NUMBERS_AT_ONCE = 5_000_000
"""Drawn samples that are held at once, 40 MB for each net."""
_SEED = 0
"""Of the draws: two calls agree to the last digit."""

Interval = tuple[float, float]


def _error(q: np.ndarray, axis: int) -> np.ndarray:
    """The share of samples with q <= 0."""
    return (q <= 0).mean(axis)


def _z(q: np.ndarray, axis: int) -> np.ndarray:
    """The mean over the standard deviation; NaN where all margins are equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return q.mean(axis) / q.std(axis)


def _weighted_error(q: np.ndarray, axis: int) -> np.ndarray:
    """The share of the wrong margins in all margins."""
    sizes = np.abs(q)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(q <= 0, sizes, 0.0).sum(axis) / sizes.sum(axis)


def _quarter(distances: np.ndarray, axis: int) -> np.ndarray:
    """The 25% quantile, as one of the numbers: some may be infinite."""
    return np.quantile(distances, 0.25, axis=axis, method="lower")


ERROR, Z, WEIGHTED_ERROR, INPUT = "error", "z", "margin-weighted error", "input margin 25%"
STATISTICS: Mapping[str, Callable[[np.ndarray, int], np.ndarray]] = {
    ERROR: _error,
    Z: _z,
    WEIGHTED_ERROR: _weighted_error,
    INPUT: _quarter,
}


def resample(values: Sequence[np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Statistics of each net on the same drawn data sets.

    Parameters
    ----------
    values : sequence of ndarray, shape (n,)
        A number for every sample, net by net, in one order of the samples.
    names : sequence of str
        Keys of `STATISTICS`.

    Returns
    -------
    dict of str to ndarray, shape (nets, RESAMPLES)
        By statistic.
    """
    from scipy.stats import bootstrap  # late: scipy.stats takes half a second to load

    def statistic(*drawn: np.ndarray, axis: int) -> np.ndarray:
        return np.stack([STATISTICS[name](net, axis) for name in names for net in drawn])

    n = len(values[0])
    if n == 1:  # which is its own and only resample
        found = np.repeat(statistic(*np.asarray(values)[:, None], axis=1), RESAMPLES, axis=1)
    else:
        # Margins that are all equal have no z, of which scipy would warn.
        with np.errstate(invalid="ignore"):
            found = bootstrap(
                values,
                statistic,
                paired=True,
                vectorized=True,
                n_resamples=RESAMPLES,
                batch=max(1, min(RESAMPLES, _NUMBERS_AT_ONCE // n)),
                method="percentile",
                random_state=np.random.default_rng(_SEED),
            ).bootstrap_distribution
    return dict(zip(names, found.reshape(len(names), len(values), -1), strict=True))


def interval_of(drawn: np.ndarray) -> Interval | None:
    """The interval that holds the middle 95% of drawn numbers; None where some do not exist."""
    if np.isnan(drawn).any():
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], method="nearest")
    return float(low), float(high)

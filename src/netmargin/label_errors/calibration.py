"""How many labels are wrong at most, from flips of the user's data.

A prediction for sample n that never saw its label is the prediction for any label it might have
had. So every flip of a single label is known without computing anything again, and scores under
random wrong labels can be held against the scores under the given ones. With e the share of wrong
labels, drawn evenly from the other C - 1 classes, h = e / (C - 1), and densities of scores

    o = (1 - e) g + e b       under the labels as given,
    r = (1 - h) b + h g       under labels flipped at random,

where g belongs to right labels and b to wrong ones. Where classes overlap everywhere g is nowhere
0, and any e from 0 to the least ratio of o and r explains the same scores. So that ratio is an
upper end, whose sampling error is known, and the lower end is 0: `evidence` says what speaks for
more (as mixture proportion estimation does, Scott 2015).
"""

import numpy as np
from scipy.stats import beta

_FLIPS = 9
"""Flips of each sample, at most: with ten classes all others."""
_BOUNDED_AT = (0.25, 0.4, 0.6, 0.8)
"""Shares of flips at whose scores the share of wrong labels is bounded. Each bound may fail in a
quarter of 5%: of 60 drawn data sets of each of 13 kinds (docs/label-errors.md) none or up to 3 did.
"""
_CONFIDENCE = 0.95


def score_labels(predictions: np.ndarray) -> np.ndarray:
    """The margin (n, C) that every label would have: its prediction less the largest other one."""
    top = np.partition(predictions, -2, axis=1)
    second, best = top[:, -2:-1], top[:, -1:]
    return predictions - np.where(predictions == best, second, best)


def draw_flips(scores: np.ndarray, given: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores under random wrong labels, up to nine for each sample, from those of every label."""
    n, classes = scores.shape
    # Offsets 1 .. C - 1 from the given class reach every other class once.
    offsets = np.arange(1, classes)[None]
    if classes - 1 > _FLIPS:
        offsets = rng.integers(1, classes, size=(n, _FLIPS))
    return np.take_along_axis(scores, (given[:, None] + offsets) % classes, axis=1).ravel()


def bound_share_wrong(given: np.ndarray, flipped: np.ndarray, classes: int) -> float:
    """The share that wrong labels do not exceed, with confidence 95%."""
    thresholds = np.quantile(flipped, _BOUNDED_AT)
    below, flips_below = (
        np.searchsorted(np.sort(scores), thresholds, side="right") for scores in (given, flipped)
    )
    # The upper ends of Clopper and Pearson; where all scores are below a threshold, 1.
    fails = (1 - _CONFIDENCE) / len(_BOUNDED_AT)
    rest = len(given) - below
    most = np.where(rest > 0, beta.ppf(1 - fails, below + 1, np.maximum(rest, 1)), 1.0)
    ratio = float(np.min(most / (flips_below / len(flipped))))
    # Where g is 0, o = e b and r = (1 - h) b.
    return ratio / (1 + ratio / (classes - 1))

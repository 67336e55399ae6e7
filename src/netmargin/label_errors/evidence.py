"""Which labels are wrong, as far as classes that overlap do not explain them.

Let F hold what all other samples predict for each class. Where classes overlap, a label that is not
the predicted one is the rarer the more clearly another is predicted; a wrong label is as frequent
there as anywhere. So labels are taken to be drawn with the probabilities

    q_k(x) = (1 - sum_j v_j) p_k(x) + v_k,        p(x) = softmax(a F(x) + b),

where p is what overlap explains, and v_k the rate of labels k that appear whatever is predicted:
label noise that does not depend on the sample. All are fitted by maximum likelihood, and a label is
wrong with probability v_k (1 - p_k) / q_k. Before that is said, four questions are asked.

* Is prediction much better than the best constant answer? Else nothing can be told.
* Do the labels speak for v? The likelihood is fitted again without the part of v that all classes
  share, as wrong labels spread at random make it. In noise, and where classes overlap, it is as
  good, and nothing is claimed. But where hardly any sample lies between two classes p cannot be
  told from v, and labels that are not predicted are wrong ones.
* Has one class many more of them than the others? Then the samples do not tell that class, and no
  more are counted than in others; of a class of which half would be wrong nothing can be told.
* Are they of the class that is predicted least of all? Waves of opposite phase mislead a prediction
  so; wrong labels fall on other classes as often.
"""

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.special import softmax

from .calibration import score_labels

_RIDGE = 1e-3
"""Weight of the squared offsets b, which have no end where a class is never predicted."""
_FITTED_ON = 5000
"""Samples to which the mixture is fitted, at most: of 5% wrong labels these hold 250."""
_SKILL = (0.25, 0.5)
"""Part of the errors of the best constant answer that prediction avoids, below which nothing can be
told, and below which more evidence is needed. Two Gaussian classes .5 apart have .2, those 1 apart
.4, CIFAR-10 with 10% wrong labels has .5.
"""
_EVIDENCE = (8, 15)
"""Least and largest number that twice the gain of log-likelihood must pass: 5 more than there are
classes. Without wrong labels it came to 8 with two classes and 15 with five or more (20 drawn sets
of each of 40 kinds); 10% wrong labels of wine bring 21 to 23, of digits 150.
"""
_WEAK = 7
"""Where prediction avoids .1 less than the last of those above, .7 more of it is needed: with two
classes 1 apart, without wrong labels, it came to 13.
"""
_BETWEEN = 4
"""Labels not predicted that overlap may explain, for each sample between classes: 3 at most where
classes overlap by less than half. Those are samples whose two largest predictions differ by less
than a quarter of the median.
"""
_STRAY = (1 / 3, 1 / 2)
"""Share of a class's labels that are wrong up to which all are believed, and above which none is:
20% wrong labels, spread at random, are up to 39% of those of a small class.
"""
_STRAY_ALONE = (0.1, 0.15)
"""The same for a class that has more of them than the others: a tenth of it."""


def find_wrong(
    F: np.ndarray, y: np.ndarray, units: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The probability that each label is wrong, (n,), which never rises with its margin; and the
    classes of whose labels nothing can be told. F : predictions (n, C) without the sample's own
    label; y : classes; units : one row of each group of copies, by which all is judged.
    """
    rows, classes = np.arange(len(y)), F.shape[1]
    scores = score_labels(F)
    sizes = np.bincount(y[units], minlength=classes)
    others = np.maximum(len(units) - sizes, 1)
    against = F.argmax(axis=1) != y
    strays = np.bincount(y[units], against[units], minlength=classes)
    skill = 1 - strays.sum() / others.min()
    if skill < _SKILL[0]:
        return np.zeros(len(y)), np.arange(classes)
    sizes = np.maximum(sizes, 1)
    few = units[np.sort(rng.permutation(len(units))[:_FITTED_ON])]
    theta, rates, most = _fit(F[few], y[few])
    own = softmax(theta[0] * F + theta[1:], axis=1)[rows, y]
    wrong = rates[y] * (1 - own) / ((1 - rates.sum()) * own + rates[y])
    counts = np.bincount(y[units], wrong[units], minlength=classes)
    shared = _share_in_common(counts, others)
    gain = most - _fit(F[few], y[few], theta, rates * (1 - shared))[2]
    told = ((counts <= _STRAY[1] * sizes) | (shared > 0.5))[y]
    believed = shared * _fall(counts / sizes, *_STRAY)
    needed = np.clip(5 + classes, *_EVIDENCE) * (1 + _WEAK * max(0, _SKILL[1] - skill))
    believed *= _weigh(gain / needed, 4)
    if classes > 2:
        # No more may be of the least predicted class than of another, by three standard deviations.
        least = np.bincount(F[units].argmin(axis=1) == y[units], (wrong * told)[units], minlength=2)
        usual = least[0] / (classes - 2)
        believed *= _fall(least[1] / max(usual + 3 * np.sqrt(usual), 1e-9), 1, 1.5)
    wrong *= believed[y]
    if skill > _SKILL[1]:
        spread = _share_in_common(strays, others) * _fall(strays / sizes, *_STRAY)
        believed = np.maximum(spread, _fall(strays / sizes, *_STRAY_ALONE))
        gap = scores[units].max(axis=1)
        between = 1 + (gap < np.median(gap) / 4).sum()
        believed *= _weigh(believed @ strays / (_BETWEEN * between), 3)
        wrong = np.maximum(wrong, believed[y] * against)
    order = np.flatnonzero(told)[np.argsort(scores[rows, y][told], kind="stable")]
    wrong[order] = isotonic_regression(wrong[order], increasing=False).x
    return np.where(told, wrong, 0.0), np.unique(y[~told])


def _share_in_common(counts: np.ndarray, among: np.ndarray) -> np.ndarray:
    """The part of each class's count that is of the median rate, and two standard deviations."""
    typical = np.quantile(counts / among, 0.5, method="lower") * among
    return np.minimum(1, (typical + 2 * np.sqrt(typical)) / np.maximum(counts, 1e-9))


def _fall(values: Any, start: float, end: float) -> Any:
    """1 up to `start`, 0 from `end`, straight between."""
    return np.clip((end - values) / (end - start), 0, 1)


def _weigh(evidence: float, power: int) -> float:
    """How far a claim is believed: not at all up to 1, wholly where evidence is many times that."""
    return 1 - max(evidence, 1.0) ** -power


def _fit(
    F: np.ndarray, y: np.ndarray, start: np.ndarray | None = None, fixed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """a and b of the largest likelihood, v, and twice its logarithm; or those of a `fixed` v."""
    n, classes = F.shape
    rows, own = np.arange(n), np.eye(classes)[y]

    def read(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ab = np.append(np.exp(theta[0]), theta[1 : 1 + classes])
        return ab, softmax(np.append(theta[1 + classes :], 0))[:-1] if fixed is None else fixed

    def lose(theta: np.ndarray) -> tuple[float, np.ndarray]:
        (slope, *offsets), rates = read(theta)
        p = softmax(slope * F + offsets, axis=1)
        # Of a label of which p is 0 the logarithm is finite all the same.
        explained = (1 - rates.sum()) * p[rows, y] + 1e-300
        q = explained + rates[y]
        pull = (explained / q / n)[:, None] * (own - p)
        gradient = [-slope * (pull * F).sum(), *(_RIDGE * np.array(offsets) - pull.sum(axis=0))]
        if fixed is None:
            gradient += list(rates - np.bincount(y, 1 - explained / q, minlength=classes) / n)
        return _RIDGE / 2 * np.square(offsets).sum() - np.log(q).mean(), np.array(gradient)

    first = np.append(10.0, np.zeros(classes)) if start is None else start.copy()
    first[0] = np.log(first[0])
    if fixed is None:
        first = np.append(first, np.full(classes, np.log(0.1 / classes)))
    bounds = [(-5, 5), *[(None, None)] * (len(first) - 1)]
    best = minimize(lose, first, jac=True, method="L-BFGS-B", bounds=bounds)
    return *read(best.x), -2 * n * best.fun

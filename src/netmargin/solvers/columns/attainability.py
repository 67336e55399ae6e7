"""Whether any ReLU function takes given values, and which samples matter for that.

relu(u . (a z)) = a relu(u . z) for a > 0, so f(a z) = a f(z): samples on one ray ask for one
number, f of its unit vector. relu(t) - relu(-t) = t, so f(z) - f(-z) is linear in z. Nothing else
binds f: without such conflicts some function takes the values, however large its norm.
"""

from dataclasses import dataclass

import numpy as np

from ...core.records import short_repr
from ...core.saved_records import Record
from ..pricing.rays import find_lines

_ROUNDING = 8 * np.finfo(float).eps
"""Unit vectors of samples on one ray differ by so much: a few roundings of their lengths."""
_EQUAL_VALUES = 1e-9
"""Values that differ by less, relative to the largest, are taken for equal up to rounding; where
that is wrong, the residual shows it.
"""


@dataclass(frozen=True)
class Targets(Record):
    """The values that a function is asked to take, one for each ray.

    Attributes
    ----------
    kept : ndarray of shape (m,), int
        The sample that stands for each ray.
    directions : ndarray of shape (m, D)
        The unit vectors of these samples.
    values : ndarray of shape (m,)
        The values of f there.
    contradiction : ndarray of shape (n,), or None
        Weights p with sum |p| = 1, response 0 to every neuron and p . y > 0, which prove that no
        function takes the values; None where there are no such weights.
    """

    kept: np.ndarray
    directions: np.ndarray
    values: np.ndarray
    contradiction: np.ndarray | None

    __repr__ = short_repr


def find_targets(Z: np.ndarray, y: np.ndarray) -> Targets:
    """Find the distinct rays among the samples, and the values that f has to take there.

    Parameters
    ----------
    Z : ndarray of shape (n, D)
        Samples, the bias included, of norm at most about 1.
    y : ndarray of shape (n,)
        The values of f at the samples.

    Returns
    -------
    Targets
        One value for each ray, with a contradiction where no function takes these values.
    """
    lengths, height = np.linalg.norm(Z, axis=1), float(np.abs(y).max())
    # Only samples that are parallel to rounding count: others can take different values.
    _, line, side, _ = find_lines(Z, within=_ROUNDING)
    # The longest sample of each ray stands for it, because it has the least rounding.
    longest_first = np.lexsort((-lengths, side, line))
    longest_first = longest_first[line[longest_first] >= 0]
    starts = np.flatnonzero(
        np.diff(2 * line[longest_first] + (side[longest_first] > 0), prepend=-9)
    )
    kept = longest_first[starts]
    stands_for = np.full(len(Z), -1)
    stands_for[longest_first] = np.repeat(kept, np.diff(starts, append=len(longest_first)))
    values = y[kept] / lengths[kept]
    contradiction = _find_contradiction(Z, y, lengths, stands_for, _EQUAL_VALUES * height)
    if contradiction is None:
        contradiction = _find_odd_contradiction(Z, y, lengths, kept, line, _EQUAL_VALUES * height)
    return Targets(kept, Z[kept] / lengths[kept, None], values, contradiction)


def _find_contradiction(Z, y, lengths, stands_for, small: float) -> np.ndarray | None:
    """Weights that prove a contradiction among samples at 0 or on one ray, or None."""
    zero = stands_for < 0
    ratio = np.where(zero, 0.0, lengths / np.where(zero, 1.0, lengths[stands_for]))
    missed = y - ratio * y[stands_for]
    worst = int(np.argmax(np.abs(missed)))
    if not abs(missed[worst]) > small:
        return None
    p = np.zeros(len(y))
    p[worst] = 1.0
    p[stands_for[worst]] -= ratio[worst]
    return p * np.sign(missed[worst]) / np.abs(p).sum()


def _find_odd_contradiction(Z, y, lengths, kept, line, small: float) -> np.ndarray | None:
    """Weights that prove a contradiction among opposite samples, or None: f(z) - f(-z) must be
    linear in z.
    """
    kept = kept[np.argsort(line[kept], kind="stable")]
    first = np.flatnonzero(line[kept[1:]] == line[kept[:-1]])
    plus, minus = kept[first], kept[first + 1]
    if not len(plus):
        return None
    directions = Z[plus] / lengths[plus, None]
    # The part of the odd values that no linear function explains is the proof.
    odd = y[plus] / lengths[plus] - y[minus] / lengths[minus]
    missed = odd - directions @ np.linalg.lstsq(directions, odd, rcond=None)[0]
    if not (np.abs(missed) * np.maximum(lengths[plus], lengths[minus])).max() > small:
        return None
    p = np.zeros(len(y))
    p[plus], p[minus] = missed / lengths[plus], -missed / lengths[minus]
    return p / np.abs(p).sum()

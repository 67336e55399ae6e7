"""Whether any function of neurons with a kink takes given values, and which samples matter for it.

phi(u . (a z)) = a phi(u . z) for a > 0, so f(a z) = a f(z): samples on one ray ask for one number,
f of its unit vector. phi(t) - phi(-t) = (1 + slope) t, so f(z) - f(-z) is linear in z; for absolute
values it is 0, and z and -z are taken for one (`contradictions.fold`). Nothing else binds f:
without such conflicts some function takes the values, however large its norm.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import qr

from ...core.matrices import SolverData, split_lengths
from ...core.saved_records import Record
from ..hull import as_integers
from ..pricing.rays import find_lines

_ROUNDING = 8 * np.finfo(float).eps
"""Unit vectors of samples on one ray differ by so much: a few roundings of their lengths."""
_EQUAL_VALUES = 1e-9
"""Values that differ by less, relative to the largest, are equal; the residual shows where not."""
_MOST_EXACT = 40
"""Dimensions up to which linear equations are solved in exact arithmetic: a second at most."""


@dataclass(frozen=True)
class Targets(Record):
    """The values that a function is asked to take, one for each of m rays, with the samples `kept`
    (m,).

    The `contradiction` (n,) are weights p with sum |p| = 1, response 0 to every neuron and p . y >
    0, which prove that no function takes the values. Where `exact`, a function that takes `values`
    takes all that is asked for, in exact arithmetic: what follows from others is left out.
    """

    kept: np.ndarray
    directions: np.ndarray  # (m, D): the unit vectors of these samples
    values: np.ndarray  # (m,): the values of f there
    contradiction: np.ndarray | None
    exact: bool


def find_targets(data: SolverData) -> Targets:
    """Find the distinct rays among the samples, and the values that f has to take there.

    Directions that agree to rounding are one ray where their values agree too: that only leaves out
    what is asked for twice. Elsewhere rays are told apart exactly, so that contradictions are real.
    """
    lengths, units = split_lengths(data.Z)
    small = _EQUAL_VALUES * float(np.abs(data.y).max())
    _, line, side, _ = find_lines(units, within=_ROUNDING)
    ray = np.where(line < 0, -1, 2 * line + (side > 0))
    kept, stands_for = _choose_representatives(ray, lengths)
    ratio = np.divide(lengths, lengths[stands_for], out=np.zeros_like(lengths), where=ray >= 0)
    missed = np.abs(data.y - ratio * data.y[stands_for])
    contradiction = None
    for wrong in np.unique(ray[missed > small]):
        members = np.flatnonzero(ray == wrong)
        contradiction = _split_ray(data, members, ray, small)
        if contradiction is not None:
            break
    kept, stands_for = _choose_representatives(ray, lengths)
    kept = kept[ray[kept] >= 0]
    left_out = np.setdiff1d(np.arange(len(data)), kept)
    exact = all(_is_implied(data, i, stands_for[i]) for i in left_out)
    if contradiction is None:
        contradiction, odd, implied = _find_odd_contradiction(
            data, units, lengths, kept, ray, small
        )
        exact, kept = exact and odd, np.setdiff1d(kept, implied)
    with np.errstate(over="ignore"):  # the caller says what is beyond float64
        values = data.y[kept] / lengths[kept]
    return Targets(kept, units[kept], values, contradiction, exact)


def _choose_representatives(ray: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The longest sample of each ray, which has the least rounding, and which stands for which."""
    order = np.lexsort((-lengths, ray))
    starts = np.flatnonzero(np.diff(ray[order], prepend=ray.min() - 1))
    stands_for = np.empty(len(ray), dtype=int)
    stands_for[order] = np.repeat(order[starts], np.diff(starts, append=len(ray)))
    return order[starts], stands_for


def _split_ray(
    data: SolverData, members: np.ndarray, ray: np.ndarray, small: float
) -> np.ndarray | None:
    """Number each exact ray among these samples, in place; weights of a contradiction or None."""
    exact: dict[tuple[int, ...], list[tuple[int, Fraction]]] = {}
    for i in members:
        direction, length = _exact_ray(data.Z[i])
        exact.setdefault(direction, []).append((int(i), length))
    for samples in exact.values():
        longest, a = max(samples, key=lambda sample: sample[1])
        p = np.zeros(len(ray))
        for i, length in samples:
            ratio = length / a if a else Fraction(0)
            missed = Fraction(data.y[i]) - ratio * Fraction(data.y[longest])
            if abs(missed) > small:
                p[longest] = -float(ratio)
                p[i] = 1.0
                return p * (1.0 if missed > 0 else -1.0) / float(np.abs(p).sum())
        ray[[i for i, _ in samples]] = ray.max() + 2 if a else -1
    return None


def _is_implied(data: SolverData, i: int, j: int) -> bool:
    """Whether f(z_j) = y_j asks for f(z_i) = y_i, in exact arithmetic."""
    if not data.Z[i].any():
        return bool(data.y[i] == 0)
    if (data.Z[i] == data.Z[j]).all():
        return bool(data.y[i] == data.y[j])
    (direction, a), (other, b) = _exact_ray(data.Z[i]), _exact_ray(data.Z[j])
    return direction == other and Fraction(data.y[i]) * b == Fraction(data.y[j]) * a


def _exact_ray(z: np.ndarray) -> tuple[tuple[int, ...], Fraction]:
    """The direction of z as integers without a common factor, and its length in units of them."""
    integers, scale = as_integers(z)
    common = math.gcd(*integers)
    return tuple(n // common for n in integers) if common else (0,), Fraction(common, scale)


def _find_odd_contradiction(
    data: SolverData, units: np.ndarray, lengths: np.ndarray, kept: Any, ray: Any, small: float
) -> tuple[np.ndarray | None, bool, list[int]]:
    """Weights that prove f(z) - f(-z) not linear, or None; whether it is; samples that follow."""
    minus = kept[ray[kept] % 2 == 0]
    pairs = [(kept[ray[kept] == ray[i] + 1], i) for i in minus]
    plus = np.array([j[0] for j, _ in pairs if len(j)], dtype=int)
    minus = np.array([i for j, i in pairs if len(j)], dtype=int)
    if len(plus) <= (0 if not len(plus) else np.linalg.matrix_rank(units[plus])):
        return None, True, []
    settled = data.Z.shape[1] <= _MOST_EXACT
    # First come pairs of directions far apart, from which others follow with little rounding.
    order = qr(units[plus].T, mode="r", pivoting=True)[1]
    implied = _find_implied(data, plus[order], minus[order]) if settled else []
    impossible = implied is None
    # The part of the odd values that no linear function explains is the proof.
    odd = data.y[plus] / lengths[plus] - data.y[minus] / lengths[minus]
    missed = odd - units[plus] @ np.linalg.lstsq(units[plus], odd, rcond=None)[0]
    large = (np.abs(missed) * np.maximum(lengths[plus], lengths[minus])).max() > small
    if not (large and impossible):
        return None, settled and not impossible, implied or []
    p = np.zeros(len(data))
    p[plus], p[minus] = missed / lengths[plus], -missed / lengths[minus]
    return p / np.abs(p).sum(), False, []


def _find_implied(data: SolverData, plus: np.ndarray, minus: np.ndarray) -> list[int] | None:
    """The samples -z whose values follow from earlier pairs and z; None where nothing is linear."""
    implied: list[int] = []
    echelon: list[list[Fraction]] = []  # rows (z, odd value) in echelon form
    for i, j in zip(plus, minus, strict=True):
        (z, a), (opposite, b) = _exact_ray(data.Z[i]), _exact_ray(data.Z[j])
        if any(x + y for x, y in zip(z, opposite, strict=True)):
            continue  # opposite to rounding only
        row = [*map(Fraction, z), Fraction(data.y[i]) / a - Fraction(data.y[j]) / b]
        for other in echelon:
            pivot = next(k for k, x in enumerate(other) if x)
            if row[pivot]:
                factor = row[pivot] / other[pivot]
                row = [x - factor * y for x, y in zip(row, other, strict=True)]
        if any(row[:-1]):
            echelon.append(row)
        elif row[-1]:
            return None
        else:
            implied.append(int(j))
    return implied

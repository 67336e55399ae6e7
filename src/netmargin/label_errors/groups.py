"""Samples that are left out together: a wrong label that occurs twice would vouch for itself.

Rows and labels go in; groups and weights come out, for any way to score labels. A group that was
found weighs as one sample; the members of given ones (patients, frames) differ, and each weighs 1.

Two things speak against copies. Rows of a table with few values are equal by chance, and then equal
rows are evidence (`fill_a_grid`). And copies share their label: where labels within groups differ
about as often as wrong ones make them, they were given one by one (`labels_differ`).
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import pdist
from torch import Tensor

from ..errors import ArgumentError
from .images import flatten_rows

_COMPARED_ROWS, _COMPARED_COLUMNS = 1000, 256
"""Rows and columns whose values are compared, of a table that may fill a grid: .1 s."""
_FEW_COLUMNS = 4
"""Rows of which no two differ in so few columns or fewer are not equal by chance."""
_COPIES_ABOVE = 2.0
"""Counts of pairs that differ in 0, 1 and 2 columns are log-concave where chance made them: n_0 n_2
/ n_1^2 was .2 to .8 on honest tables, and above 2.4 where half of the rows had a copy.
"""
_INDEPENDENT_FROM = 0.7
"""Share of unlike pairs in e (1 - e), from which labels were given one by one: it is 2 then, e the
share of wrong labels, and 0 for copies.
"""
_MOST_WRONG = 0.15
"""Shares of wrong labels above this are not believed here: bursts that are left out whole look
three times as wrong as they are.
"""


@dataclass(frozen=True)
class Groups:
    """Which samples are left out together, and one row for all equal samples of a group.

    of : the group of each sample, (n,), numbered by first occurrence. rows : the samples that stand
    for equal ones of their group, (m,). row_of : the index among `rows` for each sample, (n,).
    weights : the weight of each sample, (n,). units : samples whose labels were given one by one,
    as those of copies were not. given : whether the caller gave the groups.
    """

    of: np.ndarray
    rows: np.ndarray
    row_of: np.ndarray
    weights: np.ndarray
    units: np.ndarray
    given: bool

    def together(self, rows: np.ndarray | None = None) -> list[np.ndarray]:
        """The positions in `rows`, or in some of them, of each group that has several there."""
        return find_repeated(self.of[self.rows if rows is None else self.rows[rows]])

    def merge(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weight of each row, (m,), and the mean value of its samples, (m, C)."""
        weights = np.bincount(self.row_of, self.weights)
        sums = np.zeros((len(weights), values.shape[1]))
        np.add.at(sums, self.row_of, self.weights[:, None] * values)
        return weights, sums / weights[:, None]

    def describe(self) -> str:
        """How many groups have several members: a sentence, or ""."""
        sizes = [len(part) for part in find_repeated(self.of)]
        if not sizes:
            return ""
        kind = "given groups" if self.given else "groups of equal or nearly equal ones"
        return (
            f"{sum(sizes):,} of {len(self.of):,} samples are left out in {kind}, {len(sizes):,} in"
            " all, as a wrong label that occurs twice would vouch for itself."
        )


def make_groups(
    of: np.ndarray, equal: np.ndarray, classes: np.ndarray, given: bool = False
) -> Groups:
    """Groups, `given` or found, from the group and the number of the equal rows of each sample."""
    row_of, rows = _number(of * (int(equal.max()) + 1) + equal)
    weigh_as_one = row_of if given else of
    weights = 1 / np.bincount(weigh_as_one)[weigh_as_one]
    # Labels that differ within a given group did not come with it.
    apart = given and labels_differ(of, row_of, classes, 0.0)
    return Groups(of, rows, row_of, weights, rows if apart else _number(of)[1], given)


def find_repeated(numbers: np.ndarray) -> list[np.ndarray]:
    """The places of each number that occurs several times."""
    order = np.argsort(numbers, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
    return [part for part in parts if len(part) > 1]


def number_equal_rows(X: Tensor) -> np.ndarray:
    """A number for each sample, (n,), by first occurrence: the same for equal ones."""
    # Adding zero makes negative zeros positive.
    rows = (hashlib.blake2b((row + 0.0).data, digest_size=16).digest() for row in flatten_rows(X))
    return _number(list(rows))[0]


def read_groups(groups: Any, count: int) -> np.ndarray:
    """The groups that a caller gave, numbered by first occurrence. Raises ArgumentError."""
    try:
        found = _number(groups)[0]
    except (TypeError, ValueError):
        found = np.empty(0)
    if len(found) != count or found.min() < 0 or found.max() == 0:
        raise ArgumentError(
            f"groups must hold one number or name for each of {count} samples, such as its patient,"
            f" and two of them at least; or be None or False; got {type(groups).__name__}."
        )
    return found


def fill_a_grid(X: Tensor, equal: np.ndarray) -> bool:
    """Whether so many rows differ in few columns that others may be equal by chance."""
    n = len(X)
    drawn = np.random.default_rng(0).permutation(n)[:_COMPARED_ROWS]
    rows = flatten_rows(X[torch.from_numpy(drawn)])
    varied = np.not_equal(rows, np.roll(rows, 1, axis=0)).sum(axis=0)
    columns = np.argsort(-varied, kind="stable")[:_COMPARED_COLUMNS]
    rows = rows[:, columns[varied[columns] > 0]]
    if not rows.size:
        return True
    copies = _count_pairs(equal) * (len(rows) / n) ** 2
    count = np.bincount(np.rint(pdist(rows, "hamming") * rows.shape[1]).astype(int))
    numbers = np.flatnonzero(count[1:]) + 1
    # Equal by chance are rows that are often equal but for few columns, and in each of several.
    copied = rows.shape[1] > 1 and min(map(_count_pairs, rows.T)) - count[0] <= copies
    if copied or numbers[0] > _FEW_COLUMNS:
        return False
    next_count = count[numbers[1]] if len(numbers) > 1 else 0
    return bool(copies * next_count <= _COPIES_ABOVE * count[numbers[0]] ** 2)


def labels_differ(of: np.ndarray, within: np.ndarray, classes: np.ndarray, share: float) -> bool:
    """Whether labels in groups, `share` of them wrong, differ as if each was given on its own."""
    # Pairs count that are in one group of `of` and not of the finer `within`.
    pairs = _count_pairs(of) - _count_pairs(within)
    labels = classes + (classes.max() + 1) * np.stack([of, within])
    alike = _count_pairs(labels[0]) - _count_pairs(labels[1])
    wrong = min(share, _MOST_WRONG)
    return pairs - alike > _INDEPENDENT_FROM * wrong * (1 - wrong) * pairs


def _count_pairs(numbers: np.ndarray) -> float:
    """The number of pairs of equal numbers."""
    sizes = np.unique(numbers, return_counts=True)[1]
    return float((sizes * (sizes - 1) / 2).sum())


def _number(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of equal values by first occurrence, -1 for missing ones; and those occurrences."""
    import pandas

    numbers = pandas.factorize(np.asarray(values))[0]
    return numbers, np.unique(numbers, return_index=True)[1]

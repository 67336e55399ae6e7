"""Why samples cannot be separated: equal inputs with different labels, by name, and what to do
about them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core.matrices import SolverData
from ..core.records import short_repr
from ..core.saved_records import Record

_DIRECTION_DIGITS = 12
"""Directions that agree to so many digits count as one: divided by their lengths, multiples of one
input differ in the last few of 16.
"""
_COSINE_TOLERANCE = 1e-12
"""Cosines this close to 1 count as 1: those of equal features differ from it by rounding, some
1e-16.
"""
_NAMED_SAMPLES = 8
"""Samples that a message names, so that it stays one line on a screen."""
_RELATIVE_COST = 10.0
"""The recommended C times the mean size of features; `recommended_cost` says why."""


@dataclass(frozen=True)
class Contradictions(Record):
    """Samples that no function of a class can label as asked.

    Attributes
    ----------
    pairs : ndarray of shape (k, 2), int
        Samples i < j with different labels whose features are equal, or positive multiples of each
        other, one pair for each j that contradicts an earlier sample.
    zeros : ndarray of shape (m,), int
        Samples on which every function of the class is 0.
    lengths : ndarray of shape (n,)
        Lengths of the features.
    relation : str
        How the features of the first pair are related.
    exact : bool
        Whether they are equal in all digits.
    """

    pairs: np.ndarray
    zeros: np.ndarray
    lengths: np.ndarray
    relation: str
    exact: bool

    __repr__ = short_repr

    @classmethod
    def among(cls, data: SolverData, *, bias: bool) -> Self:
        """Find them for functions that are homogeneous in x~ = (x, 1), or in x without a bias:
        f(a x) = a f(x) for a > 0 then, so positive multiples agree in sign.
        """
        zeros, pairs = np.flatnonzero(~data.Z.any(1)), contradicting_pairs(data.Z, data.y)
        lengths = np.maximum(np.linalg.norm(data.Z / data.size, axis=1), np.finfo(float).tiny)
        # Equal in all digits is the stronger proof; directions are compared only without a bias.
        if bias or len(pairs) or len(zeros):
            return cls(pairs, zeros, lengths, "equal", True)
        units = np.round(data.Z / data.size / lengths[:, None], _DIRECTION_DIGITS)
        relation = (
            "positive multiples of each other, on which functions without a bias agree in sign,"
        )
        return cls(contradicting_pairs(units, data.y), zeros, lengths, relation, False)

    @classmethod
    def in_kernel(cls, K: np.ndarray, y: np.ndarray) -> Self:
        """Find them for functions in the space of a kernel: samples at an angle of 0."""
        lengths = np.sqrt(np.maximum(np.diag(K), 0.0))
        zeros = np.flatnonzero(lengths == 0)
        products = np.outer(lengths, lengths)
        near = (
            ((1 - _COSINE_TOLERANCE) * products <= K) & (products > 0) & (y[:, None] != y[None, :])
        )
        first, second = np.argmax(near, axis=0), np.arange(len(y))
        found = near[first, second] & (first < second)
        pairs = np.column_stack([first, second])[found]
        ratio = lengths[pairs[0, 0]] / lengths[pairs[0, 1]] if len(pairs) else 1.0
        equal = abs(ratio - 1) < _COSINE_TOLERANCE
        return cls(
            pairs,
            zeros,
            lengths,
            f"{'equal' if equal else 'multiples of each other'} in the space of the kernel",
            False,
        )

    @property
    def weights(self) -> np.ndarray | None:
        """Dual weights (n,), >= 0 with sum 1, on the first contradiction, whose sum of labelled
        features is 0; None where nothing contradicts.
        """
        weights = np.zeros(len(self.lengths))
        if len(self.zeros):
            weights[self.zeros[0]] = 1.0
        elif len(self.pairs):
            i, j = self.pairs[0]
            # Each gets the length of the other, so that the labelled features cancel.
            weights[[i, j]] = self.lengths[[j, i]] / (self.lengths[i] + self.lengths[j])
        else:
            return None
        return weights

    def note(self, dual: np.ndarray, remedy: str) -> str:
        """Say in words which samples contradict each other, and add the remedy.

        Where no two do, the samples of the proof are named that the weights `dual` (n,) give; they
        may be all 0, and then the note is empty.
        """
        support = np.argsort(-dual, kind="stable")[: np.count_nonzero(dual)]
        if len(self.zeros):
            reason = (
                f"Sample {self.zeros[0]}{_more(len(self.zeros) - 1)} is 0, and so is every function"
                " of this class there: add a bias, or drop it."
            )
        elif len(self.pairs):
            i, j = self.pairs[0]
            reason = (
                f"Samples {i} and {j} are {self.relation} and have different"
                f" labels{_more(len(self.pairs) - 1)}: no function separates them. Correct or drop"
                " one of them."
            )
        elif len(support):
            named = ", ".join(map(str, support[:_NAMED_SAMPLES])) + (
                ", ..." if len(support) > _NAMED_SAMPLES else ""
            )
            reason = (
                f"No two samples contradict each other, but the {len(support)} samples of `support`"
                f" together do: {named}."
            )
        else:
            return ""
        return f"{reason} {remedy}"


def contradicting_pairs(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Find pairs i < j, shape (k, 2), of equal rows with different labels: for each group of equal
    rows its first, i, with each row j that contradicts it.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0], [2.0], [1.0], [2.0], [1.0]])
    >>> contradicting_pairs(rows, np.array([1, 1, -1, 1, -1]))
    array([[0, 2],
           [0, 4]])
    """
    # Adding 0 turns -0 into 0.
    _, first, group = np.unique(rows + 0.0, axis=0, return_index=True, return_inverse=True)
    first = first[group.reshape(-1)]
    second = np.flatnonzero(labels != labels[first])
    return np.column_stack([first[second], second])


def _more(count: int) -> str:
    """The words for how many others there are, if there are any."""
    return f" (and {count} more)" if count else ""


def recommended_cost(size: float) -> float:
    """Recommend a cost C = 10 / size, to one digit, for features of mean squared length (in the
    variation norm: mean length) `size`.

    At 1 / size one sample with full weight moves its own output by 1, to its margin, or is just
    worth a neuron. Ten times that separated all but the contradictions of two moons and of iris
    with three tangent and variation norms, and 1 / size left 1 to 10% of the samples wrong.
    """
    return float(f"{_RELATIVE_COST / size:.0e}") if 0 < size < np.inf else 1.0

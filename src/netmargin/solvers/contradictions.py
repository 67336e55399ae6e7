"""Why samples cannot be separated: equal inputs with different labels, by name, and what to do
about them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core.matrices import SolverData
from ..core.records import short_repr

_DIGITS = 12
"""Directions that agree to so many digits count as one: divided by their lengths, multiples of one
input differ in the last few of 16.
"""
_SAME = 1e-12
"""Cosines this close to 1 count as 1: those of equal features differ from it by rounding, some
1e-16.
"""
_NAMED = 8
_COST = 10.0


@dataclass(frozen=True)
class Contradictions:
    """Samples that no function of a class can label as asked.

    pairs : (k, 2), samples i < j with different labels whose features are equal, or positive
        multiples of each other, one pair for each j that contradicts an earlier sample.
    zeros : (k,), samples on which every function of the class is 0.
    lengths : (n,), of the features.
    relation : how the features of the first pair are related.
    exact : whether they are equal in all digits.
    """

    pairs: np.ndarray
    zeros: np.ndarray
    lengths: np.ndarray
    relation: str
    exact: bool

    __repr__ = short_repr

    @classmethod
    def among(cls, data: SolverData, *, bias: bool) -> Self:
        """Of functions that are homogeneous in x~ = (x, 1), or in x without a bias: f(a x) = a f(x)
        for a > 0 then, so positive multiples agree.
        """
        zeros, pairs = np.flatnonzero(~data.Z.any(1)), contradicting_pairs(data.Z, data.y)
        lengths = np.maximum(np.linalg.norm(data.Z / data.size, axis=1), np.finfo(float).tiny)
        if bias or len(pairs) or len(zeros):
            return cls(pairs, zeros, lengths, "equal", True)
        units = np.round(data.Z / data.size / lengths[:, None], _DIGITS)
        relation = (
            "positive multiples of each other, on which functions without a bias agree in sign,"
        )
        return cls(contradicting_pairs(units, data.y), zeros, lengths, relation, False)

    @classmethod
    def in_kernel(cls, K: np.ndarray, y: np.ndarray) -> Self:
        """Of functions in the space of a kernel: samples whose features have an angle of 0."""
        lengths = np.sqrt(np.maximum(np.diag(K), 0.0))
        zeros = np.flatnonzero(lengths == 0)
        products = np.outer(lengths, lengths)
        near = ((1 - _SAME) * products <= K) & (products > 0) & (y[:, None] != y[None, :])
        first, second = np.argmax(near, axis=0), np.arange(len(y))
        found = near[first, second] & (first < second)
        pairs = np.column_stack([first, second])[found]
        ratio = lengths[pairs[0, 0]] / lengths[pairs[0, 1]] if len(pairs) else 1.0
        equal = abs(ratio - 1) < _SAME
        return cls(
            pairs,
            zeros,
            lengths,
            f"{'equal' if equal else 'multiples of each other'} in the space of the kernel",
            False,
        )

    @property
    def weights(self) -> np.ndarray | None:
        """(n,), >= 0 with sum 1, on the first of them: dual weights whose sum of labelled features
        is 0. None where there are none.
        """
        weights = np.zeros(len(self.lengths))
        if len(self.zeros):
            weights[self.zeros[0]] = 1.0
        elif len(self.pairs):
            i, j = self.pairs[0]
            weights[[i, j]] = self.lengths[[j, i]] / (self.lengths[i] + self.lengths[j])
        else:
            return None
        return weights

    def note(self, dual: np.ndarray, remedy: str) -> str:
        """Sentences for a person.

        dual : the weights of a proof, whose samples are named where no two contradict each other;
            may be all 0.
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
            named = ", ".join(map(str, support[:_NAMED])) + (
                ", ..." if len(support) > _NAMED else ""
            )
            reason = (
                f"No two samples contradict each other, but the {len(support)} samples of `support`"
                f" together do: {named}."
            )
        else:
            return ""
        return f"{reason} {remedy}"


def contradicting_pairs(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Pairs i < j, shape (k, 2), of equal rows with different labels: for each group of equal rows
    its first, i, with each that contradicts it.

    Examples
    --------
    >>> import numpy as np
    >>> contradicting_pairs(np.array([[1.0], [2.0], [1.0], [2.0], [1.0]]), np.array([1, 1, -1, 1, -1]))
    array([[0, 2],
           [0, 4]])
    """
    _, first, group = np.unique(
        rows + 0.0, axis=0, return_index=True, return_inverse=True
    )  # -0 counts as 0
    first = first[group.reshape(-1)]
    second = np.flatnonzero(labels != labels[first])
    return np.column_stack([first[second], second])


def _more(count: int) -> str:
    return f" (and {count} more)" if count else ""


def recommended_cost(size: float) -> float:
    """C = 10 / size, to one digit, for features of mean squared length (in the variation norm: mean
    length) `size`.

    At 1 / size one sample with full weight moves its own output by 1, to its margin, or is just
    worth a neuron. Ten times that separated all but the contradictions of two moons and of iris
    with three tangent and variation norms, and 1 / size left 1 to 10% of the samples wrong.
    """
    return float(f"{_COST / size:.0e}") if 0 < size < np.inf else 1.0

"""Why samples cannot be separated: equal inputs with different labels, by name, and what to do about them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from .data import SolverData

_DIGITS = 12
"""Directions that agree to so many digits count as one: divided by their lengths, multiples of one input differ in the last few of 16."""
_SAME = 1e-12
"""Features this close, relative to their squared length, count as equal: the squared distance of equal ones is rounding, some 1e-16."""
_NAMED = 8
_COST = 10.0


@dataclass(frozen=True)
class Contradictions:
    """Samples that no function of a class can label as asked.

    pairs : (k, 2), samples i < j with different labels on which the functions agree, one pair for each j that contradicts an earlier sample.
    zeros : (k,), samples on which every function of the class is 0.
    weights : (n,), >= 0 with sum 1, on the first of these: dual weights whose sum of labelled features is exactly 0. None where there are none, or multiples only.
    relation : how the two inputs of a pair are related.
    """

    pairs: np.ndarray
    zeros: np.ndarray
    weights: np.ndarray | None
    relation: str

    @classmethod
    def among(cls, data: SolverData, *, bias: bool) -> Self:
        """Of functions that are homogeneous in x~ = (x, 1), or in x without a bias: f(a x) = a f(x) for a > 0 then, so positive multiples agree."""
        zeros, pairs = np.flatnonzero(~data.Z.any(1)), contradicting_pairs(data.Z, data.y)
        if len(pairs) or len(zeros):
            first = zeros[:1] if len(zeros) else pairs[0]
            weights = np.zeros(len(data))
            weights[first] = 1 / len(first)
            return cls(pairs, zeros, weights, "equal")
        if bias:
            return cls(pairs, zeros, None, "equal")
        units = data.Z / data.size
        units = units / np.linalg.norm(units, axis=1, keepdims=True)
        pairs = contradicting_pairs(np.round(units, _DIGITS), data.y)
        return cls(pairs, zeros, None, "positive multiples of each other, on which functions without a bias agree in sign,")

    @classmethod
    def in_kernel(cls, K: np.ndarray, y: np.ndarray) -> Self:
        """Of functions in the space of a kernel: samples whose features have distance K_ii + K_jj - 2 K_ij = 0."""
        sizes = np.diag(K)
        near = sizes[:, None] + sizes[None, :] - 2 * K <= _SAME * np.maximum(sizes[:, None], sizes[None, :])
        first = np.argmax(near & (y[:, None] != y[None, :]), axis=0)
        second = np.arange(len(y))
        found = near[first, second] & (y[first] != y[second]) & (first < second)
        pairs = np.column_stack([first, second])[found]
        return cls(pairs, np.flatnonzero(sizes <= 0), None, "equal in the space of the kernel")

    def note(self, support: np.ndarray, remedy: str) -> str:
        """Sentences for a person. support : the samples that the proof rests on, named where no two samples contradict each other."""
        if len(self.zeros):
            reason = f"Sample {self.zeros[0]}{_more(len(self.zeros) - 1)} is 0, and so is every function of this class there: add a bias, or drop it."
        elif len(self.pairs):
            i, j = self.pairs[0]
            reason = (
                f"Samples {i} and {j} are {self.relation} and have different labels{_more(len(self.pairs) - 1)}: no function separates them. "
                "Correct or drop one of them."
            )
        elif len(support):
            named = ", ".join(map(str, support[:_NAMED])) + (", ..." if len(support) > _NAMED else "")
            reason = f"No two samples contradict each other; the {len(support)} samples of `support` cannot be separated: {named}."
        else:
            return ""
        return f"{reason} {remedy}"


def contradicting_pairs(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Pairs i < j, shape (k, 2), of equal rows with different labels: for each group of equal rows its first, i, with each that contradicts it.

    >>> import numpy as np
    >>> contradicting_pairs(np.array([[1.0], [2.0], [1.0], [2.0], [1.0]]), np.array([1, 1, -1, 1, -1]))
    array([[0, 2],
           [0, 4]])
    """
    _, first, group = np.unique(rows + 0.0, axis=0, return_index=True, return_inverse=True)  # -0 counts as 0
    first = first[group.reshape(-1)]
    second = np.flatnonzero(labels != labels[first])
    return np.column_stack([first[second], second])


def _more(count: int) -> str:
    return f" (and {count} more)" if count else ""


def recommended_cost(size: float) -> float:
    """C = 10 / size, to one digit, for features of mean squared length (in the variation norm: mean length) `size`.

    At 1 / size one sample with full weight moves its own output by 1, to its margin, or is just worth a neuron. Ten times that separated
    all but the contradictions of two moons and of iris with three tangent and variation norms, and 1 / size left 1 to 10% of the samples wrong.
    """
    return float(f"{_COST / size:.0e}") if 0 < size < np.inf else 1.0

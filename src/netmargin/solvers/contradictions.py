"""Why samples cannot be separated: equal inputs with different labels, by name, and a remedy."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..core.matrices import SolverData
from ..core.saved_records import Record
from .extended import multiply_exactly
from .hull import find_contradiction

ENTRY_ROUNDING = 2.0**-52
"""What the entries K_ij of a kernel matrix are taken to be rounded by, relative to the root of K_ii
K_jj: twice the rounding of a single number. Hulls that hold 0 come to a hundredth of it.
"""
_NEAR = 4 * ENTRY_ROUNDING
"""How far below 1 a cosine of equal features may be: they are products of rounded numbers."""
_EQUAL_LENGTHS = 1e-12
"""Lengths that differ by less are called equal, in words only."""
_NAMED_SAMPLES = 8
"""Samples that a message names, so that it stays one line on a screen."""
_RELATIVE_COST = 10.0
"""The recommended C times the mean size of features; `recommended_cost` says why."""


@dataclass(frozen=True)
class Contradictions(Record):
    """Samples that no function of a class can label as asked."""

    # (k, 2): samples i < j with different labels whose features are equal, or positive multiples of
    # each other, one for each j that contradicts an earlier sample.
    pairs: np.ndarray
    zeros: np.ndarray  # (m,): samples on which every function of the class is 0
    weights: np.ndarray | None  # (n,): >= 0 with sum 1, whose sum of labelled features is 0
    relation: str  # how the features of the first pair are related
    # (l, 2): samples x and -a x, a > 0, whatever their labels are: those of each line that lie
    # opposite to its first one, where there is no bias and no pair.
    opposites: np.ndarray
    known_to: str = ""  # what the features are known to, where it is less than all digits

    @classmethod
    def among(cls, data: SolverData, *, bias: bool, relu: bool = False) -> Self:
        """Find them, in all digits, for functions with f(a x) = a f(x), a > 0, without a bias; with
        `relu`, all that keep sums of neurons with a kink, and their kernels, from separating the
        samples.

        A sum of c_n phi(a . x_n) that is 0 for all a has no kink where a . x_n = 0. So what it has
        on one line is x and -b x with c and -c / b, which have different labels, and there it is
        linear, (1 + slope) c a . x: such pairs contradict each other as one sample of linear
        functions for each line does. (Of |a . x| each is one, which `fold` makes a pair.)
        """
        Z, y = data.Z, data.y
        # Divided by the largest coordinate, multiples are equal to the last digit: a rounded
        # quotient depends on the exact one alone.
        tops = np.take_along_axis(Z, np.abs(Z).argmax(1)[:, None], 1)
        sizes = np.abs(tops[:, 0])
        zeros, pairs, relation = np.flatnonzero(sizes == 0), contradicting_pairs(Z, y), "equal"
        opposites = np.zeros((0, 2), dtype=int)
        if not (bias or len(pairs) or len(zeros)):
            relation = (
                "positive multiples of each other, on which functions without a bias agree in sign,"
            )
            pairs = _keep_parallel(contradicting_pairs(Z / np.abs(tops), y), Z, tops)
            lines = contradicting_pairs(Z / tops, tops[:, 0] > 0)
            opposites = _keep_parallel(lines, Z, tops)
        weights = _refute(zeros, pairs, sizes)
        if weights is None and relu and len(opposites):
            used = opposites[y[opposites[:, 0]] != y[opposites[:, 1]]]
            first = used[:, 0]
            found = find_contradiction(y[first, None] * Z[first]) if len(used) else None
            weights = None if found is None else _balance(used, found, sizes)
        return cls(pairs, zeros, weights, relation, opposites)

    @classmethod
    def of_neurons(cls, data: SolverData, slope: float, *, bias: bool) -> Self:
        """Find all that keep sums of neurons with this slope below 0 from separating them."""
        found = cls.among(fold(data, slope), bias=bias, relu=slope != 1)
        if slope == -1:
            return replace(found, relation=found.relation.removeprefix("positive "))
        if slope == 1 and found.weights is None:
            return replace(found, weights=find_contradiction(data.y[:, None] * data.Z))
        return found

    @classmethod
    def in_kernel(cls, K: np.ndarray, y: np.ndarray) -> Self:
        """Find samples at an angle of 0 in a kernel space, to the rounding of K: not yet proofs."""
        lengths = np.sqrt(np.maximum(np.diag(K), 0.0))
        zeros = np.flatnonzero(lengths == 0)
        products = np.outer(lengths, lengths)
        near = ((1 - _NEAR) * products <= K) & (products > 0) & (y[:, None] != y[None, :])
        first, second = np.argmax(near, axis=0), np.arange(len(y))
        found = near[first, second] & (first < second)
        pairs = np.column_stack([first, second])[found]
        ratio = lengths[pairs[0, 0]] / lengths[pairs[0, 1]] if len(pairs) else 1.0
        equal = abs(ratio - 1) < _EQUAL_LENGTHS
        i, j = pairs[0] if len(pairs) else (0, 0)
        # Positive multiples in all digits: K_ij^2 = K_ii K_jj, K_ij > 0.
        sides = _multiply_in_parts(K[i, j], K[i, j]), _multiply_in_parts(K[i, i], K[j, j])
        exact = len(pairs) and np.equal(*sides).all()
        known_to = "" if exact else " within the rounding of the entries"
        relation = "equal" if equal else "multiples of each other"
        relation += f"{known_to} in the space of the kernel"
        weights = _refute(zeros, pairs, lengths)
        return cls(pairs, zeros, weights, relation, np.zeros((0, 2), dtype=int), known_to)

    def note(self, dual: np.ndarray, remedy: str) -> str:
        """The words for which samples contradict each other, and the remedy: those of a pair, or of
        the proof by the weights `dual` (n,); nothing where these are all 0.
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
                f" labels{_more(len(self.pairs) - 1)}: no function"
                f"{' provably' if self.known_to else ''} separates them. Correct or drop one of"
                " them."
            )
        elif len(support):
            named = ", ".join(map(str, support[:_NAMED_SAMPLES]))
            named += ", ..." * (len(support) > _NAMED_SAMPLES)
            reason = (
                f"No two samples contradict each other, but the {len(support)} samples of `support`"
                f" together do{self.known_to}: {named}."
            )
        else:
            return ""
        return f"{reason} {remedy}"


def fold(data: SolverData, slope: float) -> SolverData:
    """The same samples; for absolute values, of slope -1, x in place of -x, which has the same
    features, where its largest coordinate is positive.
    """
    if slope != -1:
        return data
    tops = np.take_along_axis(data.Z, np.abs(data.Z).argmax(1)[:, None], 1)
    return SolverData(np.where(tops < 0, -data.Z, data.Z), data.y)


def contradicting_pairs(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Pairs (k, 2) of equal rows with different labels: the first of a group, and all others."""
    # Adding 0 turns -0 into 0.
    _, first, group = np.unique(rows + 0.0, axis=0, return_index=True, return_inverse=True)
    first = first[group.reshape(-1)]
    second = np.flatnonzero(labels != labels[first])
    return np.column_stack([first[second], second])


def _keep_parallel(pairs: np.ndarray, Z: np.ndarray, tops: np.ndarray) -> np.ndarray:
    """The pairs (k, 2) of rows Z (n, D), of largest entries `tops`, that are exact multiples."""
    i, j = pairs.T
    equal = np.equal(_multiply_in_parts(Z[i], tops[j]), _multiply_in_parts(Z[j], tops[i]))
    return pairs[equal.all((0, 2))]


def _multiply_in_parts(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The exact products as p + q times 2^e, p in [1/2, 1) or 0: equal parts are equal products."""
    (a, first), (b, second) = np.frexp(x), np.frexp(y)
    product, rounding = multiply_exactly(a, b)
    part, shift = np.frexp(product)
    return part, np.ldexp(rounding, -shift), np.where(product == 0, 0, first + second + shift)


def _refute(zeros: np.ndarray, pairs: np.ndarray, sizes: np.ndarray) -> np.ndarray | None:
    """Dual weights (n,) on a sample that is 0, or on the first pair; None without both."""
    if len(zeros):
        return np.eye(1, len(sizes), zeros[0])[0, :]
    return _balance(pairs[:1], np.ones(1), sizes) if len(pairs) else None


def _balance(pairs: np.ndarray, parts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Weights (n,) with sum 1: the part of each pair on its first sample, and what cancels it."""
    i, j = pairs.T
    # Relative to the largest, as quotients of sizes may be beyond float64.
    with np.errstate(divide="ignore"):
        ratios = np.log2(sizes[i]) - np.log2(sizes[j])
        logs = np.log2(parts) + np.stack([np.zeros(len(i)), ratios])
    weights = np.zeros(len(sizes))
    np.add.at(weights, [i, j], np.exp2(logs - logs.max()))
    return weights / float(weights.sum())


def _more(count: int) -> str:
    """The words for how many others there are, if there are any."""
    return f" (and {count} more)" if count else ""


def recommended_cost(size: float) -> float:
    """Recommend a cost C = 10 / size, to one digit, for features of mean squared length (in the
    variation norm: mean length) `size`.

    At 1 / size one sample with full weight moves its own output by 1, or is just worth a neuron.
    Ten times that separated all but the contradictions of two moons and iris, 1 / size 90 to 99%.
    """
    return float(f"{_RELATIVE_COST / size:.0e}") if 0 < size < np.inf else 1.0

"""The hard margin of a kernel matrix: the least norm in the hull of the labelled samples."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.matrices import kernel_values
from ..result import Bracket, MarginSolution, Status, judge_bracket
from .contradictions import ENTRY_ROUNDING, Contradictions
from .extended import multiply_extended, round_down, round_up
from .kernel_engine import KernelProblem
from .kernel_matrix import KernelMatrix, bound_sums
from .pair_descent import take_newton_step

_REFINEMENTS = 8
"""Newton steps with outputs in longer floats: two reach the last digits, the best is kept."""
_RESCALED = 1e-9
"""Weights change their scale by this in each step, to be rounded anew; a norm is 1 to 1e-8."""
_UNDERFLOW = 2.0**-1000
"""More than all that underflows in a product with a kernel, whose largest entry is within 1e60."""


@dataclass(frozen=True, kw_only=True)
class KernelSolution(MarginSolution):
    """The function f = sum_n coefficients_n k(x_n, .) of norm 1 with the largest min y_n f(x_n)."""

    #: (n,), float64: y * dual / upper_bound, 0 where the margin is 0
    coefficients: np.ndarray

    def decision_function(self, K: Any) -> np.ndarray:
        """Values f (N,) at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


class HardMargin(KernelProblem[KernelSolution]):
    """The hard margin of a matrix for labels (n,).

    `contradictions` are those of the inputs, or of a matrix that the caller computed
    (`KernelMatrix.exact`), whose weights are judged instead of those of a search. The features are
    `size`, a power of 2, times those of the matrix.
    """

    def __init__(
        self,
        matrix: KernelMatrix,
        y: np.ndarray,
        tol: float,
        contradictions: Contradictions | None = None,
        size: float = 1.0,
    ) -> None:
        super().__init__(matrix, y, np.full(len(y), np.inf), tol)
        self._size = size
        self._proof = None if contradictions is None else contradictions.weights
        self.known = np.ones(len(y)) if not matrix.diagonal.any() else self._proof

    def rate(self, weights: np.ndarray) -> tuple[float, float]:
        """The gap, and where nothing separates the bound over the samples it rests on."""
        if not weights.any():
            return np.inf, np.inf
        p, matrix, y = weights / weights.sum(), self.matrix, self.y
        outputs = y * (matrix.values @ (y * p))
        margin, upper = judge_margin(p, outputs, matrix.lengths, matrix.entry_error)
        if margin > 0:
            return 1 - margin / upper, 0.0
        return 1.0, _bound_exactly(matrix, y, p) / max(float(p @ matrix.lengths), 1e-300)

    def settle(self, weights: np.ndarray) -> np.ndarray:
        """Weights with sum 1; equal ones where none were found."""
        return weights / weights.sum() if weights.any() else np.full(len(weights), 1 / len(weights))

    def judge(
        self, weights: np.ndarray, outputs: np.ndarray, ended: Status, seconds: float
    ) -> KernelSolution:
        """The solution with these weights, or the proof of the contradictions."""
        if not (self._proof is None or self.matrix.exact or ended is Status.INTERRUPTED):
            return keep_constant(0.0, Status.NOT_SEPARABLE, self._proof)
        # In float64, and in longer floats where these leave the bracket open and the kernel is
        # known to the last digit. What is judged is what is returned, in the units of the features.
        matrix, y, dual = self.matrix, self.y, weights
        margin, upper = judge_margin(dual, outputs, matrix.lengths, matrix.entry_error)
        zero = 0.0
        if matrix.exact and margin <= 0:
            # The entries of the caller are what is bounded, and what their rounding can make of 0.
            upper = min(upper, _bound_exactly(matrix, y, dual))
            zero = float(np.sqrt(ENTRY_ROUNDING)) * float(dual @ matrix.lengths)
        values = dual / upper if upper > 0 else np.zeros(len(y))
        open_still = upper > 0 and 0 < margin < (1 - self.tol) * upper
        if open_still and ended is Status.STALLED and matrix.affords_extended:
            values, margin, upper = _refine(matrix, y, values, self.tol)
            dual = values / values.sum()
        # Powers of 2: only small numbers round.
        unit = np.longdouble(np.sqrt(matrix.scale)) * self._size
        margin, upper = round_down(margin * unit), round_up(upper * unit)
        with np.errstate(over="ignore"):
            coefficients = (y * values / unit).astype(float)
        if not np.isfinite(coefficients).all():  # of samples that are nearly 0: f = 0 is known
            margin, coefficients = 0.0, np.zeros(len(y))
        bracket = Bracket(margin, upper)
        status, certified = judge_bracket(bracket, self.tol, ended=ended, zero=float(zero * unit))
        if status in (Status.NOT_SEPARABLE, Status.INTERRUPTED) or margin == -np.inf:
            margin, coefficients = max(margin, 0.0), coefficients * (margin > 0)
        return KernelSolution(
            margin=margin,
            upper_bound=upper,
            certified=certified,
            status=status,
            dual=dual,
            seconds=seconds,
            coefficients=coefficients,
        )


def keep_constant(upper: float, status: Status, dual: np.ndarray) -> KernelSolution:
    """The function 0, where no other one is known, below a bound that `dual` (n,) proves."""
    return KernelSolution(
        margin=0.0,
        upper_bound=upper,
        certified=status is Status.NOT_SEPARABLE,
        status=status,
        dual=dual,
        seconds=0.0,
        coefficients=np.zeros(len(dual)),
    )


def explain(found: KernelSolution, contradictions: Contradictions, remedy: str) -> KernelSolution:
    """Add a note that says why the samples are not separated, where that is known."""
    if found.margin > 0:
        return found
    proof = found.dual * (found.status is Status.NOT_SEPARABLE)
    return replace(found, note=contradictions.note(proof, remedy))


def judge_margin(
    dual: np.ndarray, outputs: np.ndarray, lengths: np.ndarray, entry_error: float
) -> tuple[float, float]:
    """Margin and upper bound of dual weights (n,) with sum 1, from the labelled outputs (n,) of f =
    sum_n y_n dual_n k(x_n, .), where features have these lengths (n,).

    An output is known to `bound_sums` of the length of its sample times that of all samples with
    weight; margin and bound are taken on the safe sides of that. The margin is that of f over its
    norm, or -inf where float64 does not tell the norm from 0.
    """
    rounding = bound_sums(len(dual), entry_error)
    total, square = float(dual @ lengths), float(dual @ outputs)
    slack = rounding * total * total + _UNDERFLOW
    upper, lower = float(np.sqrt(max(square, 0.0) + slack)), max(square - slack, 0.0) ** 0.5
    least = float((outputs - rounding * total * lengths).min()) - _UNDERFLOW
    # The smaller the norm, the farther a negative margin is below 0.
    norm = upper * (1 + rounding) if least >= 0 else lower * (1 - rounding)
    # No function of norm 1 is farther below 0 than the longest sample.
    margin = max(least / norm, -float(lengths.max()) * (1 + rounding)) if norm > 0 else -np.inf
    return margin, upper * (1 + rounding)


def _bound_exactly(matrix: KernelMatrix, y: np.ndarray, dual: np.ndarray) -> float:
    """The bound of dual weights (n,) in longer floats."""
    used = np.flatnonzero(dual)
    weights = y[used] * dual[used]
    outputs, errors = multiply_extended(matrix.values[np.ix_(used, used)], weights)
    sums = 1 + bound_sums(len(used))
    # Sums of terms that cancel: what they are known to counts in units of their sizes.
    sizes = np.abs(weights) @ (np.abs(outputs) * float(np.finfo(np.longdouble).eps) * len(used))
    square = float(weights @ outputs + sizes + np.abs(weights) @ errors)
    return float(np.sqrt(max(square, 0.0))) * sums


def _refine(
    matrix: KernelMatrix, y: np.ndarray, a: np.ndarray, tol: float
) -> tuple[np.ndarray, float, float]:
    """The best of a few Newton steps from weights (n,), scaled to norm 1, its margin and bound."""
    best, least = (a, 0.0, np.inf), np.inf
    # Where a margin is 1e-5 of the features, float64 knows its square to 1% and less.
    sums = 1 + bound_sums(len(y))
    for k in range(_REFINEMENTS):
        square = a @ (y * multiply_extended(matrix.values, y * a)[0])
        if not square > 0:  # rounding is all that is left
            break
        a = a / float(np.sqrt(square) * (1 + _RESCALED * k))
        outputs, errors = multiply_extended(matrix.values, y * a)
        outputs = y * outputs
        square = float(a @ (outputs + errors)) * sums
        norm, total = np.sqrt(square), float(a.sum())
        margin, upper = float((outputs - errors).min()) / norm, norm / total
        gap = 1 - margin / upper
        if gap < least:
            best, least = (a, margin, upper), gap
        slacks, a = (square / total - outputs).astype(float), a.copy()
        free = np.full(len(y), np.inf)
        if gap <= tol or not take_newton_step(matrix.values, y, a, slacks, free):
            break
    return best

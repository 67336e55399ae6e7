"""The hard margin of a kernel matrix: the least norm in the hull of the labelled samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.deadline import Deadline
from ..core.matrices import kernel_values
from ..core.records import short_repr
from ..result import Bracket, MarginSolution, Status, judge_bracket
from .class_problems import search_all
from .cone_fallback import AFFORDABLE, drop_dust, minimize_norm
from .contradictions import ENTRY_ROUNDING, Contradictions
from .extended import multiply_extended, round_down, round_up
from .kernel_matrix import KernelMatrix, bound_sums
from .pair_descent import descend, take_newton_step

_REFINEMENTS = 8
"""Newton steps with outputs in longer floats: two reach the last digits, where roundings of the
weights decide, and the best of the others is kept.
"""
_UNDERFLOW = 2.0**-1000
"""More than all that underflows in a product with a kernel, whose largest entry is within 1e60."""
_AIM = 0.9
"""Part of the tolerance that the search aims at: the judge counts roundings on top of it."""


@dataclass(frozen=True, kw_only=True)
class KernelSolution(MarginSolution):
    """The function f = sum_n coefficients_n k(x_n, .) of norm 1 with the largest min_n y_n f(x_n).

    Attributes
    ----------
    coefficients : ndarray of shape (n,), float64
        y * dual / upper_bound; 0 where nothing separates the samples. The other fields are those
        of `MarginSolution`.
    """

    coefficients: np.ndarray

    __repr__ = short_repr

    def decision_function(self, K) -> np.ndarray:
        """Values f (N,) at points whose kernel with the training samples is K, shape (N, n)."""
        return kernel_values(K, self.coefficients)


def solve_hard(
    matrix: KernelMatrix,
    labels: np.ndarray,
    *,
    tol: float,
    deadline: Deadline,
    contradictions: Sequence[Contradictions] = (),
    starts: np.ndarray | None = None,
    n_jobs: int | None = None,
    size: float = 1.0,
) -> list[KernelSolution]:
    """Solve one problem for each column of `labels` (n, k), -1.0 and +1.0, with one kernel.

    Each gets an equal part of the time that is left. `contradictions` are those of the inputs, or
    of a matrix that the caller computed (`KernelMatrix.exact`), whose weights are judged instead of
    those of a search; `starts` (n, k) weights to begin with. The features are `size`, a power of 2,
    times those of the matrix. Ctrl-C ends the search, with the best so far.
    """
    n, count = labels.shape
    weights = np.zeros((count, n))
    known = [found.weights for found in contradictions] or [None] * count
    if starts is not None:
        weights[:] = starts.T * matrix.scale

    def search(k: int, limit: Deadline) -> None:
        """Find the weights of one problem, in place."""
        if matrix.largest == 0:
            weights[k] = 1.0
        elif known[k] is not None:
            weights[k] = known[k]
        else:
            _search(matrix, labels[:, k], weights[k], tol, limit)

    ended = search_all(search, count, deadline, n_jobs)
    weights[weights.sum(1) == 0] = 1.0
    weights /= weights.sum(1, keepdims=True)
    outputs = labels * matrix.multiply(labels * weights.T)
    solutions = []
    for k, proof in enumerate(known):
        if proof is not None and not matrix.exact and ended[k][0] is not Status.INTERRUPTED:
            found = keep_constant(0.0, Status.NOT_SEPARABLE, proof)
        else:
            found = _judge(matrix, size, labels[:, k], weights[k], outputs[:, k], tol, *ended[k])
        solutions.append(found)
    return solutions


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


def _search(
    matrix: KernelMatrix, y: np.ndarray, weights: np.ndarray, tol: float, limit: Deadline
) -> None:
    """Find weights (n,), in place, whose gap is `tol` or as small as it gets."""
    gap = descend(
        matrix.values, y, np.full(len(y), np.inf), weights, tol=_AIM * tol, deadline=limit.at
    )
    if gap <= tol or limit.passed or len(y) > AFFORDABLE or matrix.compute is not None:
        return
    p = minimize_norm(matrix.labelled(y), limit.at)
    candidates = [q / q.sum() for q in ([weights] if weights.any() else []) + [*drop_dust(p)]]
    ends = [
        judge_margin(q, y * (matrix.values @ (y * q)), matrix.lengths, matrix.entry_error)
        for q in candidates
    ]
    gaps = [1 - max(margin, 0.0) / upper for margin, upper in ends]
    # Where nothing separates, the least bound is the best proof, in units of the samples that it
    # rests on. Dust is dropped where the gap stays within a tenth of the tolerance.
    bounds = [_bound_exactly(matrix, y, q)[1] if min(gaps) == 1 else 0.0 for q in candidates]
    least, bound = min(zip(gaps, bounds, strict=True))
    for q, gap, upper in zip(candidates, gaps, bounds, strict=True):
        if gap <= max(least, 0.1 * tol) and (upper <= bound or gap < 1):
            weights[:] = q
            return


def _bound_exactly(matrix: KernelMatrix, y: np.ndarray, dual: np.ndarray) -> tuple[float, float]:
    """The bound of dual weights (n,) in longer floats, and the same in units of the length of all
    samples with weight.
    """
    used = np.flatnonzero(dual)
    weights = y[used] * dual[used]
    outputs, errors = multiply_extended(matrix.values[np.ix_(used, used)], weights)
    sums = 1 + bound_sums(len(used))
    # Sums of terms that cancel: what they are known to counts in units of their sizes.
    sizes = np.abs(weights) @ (np.abs(outputs) * float(np.finfo(np.longdouble).eps) * len(used))
    square = float(weights @ outputs + sizes + np.abs(weights) @ errors)
    upper = float(np.sqrt(max(square, 0.0))) * sums
    return upper, upper / max(float(dual @ matrix.lengths), 1e-300)


def _judge(
    matrix: KernelMatrix,
    size: float,
    y: np.ndarray,
    dual: np.ndarray,
    outputs: np.ndarray,
    tol: float,
    ended: Status,
    seconds: float,
) -> KernelSolution:
    """The solution with these dual weights, its numbers recomputed in float64, and in longer floats
    where these leave the bracket open and the kernel is known to the last digit. What is judged is
    what is returned, in the units of the features.
    """
    margin, upper = judge_margin(dual, outputs, matrix.lengths, matrix.entry_error)
    values = dual / upper if upper > 0 else np.zeros(len(y))
    open_still = upper > 0 and 0 < margin < (1 - tol) * upper
    if open_still and ended is Status.STALLED and matrix.affords_extended:
        values, margin, upper = _refine(matrix, y, values, tol)
        dual = values / values.sum()
    zero = 0.0
    if matrix.exact and margin <= 0:
        # The entries of the caller are what is bounded, and what their rounding can make of 0.
        exact_upper, _ = _bound_exactly(matrix, y, dual)
        upper = min(upper, exact_upper)
        zero = float(np.sqrt(ENTRY_ROUNDING)) * float(dual @ matrix.lengths)
    unit = np.longdouble(np.sqrt(matrix.scale)) * size  # powers of 2: only small numbers round
    margin, upper = round_down(margin * unit), round_up(upper * unit)
    with np.errstate(over="ignore"):
        coefficients = (y * values / unit).astype(float)
    if not np.isfinite(coefficients).all():  # of samples that are nearly 0: f = 0 is known
        margin, coefficients = 0.0, np.zeros(len(y))
    bracket = Bracket(margin, upper)
    status, certified = judge_bracket(bracket, tol, ended=ended, zero=float(zero * unit))
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


def _refine(
    matrix: KernelMatrix, y: np.ndarray, a: np.ndarray, tol: float
) -> tuple[np.ndarray, float, float]:
    """The best of a few Newton steps on the support of weights (n,) whose gap is open, each from
    outputs in longer floats, which judge it too.

    Where a margin is 1e-5 of the features, float64 knows its square to 1% and less. Returns the
    weights, in the scale in which the function has norm 1, its margin and the bound.
    """
    best, least = (a, 0.0, np.inf), np.inf
    sums = 1 + bound_sums(len(y))
    for _ in range(_REFINEMENTS):
        outputs, errors = matrix.multiply_extended(y * a)
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
        a /= norm
    return best

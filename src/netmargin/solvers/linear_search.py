"""Candidates for the linear function of the largest margin, and the judge of their brackets."""

from collections.abc import Iterator
from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, qr, solve_triangular

from ..core.cone_program import minimize
from ..core.deadline import Deadline
from ..core.matrices import EPS, LEAST
from ..result import Bracket, Status
from .columns.master import Constraints, MasterLP
from .extended import multiply_extended, round_down, round_up
from .hard_kernel import HardMargin
from .hull import DECIDED, decide, find_contradiction, normalize_rows
from .kernel_engine import solve_kernel
from .kernel_matrix import KernelMatrix

_PRIMAL_WORK, _PRIMAL_SHARE = 3e7, 4
"""The cone program in d variables takes some 3e-8 n d^2 seconds: it is taken up to the first n d^2,
and where d^2 is up to so many n, since the kernel of all pairs takes longer there.
"""
_MOST_PAIRS = 9000
"""Samples up to which the kernel of all pairs is taken, 2 GB with its copies."""
_LARGEST_EXPONENT = 400
"""Units are those of the shortest sample, or make the longest 2 to this: nothing overflows."""
_SMALL_MARGIN = 1e-3
"""A margin below this is solved for once more in its own units: tolerances are absolute."""
_DUAL = {"simplex_strategy": 1, "simplex_iteration_limit": 2**31 - 1}
"""Options of a program that does not grow: dual simplex takes half the steps, without cycles."""
_LEAST_UNIT = 1e-15
"""The least unit in which a linear program has its digits: the samples are rounded by less."""
_SCALINGS = 4
"""Cone programs, each in units of the optimum of the last, as tolerances are absolute."""
_REFINEMENTS = 3
"""Steps of iterative refinement, each of which gains all digits that the condition leaves."""
_PARTS = (1e-9, 1e-6, 1e-3)
"""Parts of the largest weight above which a sample counts: interior points leave dust."""
_EASY = 1e-3
"""Part of the tolerance below which a bracket is not refined."""
_MOST_REFINED = 1_000_000
"""Entries of the samples that carry a solution up to which it is refined, in a second or two."""
_PAIRS_TOLERANCE = 1e-7
"""Relative gap of the problem of all pairs, a tenth of the default: bounds are squared there."""


class Best:
    """The best ends of the bracket so far for labelled samples (n, D), each with an allowance for
    all that is rounded: what `weights` (D,) attain, and what `dual` (n,) proves, in the units of
    the data. `signed` are the samples in a unit in which their products do not overflow.
    """

    def __init__(self, samples: np.ndarray, norm: str) -> None:
        self.samples, self.norm = samples, norm
        exponents = np.frexp(np.abs(samples).max(1))[1]
        self._unit = max(int(exponents.min()), int(exponents.max()) - _LARGEST_EXPONENT)
        self.signed = np.ldexp(samples, -self._unit)
        self.margin, self.upper = 0.0, np.inf
        self.weights, self.dual = np.zeros(samples.shape[1]), np.zeros(0)
        self.offer(self.signed.sum(0), np.ones(len(samples)))

    @property
    def gap(self) -> float:
        """The gap of the bracket."""
        return Bracket(self.margin, self.upper).gap

    def offer(self, weights: np.ndarray, dual: np.ndarray) -> None:
        """Take what is better than the best so far of weights (D,) and dual weights (n,)."""
        self._offer_weights(weights)
        self._offer_dual(np.maximum(dual, 0.0))

    def _offer_weights(self, weights: np.ndarray) -> None:
        """Keep weights (D,), scaled to norm 1, if their margin is the largest."""
        size = np.abs(weights).max(initial=0.0)
        if not 0 < size < np.inf:
            return
        weights = weights / size
        weights = (weights / self._measure(weights, "up", self.norm)).astype(float)
        outputs, errors = multiply_extended(self.signed, weights)
        # An entry that underflows in these units is off by less than the least float.
        least = (outputs - errors).min() - len(weights) * LEAST
        margin = least / self._measure(weights, "up", self.norm)
        if margin > 0 and (found := round_down(np.ldexp(margin, self._unit))) > self.margin:
            self.margin, self.weights = found, weights

    def _offer_dual(self, dual: np.ndarray) -> None:
        """Keep weights (n,) >= 0, scaled to sum 1, if their bound is the least."""
        total = dual.sum()
        if not 0 < total < np.inf:
            return
        dual = dual / total
        used = np.flatnonzero(dual)
        sums, errors = multiply_extended(self.signed[used].T, dual[used])
        sizes = np.abs(sums) + errors + LEAST
        dual_norm = "l2" if self.norm == "l2" else "max"
        upper = self._measure(sizes, "up", dual_norm) / self._measure(dual[used], "down", "l1")
        if (found := round_up(np.ldexp(upper, self._unit))) < self.upper:
            self.upper, self.dual = found, dual

    @staticmethod
    def _measure(values: np.ndarray, side: str, norm: str) -> Any:
        """A norm of values in the longest floats, on the safe side of its rounding."""
        sizes = np.abs(values).astype(np.longdouble)
        largest = sizes.max(initial=0.0)
        if norm == "max" or largest == 0:
            return largest
        # Sums of n terms by one addition after the other are off by n roundings at most.
        room = 4 * (len(values) + 4) * float(np.finfo(np.longdouble).eps)
        total = sizes / largest
        total = np.sqrt((total**2).sum()) if norm == "l2" else total.sum()
        return largest * total * (1 + room if side == "up" else 1 - room)


Proposal = tuple[np.ndarray, np.ndarray]
"""Weights (D,) and dual weights (n,), of any scale."""


def search(best: Best, tol: float, deadline: Deadline) -> np.ndarray | None:
    """Offer candidates until the bracket is within the tolerance, there are no others, or the
    deadline is over; dual weights (n,) that prove the samples inseparable, if found.
    """
    rows, exponents = normalize_rows(best.samples)
    # A sample divided by its length has to attain as much less, and its weight is larger.
    least = np.ldexp(1.0, exponents.min() - exponents)
    asked = False
    if _is_large(*rows.shape) and len(rows) > rows.shape[1]:
        # Steps over pairs take long where nothing separates the samples.
        found = find_contradiction(best.samples, quick=True)
        if found is not None:
            return found
    propose = _propose_l1 if best.norm == "l1" else _propose_l2
    for weights, dual in propose(best, rows, least, deadline):
        best.offer(weights, dual * least)
        if deadline.passed:
            return None
        if best.margin <= 0 and not asked:
            asked, found = True, find_contradiction(best.samples, best.dual)
            if found is not None:
                return found
        if best.gap > _EASY * tol:
            for polished, prices in _refine(rows, least, weights, dual, best.norm):
                best.offer(polished, prices * least)
        if best.margin > 0 and best.gap <= tol:
            return None
    if best.margin <= 0 and len(rows) * rows.shape[1] ** 2 <= DECIDED:
        separating, found = decide(best.samples)
        if separating is None or found is not None:
            return None if found is None else found / found.sum()
        best.offer(separating, best.dual)
    return None


def _propose_l2(
    best: Best, rows: np.ndarray, least: np.ndarray, deadline: Deadline
) -> Iterator[Proposal]:
    """The least |w| with rows w >= least (n,), by a cone program or from a kernel."""
    n, D = rows.shape
    if _is_large(n, D) and n <= _MOST_PAIRS:
        yield from _propose_by_pairs(best.signed, least, deadline)
    # In the axes of the samples, each in its own unit, so that those far from 0 do not hide what
    # separates them: rows = U diag(singular) axes, and w = v / singular on the axes.
    U, singular, axes = np.linalg.svd(rows, full_matrices=False)
    kept = singular > EPS * singular[0]
    U, singular, axes = U[:, kept], singular[kept], axes[kept]
    cones, cost = [clarabel.NonnegativeConeT(n)], np.zeros(len(singular))
    squares = (singular[-1] / singular) ** 2
    for _ in range(_SCALINGS):
        v, dual = minimize(
            cost, -U, -least, cones,
            quadratic=sparse.diags(squares), tol=1e-12, deadline=deadline.at,
        )  # fmt: skip
        yield (v / singular) @ axes, np.maximum(dual, 0.0)
        size = float(squares @ v**2)
        if not 0 < size < _SMALL_MARGIN:
            return
        squares = squares / size


def _is_large(n: int, D: int) -> bool:
    """Whether a cone program for n samples in D dimensions takes longer than steps over pairs."""
    square = min(n, D) ** 2
    return n * square > _PRIMAL_WORK and square > _PRIMAL_SHARE * n


def _propose_by_pairs(
    signed: np.ndarray, least: np.ndarray, deadline: Deadline
) -> Iterator[Proposal]:
    """The same from the kernel of the labelled samples (n, D)."""
    matrix = KernelMatrix.of(signed @ signed.T)
    problem = HardMargin(matrix, np.ones(len(signed)), _PAIRS_TOLERANCE)
    (found,) = solve_kernel([problem], deadline=deadline)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    yield found.dual @ signed, found.dual / least


def _propose_l1(
    best: Best, rows: np.ndarray, least: np.ndarray, deadline: Deadline
) -> Iterator[Proposal]:
    """The largest t with rows w >= t least (n,) and |w|_1 <= 1, by a linear program."""
    n, D = rows.shape
    unit = 1.0
    for _ in range(2):
        # max t subject to rows (u - v) >= unit t least, sum(u + v) <= 1, u, v >= 0
        program = MasterLP(Constraints(np.ones(n), least), **_DUAL)
        program.add(np.hstack([rows, -rows]) / unit)
        try:
            _, sides, dual = program.solve(deadline.at)
        except KeyboardInterrupt:
            _, sides, dual = program.read()
            best.offer(sides[:D] - sides[D:], np.abs(dual) * least)
            raise
        dual = np.abs(dual)
        yield sides[:D] - sides[D:], dual
        bound = np.abs(dual @ rows).max() / max(float(dual @ least), 1e-300)
        if not 0 < bound < _SMALL_MARGIN:
            return
        unit = max(bound, _LEAST_UNIT)


def _refine(
    rows: np.ndarray, least: np.ndarray, weights: np.ndarray, dual: np.ndarray, norm: str
) -> Iterator[Proposal]:
    """Solve the equations of the samples that carry the solution, by residuals in longer floats."""
    for part in _PARTS:
        used = np.flatnonzero(dual > part * dual.max(initial=0.0))
        if not 0 < len(used) <= rows.shape[1] or rows[used].size > _MOST_REFINED:
            continue
        solve = _solve_l1 if norm == "l1" else _solve_l2
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found, prices = solve(rows[used], least[used], weights, part)
        except (LinAlgError, ValueError):  # dependent samples
            continue
        if np.isfinite(found).all() and np.isfinite(prices).all():
            whole = np.zeros(len(rows))
            whole[used] = prices
            yield found, whole


def _solve_l2(B: np.ndarray, least: np.ndarray, weights: np.ndarray, part: float) -> Proposal:
    """Weights w = B'p (D,) with B w = least (m,), and p."""
    Q, R = qr(B.T, mode="economic")
    w, p = np.zeros(B.shape[1]), np.zeros(len(B))
    for _ in range(_REFINEMENTS):
        stationary = (multiply_extended(B.T, p)[0] - w).astype(float)
        # Rounding may take the margin of a long row, which aims so far above its goal.
        goal = least + EPS * (1 - least) * np.linalg.norm(w)
        rest = (goal - multiply_extended(B, w)[0]).astype(float)
        along = solve_triangular(R, rest, trans="T") - Q.T @ stationary
        w, p = w + stationary + Q @ along, p + solve_triangular(R, along)
    return w, p


def _solve_l1(B: np.ndarray, least: np.ndarray, weights: np.ndarray, part: float) -> Proposal:
    """Weights w (D,) of norm 1 with B w = t least (m,), and prices p with B'p along their signs."""
    used = np.flatnonzero(np.abs(weights) > part * np.abs(weights).max())
    signs = np.sign(weights[used])
    M = np.block([[B[:, used], -least[:, None]], [signs[None], np.zeros((1, 1))]])
    w = np.zeros(B.shape[1])
    w[used] = _solve(M, np.append(EPS * (1 - least), 1.0))[:-1]
    turned = np.block([[B[:, used].T, -signs[:, None]], [least[None], np.zeros((1, 1))]])
    return w, _solve(turned, np.append(np.zeros(len(used)), 1.0))[:-1]


def _solve(M: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The least squares solution of M x = right by iterative refinement."""
    inverse, x = np.linalg.pinv(M, rcond=1e-15), np.zeros(M.shape[1])
    for _ in range(_REFINEMENTS):
        x = x + inverse @ (right - multiply_extended(M, x)[0]).astype(float)
    return x

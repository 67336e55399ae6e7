"""The largest margin of narrow two-layer ReLU nets, of samples in the plane: by all patterns."""

import itertools
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from ...core.arguments import check_count, check_flag, check_number
from ...core.deadline import Deadline
from ...core.matrices import SolverData, binary_data
from ...core.public import guarded
from ...errors import DataError
from ...result import Bracket, MarginSolution, Status, judge_bracket
from ...solvers.attained import attained_margin
from ...solvers.columns.master import Constraints
from ...solvers.columns.polish import polish_neurons
from ...solvers.extended import round_up
from ...solvers.hull import as_integers, find_contradiction, normalize_rows
from ...solvers.solution import ReLUMeasure

_MOST_PROGRAMS = 200_000
"""Choices of patterns that are tried at most: at a few milliseconds each, some ten minutes."""
_LEAST = 1e-7
"""Samples that are longer than the shortest by more than 1 / this are taken to be as long in a cone
program, whose tolerance is absolute: that costs some of the tolerance of the default, 1e-6.
"""
_ROUNDING = 2 * float(np.finfo(float).eps)
"""Of a term of a sum, and of what it is a product of."""
_GONE = 1e-9
"""A neuron of less than this part of the largest is one that the cone program left at 0."""

Choice = tuple[np.ndarray, float]
"""The activation pattern (n,), booleans, and the output sign of a neuron."""


@dataclass(frozen=True, kw_only=True)
class NarrowSolution(ReLUMeasure, MarginSolution):
    """A net of few neurons with a large margin, balanced, as a probability measure; no atoms where
    no such net separates the data.

    `upper_bound` is that of every net of at most this width: the largest of the bounds that duality
    gives for each choice of patterns and signs, recomputed in float64; half the smallest |x~| where
    that is less, or where not all choices were tried. It is 0 only where that is proved in exact
    arithmetic. `dual` is of the choice whose bound is largest, and proves it for that choice only.
    """

    programs: int  #: Choices of which the convex problem was solved


@guarded
def narrow_max_margin(
    X: Any,
    y: Any,
    width: int,
    *,
    bias: bool = False,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> NarrowSolution:
    """The largest normalized margin of two-layer ReLU nets with at most `width` neurons, for
    samples of rank at most 2 to the last digit.

    Every choice of the neurons' signs and activation patterns leaves a convex problem; all are
    solved, which are 4n over m. At the time limit or Ctrl-C the best net so far is returned. Wei et
    al. 2018, Theorem 3.2.
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    width, tol = check_count("width", width), check_number("tol", tol, above=0, below=1)
    bias = check_flag("bias", bias)
    data = binary_data(X, y, bias=bias)
    search = _Search(data, width, bias)
    try:
        stopped = search.run(deadline)
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED
    bracket = Bracket(search.margin, search.bound(ended=stopped is None))
    # Only a proof in exact arithmetic makes the bound 0.
    status, certified = judge_bracket(bracket, tol, ended=stopped or Status.STALLED, zero=0.0)
    return NarrowSolution(
        margin=bracket.lower,
        upper_bound=bracket.upper,
        certified=certified,
        status=status,
        dual=search.dual,
        seconds=time.monotonic() - started,
        atoms=search.best.atoms,
        weights=search.best.weights,
        bias=bias,
        programs=search.programs,
    )


class _Search:
    """The best net of the choices so far, and the largest bound of one, in units of 2^_unit."""

    def __init__(self, data: SolverData, width: int, bias: bool) -> None:
        self._data, self._y, self._bias = data, data.y, bias
        # Each sample in units of its own, in which it has to attain `least` times the margin.
        self._rows, self._exponents = normalize_rows(data.Z)
        self._unit = int(self._exponents.min())
        self._least = np.ldexp(1.0, self._unit - self._exponents)
        choices = [(pattern, sign) for pattern in list_patterns(data.Z) for sign in (1.0, -1.0)]
        self._width = min(width, len(choices))  # two neurons of one pattern and sign are one
        count = math.comb(len(choices), self._width)
        if count > _MOST_PROGRAMS:
            raise DataError(
                f"{len(choices)} neurons chosen {width} at a time are {count:,} problems; take"
                " fewer samples or a smaller width."
            )
        self._choices = choices
        self.best = ReLUMeasure(
            atoms=np.zeros((0, data.Z.shape[1] + 1)), weights=np.zeros(0), bias=bias
        )
        self.margin, self._upper, self.programs = 0.0, 0.0, 0
        self.dual = np.full(len(data), 1 / len(data))

    def run(self, deadline: Deadline) -> Status | None:
        """Try all choices; returns TIME_LIMIT where that took too long, else None."""
        for chosen in itertools.combinations(self._choices, self._width):
            if deadline.passed:
                return Status.TIME_LIMIT
            covered = np.any([pattern & (self._y * sign > 0) for pattern, sign in chosen], axis=0)
            # A sample without an active neuron of its label has y f <= 0: no need to solve.
            if covered.all():
                self._try_choice(chosen)
        return None

    def bound(self, *, ended: bool) -> float:
        """The bound of all choices, if all were tried; else half the smallest |x~|."""
        lengths = np.linalg.norm(self._rows, axis=1) * (1 + self._rows.shape[1] * _ROUNDING)
        upper = 0.5 * np.ldexp(lengths.astype(np.longdouble), self._exponents).min()
        if ended:
            upper = min(upper, np.ldexp(np.longdouble(self._upper), self._unit))
        return round_up(upper)

    def _try_choice(self, chosen: tuple[Choice, ...]) -> None:
        """Solve the convex problem of one choice; keep its net and its bound if they are larger."""
        self.programs += 1
        v, upper, dual = _solve_choice(self._rows, self._least, self._y, chosen)
        found = _balanced_measure(v, np.array([sign for _, sign in chosen]), self._bias)
        margin = attained_margin(found, self._data) if len(found.weights) else 0.0
        if margin > self.margin:
            self.margin, self.best = margin, found
        # The bound of the whole search is the largest of the bounds of the choices.
        if upper <= self._upper:
            return
        if margin <= 0 and np.ldexp(np.longdouble(upper), self._unit) > self.margin:
            # The rows as they were given: those in their own units may be rounded.
            posed = np.vstack(_pose(self._data.Z, self._y, chosen))
            proof = find_contradiction(posed, strict=len(self._y))
            if proof is not None:
                if self._upper == 0:
                    self.dual = proof[: len(self._y)]
                return
        self._upper, self.dual = upper, dual


def list_patterns(Z: np.ndarray) -> list[np.ndarray]:
    """List the activation patterns (n,), one per arc between normals. DataError above rank 2."""
    # Multiples > 0 of the samples, whole numbers, have the same patterns.
    rows = np.array([as_integers(row)[0] for row in Z], dtype=object)
    rest = rows
    columns: list[int] = []
    while rest.any():
        if len(columns) == 2:
            raise DataError(
                "The points have rank 3 or more, to the last digit; patterns are enumerated up to"
                " rank 2 (with a bias: one coordinate). Project points near a plane to it."
            )
        i, k = np.argwhere(rest)[0]
        columns.append(int(k))
        rest = rest * rest[i, k] - np.multiply.outer(rest[:, k], rest[i])
    # The others are linear in these columns.
    plane = np.zeros((len(Z), 2), dtype=object)
    plane[:, : len(columns)] = rows[:, columns]
    # The walls (-q, p) of the points (p, q), how far each point is behind each wall, and whether a
    # turn counterclockwise brings it there.
    p, q = plane.T
    behind = np.multiply.outer(p, q) - np.multiply.outer(q, p)
    ahead = -(np.multiply.outer(p, p) + np.multiply.outer(q, q))
    # On the arc after each wall, and on the opposite one.
    sides = np.where(behind != 0, behind, ahead)[(plane != 0).any(1)]
    return [*np.unique(np.vstack([sides > 0, sides < 0]).astype(bool), axis=0)]


def _pose(
    Z: np.ndarray, y: np.ndarray, chosen: tuple[Choice, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Labelled outputs (n, m D) of neurons with these patterns and signs, and their walls."""
    outputs = np.hstack([(y * sign * pattern)[:, None] * Z for pattern, sign in chosen])
    cells = block_diag(*[np.where(pattern, 1.0, -1.0)[:, None] * Z for pattern, _ in chosen])
    return outputs, cells


def _solve_choice(
    Z: np.ndarray, least: np.ndarray, y: np.ndarray, chosen: tuple[Choice, ...]
) -> tuple[np.ndarray, float, np.ndarray]:
    """Solve the convex problem with these patterns and signs for samples that have to attain
    `least` (n,) times t: max t with y_n sum_j s_j 1[n active for j] v_j . x~_n >= least_n t, v_j in
    its cell, sum_j |v_j| <= 1/2. Returns v (m, D), an upper bound of t, and the weights (n,), with
    sum 1, of samples divided by `least` that prove it.
    """
    n, D = Z.shape
    m = len(chosen)
    outputs, cells = _pose(Z, y, chosen)
    active, signs = np.array([pattern for pattern, _ in chosen]), np.array([s for _, s in chosen])
    rows = Constraints(y, np.maximum(least, _LEAST))
    v, samples, sides = polish_neurons(Z, rows, active, signs)
    # Any weights p >= 0 of samples and c >= 0 of walls, by the side of their cell, bound
    # (p . least) t by sum_j <pull_j, v_j>, that is by the largest |pull_j| / 2.
    p, c = np.maximum(samples, 0.0), np.maximum(sides, 0.0)
    # Weights that say little of t bound it by less than their rounding.
    if not p @ least > _ROUNDING * (p.sum() + c.sum()):
        p, c = np.ones(n), np.zeros(m * n)
    p, c = p / (p @ least), c / (p @ least)
    pulls = (p @ outputs + c @ cells).reshape(m, D)
    largest = 0.5 * float(np.linalg.norm(pulls, axis=1).max())
    # Twice as much covers that p . least = 1, the norm and this sum are rounded too.
    sizes = float((p.sum() + c.sum()) * np.linalg.norm(Z, axis=1).max())
    upper = largest + 2 * (n + D) * _ROUNDING * sizes
    return 0.5 * v, upper, p * least


def _balanced_measure(v: np.ndarray, signs: np.ndarray, bias: bool) -> ReLUMeasure:
    """The balanced net of neurons s_j relu(v_j . x~), as a probability measure."""
    sizes = np.linalg.norm(v, axis=1)
    used = sizes > _GONE * sizes.max(initial=0.0)
    atoms = np.column_stack([v[used] / sizes[used, None], signs[used]]) / np.sqrt(2)
    return ReLUMeasure(
        atoms=atoms,
        weights=sizes[used] / sizes[used].sum() if used.any() else np.zeros(0),
        bias=bias,
    )

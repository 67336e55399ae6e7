"""The largest margin of two-layer ReLU nets with few neurons: exact for a few samples in the plane,
by trying all activation patterns.
"""

import itertools
import math
import time
from dataclasses import dataclass

import clarabel
import numpy as np

from ..core.arguments import check_count, check_flag, check_number
from ..core.cone_program import minimize
from ..core.deadline import Deadline
from ..core.matrices import SolverData, binary_data
from ..core.records import short_repr
from ..errors import DataError
from ..result import Bracket, MarginSolution, Status, judge_bracket
from .hull import find_contradiction
from .solution import ReLUMeasure

_MOST_PROGRAMS = 200_000
"""Choices of patterns that are tried at most: at a few milliseconds each, some ten minutes."""
_ZERO_BOUND = 1e-8
"""A bound below this, in units of the largest coordinate, may be 0 but for the tolerance of the
cone programs (1e-10 of their optimum, times a few neurons): then a proof is looked for.
"""
_CONE_TOLERANCE = 1e-10
"""Tolerance of the cone programs: their bounds are recomputed, so that it costs only the gap."""
_RANK = 1e-12
"""Singular values below this part of the largest are rounding of points of lower rank."""
_GONE = 1e-9
"""A neuron of less than this part of the largest is one that the cone program left at 0."""

Choice = tuple[np.ndarray, float]
"""The activation pattern (n,), booleans, and the output sign of a neuron."""


@dataclass(frozen=True, kw_only=True)
class NarrowSolution(ReLUMeasure, MarginSolution):
    """A net of few neurons with a large margin, balanced, as a probability measure; no atoms where
    no such net separates the data.

    Attributes
    ----------
    margin : float
        The least y_n f(x_n) of the measure, recomputed in float64.
    upper_bound : float
        Bound of the margin of every net of at most this width: the largest of the bounds that
        duality gives for each choice of patterns and signs, recomputed in float64; open where not
        all choices were tried.
    dual : ndarray of shape (n,), float64
        Weights of the samples in the choice whose bound is largest. They prove the bound for that
        choice only: each choice has weights of its own.
    programs : int
        Choices of which the convex problem was solved. The other fields are those of `ReLUMeasure`
        and `MarginSolution`.
    """

    programs: int

    __repr__ = short_repr


def narrow_max_margin(
    X, y, width: int, *, bias: bool = False, tol: float = 1e-6, time_limit: float | None = None
) -> NarrowSolution:
    """The largest normalized margin of two-layer ReLU nets with few neurons.

    gamma*,m is the best q_min / ||theta||^2 of nets sum_j b_j relu(a_j . x~) with at most m =
    `width` neurons, not convex in the neurons for m < n. Every choice of m neurons' signs and
    activation patterns leaves a convex problem: max t with y_n sum_j s_j 1[n active for j] v_j .
    x~_n >= t, v_j in its cell, sum_j |v_j| <= 1/2. All of them are solved, so it is for few samples
    of rank 2: 2n cells with two signs, chosen m at a time.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs of rank at most 2; computations are in float64.
    y : array_like of shape (n,)
        Labels {-1, +1} or {0, 1}.
    width : int
        The number of neurons m, at least 1.
    bias : bool, default False
        Whether neurons have a bias.
    tol : float, default 1e-6
        Relative gap between margin and upper bound up to which the status is OPTIMAL.
    time_limit : float, optional
        Seconds after which the best net so far is returned, as it is at Ctrl-C; half the smallest
        |x~| bounds the margin then. No limit by default.

    Returns
    -------
    NarrowSolution
        A `ReLUMeasure` of at most m neurons (`atoms`, float64 of shape (k, D)) with its margin and
        a proved upper bound.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, rank above 2, or more than 200,000 choices.
    ArgumentError
        For any other argument out of range.

    Notes
    -----
    Weights p of the samples, >= 0 with sum 1, and multipliers c_j >= 0 of the walls of the cells
    bound the margin for one choice of patterns by max_j |sum_n p_n y_n s_j 1[n active for j] x~_n +
    sum_n c_jn sigma_jn x~_n| / 2, sigma_jn = +-1 the side of the wall. The cells cover the plane up
    to rounding of the angles of their walls. A choice for which some sample has no active neuron of
    its label has margin 0 at most.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.parity(2, 2)
    >>> narrow = [nm.solvers.narrow_max_margin(X, y, m) for m in (1, 2, 3, 4)]
    >>> wide = nm.solvers.f1_max_margin(X, y, bias=False)
    >>> [round(net.margin, 6) for net in narrow], round(wide.margin, 6)
    ([0.0, 0.0, 0.0, 0.125], 0.125)
    >>> narrow[3].certified, narrow[3].gap < 1e-6
    (True, True)

    Source: Wei et al. 2018, Theorem 3.2.
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    width, tol = check_count("width", width), check_number("tol", tol, above=0, below=1)
    data = binary_data(X, y, bias=check_flag("bias", bias))
    # A power of 2 does not round what is divided by it.
    unit = float(np.ldexp(1.0, int(np.frexp(data.size)[1])))
    search = _Search(SolverData(data.Z / unit, data.y), width, bias)
    try:
        stopped = search.run(deadline)
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED
    # Half the smallest |x~| bounds the margin of every net, whose mass is 1 and whose layers are
    # balanced.
    upper = 0.5 * float(np.linalg.norm(search.Z, axis=1).min()) if stopped else search.upper
    bracket = Bracket(search.margin, upper)
    status, certified = judge_bracket(bracket, tol, ended=stopped or Status.STALLED, zero=0.0)
    return NarrowSolution(
        margin=search.margin * unit,
        upper_bound=upper * unit,
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
    """The best net so far over the choices tried, its margin, and the largest bound of a choice; in
    units of the largest coordinate.
    """

    def __init__(self, data: SolverData, width: int, bias: bool):
        self.Z, self._y, self._bias = data.Z, data.y, bias
        choices = [(pattern, sign) for pattern in _list_patterns(data.Z) for sign in (1.0, -1.0)]
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
        self.margin, self.upper, self.programs = 0.0, 0.0, 0
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

    def _try_choice(self, chosen: tuple[Choice, ...]) -> None:
        """Solve the convex problem of one choice; keep its net and its bound if they are larger."""
        self.programs += 1
        v, upper, dual = _solve_choice(self.Z, self._y, chosen)
        if upper <= _ZERO_BOUND and self.margin <= 0:
            proof = find_contradiction(
                np.vstack(_pose(self.Z, self._y, chosen)), strict=len(self.Z)
            )
            if proof is not None:
                upper, dual = 0.0, proof[: len(self.Z)]
        # The bound of the whole search is the largest of the bounds of the choices.
        if upper > self.upper:
            self.upper, self.dual = upper, dual
        found = _balanced_measure(v, np.array([sign for _, sign in chosen]), self._bias)
        outputs = np.maximum(self.Z @ found.atoms[:, :-1].T, 0.0) @ (
            found.weights * found.atoms[:, -1]
        )
        margin = float((self._y * outputs).min())
        if margin > self.margin:
            self.margin, self.best = margin, found


def _list_patterns(Z: np.ndarray) -> list[np.ndarray]:
    """List the activation patterns (n,) of all directions: points of rank 2 have one per arc
    between the normals of their lines.
    """
    _, singular, rows = np.linalg.svd(Z, full_matrices=False)
    rank = int((singular > _RANK * max(singular[0], 1e-300)).sum())
    if rank > 2:
        raise DataError(
            f"The points have rank {rank}; patterns are enumerated up to rank 2 (with a bias: one"
            " coordinate)."
        )
    plane = Z @ rows[: max(rank, 1)].T
    if rank < 2:
        return [plane[:, 0] > 0, plane[:, 0] < 0]
    used = plane[np.linalg.norm(plane, axis=1) > 0]
    # A pattern changes where a direction crosses a wall, so that the middle of each arc has it.
    walls = np.sort(
        (np.arctan2(used[:, 1], used[:, 0])[:, None] + np.array([np.pi / 2, -np.pi / 2])).ravel()
        % (2 * np.pi)
    )
    middles = walls + 0.5 * np.diff(np.append(walls, walls[0] + 2 * np.pi))
    found = np.column_stack([np.cos(middles), np.sin(middles)]) @ plane.T > 0
    return list(np.unique(found, axis=0))


def _pose(
    Z: np.ndarray, y: np.ndarray, chosen: tuple[Choice, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Labelled outputs (n, m D) of neurons with these patterns and signs, and the walls (m n, m D)
    of their cells, which are linear in the neurons.
    """
    (n, D), m = Z.shape, len(chosen)
    outputs = np.hstack([(y * sign * pattern)[:, None] * Z for pattern, sign in chosen])
    cells = np.zeros((m * n, m * D))
    for j, (pattern, _) in enumerate(chosen):
        cells[j * n : (j + 1) * n, j * D : (j + 1) * D] = np.where(pattern, 1.0, -1.0)[:, None] * Z
    return outputs, cells


def _solve_choice(
    Z: np.ndarray, y: np.ndarray, chosen: tuple[Choice, ...]
) -> tuple[np.ndarray, float, np.ndarray]:
    """Solve the convex problem with these patterns and signs: its neurons v (m, D), an upper bound
    of its margin, and the weights (n,) of the samples that prove it.
    """
    n, D = Z.shape
    m = len(chosen)
    outputs, cells = _pose(Z, y, chosen)
    # Over x = (v, sizes, t): t - outputs v <= 0, -cells v <= 0, sum of sizes <= 1/2, |v_j| <=
    # sizes_j.
    A = [
        np.hstack([-outputs, np.zeros((n, m)), np.ones((n, 1))]),
        np.hstack([-cells, np.zeros((m * n, m + 1))]),
        np.concatenate([np.zeros(m * D), np.ones(m), [0.0]])[None],
    ]
    for j in range(m):
        cone = np.zeros((1 + D, m * D + m + 1))
        cone[0, m * D + j] = -1.0
        cone[1:, j * D : (j + 1) * D] = -np.eye(D)
        A.append(cone)
    right = np.concatenate([np.zeros(n + m * n), [0.5], np.zeros(m * (1 + D))])
    cones = [clarabel.NonnegativeConeT(n + m * n + 1), *[clarabel.SecondOrderConeT(1 + D)] * m]
    x, multipliers = minimize(
        np.append(np.zeros(m * D + m), -1.0), np.vstack(A), right, cones, tol=_CONE_TOLERANCE
    )
    # Any p in the simplex and c >= 0 bound t by sum_j <pull_j, v_j>, that is by the largest
    # |pull_j| / 2.
    p, c = np.maximum(multipliers[:n], 0.0), np.maximum(multipliers[n : n + m * n], 0.0)
    p, c = (p / p.sum(), c / p.sum()) if p.sum() > 0 else (np.full(n, 1 / n), np.zeros(m * n))
    pulls = (p @ outputs + c @ cells).reshape(m, D)
    rounding = (
        (n + D)
        * float(np.finfo(float).eps)
        * float((1 + c.sum()) * np.linalg.norm(Z, axis=1).max())
    )
    return x[: m * D].reshape(m, D), 0.5 * float(np.linalg.norm(pulls, axis=1).max()) + rounding, p


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

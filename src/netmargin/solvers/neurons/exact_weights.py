"""The best output weights of given neurons and the multipliers of samples that prove them so, by a
cone or linear program: for losses with corners, constraints, and to tell which neurons are needed.
"""

from dataclasses import replace

import clarabel
import highspy
import numpy as np
from scipy import sparse

from ...core.cone_program import minimize
from ..simplex import Simplex
from .losses import QuadraticLoss
from .samples import Samples

_WORK = 1e8
"""Multiplications of a step of the solver up to which it is used: 2 seconds in 20 to 30 steps."""
_TOLERANCE = 1e-9
"""As sharp as an interior point gets without trouble."""
_PROVED = 1e-6
"""The relative gap of weights and multipliers up to which they count as solved."""
_DUST = 1e-7
"""Multipliers below this part of the largest are 0: an interior point leaves some everywhere."""

_CAP, _RAISED, _SOLVED, _PATIENCE = 1e3, 10.0, 0.5, 8
"""The largest multiplier of a constraint at first, for inputs and targets of size 1, by how much
it rises where one has reached it: once a bound proves this part of the capped problem, or after so
many rounds. Without a cap, neurons that cannot keep the constraints say nothing of missing ones.
"""
_KNOWN = 1 - 1e-12
"""Neurons of a larger cosine are one to the program."""
_FORGOTTEN = 8
"""Neurons leave after more rounds without weight: those that dual weights were moved away from are
wanted again when these come back.
"""


def most_neurons(samples: Samples) -> int:
    """The most neurons whose weights are affordable: sizes a, b cost a b min(a, b) a step."""
    loss = samples.loss
    assert isinstance(loss, QuadraticLoss)
    wanted = max(int((loss.high > 0).sum()), 1)
    return int(max((_WORK / wanted) ** 0.5, _WORK / wanted**2)) // loss.labels.outputs


class Cap:
    """The largest multiplier of a constraint, or of a loss with corners, that is allowed."""

    def __init__(self) -> None:
        self.value, self._rounds = _CAP, 0

    def limit(self, loss: QuadraticLoss) -> QuadraticLoss:
        """The loss with multipliers up to it."""
        return replace(loss, low=max(loss.low, -self.value), high=np.minimum(loss.high, self.value))

    def rise(self, p: np.ndarray, target: np.ndarray, bound: float) -> bool:
        """Whether it rose: p (n, R) reached it for long, or `bound` solves the capped problem."""
        solved = bound > _SOLVED * (p * target).sum()
        reached = np.abs(p).max(initial=0.0) >= self.value * (1 - _PROVED)
        self._rounds = self._rounds + 1 if reached else 0
        if not self._rounds or not (solved or self._rounds > _PATIENCE):
            return False
        self.value, self._rounds = self.value * _RAISED, 0
        return True


def weigh_exactly(samples: Samples, W: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The weights (k, K) of neurons W (k, D) and the multipliers p (n, R) of the samples; None
    where the neurons are too many, or cannot keep the constraints.

    The program is the dual one, max sum p target - p^2 / 2 cost over low <= p <= high with |C'
    phi(w_j . z)| <= 1 for every neuron, C the coefficients of p. Weights are its multipliers.
    """
    loss = samples.loss
    assert isinstance(loss, QuadraticLoss)
    (n, R), (k, K) = loss.target.shape, (len(W), loss.labels.outputs)
    wanted = loss.high > 0
    if not 0 < k <= most_neurons(samples):
        return None
    H = samples.features(W).astype(np.float64)
    pulls = [loss.labels.combine(np.tile(row, (n, 1))) for row in np.eye(R)]
    # Values (k, K) of the neurons as functions of p.
    values = np.einsum("nj,rnc->jcnr", H, pulls)[:, :, wanted]
    count = values.shape[2]
    values = np.concatenate([np.zeros((k, 1, count)), values], axis=1).reshape(-1, count)
    ones = np.tile(np.eye(1, K + 1), k)[0]
    most, least = loss.high[wanted], np.full(count, loss.low)
    sides = sparse.vstack([sparse.eye(count), -sparse.eye(count)], format="csr")
    bounds = np.concatenate([most, -least])
    finite = np.isfinite(bounds)
    A = sparse.vstack([sparse.csc_matrix(values), sides[finite]])
    b = np.concatenate([ones, bounds[finite]])
    cones = [clarabel.SecondOrderConeT(K + 1)] * k
    cones += [clarabel.NonnegativeConeT(len(b) - len(ones))]
    squares = sparse.diags(np.broadcast_to(1 / loss.cost, (n, R))[wanted])
    solution, multipliers = minimize(
        -loss.target[wanted], A, b, cones, quadratic=squares, tol=_TOLERANCE
    )
    p = np.zeros((n, R))
    p[wanted] = np.clip(solution, least, most)
    p[np.abs(p) < _DUST * np.abs(p).max(initial=0.0)] = 0.0
    weights = multipliers[: len(ones)].reshape(k, K + 1)[:, 1:]
    proved = loss.bound(loss.labels.combine(p))
    # At the optimum alone a smooth loss, below one with corners, is as large as what p proves.
    smooth = loss.smoothed(p, 1.0) if loss.exact else loss
    attained = float(np.linalg.norm(weights, axis=1).sum()) + smooth.value(H @ weights)
    return (weights, p) if abs(attained - proved) <= _PROVED * attained else None


class LinearWeights:
    """The same of one output by a linear program that keeps its basis and drops idle neurons."""

    def __init__(self, exact: Samples, cap: Cap) -> None:
        """`exact` are the samples in float64."""
        assert isinstance(exact.loss, QuadraticLoss)
        self._exact, self._loss, self._cap = exact, exact.loss, cap
        self._W, self._idle = np.zeros((0, exact.Z.shape[1])), np.zeros(0, int)
        self._program, (low, high) = Simplex(presolve="off"), self._limit()
        self._program.changeObjectiveSense(highspy.ObjSense.kMaximize)
        target = self._loss.target[:, 0]
        self._program.add_columns(self._combine(self._W), cost=target, lower=low, upper=high)

    def weigh(self, W: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The neurons (k, D) that have weights (k, 1), of W (m, D) and those of former calls, and
        the multipliers p (n, 1); `bound` is the best one of the objective.
        """
        W = W[(W @ self._W.T).max(1, initial=-1.0) < _KNOWN]
        ones = np.ones(len(W))
        self._program.add_rows(self._combine(W), -ones, ones)
        self._W = np.concatenate([self._W, W])
        self._program.solve_until()
        solution = self._program.getSolution()
        a, p = np.array(solution.row_dual), np.array(solution.col_value)[:, None]
        used = np.flatnonzero(a)
        found = self._W[used], a[used, None], p
        if self._cap.rise(p, self._loss.target, bound):
            self._program.change_bounds(*self._limit())
        # Neurons that had no weight for some rounds are forgotten.
        idle = np.concatenate([self._idle, np.zeros(len(W), int)])
        self._idle = np.where(a != 0, 0, idle + 1)
        old = np.flatnonzero(self._idle > _FORGOTTEN)
        self._program.deleteRows(len(old), old.astype(np.int32))
        self._W, self._idle = np.delete(self._W, old, 0), np.delete(self._idle, old)
        return found

    def _limit(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and largest multipliers of the samples."""
        loss = self._cap.limit(self._loss)
        return np.full(len(loss.high), loss.low), loss.high[:, 0]

    def _combine(self, W: np.ndarray) -> np.ndarray:
        """What a multiplier of each sample adds to the responses of neurons W (k, D), (k, n)."""
        return self._loss.labels.margins(self._exact.features(W)).T

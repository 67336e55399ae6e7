"""The problem over the neurons found so far, by linear and cone programs, judged in float64."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.matrices import Floats
from ..neurons.activations import RELU, Activation
from ..neurons.samples import respond
from .master import Constraints, MasterLP
from .polish import polish_neurons

_MOST_COLUMNS, _KEPT_COLUMNS = 2500, 1000
"""With more neurons than the first, or 4 per sample, the linear program is begun anew with the best
of the second, or 2 per sample: rounds stay short, and few of the dropped neurons come back.
"""
_WALLS_PER_DIMENSION = 3
"""Walls of a cell that the cone program keeps, the nearest: D make a vertex, more take longer."""
_KINK = 1e-9
"""A product u . z above this counts as active: smaller ones are samples on the kink."""
_DUST = 1e-11
"""Weights below this part of the sum are rounding of the linear program (tolerance 1e-10)."""
_GONE = 1e-9
"""A neuron that the cone program leaves with a smaller norm has no direction."""
_IMPROVES, _IMPROVES_AT_LEAST = 1e-13, 1e-15
"""How much more than t a neuron must be worth to raise it, relative and absolute: rounding."""
_SMALLEST, _LARGEST = 1e-10, 1e12
"""Entries beyond these are out of reach of the linear program, which finds candidates only."""


class RestrictedProblem:
    """The largest t over weights of given neurons: unit directions U (k, D) with output signs s
    (k,) and columns A (n, k). Dual weights p are normalized to p . target = 1.

    Their `weights` (k,) attain t, the best so far in float64; `level` is that of the program.
    """

    smallest = _SMALLEST  # a smaller t is 0 to the tolerance of the linear program

    def __init__(self, Z: Any, rows: Constraints, activation: Activation = RELU) -> None:
        self.Z, self.rows, self.activation = Z, rows, activation
        # The empty net, f = 0, attains this t with slacks for all, and 0 where there are none.
        self.t, self.weights = 1 / (rows.slack_cost * float(np.abs(rows.target).sum())), np.zeros(0)
        self.U, self.s, self.A = np.zeros((0, Z.shape[1])), np.zeros(0), np.zeros((len(Z), 0))
        self.level, self._magnification, self._master = self.t, 1.0, self._begin_program(1.0)

    def _begin_program(self, magnification: float) -> MasterLP:
        """A linear program whose columns and slacks are larger by this factor."""
        cost = self.rows.slack_cost
        if cost < np.inf:  # what the linear program can tell from infinity
            cost = min(cost, _LARGEST)
        return MasterLP(replace(self.rows, slack_cost=cost / magnification))

    def even_dual(self) -> Floats:
        """Dual weights (n,) to begin with: the same within a class, the same sum for each class."""
        positive = self.rows.signs > 0
        weights: Floats = 1 / np.where(positive, positive.sum(), (~positive).sum())
        return weights / float((weights * self.rows.target).sum())

    def values(self, U: Floats, dual: Floats) -> Floats:
        """The values sum_i p_i signs_i phi(u . z_i) of neurons u at dual weights p."""
        return respond(self.Z, dual * self.rows.signs, U, self.activation)

    def improving(self, U: Floats, dual: Floats) -> np.ndarray:
        """Which neurons (booleans) would raise t, to first order."""
        return np.abs(self.values(U, dual)) > self.level * (1 + _IMPROVES) + _IMPROVES_AT_LEAST

    def slack_bound(self, dual: np.ndarray) -> float:
        """The bound of t that slacks set at these dual weights."""
        return float(np.abs(dual).max()) / self.rows.slack_cost

    def paying_signs(self, U: np.ndarray, dual: np.ndarray) -> np.ndarray:
        """The output sign of each neuron that pays at these dual weights."""
        return np.where(self.values(U, dual) >= 0, 1.0, -1.0)

    def columns(self, U: Floats, signs: Floats) -> Floats:
        """The labelled outputs (n, k) of unit neurons with these output signs."""
        return self.activation.feature(self.Z @ U.T) * (signs * self.rows.signs[:, None])

    def add(self, U: np.ndarray, signs: np.ndarray) -> None:
        """Add neurons with these output signs."""
        columns = self.columns(U, signs)
        self._master.add(self._magnification * columns)
        self.U, self.s, self.A, self.weights = (
            np.concatenate([self.U, U]),
            np.concatenate([self.s, signs]),
            np.hstack([self.A, columns]),
            np.concatenate([self.weights, np.zeros(len(U))]),
        )

    def solve(self, deadline: float = math.inf) -> np.ndarray:
        """Improve t and the weights; returns the dual weights (n,) of the linear program."""
        t, weights, dual = self._master.solve(deadline)
        self._keep_if_better(t / self._magnification, weights)
        dual = self.normalize_dual(dual)
        # Begun anew where the optimum left [1/4, 4], or where there are too many neurons.
        out_of_scale = not 0.25 < self.level * self._magnification < 4
        crowded = len(self.s) > max(_MOST_COLUMNS, 4 * len(self.Z))
        if (self.level > self.smallest and out_of_scale) or crowded:
            self._restart(dual)
        return dual

    def _restart(self, dual: np.ndarray) -> None:
        """Begin a program whose optimum is near 1, as its tolerances ask, without idle neurons."""
        if self.level > self.smallest:
            self._magnification = 1 / self.level
        # Neurons with weight first, then those of largest value.
        order = np.lexsort((-np.abs(self.A.T @ dual), self.weights == 0))
        useful = order[: max(_KEPT_COLUMNS, 2 * len(self.Z))]
        self.U, self.s, self.weights, self.A = (
            self.U[useful],
            self.s[useful],
            self.weights[useful],
            self.A[:, useful],
        )
        self._master = self._begin_program(self._magnification)
        self._master.add(self._magnification * self.A)

    def _keep_if_better(self, t: float, weights: np.ndarray) -> None:
        """Recompute t in float64 for weights of the program, made feasible; keep the best."""
        weights = np.maximum(np.nan_to_num(weights), 0.0)
        weights = np.where(weights > _DUST * weights.sum(), weights, 0.0)
        outputs, target = self.A @ weights, self.rows.target
        candidates, masses = np.array([(outputs / target).min()]), np.array([weights.sum()])
        if np.isfinite(self.rows.slack_cost):
            # With the slacks that t asks for, or as much t as needs no slack.
            candidates = np.append(t, candidates)
            slacks = np.maximum(candidates[:, None] * target - outputs, 0.0).sum(1)
            masses = masses + self.rows.slack_cost * slacks
        # Everything is homogeneous: divided by its mass, a candidate has mass 1.
        values = np.divide(candidates, masses, out=np.zeros_like(masses), where=masses > 0)
        best = int(np.argmax(values))
        if masses[best] > 0 and np.isfinite(values[best]) and values[best] >= self.t:
            self.t, self.weights = float(values[best]), weights / masses[best]
        self.level = self.t

    def normalize_dual(self, dual: np.ndarray) -> np.ndarray:
        """Make dual weights of a solver feasible: of the right sign, and p . target = 1."""
        dual = np.nan_to_num(dual, posinf=0.0, neginf=0.0)
        if not self.rows.equal:  # HiGHS gives duals of either sign, by the sense of the rows
            dual = np.maximum(dual * np.sign(dual.sum()), 0.0)
        total = float(dual @ self.rows.target)
        return dual / total if abs(total) > 1e-300 else self.even_dual()

    def polish_neurons(self, deadline: float = math.inf) -> tuple[np.ndarray, np.ndarray | None]:
        """Move neurons (k, D) to the optimum of their cells, with its dual weights (n,); only
        features of power 1 are linear on cells.
        """
        used = np.flatnonzero(self.weights)
        nothing = np.zeros((0, self.Z.shape[1])), None
        if not len(used) or not self.activation.kink:
            return nothing
        products, signs = self.U[used] @ self.Z.T, (self.s * np.sign(self.weights))[used]
        # Neurons of one cell and sign are one neuron of the cone program.
        patterns, index = np.unique(
            np.column_stack([products > _KINK, signs > 0]), axis=0, return_index=True
        )
        count = min(_WALLS_PER_DIMENSION * self.Z.shape[1], len(self.Z))
        walls = np.argpartition(np.abs(products[index]), count - 1, axis=1)[:, :count]
        cells = patterns[:, :-1], signs[index], self.activation.slope
        v, dual, _ = polish_neurons(self.Z, self.rows, *cells, walls=walls, deadline=deadline)
        norms = np.linalg.norm(v, axis=1)
        keep = np.isfinite(norms) & (norms > _GONE)
        if not np.isfinite(dual).all():
            return nothing
        return v[keep] / norms[keep, None], self.normalize_dual(dual)

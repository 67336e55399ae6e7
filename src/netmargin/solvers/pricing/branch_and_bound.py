"""Proved pricing in any dimension: the maximum of |sum_i c_i relu(u . z_i)| over the unit sphere,
by branch and bound.

For a set S of samples with positive coefficient, sum_S c_i t_i <= sum c_i relu(t_i) with t = Z u,
and equality for the set of active ones. By duality of the concave rest, the maximum of the sum is
therefore

    max over S, min over x of |Z' x|,    x_i = c_i on S, x_i in [c_i, 0] where c_i < 0, and 0 on the
    other positive samples.

A node fixes some positive samples inside or outside S. As S then says on which side of these
hyperplanes u lies, x_i may also grow beyond c_i inside S, and below 0 outside: that only lowers the
minimum. For the undecided samples x_i runs over [0, c_i], and F(x) = |Z' x|^2 + sum E_i x_i (c_i -
x_i) equals |Z' x|^2 at the ends. With Diag(E) >= Z Z' on the undecided samples F is concave in
their x, so its linearization at any point bounds it over the box: every x gives a valid bound. Good
x are saddle points, found by a few optimistic gradient steps from the parent's x. The cost grows
with the number of positive coefficients, not with the dimension.
"""

import time
from typing import Any

import numpy as np

from ...core.matrices import EPS
from .best_directions import BestDirections

# Sizes and steps, set by trial, trade time for sharper bounds: every x gives a valid one.

_BATCH, _BATCH_PART = 1024, 16
"""Open nodes that are visited at once, or this part of them if that is more: enough for products of
matrices to be efficient, and few enough for the order by bounds to matter.
"""
_SMALLEST_BATCH = 64
"""The time of a batch hardly falls below that of so many nodes."""
_STEPS, _LEAF_STEPS, _ROOT_STEPS = 20, 200, 300
"""Gradient steps from the parent's x; at a leaf, which no branching improves; and at the root,
which has no parent to begin from. On two problems of 22 samples in 5 dimensions 5 to 80 steps and
50 to 800 at a leaf took as long or up to 30% longer, and with 5 one proof was missed.
"""
_FRONTIER_BYTES = 2_000_000_000
"""Memory of open nodes, beyond which the search ends with the bound it has."""
_NOTHING = 1e-100
"""Coefficients below this part of the largest are left out, at the price of their sum: their
squares would be lost to underflow.
"""
_EIGENVALUE_ROUNDING = 1e-10
"""Room for the rounding of eigenvalues, so that diagonals stay above their matrix."""
_CLOSING_PART = 0.05
"""A leaf that comes nearer to closing by less than this part of the way is given up: it would take
more than twenty such visits. 0.005 to 0.5 made no difference on the problems above.
"""
_KEPT = 64
"""Directions of largest value that are kept: more than are asked for."""
_TIE = 1e-30
"""Added to the slack of undecided samples, so that one is found to branch on where all are 0."""


class ActivationBranchAndBound:
    """Branch and bound over activation patterns at one choice of coefficients c (n,) of points Z
    (n, D), for values above `floor` (1 + tol); grown as far as time allows. `nodes` were visited.
    """

    # Open nodes are kept in parallel arrays: bound; side (0: the sum, 1: minus the sum); fixed (+1
    # in S, -1 not, 0 undecided); x; next sample to fix, -1 at a leaf.

    def __init__(self, Z: np.ndarray, c: np.ndarray, *, floor: float, tol: float) -> None:
        sizes = np.abs(c) * np.linalg.norm(Z, axis=1)
        used = sizes > _NOTHING * sizes.max(initial=0.0)
        # Where all are zero, one sample keeps the shapes.
        used[0] |= not used.any()
        self._left_out = float(sizes[~used].sum())
        # More dimensions than samples with a coefficient are not needed.
        self._rows = np.linalg.svd(Z[used], full_matrices=False)[2]
        self.Z, self.c, self.tol = Z[used] @ self._rows.T, c[used], tol
        Z, c = self.Z, self.c
        n, D = Z.shape
        self.signed = np.stack([c, -c])
        self.squares = (Z[:, :, None] * Z[:, None, :]).reshape(n, D * D)
        self.lipschitz = 2 * np.linalg.eigvalsh(Z.T @ Z)[-1]
        self.lengths = np.linalg.norm(Z, axis=1)
        self.size = float(np.abs(c) @ self.lengths)
        # A sum of n terms of D products each is off by at most half so many ulps of these.
        self._ulps = (n + D + 32) * EPS
        self.diagonal = np.zeros((2, n))
        for side in (0, 1):
            positive = np.flatnonzero(self.signed[side] > 0)
            terms = self.signed[side, positive, None] * Z[positive]
            self.diagonal[side, positive] = _diagonal_above(terms @ terms.T) / c[positive] ** 2
        self.nodes = 2
        self.work_per_node = float(D**3 + 20 * n * D)
        self.best, self.stuck, self._deadline = floor, 0.0, np.inf
        self._found = BestDirections(Z, c, _KEPT, power=1)
        sides = np.array([0, 1])
        self.open = self._make_nodes(
            sides,
            np.zeros((2, n), dtype=np.int8),
            np.zeros((2, n)),
            np.full(2, self.size),
            _ROOT_STEPS,
        )

    def upper_bound(self) -> float:
        """The proved upper bound of |sum_i c_i relu(u . z_i)| over the unit sphere."""
        closed = self.best * (1 + self.tol)
        return float(max(self.open[0].max(initial=closed), self.stuck)) + self._left_out

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct unit vectors u (k, D) of large value, and their values (k,), largest first."""
        directions, values = self._found.result()
        return directions @ self._rows, values

    @property
    def finished(self) -> bool:
        """Whether no node is open, or the memory for open nodes is full."""
        return not len(self.open[0]) or sum(part.nbytes for part in self.open) > _FRONTIER_BYTES

    def grow(self, *, nodes: float, deadline: float) -> None:
        """Visit about `nodes` nodes, those of largest bound first, up to the deadline."""
        visited, self._deadline = 0, deadline
        while not self.finished and visited < nodes and time.monotonic() < deadline:
            count = min(max(_BATCH, len(self.open[0]) // _BATCH_PART), len(self.open[0]))
            # The largest bounds first: they are what the upper bound of the whole search is.
            chosen = np.zeros(len(self.open[0]), dtype=bool)
            chosen[np.argpartition(-self.open[0], count - 1)[:count]] = True
            bounds, sides, fixed, x, branch = (part[chosen] for part in self.open)
            self.open = tuple(part[~chosen] for part in self.open)
            leaf = branch < 0
            self._finish_leaves(sides[leaf], fixed[leaf], x[leaf], bounds[leaf])
            inner = np.flatnonzero(~leaf)
            for side_of_hyperplane in (1, -1):
                child = fixed[inner].copy()
                child[np.arange(len(inner)), branch[inner]] = side_of_hyperplane
                self._add(sides[inner], child, x[inner], bounds[inner], _STEPS)
            self.nodes += len(leaf) + 2 * len(inner)
            visited += max(len(leaf) + len(inner), _SMALLEST_BATCH)

    def _finish_leaves(self, sides: Any, fixed: Any, x: Any, bounds: Any) -> None:
        """Take more steps at leaves, which no branching improves; give up those that they fail."""
        if len(sides):
            nodes = self._make_nodes(sides, fixed, x, bounds, _LEAF_STEPS)
            stuck = bounds - nodes[0] < _CLOSING_PART * (nodes[0] - self.best * (1 + self.tol))
            self.stuck = max(self.stuck, float(nodes[0][stuck].max(initial=0.0)))
            self.open = tuple(
                np.concatenate([old, new[~stuck]])
                for old, new in zip(self.open, nodes, strict=True)
            )

    def _add(self, sides: Any, fixed: Any, x: Any, parent_bounds: Any, steps: int) -> None:
        """Add open nodes with these parents, and close those that cannot beat the best."""
        if len(sides):
            nodes = self._make_nodes(sides, fixed, x, parent_bounds, steps)
            self.open = tuple(np.concatenate(pair) for pair in zip(self.open, nodes, strict=True))
        possible = self.open[0] > self.best * (1 + self.tol)
        if not possible.all():
            self.open = tuple(part[possible] for part in self.open)

    def _make_nodes(
        self, sides: Any, fixed: Any, x: Any, parent_bounds: Any, steps: int
    ) -> tuple[np.ndarray, ...]:
        """Compute the arrays of nodes; the sample that adds most to the gap is to be fixed next."""
        bounds, x, v, slack = self._bound_nodes(sides, fixed, x.astype(float), steps)
        self._consider(v)
        branch = np.where(slack.max(1) > 0, slack.argmax(1), -1)
        # A node is a part of its parent, whose bound holds for it; x in float32 halves the memory.
        return np.minimum(bounds, parent_bounds), sides, fixed, x.astype(np.float32), branch

    def _bound_nodes(self, sides: Any, fixed: Any, x: Any, steps: int) -> Any:
        """The bounds of nodes, their x and v = Z' x, and what samples add to the relaxation."""
        c = self.signed[sides]
        undecided = (c > 0) & (fixed == 0)
        E = np.where(undecided, self.diagonal[sides], 0.0)
        inverse = np.divide(1.0, E, out=np.zeros_like(E), where=E > 0)
        D = self.Z.shape[1]
        # The fewer samples are undecided, the smaller a diagonal suffices.
        largest = np.linalg.eigvalsh((inverse @ self.squares).reshape(-1, D, D))[:, -1:]
        E = E * (1 + _EIGENVALUE_ROUNDING) * np.maximum(largest, 0.0)
        # The boxes of x, wider on decided samples, whose side of the hyperplane is known.
        low = np.where(c < 0, c, np.where(fixed > 0, c, np.where(fixed < 0, -np.inf, 0.0)))
        high = np.where(c < 0, 0.0, np.where(fixed > 0, np.inf, np.where(undecided, c, 0.0)))
        direction = np.where(undecided, -1.0, 1.0)
        rates = 1 / (self.lipschitz + 2 * E)
        best, best_x = np.full(len(c), np.inf), x
        best_v, slack = np.zeros((len(c), D)), np.zeros_like(c)
        x, previous, open_ = np.clip(x, low, high), None, undecided.any(1)
        for step in range(steps + 1):
            v = x @ self.Z
            relaxation = E * x * (c - x)
            gradient = 2 * (v @ self.Z.T) + E * (c - 2 * x)
            linearized = np.where(undecided, np.maximum(gradient * (c - x), -gradient * x), 0.0)
            # v is off by an ulp or so of the absolute terms of its sum, which x beyond c makes
            # large, and the gradients of undecided samples by that, times their lengths.
            terms = np.abs(x) @ self.lengths
            hidden = np.where(open_, terms * (terms + 2 * self.size) + (E * c**2).sum(1), 0.0)
            squares = (v**2).sum(1) + relaxation.sum(1) + linearized.sum(1)
            bound = np.sqrt(squares + self._ulps * hidden) + self._ulps * terms
            better = bound < best
            best = np.where(better, bound, best)
            best_x = np.where(better[:, None], x, best_x)
            best_v[better] = v[better]
            slack[better] = np.where(undecided, relaxation + _TIE, 0.0)[better]
            # The bounds so far are valid, so that the deadline may cut the steps short.
            if step == steps or time.monotonic() > self._deadline:
                break
            # An optimistic step towards the saddle point: down in decided x, up in undecided ones.
            ahead = direction * gradient
            x = np.clip(
                x - rates * (ahead if previous is None else 2 * ahead - previous), low, high
            )
            previous = ahead
        return best, best_x, best_v, slack

    def _consider(self, v: np.ndarray) -> None:
        """Evaluate the directions v / |v|, which are good candidates where bounds are sharp."""
        norms = np.linalg.norm(v, axis=1)
        if norms.any():
            self._found.evaluate(v[norms > 0] / norms[norms > 0, None])
            self.best = max(self.best, self._found.best)


def _diagonal_above(G: np.ndarray) -> np.ndarray:
    """A diagonal D with Diag(D) - G positive semidefinite: row sums, scaled down."""
    sums: np.ndarray = np.abs(G).sum(1)
    if not len(G):
        return sums
    root = np.sqrt(sums)
    largest = float(np.linalg.eigvalsh(G / root[:, None] / root)[-1])
    return sums * max(largest, 0.0) * (1 + _EIGENVALUE_ROUNDING)

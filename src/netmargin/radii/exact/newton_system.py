"""The best multipliers of a relaxation, by a primal-dual interior point method.

Maximizing B over all multipliers is a semidefinite program: maximize sigma + sum of tau over units,
such that P - sigma >= 0 for all v (one matrix S of size 1 + m), and on each side [l, u] of a unit's
graph -psi - tau - kappa (y - l)(u - y) >= 0 for all y (a 2 x 2 matrix) with kappa >= 0. Its primal
variables are moments of (1, v) and, per side, of (1, y): Shor's relaxation with the convex hull of
each unit's graph. Directions are those called HKM (Helmberg, Rendl, Vanderbei and Wolkowicz 1996)
with Mehrotra's corrector. tau and kappa are eliminated unit by unit. Every other multiplier belongs
to a product f_i f_j of two functionals, so that the Schur matrix is made of products of entries of
F X F' and F S^-1 F'.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from .program import Direction, Iterate, Program
from .region_relaxation import quadratic_matrix
from .sides import invert_sides, least_of_sides, twist_sides

_STEP = 0.95
"""Share of the step to the boundary that is taken."""
_RIDGES = (1e-13, 1e-11, 1e-9)
"""Relative ridges of the Schur matrix, the first with which it has a Cholesky factor: 1e-8 stalls
along nearly flat multipliers.
"""
_SHORTER = 0.8
"""Factor of the next step that is tried where one leads out of the positive definite matrices: each
try is a Cholesky factor, and most steps need one to three.
"""
_SHORTEST = 1e-3
"""Steps below this are not tried: the search begins farther out long before."""
_LEAST_CENTRING, _MOST_CENTRING = 0.02, 0.8
"""Limits of the share of the complementarity that a step keeps; between them Mehrotra's square of
what the predictor leaves.
"""
_SHORT_PREDICTION, _CENTRING_OF_SHORT = 0.2, 0.6
"""Predictor steps below the first keep the second: off the central path they lead back first."""
_LEAST_PREDICTION = 0.1
"""Predictor steps too short for a corrector: with one, 784-256-256-10 takes twice the steps."""


class NewtonSystem:
    """The Schur system at one iterate, with matrix S and sides, factored once."""

    def __init__(self, program: Program, at: Iterate, matrix: np.ndarray, side: np.ndarray) -> None:
        self.program, self.at, self.matrix = program, at, matrix
        rows = program.relaxation.rows
        factor = np.linalg.cholesky(matrix)
        half = solve_triangular(factor, np.eye(len(matrix)), lower=True, check_finite=False)
        self.inverse = half.T @ half
        self.side_inverse, self.moment_side_inverse = invert_sides(side), invert_sides(at.sides)
        self.XF, self.SF = at.X @ rows.T, self.inverse @ rows.T
        self.FX, self.FS = rows @ self.XF, rows @ self.SF
        self._assemble()

    def _assemble(self) -> None:
        program, at = self.program, self.at
        kinds, n = program.kinds, program.sigma_at + 2
        X, S, H = self.FX, self.FS, np.empty((n, n))
        d = slice(1, 1 + program.relaxation.inputs)
        for a, p in enumerate(kinds):
            for q in kinds[: a + 1]:
                block = X[p.j, q.i] * S[p.i, q.j]
                block += X[p.j, q.j] * S[p.i, q.i]
                block += X[p.i, q.i] * S[p.j, q.j]
                block += X[p.i, q.j] * S[p.j, q.i]
                block *= p.factor * q.factor / 2
                H[p.place, q.place] = block
                if p is not q:
                    H[q.place, p.place] = block.T
            mixed = self.XF[d, p.j] * self.SF[d, p.i] + self.XF[d, p.i] * self.SF[d, p.j]
            H[-1, p.place] = p.factor * mixed.sum(0) / 2
        Xd, Sd = at.X[d, d], self.inverse[d, d]
        zero = kinds[-1].place.start
        # A_mu = E - e0 e0', and sigma's is -2 e0 e0'.
        with_e0 = H[-1, zero]
        H[-1, : zero + 1] += H[zero, : zero + 1] / 2
        H[-1, -1] = (Xd * Sd).sum() / 2 + with_e0 + H[zero, zero] / 4
        H[-1, -1] += at.mu_slack / at.mu
        H[: zero + 1, -1] = H[-1, : zero + 1]
        self.local = program.local_hessian(at.sides, self.side_inverse, at.slack, at.kappa)
        outer = self.local[:, :5, 5:]
        self.reduced = np.linalg.solve(self.local[:, 5:, 5:], outer.transpose(0, 2, 1))
        own = self.local[:, :5, :5] - outer @ self.reduced
        for p in kinds[:-1]:
            for q in kinds[:-1]:
                both = min(p.place.stop - p.place.start, q.place.stop - q.place.start)
                index = np.arange(both)
                H[p.place.start + index, q.place.start + index] += own[:both, p.column, q.column]
        if not (np.diag(H) > 0).all():
            raise np.linalg.LinAlgError("rounding has made the Schur matrix indefinite")
        scale = 1 / np.sqrt(np.diag(H))
        H *= scale
        H *= scale[:, None]
        self.scale, self.schur = scale, _factor(H)

    def solve(self, nu: float, affine: Direction | None) -> Direction:
        """The direction to complementarity nu, with second-order terms of another direction."""
        program, at = self.program, self.at
        relaxation, rows = program.relaxation, program.relaxation.rows
        d = slice(1, 1 + relaxation.inputs)
        wanted, wanted_rows = nu * self.inverse, nu * self.SF
        wanted_sides, wanted_slack = nu * self.side_inverse, nu / at.kappa
        mu_right = nu / at.mu
        if affine is not None:
            second = affine.X @ (affine.S @ self.inverse)
            second = (second + second.T) / 2
            wanted = wanted - second
            wanted_rows = wanted @ rows.T
            wanted_sides -= twist_sides(affine.sides, affine.side_change, self.side_inverse)
            wanted_slack -= affine.slack * affine.kappa / at.kappa
            mu_right -= affine.mu_slack * affine.mu / at.mu
        right = np.zeros(program.sigma_at + 2)
        for p in program.kinds:
            values = (rows[p.i] * wanted_rows[:, p.j].T).sum(1)
            right[p.place] = p.factor * values
        right[program.sigma_at] += 1.0
        trace = wanted[d, d].trace() - wanted[0, 0]
        right[-1] = trace / 2 + mu_right
        local = program.local_gradient(wanted_sides, wanted_slack)
        pushed = local[:, :5] - np.einsum("ulp,ul->up", self.reduced, local[:, 5:])
        for p in program.kinds[:-1]:
            right[p.place] += pushed[: p.place.stop - p.place.start, p.column]
        z = self.scale * cho_solve(self.schur, self.scale * right, check_finite=False)
        theta = np.zeros_like(at.theta)
        for p in program.kinds[:-1]:
            theta[: p.place.stop - p.place.start, p.column] = z[p.place]
        inner = np.linalg.solve(self.local[:, 5:, 5:], local[:, 5:, None])[..., 0]
        inner -= np.einsum("ulp,up->ul", self.reduced, theta)
        tau, kappa = inner[:, 0], np.where(program.open, inner[:, 1:], 0.0)
        S = quadratic_matrix(relaxation, theta, z[-1])
        S[0] -= relaxation.target
        S[:, 0] -= relaxation.target
        S[0, 0] -= 2 * z[-2]
        side_change = program.side_matrices(theta, tau, kappa) - program.fixed
        twisted = at.X @ (S @ self.inverse)
        X = wanted - at.X - (twisted + twisted.T) / 2
        sides = wanted_sides - at.sides
        sides -= twist_sides(at.sides, side_change, self.side_inverse)
        slack = wanted_slack - at.slack - at.slack * kappa / at.kappa
        mu_slack = mu_right - at.mu_slack - at.mu_slack * z[-1] / at.mu
        return Direction(theta, z[-1], z[-2], tau, kappa, X, sides, slack, mu_slack, S, side_change)

    def longest_steps(self, direction: Direction) -> tuple[float, float]:
        """Steps near to the boundary, of the moments and of the multipliers, at most 1 / _STEP."""
        at, open_ = self.at, self.program.open
        primal = _find_step(
            at.X,
            direction.X,
            least_of_sides(self.moment_side_inverse, direction.sides)[open_].min(),
            (direction.slack / at.slack)[open_].min(),
            direction.mu_slack / at.mu_slack,
        )
        dual = _find_step(
            self.matrix,
            direction.S,
            least_of_sides(self.side_inverse, direction.side_change)[open_].min(),
            (direction.kappa / at.kappa)[open_].min(),
            direction.mu / at.mu,
        )
        return primal, dual


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """A Cholesky factor of a matrix with a unit diagonal, and of as small a ridge as there is."""
    for ridge in _RIDGES[:-1]:
        matrix[np.diag_indices(len(matrix))] = 1 + ridge
        try:
            return cho_factor(matrix, lower=True, check_finite=False)[0], True
        except np.linalg.LinAlgError:
            continue
    matrix[np.diag_indices(len(matrix))] = 1 + _RIDGES[-1]
    return cho_factor(matrix, lower=True, check_finite=False)[0], True


def _find_step(matrix: np.ndarray, change: np.ndarray, *least: float) -> float:
    """A step, at most 1 / _STEP, that leaves a matrix positive definite and numbers positive."""
    worst = min(least)
    step = min(1.0 / _STEP, -1.0 / worst) if worst < 0 else 1.0 / _STEP
    while step > _SHORTEST:
        try:
            np.linalg.cholesky(matrix + step * change)
            break
        except np.linalg.LinAlgError:
            step *= _SHORTER
    return step


class Step(NamedTuple):
    """One iteration: where it led, and what it found where it began."""

    at: Iterate
    gap: float
    most: float  # the primal value, which no multipliers' B exceeds where the moments are feasible
    primal: float  # the steps of moments and multipliers, as shares of the way to the boundary
    dual: float


def take_step(program: Program, at: Iterate) -> Step:
    """Do one iteration with predictor and corrector."""
    matrix = quadratic_matrix(program.relaxation, at.theta, at.mu)
    matrix[0, 0] -= 2 * at.sigma
    side = program.side_matrices(at.theta, at.tau, at.kappa)
    system = NewtonSystem(program, at, matrix, side)
    gap = program.measure_gap(at, matrix, side)
    affine = system.solve(0.0, None)
    primal, dual = system.longest_steps(affine)
    moved = at.move(affine, primal, dual)
    after = program.measure_gap(moved, matrix + dual * affine.S, side + dual * affine.side_change)
    centring = min(max((max(after, 0.0) / gap) ** 2, _LEAST_CENTRING), _MOST_CENTRING)
    if min(primal, dual) < _SHORT_PREDICTION:
        centring = _CENTRING_OF_SHORT
    # Second-order terms of a direction that is blocked at once mislead.
    useful = min(primal, dual) > _LEAST_PREDICTION
    direction = system.solve(centring * gap / program.pairs, affine if useful else None)
    primal, dual = system.longest_steps(direction)
    primal, dual = min(1.0, _STEP * primal), min(1.0, _STEP * dual)
    most = float(at.sigma + at.tau.sum()) + gap
    return Step(at.move(direction, primal, dual), gap, most, primal / _STEP, dual / _STEP)

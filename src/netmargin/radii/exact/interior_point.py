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

from .newton_system import STEP, NewtonSystem
from .program import Iterate, Program
from .region_relaxation import quadratic_matrix

_LEAST_CENTRING, _MOST_CENTRING = 0.02, 0.8
"""Limits of the share of the complementarity that a step keeps; between them Mehrotra's square of
what the predictor leaves.
"""
_SHORT_PREDICTION, _CENTRING_OF_SHORT = 0.2, 0.6
"""Predictor steps below the first keep the second: off the central path they lead back first."""
_LEAST_PREDICTION = 0.1
"""Predictor steps too short for a corrector: with one, 784-256-256-10 takes twice the steps."""


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
    primal, dual = min(1.0, STEP * primal), min(1.0, STEP * dual)
    most = float(at.sigma + at.tau.sum()) + gap
    return Step(at.move(direction, primal, dual), gap, most, primal / STEP, dual / STEP)

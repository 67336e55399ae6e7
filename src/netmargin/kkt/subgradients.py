"""Epsilon in the sense of Dutta et al. (2013): gradients of the constraints may be taken anywhere
within a radius of theta~.

At a kink a constraint has a set of subgradients, the hull of the gradients around it. The columns
of the least squares problem are then pairs of a constraint and a point; those that lower epsilon
have a positive inner product with the residual r. Points on both sides of theta~ along r put the
units near a kink on the side that r asks for (a unit whose output counts positively wants to move
with r, another one against it); random points add the rest. Every column is a gradient at a real
point, so that epsilon is attained, though perhaps not the smallest.
"""

import math

import numpy as np
import torch

from ..core.gradients import Gradients
from .constraints import Chosen, Vector
from .multipliers import multipliers
from .problem import Problem, norm_of

_CONSTRAINTS = 1200
_NEAR = 0.02
_REACHES = (1.0, -1.0, 0.3, -0.3, 0.1, -0.1)
_RANDOM = 2
_ENTERING = 80
_COLUMNS = 1600
_ROUNDS = 12
_PATIENCE = 2
_PROGRESS = 0.03


def within_radius(
    problem: Problem, chosen: Chosen, weights: torch.Tensor, *, radius: float, seed: int
) -> float:
    """The smallest epsilon found over gradients of the constraints at points within radius
    ||theta~|| of theta~.
    """
    constraints, centre = problem.constraints, problem.constraints.point
    values = constraints.values_of(chosen)
    merit = torch.where(
        (weights > 0) | (values <= 1 + _NEAR), weights / weights.max() - values, -math.inf
    )
    near = Chosen(chosen.samples, chosen.classes, merit).best(
        min(_CONSTRAINTS, int(torch.isfinite(merit).sum()))
    )
    columns = _Columns(problem, Gradients.concatenate(list(constraints.gradients(near))))
    random = torch.Generator().manual_seed(seed)
    best, patience = columns.epsilon, 0
    try:
        for _ in range(_ROUNDS):
            residual = columns.residual()
            directions = [(residual, reach) for reach in _REACHES]
            directions += [(_random_direction(centre, random), 1.0) for _ in range(_RANDOM)]
            for direction, reach in directions:
                step = radius * reach * problem.norm / norm_of(direction)
                constraints.move_to({n: p + step * direction[n] for n, p in centre.items()})
                columns.enter(Gradients.concatenate(list(constraints.gradients(near))), residual)
            columns.solve()
            patience = 0 if columns.epsilon < best * (1 - _PROGRESS) else patience + 1
            best = min(best, columns.epsilon)
            if patience == _PATIENCE:
                break
    finally:
        constraints.move_to(centre)
    return best


def kink_share(
    problem: Problem, chosen: Chosen, weights: torch.Tensor, radius: float
) -> float | None:
    """Of the pre-activations z of ReLUs on the samples with positive multipliers, the share with
    |z| at most radius times the root mean square of its layer: those that a change of the
    parameters by that share can turn. None for a net without ReLUs.
    """
    near = total = 0
    samples = torch.unique(chosen.samples[weights > 0])
    for z in problem.constraints.preactivations(samples):
        near += int((z.abs() <= radius * z.square().mean().sqrt()).sum())
        total += z.numel()
    return near / total if total else None


class _Columns:
    """Gradients at various points, with their inner products and multipliers."""

    def __init__(self, problem: Problem, gradients: Gradients):
        self._problem = problem
        self._gradients = gradients
        self._gram = gradients.inner(gradients).cpu().numpy()
        self._linear = gradients.along(problem.target).cpu().numpy()
        self._weights = np.zeros(0)
        self.solve()

    def enter(self, gradients: Gradients, residual: Vector) -> None:
        """Take in those that would lower epsilon most."""
        slopes = gradients.along(residual)
        order = torch.argsort(slopes, descending=True)[:_ENTERING]
        new = gradients[order[slopes[order] > 1e-9 * norm_of(residual) * self._problem.norm]]
        if len(new):
            across = self._gradients.inner(new).cpu().numpy()
            self._gram = np.block([[self._gram, across], [across.T, new.inner(new).cpu().numpy()]])
            self._linear = np.append(self._linear, new.along(self._problem.target).cpu().numpy())
            self._gradients = Gradients.concatenate([self._gradients, new])
            self._weights = np.append(self._weights, np.zeros(len(new)))

    def solve(self) -> None:
        """The best multipliers; columns without one are dropped where there are many."""
        self._gram = (self._gram + self._gram.T) / 2
        self._weights = multipliers(self._gram, self._linear, exact=False)
        self.epsilon = norm_of(self.residual())
        if len(self._weights) > _COLUMNS:
            kept = np.flatnonzero(self._weights > 0)
            self._gradients = self._gradients[
                torch.from_numpy(kept).to(self._gradients.rows.device)
            ]
            self._gram, self._linear, self._weights = (
                self._gram[np.ix_(kept, kept)],
                self._linear[kept],
                self._weights[kept],
            )

    def residual(self) -> Vector:
        """theta~ minus the combination of the columns, in float64."""
        weights = torch.from_numpy(self._weights).to(self._gradients.rows.device)
        return self._problem.residual(self._gradients.combination(weights, self._problem.target))


def _random_direction(like: Vector, random: torch.Generator) -> Vector:
    return {
        n: torch.randn(p.shape, generator=random, dtype=p.dtype).to(p.device)
        for n, p in like.items()
    }

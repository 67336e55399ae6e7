"""Epsilon in the sense of Dutta et al. (2013): gradients from anywhere within a radius of theta~.

At a kink a constraint has a set of subgradients, the hull of the gradients around it. The columns
of the least squares problem are then pairs of a constraint and a point; those that lower epsilon
have a positive inner product with the residual r. Points on both sides of theta~ along r put units
near a kink on the side that r asks for; random points add the rest. Every column is a gradient at a
real point, so that epsilon is attained, though perhaps not the smallest.
"""

import math
from typing import NamedTuple

import numpy as np
import torch

from ..core.arguments import check_number
from ..core.devices import draw_normal
from ..core.progress import Progress
from ..nets.gradients import Gradients
from ..result import Status
from .constraint_subset import ConstraintSubset
from .multipliers import multipliers
from .problem import Problem, norm_of
from .slopes import Vector

_MOST_CONSTRAINTS = 1200
"""Constraints whose gradients are computed at every point: each round does so at eight points."""
_NEAR_MARGIN = 0.02
"""Constraints without a multiplier take part where s - 1 is at most this: with other gradients they
may get one, and delta stays small.
"""
_STEP_SHARES = (1.0, -1.0, 0.3, -0.3, 0.1, -0.1)
"""Steps along the residual, in radii, to both sides: kinks lie at different distances. More points
would cost a pass over the constraints each.
"""
_RANDOM_DIRECTIONS = 2
"""Random points of each round, for kinks that steps along the residual do not cross."""
_ENTERING_COLUMNS = 80
"""Columns that enter at each point, the best ones: more make the least squares problem larger with
columns that soon have no multiplier.
"""
_MOST_COLUMNS = 1600
"""Columns beyond which those without a multiplier go, to bound memory and least squares."""
_ROUNDS = 12
"""Rounds at most; epsilon falls most in the first few."""
_LEAST_PROGRESS = 0.03
"""A round that lowers epsilon by less than this share counts as one without progress, ..."""
_PATIENCE = 2
"""... and after so many of them in a row the search ends: random points may help the next time."""
_NEGLIGIBLE_SLOPE = 1e-9
"""Columns whose cosine with the residual is less, relative to ||theta~||, gain only rounding."""


def check_radius(radius: float) -> float:
    """The radius, a share of ||theta~||: from 1 on it reaches 0, the kink of all units at once."""
    return check_number("radius, a share of the norm of the weights,", radius, at_least=0, below=1)


class WithinRadius(NamedTuple):
    """What gradients within the radius gave; Ctrl-C may have come before there were any."""

    epsilon: float  # the smallest one, attained; infinite without columns
    delta: float  # of its multipliers, those of one constraint added up
    near: ConstraintSubset  # the constraints that took part
    columns: "Columns | None"
    status: Status


def within_radius(
    problem: Problem,
    chosen: ConstraintSubset,
    weights: torch.Tensor,
    *,
    radius: float,
    seed: int,
    display: Progress,
) -> WithinRadius:
    """The smallest epsilon over gradients within radius ||theta~||, by the weights of `chosen`."""
    constraints, centre = problem.constraints, problem.constraints.point
    values = constraints.values_of(chosen)
    merit = torch.where(
        (weights > 0) | (values <= 1 + _NEAR_MARGIN), weights / weights.max() - values, -math.inf
    )
    near = ConstraintSubset(chosen.samples, chosen.classes, merit).best(
        min(_MOST_CONSTRAINTS, int(torch.isfinite(merit).sum()))
    )
    # Every round adds gradients at points on both sides of theta~ and solves for multipliers again,
    # to 1e-6 only, as epsilon is recomputed from them.
    random = torch.Generator().manual_seed(seed)
    best, patience, columns = (math.inf, math.inf), 0, None
    excess = (constraints.values_of(near) - 1).cpu().numpy()
    try:
        columns = Columns(problem, Gradients.concatenate(list(constraints.gradients(near))))
        best = columns.epsilon, columns.delta(excess)
        for number in range(_ROUNDS):
            line = f"gradients within the radius, epsilon / norm {best[0] / problem.norm:.3g}"
            display.draw(number, _ROUNDS - number, line)
            residual = columns.residual()
            directions = [(residual, share) for share in _STEP_SHARES]
            for _ in range(_RANDOM_DIRECTIONS):
                drawn = {name: draw_normal(p, random) for name, p in centre.items()}
                directions.append((drawn, 1.0))
            for direction, share in directions:
                step = radius * share * problem.norm / norm_of(direction)
                constraints.move_to({n: p + step * direction[n] for n, p in centre.items()})
                columns.enter(Gradients.concatenate(list(constraints.gradients(near))), residual)
            columns.solve()
            patience = 0 if columns.epsilon < best[0] * (1 - _LEAST_PROGRESS) else patience + 1
            best = min(best, (columns.epsilon, columns.delta(excess)))
            if patience == _PATIENCE:
                break
    except KeyboardInterrupt:
        return WithinRadius(*best, near, columns, Status.INTERRUPTED)
    finally:
        constraints.move_to(centre)
    return WithinRadius(*best, near, columns, Status.FINISHED)


def kink_share(
    problem: Problem, chosen: ConstraintSubset, weights: torch.Tensor, radius: float
) -> float | None:
    """The share of inputs z of ReLUs with |z| at most radius times their layer's rms, or None."""
    near = total = 0
    samples = torch.unique(chosen.samples[weights > 0])
    for z in problem.constraints.preactivations(samples):
        near += int((z.abs() <= radius * z.square().mean().sqrt()).sum())
        total += z.numel()
    return near / total if total else None


class Columns:
    """Gradients at various points, those at theta~ first, with inner products and multipliers."""

    def __init__(self, problem: Problem, gradients: Gradients) -> None:
        self._problem = problem
        self._gradients, self._owners = gradients, np.arange(len(gradients))
        self._gram = gradients.inner(gradients).cpu().numpy()
        self._linear = gradients.along(problem.target).cpu().numpy()
        self.solve()

    def enter(self, gradients: Gradients, residual: Vector) -> None:
        """Add the gradients that would lower epsilon most."""
        slopes = gradients.along(residual)
        order = torch.argsort(slopes, descending=True)[:_ENTERING_COLUMNS]
        order = order[slopes[order] > _NEGLIGIBLE_SLOPE * norm_of(residual) * self._problem.norm]
        new = gradients[order]
        if len(new):
            across = self._gradients.inner(new).cpu().numpy()
            self._gram = np.block([[self._gram, across], [across.T, new.inner(new).cpu().numpy()]])
            self._linear = np.append(self._linear, new.along(self._problem.target).cpu().numpy())
            self._gradients = Gradients.concatenate([self._gradients, new])
            self._owners = np.append(self._owners, order.cpu().numpy())

    def solve(self) -> None:
        """Find the best multipliers, and drop columns without one where there are many."""
        self._gram = (self._gram + self._gram.T) / 2
        self._weights = multipliers(self._gram, self._linear, exact=False)
        self.epsilon = norm_of(self.residual())
        if len(self._weights) > _MOST_COLUMNS:
            first = np.arange(len(self._weights)) <= self._owners.max()
            kept = np.flatnonzero((self._weights > 0) | first)
            rows = torch.from_numpy(kept).to(self._gradients.rows.device)
            self._gradients, self._gram = self._gradients[rows], self._gram[np.ix_(kept, kept)]
            self._linear, self._weights = self._linear[kept], self._weights[kept]
            self._owners = self._owners[kept]

    def delta(self, excess: np.ndarray) -> float:
        """The largest product of a constraint's multipliers, added up, and its s - 1, (K,)."""
        return float((np.bincount(self._owners, self._weights, len(excess)) * excess).max())

    def averages(self) -> tuple[np.ndarray, np.ndarray]:
        """Averages of gradients by multipliers: their inner products, and those with theta~."""
        count = len(self._weights)  # where Ctrl-C came, more columns may have entered
        shares = np.zeros((self._owners.max() + 1, count))
        shares[self._owners[:count], np.arange(count)] = self._weights
        without = np.flatnonzero(shares.sum(1) == 0)
        shares[without, without] = 1.0
        shares /= shares.sum(1, keepdims=True)
        return shares @ self._gram[:count, :count] @ shares.T, shares @ self._linear[:count]

    def residual(self) -> Vector:
        """Compute theta~ minus the combination of the columns, in float64."""
        weights = torch.from_numpy(self._weights).to(self._gradients.rows.device)
        return self._problem.residual(
            weights, lambda p: self._gradients.combination(p, self._problem.target)
        )

"""The smallest epsilon over multipliers of all constraints, by bringing in those that matter."""

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..core.matrices import EPS
from ..core.progress import Progress
from ..errors import ModelError
from ..nets.gradients import StoredGradients
from ..nets.shared import join_shares
from ..result import Status
from .certificate import Completeness
from .constraint_subset import ConstraintSubset
from .multipliers import multipliers
from .problem import Problem, inner_product, norm_of, require_in_range
from .rounding import CLOSE, DRAWS, Reach, draw_changes
from .slopes import Slopes, Vector

_INITIAL_CONSTRAINTS = 800
"""Constraints nearest to the margin, taken first: more make the first least squares problem larger,
fewer cost more passes over all samples later.
"""
_GROWTH_FACTOR = 2
"""The set of constraints grows at most by this factor at each pass over all samples: passes are the
larger cost, so that few are wanted.
"""
_EULER_TOLERANCE = 1e-6
"""Relative difference between <theta, grad s> and L s that counts as rounding; a wrong gradient or
order differs far more.
"""
_NEGLIGIBLE_SHARE = 1e-10
"""Multipliers whose gradients, multiplied by them, are shorter than this share of ||theta~|| are
set to 0: they are the solver's rounding, and would make samples look like support. Epsilon is
recomputed without them, and differs by no more than their sum.
"""
_MARGIN_WINDOWS = (1e-6, 1e-4, 1e-2, 0.1)
"""Widths s - 1 of the windows tried, narrowest first, where multipliers are not unique: delta is
about proportional to the width used.
"""
_OBJECTIVE_TIE = 1e-15
"""Two objectives that differ by less, relative to ||theta~||^2, are the same up to float64."""


class BestMultipliers(NamedTuple):
    """The multipliers found, (K,), with what is recomputed of them in float64."""

    epsilon: float
    delta: float
    multipliers: Tensor
    completeness: Completeness


class ConstraintSearch:
    """Grows a set of constraints until those left out are proved not to matter.

    tol, most : the relative gap at which to end; how many constraints may take part.
    chosen, gram, values : those that take part, with their inner products and s at theta~.
    multipliers, lower : the best ones, (K,); the proved lower bound of epsilon over all.
    """

    def __init__(self, problem: Problem, tol: float, most: int, display: Progress) -> None:
        self._problem, self._tol, self._most = problem, tol, most
        self.lower = 0.0
        # Of samples differentiated: how many are done, and how many are expected in all.
        self._display, self._done, self._expected = display, 0, 0
        self._line = "its first constraints"
        # Without constraints epsilon is the norm: what is known until the first are solved for.
        none = torch.empty(0, dtype=torch.int64, device=next(iter(problem.target.values())).device)
        self.chosen = ConstraintSubset(none, none, none.double())
        self.gram, self.values, self.multipliers = np.zeros((0, 0)), np.zeros(0), none.double()

    def run(self) -> Status:
        """Search to the end, or to Ctrl-C, which leaves everything as the last solution left it."""
        self._problem.constraints.report_to(self._advance)
        try:
            self._search()
            self._prefer_near()
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        finally:
            self._problem.constraints.report_to(lambda samples: None)
        return Status.FINISHED

    def _advance(self, samples: int) -> None:
        """Show that so many samples more were differentiated."""
        self._done += samples
        left = self._expected - self._done
        self._display.draw(self._done, left if left > 0 else None, self._line)

    def _expect(self, residual: Vector) -> None:
        """Say how far the search is, and how much is left if the largest set is needed."""
        chosen, count = len(self.chosen), self._problem.constraints.count
        epsilon = norm_of(residual) / self._problem.norm
        self._line = f"{chosen:,} of {count:,} constraints, epsilon / norm {epsilon:.3g}"
        most = min(self._most, count)
        passes = math.ceil(math.log(most / chosen, _GROWTH_FACTOR)) + 1
        n = self._problem.report.n
        # To prove the bound takes one pass more with numbers that are off, and several near it.
        proving = n + (1 + DRAWS) * min(n, CLOSE)
        self._expected = self._done + most - chosen + passes * n + proving

    def _search(self) -> None:
        """Search until epsilon is proved within the tolerance, or no more constraints may enter."""
        problem, constraints = self._problem, self._problem.constraints
        first = min(_INITIAL_CONSTRAINTS, self._most)
        # No other samples can hold one of the `first` smallest gaps.
        nearest = torch.argsort(problem.report.q, stable=True)[:first]
        self._begin(constraints.smallest(nearest, first))
        while True:
            residual = problem.residual(
                self.multipliers, lambda p: self._gradients.combination(p, problem.target)
            )
            self._expect(residual)
            if len(self.chosen) == constraints.count:
                self.lower, _ = self._bound(residual)
                return
            # Choose by a cheap pass in float32; only when it finds nothing to gain, or no room is
            # left, prove the bound by a pass in float64.
            full = len(self.chosen) >= self._most
            if not full:
                likely, entering = self._bound(residual, torch.float32)
                grown = self.chosen.union(entering)
                full = (
                    len(grown) == len(self.chosen)
                    or norm_of(residual) - likely <= self._tol * problem.norm
                )
            if full:
                self.lower, entering = self._bound(residual)
                grown = self.chosen.union(entering)
                proved = norm_of(residual) - self.lower <= self._tol * problem.norm
                if proved or len(grown) == len(self.chosen) or len(self.chosen) >= self._most:
                    return
            room = min(self._most, _GROWTH_FACTOR * len(self.chosen))
            self._extend(
                ConstraintSubset(*(part[len(self.chosen) : room] for part in vars(grown).values()))
            )

    def recompute(self) -> BestMultipliers:
        """Epsilon, delta and completeness of the multipliers, negligible ones set to 0."""
        problem, p = self._problem, self.multipliers
        if not len(p):
            return BestMultipliers(problem.norm, 0.0, p, Completeness.OPEN)
        # Lengths of gradients differ as much as those of inputs do: a multiplier alone says little.
        lengths = torch.from_numpy(np.sqrt(np.maximum(np.diag(self.gram), 0.0))).to(p.device)
        p = torch.where(p * lengths > _NEGLIGIBLE_SHARE * problem.norm, p, 0.0)
        residual = problem.residual(
            p, lambda p: problem.constraints.weighted_gradient(self.chosen, p)
        )
        epsilon = norm_of(residual)
        excess = torch.from_numpy(np.maximum(self.values - 1, 0.0)).to(p.device)
        completeness = Completeness.OPEN
        if epsilon - self.lower <= self._tol * problem.norm:
            everything = len(self.chosen) == problem.constraints.count
            completeness = Completeness.ALL if everything else Completeness.PROVED
        return BestMultipliers(epsilon, (p * excess).max().item(), p, completeness)

    def _begin(self, chosen: ConstraintSubset) -> None:
        """Start with some constraints, and hold their gradients against Euler's theorem."""
        constraints = self._problem.constraints
        gradients, values = constraints.gradients(chosen), constraints.values_of(chosen)
        by_euler = self._problem.order * values
        direct = gradients.along(self._problem.target)
        rounding = _EULER_TOLERANCE * self._problem.norm
        if not torch.allclose(direct, by_euler, rtol=_EULER_TOLERANCE, atol=rounding):
            worst = int((direct - by_euler).abs().argmax())
            raise ModelError(
                f"Euler's theorem fails: <theta, grad s> = {direct[worst].item():.9g} but L s ="
                f" {by_euler[worst].item():.9g}. The gradients of the model are not those of its"
                " outputs (a detached or custom operation), or it is not homogeneous: the eps of"
                " normalization layers counts where their inputs are small."
            )
        self._solve(chosen, gradients, gradients.inner().cpu().numpy(), values.cpu().numpy())

    def _extend(self, new: ConstraintSubset) -> None:
        """Add constraints that are not among those that take part."""
        constraints = self._problem.constraints
        entering = constraints.gradients(new)
        across = self._gradients.inner(entering).cpu().numpy()
        gram = np.block([[self.gram, across], [across.T, entering.inner().cpu().numpy()]])
        values = np.append(self.values, constraints.values_of(new).cpu().numpy())
        self._solve(self.chosen.union(new), self._gradients.joined(entering), gram, values)

    def _solve(
        self, chosen: ConstraintSubset, gradients: StoredGradients, gram: np.ndarray, values: Any
    ) -> None:
        """Find the best multipliers of some constraints, which take part from now on."""
        require_in_range(float(np.diag(gram).max()), self._problem.constraints.scored)
        gram = (gram + gram.T) / 2  # exact symmetry, which rounding broke
        p = torch.from_numpy(multipliers(gram, self._problem.order * values))
        p = p.to(chosen.samples.device)
        found = chosen, gradients, gram, values, p
        # In one assignment, so that Ctrl-C finds all of them old or all of them new.
        self.chosen, self._gradients, self.gram, self.values, self.multipliers = found

    def _prefer_near(self) -> None:
        """Use constraints near the margin only, where that gives the same epsilon."""
        linear, p = self._problem.order * self.values, self.multipliers.cpu().numpy()
        value = 0.5 * p @ (self.gram @ p) - linear @ p
        for window in _MARGIN_WINDOWS:
            near = np.flatnonzero(self.values <= 1 + window)
            if len(near) and self.values[p > 0].max() > 1 + window:
                gram = self.gram[np.ix_(near, near)]
                few = multipliers(gram, linear[near])
                here = 0.5 * few @ (gram @ few) - linear[near] @ few
                if here <= value + _OBJECTIVE_TIE * self._problem.norm**2:
                    p = np.zeros(len(p))
                    p[near] = few
                    self.multipliers = torch.from_numpy(p).to(self.multipliers.device)
                    return

    def _bound(
        self, residual: Vector, dtype: torch.dtype = torch.float64
    ) -> tuple[float, ConstraintSubset]:
        """Bound epsilon from below, proved in float64, and find the constraints to gain most by."""
        problem, constraints = self._problem, self._problem.constraints
        proving = dtype == torch.float64
        none = torch.empty(0, device="cpu")
        reaches = [Reach(none.long(), none.double(), none.double(), 0.0)]

        def ratios(
            source: torch.Generator | None, samples: Tensor | None = None
        ) -> Iterator[tuple[Slopes, Tensor]]:
            for part in constraints.slopes(residual, dtype, source, samples):
                gaps, finite = part.gaps, torch.isfinite(part.gaps)
                ratio = torch.where(finite, part.slopes / (problem.order * gaps), -math.inf)
                # Every sample has gaps to all classes that it is offered but its own: more infinite
                # ones overflowed.
                absent = constraints.absent[part.samples if samples is None else samples].sum()
                least = len(gaps) * max(gaps.shape[1] - 1, 1) - absent
                if finite.sum() < least or ratio.isnan().any():
                    ratio = torch.full_like(ratio, math.inf)
                yield part, ratio

        def reach_of(samples: Tensor, part: Slopes, ratio: Tensor, others: list[Any]) -> Reach:
            scales = problem.term_sizes[samples.to(ratio.device)][:, None]
            sizes = part.slope_sizes / problem.order + ratio.abs() * part.score_sizes
            again = [other for _, other in others]
            return Reach.of(samples, ratio, again, scales / part.gaps, sizes / part.gaps)

        def merits() -> Iterator[tuple[slice, Tensor]]:
            again = draw_changes(1) if proving else ()
            for (part, ratio), *others in zip(ratios(None), *map(ratios, again), strict=True):
                samples = torch.arange(part.samples.start, part.samples.stop, device="cpu")
                reaches.append(reach_of(samples, part, ratio, others))
                yield part.samples, torch.where(ratio > 0, ratio, -math.inf)

        found = join_shares(lambda: (constraints.best(merits(), self._most), Reach.joined(reaches)))
        reach = Reach.joined([part for _, part in found])
        if proving:
            near = reach.samples[torch.argsort(reach.ends(), descending=True, stable=True)[:CLOSE]]
            for close in near.split(constraints.batch_size):
                (part, ratio), *others = (
                    next(ratios(source, close)) for source in (None, *draw_changes(DRAWS))
                )
                reach = Reach.joined([reach, reach_of(close, part, ratio, others)])
        worst = max(reach.ends().max().item(), 0.0)
        entering = functools.reduce(ConstraintSubset.union, (best for best, _ in found))
        entering = entering.best(self._most)
        # <r - tau theta~, h> <= 0 for all constraint gradients h, tau = worst: so the cone lies in
        # a half-space, and its distance from theta~ is at least that of the half-space. Sums of n
        # products are off by at most n roundings of their terms.
        square = problem.norm * problem.norm
        inner, length = inner_product(problem.target, residual), norm_of(residual) ** 2
        rounding = EPS * (8 + sum(p.numel() for p in residual.values()))
        above = inner - worst * square
        above -= rounding * (math.sqrt(length * square) + 2 * worst * square)
        below = length - 2 * worst * inner + worst**2 * square
        below += rounding * (math.sqrt(length) + worst * problem.norm) ** 2
        return (above / math.sqrt(below) if above > 0 and below > 0 else 0.0), entering

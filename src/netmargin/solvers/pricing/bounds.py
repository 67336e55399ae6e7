"""Proved pricing: the arrangement at low rank, branch and bound or a relaxation elsewhere."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...core.matrices import floor_to_powers, split_lengths
from ..neurons.activations import Activation
from .arrangement import MAX_RANK, Arrangement
from .best_directions import Pricing
from .branch_and_bound import ActivationBranchAndBound
from .rays import Rays, as_relu_sum, bound_rounding
from .relaxation import bound_by_relaxation

_MAX_ARCS = 2_000_000
"""Arcs of an arrangement that "auto" still visits: about half a minute and a few hundred MB."""
_AUTO_WORK = 1e9
"""Work of "auto" in branch and bound without a time limit, in `work_per_node`: some seconds."""
QUICK_WORK = 5e7
"""Work between two looks at the clock, part of a second; also what a first attempt may take."""
BY_RELAXATION = "a relaxation"
"""How a bound was proved, in words."""
WORK_PER_SECOND = 2e8
"""About how much of it one core does."""
_TINY = 1e-307
"""Terms below that are lost to underflow, as the allowance for rounding knows."""
_PART_OF_TOLERANCE = 0.25
"""Branch and bound closes nodes within this part of the tolerance: the rest is for the margin."""


class PricingBound:
    """Upper bounds of max_u |sum_i c_i phi(u . z_i)| over points Z (n, D) for many c, and neurons
    of large value, to the deadline (time.monotonic); `pricing` says how much is proved, as in
    `f1_max_margin`. Bounds are sharp where they are `exact`: the whole arrangement is visited.
    """

    def __init__(
        self, Z: np.ndarray, activation: Activation, pricing: str, deadline: float
    ) -> None:
        self._Z, self._activation, self._pricing, self._deadline = Z, activation, pricing, deadline
        self._work_left = _AUTO_WORK if pricing == "auto" and deadline == np.inf else np.inf
        # Whether the last search was of use in the time it had.
        self._quick = True
        self._lengths, units = split_lengths(Z)
        rank = np.linalg.matrix_rank(units)
        affordable = len(Z) ** max(rank - 1, 1) <= _MAX_ARCS
        self.exact = bool(
            rank <= MAX_RANK and (pricing == "complete" or (pricing == "auto" and affordable))
        )

    @cached_property
    def _rays(self) -> Rays:
        """The distinct directions of the points: a product of all of them with each other."""
        return Rays(self._Z, self._activation.power)

    @cached_property
    def _arrangement(self) -> Arrangement:
        """The arrangement, which may take half a minute."""
        Z = np.concatenate([self._Z, -self._Z]) if self._activation.slope else self._Z
        return Arrangement(Z, self._activation.power, self._deadline)

    def price_neurons(
        self,
        c: np.ndarray,
        *,
        floor: float,
        found: float,
        tol: float,
        count: int,
        work: float = np.inf,
        near: float = 0.0,
        report: Callable[[float], None] = lambda upper: None,
    ) -> Pricing:
        """Find up to `count` directions and an upper bound, sharp to floor (1 + tol / 4) at most.

        Branch and bound does so much work, or goes on as long as its bound is below `near`, if
        pricing and deadline allow it. It ends early when it finds more than `found`, the best that
        search knew: adding that neuron helps more than a sharper bound without it. The arrangement
        is visited whole, or TimeoutError raised at the deadline.
        """
        unit = self._choose_unit(c)
        c, floor, found, near = c / unit, floor / unit, found / unit, near / unit
        if self.exact:
            slope = self._activation.slope
            # phi(t) = relu(t) - slope relu(-t), whose opposite points share their hyperplanes.
            c = np.concatenate([c, -slope * c]) if slope else c
            found_all = self._arrangement.price_neurons(c, count=count)
            values, upper = unit * found_all.values, unit * found_all.upper_bound
            return replace(found_all, values=values, upper_bound=upper)
        upper, proof = self.relax(c), BY_RELAXATION
        hopeless = self._work_left <= 0 or (work <= QUICK_WORK and not self._quick)
        # Branch and bound is for sums of ReLU: for squares the relaxation is all there is.
        if self._pricing == "local" or self._activation.power == 2 or hopeless:
            nothing = np.zeros((0, self._Z.shape[1])), np.zeros(0)
            return Pricing(*nothing, unit * upper, proof)
        terms = as_relu_sum(self._rays.directions, self._rays.merge(c), self._activation)
        tree = ActivationBranchAndBound(*terms, floor=floor, tol=_PART_OF_TOLERANCE * tol)
        lost = self._lost(c)
        done = 0.0
        while (
            not tree.finished
            and self._work_left > 0
            and (done < work or upper < near)
            and time.monotonic() < self._deadline
        ):
            tree.grow(nodes=QUICK_WORK / tree.work_per_node, deadline=self._deadline)
            self._work_left -= QUICK_WORK
            done += QUICK_WORK
            bound = tree.upper_bound() + lost
            if bound < upper:
                upper, proof = bound, f"{tree.nodes:,} nodes"
            report(unit * upper)
            if tree.best > max(found, floor) * (1 + 0.5 * tol):
                break
        self._quick = tree.finished or tree.best > found
        directions, values = tree.result()
        return Pricing(directions[:count], unit * values[:count], unit * upper, proof)

    def largest_response(self, c: np.ndarray, found: float = 0.0) -> float:
        """The proved largest value, where the whole arrangement is visited; `found` is attained."""
        # Rounding may leave the bound below what is attained.
        priced = self.price_neurons(c, floor=0.0, found=found, tol=0.5, count=1)
        return max(found, priced.upper_bound)

    def _choose_unit(self, c: np.ndarray) -> float:
        """The power of 2 below the largest |c_i| |z_i|^power: squares of tiny sums are lost."""
        largest = float((np.abs(c) * self._lengths**self._activation.power).max())
        return float(floor_to_powers(largest)) if largest > _TINY else 1.0

    def relax(self, c: np.ndarray) -> float:
        """A proved bound for prices c (n,) at once, by the quadratic relaxation."""
        unit = self._choose_unit(c)
        c = c / unit
        bound = bound_by_relaxation(self._rays.directions, self._rays.merge(c), self._activation)
        return unit * (bound + self._lost(c))

    def _lost(self, c: np.ndarray) -> float:
        """The most that rounding and rays that are nearly parallel take off a bound."""
        moved = self._activation.largest * self._rays.neglected(c)
        return moved + bound_rounding(c, self._Z, self._activation)

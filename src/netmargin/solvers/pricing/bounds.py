"""Proved pricing: the arrangement for points of low rank, branch and bound or a relaxation
elsewhere.
"""

import time
from collections.abc import Callable
from functools import cached_property

import numpy as np

from .arrangement import MAX_RANK, Arrangement, Pricing
from .branch_and_bound import SignTree
from .local import distinct
from .rays import Rays
from .relaxation import relaxed_bound

_MAX_ARCS = 2_000_000
_AUTO_WORK = 1e9
_MOMENT_OF_WORK = 5e7


class Prover:
    """Upper bounds of max_u |sum_i c_i relu(u . z_i)^power| for many c, and neurons of large value.

    exact : whether the whole arrangement is visited. pricing and deadline are those of
        `f1_max_margin`.
    """

    def __init__(self, Z: np.ndarray, power: int, pricing: str, deadline: float):
        self._Z, self._power, self._pricing, self._deadline = Z, power, pricing, deadline
        self._work_left = _AUTO_WORK if pricing == "auto" and deadline == np.inf else np.inf
        self._quick = True  # whether the last search was of use in the time it had
        rank = np.linalg.matrix_rank(Z)
        affordable = len(Z) ** max(rank - 1, 1) <= _MAX_ARCS
        self.exact = bool(
            rank <= MAX_RANK and (pricing == "complete" or (pricing == "auto" and affordable))
        )
        self._rays = Rays(Z, power)

    @cached_property
    def _arrangement(self) -> Arrangement:
        return Arrangement(self._Z, self._power, self._deadline)

    def price(
        self,
        c: np.ndarray,
        *,
        floor: float,
        found: float,
        tol: float,
        count: int,
        thoroughly: bool,
        report: Callable[[float], None],
    ) -> Pricing:
        """Up to `count` directions and an upper bound, which need not be sharper than floor (1 +
        tol / 4).

        Branch and bound runs for a moment, or thoroughly as far as pricing and deadline allow
        ("auto" without a deadline: some seconds in all), and ends early when it finds more than
        `found`, the best that search knew: adding that neuron helps more than a sharper bound
        without it. The arrangement is visited whole, or TimeoutError raised at the deadline.
        """
        if self.exact:
            return self._arrangement.price(c, count=count)
        upper = self.relaxed(c)
        hopeless = self._work_left <= 0 or (not thoroughly and not self._quick)
        if self._pricing == "local" or self._power == 2 or hopeless:
            return Pricing(np.zeros((0, self._rays.directions.shape[1])), np.zeros(0), upper)
        tree = SignTree(self._rays.directions, self._rays.merge(c), floor=floor, tol=0.25 * tol)
        moments = 0
        while (
            not tree.finished
            and self._work_left > 0
            and (thoroughly or not moments)
            and time.monotonic() < self._deadline
        ):
            tree.grow(nodes=_MOMENT_OF_WORK / tree.work_per_node, deadline=self._deadline)
            self._work_left -= _MOMENT_OF_WORK
            moments += 1
            upper = min(upper, tree.upper_bound() + self._rays.neglected(c))
            report(upper)
            if tree.best > max(found, floor) * (1 + 0.5 * tol):
                break
        self._quick = tree.finished or tree.best > found
        return Pricing(*distinct(tree.directions, tree.values, count), upper)

    def relaxed(self, c: np.ndarray) -> float:
        """A bound at once."""
        bound = relaxed_bound(self._rays.directions, self._rays.merge(c), self._power)
        return bound + self._rays.neglected(c) + self._rays.round_off(c)

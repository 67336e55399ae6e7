"""What all problems over neurons share: the search at prices, and how a proof is begun."""

import time
from collections.abc import Callable

import numpy as np

from ..neurons.search import draw_starts, search_neurons
from ..pricing.best_directions import Pricing
from ..pricing.bounds import WORK_PER_SECOND, PricingBound
from .options import Options

COLUMNS_PER_ROUND = 32
"""Neurons added per round: more save rounds, but make the restricted problem larger."""
_SEARCH_SHARE = 1 / 5
"""Share of a time limit for the search, before a proof at any cost."""
_LEAST_WORK, _MOST_WORK, _WORK_SHARE = 1.5e8, 3e8, 0.1
"""Work of the tree at the best dual weights before falling targets are tried: about a second, and
this share of the time that is left.
"""
_NEAR = 1.35
"""The ratio of a bound to what is attained below which the tree at the best dual weights goes on
instead. In some seconds it proves 60 normal points in 8 dimensions to 1%, and targets to 10%; of
100 points in 10 dimensions it leaves a factor of 2.4, and targets one of 1.3.
"""


class NeuronSearch:
    """The search over samples Z (n, D) for unit neurons u of large value |sum_i c_i phi(u . z_i)|
    at prices c (n,); the `recent` ones (k, D) were found last.
    """

    def __init__(self, Z: np.ndarray, options: Options) -> None:
        self.Z, self.activation, self.options = Z, options.activation, options
        self.tol, self.deadline = options.tol, options.deadline
        self.random = np.random.default_rng(options.seed)
        self.pricing = PricingBound(Z, self.activation, options.pricing, options.deadline)
        # Whether a proof visits every neuron, and whether it goes on until it is done.
        self.exact = self.pricing.exact
        self.endless = options.pricing == "complete" and options.deadline == np.inf
        # Whether bounds that stay open are improved by targets that fall.
        hard = bool(self.activation.kink) and not self.exact
        self.by_targets = hard and options.pricing != "local"
        self.recent = np.zeros((0, Z.shape[1]))
        self.restart_clock()

    def restart_clock(self) -> None:
        """Let a new search begin: it has a share of the time, or all where nothing is proved."""
        now, share = time.monotonic(), 1.0 if self.options.pricing == "local" else _SEARCH_SHARE
        self._search_ends = now + share * (self.deadline - now)

    @property
    def is_late(self) -> bool:
        """Whether search has had its share of the time, so that a proof is due."""
        return time.monotonic() > self._search_ends

    def find_neurons(
        self, c: np.ndarray, known: np.ndarray, *, samples: int, normal: int, count: int
    ) -> float:
        """Keep `count` neurons from known, recent and drawn starts; returns the largest value."""
        drawn = draw_starts(self.Z, self.random, samples=samples, normal=normal)
        starts = np.concatenate([known, self.recent, drawn])
        self.recent, values = search_neurons(
            self.Z, c, starts, count=count, activation=self.activation, deadline=self.deadline
        )
        return float(np.abs(values).max(initial=0.0))

    def bound_neurons(
        self,
        c: np.ndarray,
        *,
        floor: float,
        found: float,
        attained: float,
        work: float | None = None,
        report: Callable[[float], None] = lambda upper: None,
    ) -> Pricing:
        """Bound the value of all neurons, as `PricingBound.price_neurons`. Where targets follow,
        that takes a second or so, or goes on until the bound is near what is `attained`.
        """
        if work is None and self.by_targets:
            share = _WORK_SHARE * (self.deadline - time.monotonic()) * WORK_PER_SECOND
            work = min(_MOST_WORK, max(_LEAST_WORK, share))
        return self.pricing.price_neurons(
            c,
            floor=floor,
            found=found,
            tol=self.tol,
            count=COLUMNS_PER_ROUND,
            work=np.inf if work is None else work,
            near=_NEAR * attained,
            report=report,
        )

    def targets_pay(self, upper: float, attained: float) -> bool:
        """Whether a bound is so far from the value that is attained that targets improve it."""
        return self.by_targets and upper > _NEAR * attained

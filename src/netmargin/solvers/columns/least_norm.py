"""Interpolation as a problem of column generation: the least sum |alpha_j| at which neurons take
given values, 1 / t of `MarginProblem`, in units of unit-norm samples and of the largest target.
"""

from dataclasses import replace

import numpy as np

from .dual_search import STARTS
from .margin_problem import MarginProblem
from .options import Options
from .restricted_norm import RestrictedNorm

_ROUNDING, _PART_OF_TOLERANCE = 7.5e-7, 0.25
"""What the tolerance leaves for the rounding of the function that is found (`bound_exactly`; 6e-7
where samples are 1e-10 apart), and the part of it with which the search ends at least.
"""
_CHEAP_ARCS = 40_000
"""Arcs of the arrangement that are priced in milliseconds: in the plane up to 200 samples."""


class LeastNormProblem(MarginProblem):
    """For distinct unit rows Z (n, D) and values `target` (n,), the largest of absolute value 1."""

    restricted: RestrictedNorm
    zero_margin = 0.0  # whatever the norm, it is finite
    drawn = 1000, 64  # more would take the first linear program longer than they save
    centre_weight = 0.0  # slacks keep dual weights from jumping; halfway takes twice the rounds
    many = 3  # as many neurons as samples are needed, and each of them saves rounds

    def __init__(self, Z: np.ndarray, target: np.ndarray, options: Options) -> None:
        tol = max(options.tol - _ROUNDING, _PART_OF_TOLERANCE * options.tol)
        super().__init__(RestrictedNorm(Z, target, options.activation), replace(options, tol=tol))
        arcs = len(Z) ** max(np.linalg.matrix_rank(Z) - 1, 1)
        self._cheap = self.exact and arcs <= _CHEAP_ARCS
        self._polishes = self.exact and not self._cheap

    def start(self) -> np.ndarray:
        """Neurons that reach any targets, and those of the margin."""
        self.restricted.fit_bends()
        return super().start()

    def search_at(self, dual: np.ndarray, *, starts: int = STARTS) -> np.ndarray:
        """Neurons by search, and by a cheap proof: each finds maxima that the other misses."""
        found = super().search_at(dual, starts=starts)
        return np.concatenate([found, self.prove_at(dual)]) if self._cheap else found

    def finish(self, *, early: bool) -> None:
        """Take the relaxed bound after an early end."""
        if early:
            super().finish(early=early)

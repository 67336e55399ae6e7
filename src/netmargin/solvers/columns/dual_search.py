"""The search for neurons at dual weights, and what it and proofs tell about the best margin."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.matrices import EPS
from ..neurons.search import search_neurons
from .falling_targets import FallingTargets
from .neuron_search import COLUMNS_PER_ROUND, NeuronSearch
from .options import Options
from .restricted_problem import RestrictedProblem

STARTS, THOROUGH_STARTS = 64, 512
"""Random starts of local search, in a round and where only search tells if a neuron is missing."""
ZERO_MARGIN = 1e-10
"""A bound below this, in units of the largest sample, is 0: the tolerance of the linear program."""
_ABSOLUTE_ROUNDING = 1e-12
"""Added to the first bound, a sum of n weights of order 1, for its rounding."""
_ULPS = 64
"""Ulps of each weight times its target that cover the few quotients which lead to the target, some
for each coordinate, and the products that lead from the bound to the units of the caller.
"""
_DUST = (1e-4, 1e-6, 1e-8, 1e-10)
"""Dual weights below these parts of the largest go if the bound allows it: two digits at a time."""
_TRIMMED_PARTS = (1e-3, 1e-4, 1e-6)
"""Dual weights below these parts of the largest are left out of branch and bound, whose time grows
exponentially with their number, if local search sees no harm in it.
"""


class DualSearch(NeuronSearch):
    """The dual weights of one problem, the neurons that are valuable at them, and their bounds.

    The largest t that is attained is at most `upper`, proved by the weights `dual` (n,), as `proof`
    says. At `centre` (n,), the best weights known, search found no value above `local_upper`.
    """

    zero_margin = ZERO_MARGIN
    many = 1  # how many times as many neurons are added and starts are taken

    def __init__(self, restricted: RestrictedProblem, options: Options) -> None:
        super().__init__(restricted.Z, options)
        self.restricted = restricted
        self.centre = self.dual = restricted.even_dual()
        self.local_upper, self.upper, self.proof = np.inf, np.inf, ""
        # |u . z| is at most 1, so that the sum of the weights is a bound.
        largest = self.activation.largest
        total = largest * (float(np.abs(self.dual).sum()) + _ABSOLUTE_ROUNDING)
        self.offer_bound(self.dual, total, "the sum of the weights")
        self._targets: FallingTargets | None = None
        self._signs = np.ones(len(self.Z))

    @property
    def t(self) -> float:
        """The largest t attained so far."""
        return self.restricted.t

    def coefficients(self, dual: np.ndarray) -> np.ndarray:
        """The coefficients of phi(u . z_i) in the value of a neuron u at these dual weights."""
        return dual * self.restricted.rows.signs

    def search_at(self, dual: np.ndarray, *, starts: int = STARTS) -> np.ndarray:
        """Neurons of large value at these dual weights, found by local search."""
        half, used = self.many * starts // 2, self.restricted.U[self.restricted.weights != 0]
        largest = self.find_neurons(
            self.coefficients(dual),
            used,
            samples=half,
            normal=half,
            count=self.many * COLUMNS_PER_ROUND,
        )
        self.consider_centre(dual, largest)
        return self.recent

    def polish_neurons(self) -> list[np.ndarray]:
        """Neurons moved to the optimum of their cells, and those of large value at its weights."""
        neurons, dual = self.restricted.polish_neurons(self.deadline)
        return [neurons] if dual is None else [neurons, self.search_at(dual)]

    def consider_centre(self, dual: np.ndarray, found: float) -> None:
        """Make dual weights the centre if all values known there, and `found`, are smaller."""
        present = np.abs(self.restricted.A.T @ dual).max(initial=0.0)
        known = max(found, self.restricted.slack_bound(dual), float(present))
        if dual is self.centre:
            self.local_upper = known if self.local_upper == np.inf else max(known, self.local_upper)
        elif known < self.local_upper:
            self.centre, self.local_upper = dual, known

    def is_settled(self) -> bool:
        """Whether no neuron is known that would raise t by more than half the tolerance."""
        return self.local_upper <= max(self.t * (1 + 0.5 * self.tol), self.zero_margin)

    def local_gap(self) -> float:
        """Relative distance of t to the largest value that search found, or to a closer bound."""
        upper = min(self.local_upper, self.upper)
        return max(1 - self.t / upper, 0.0) if upper > 0 else 0.0

    def prove_at(
        self,
        dual: np.ndarray,
        *,
        work: float | None = None,
        report: Callable[[float], None] = lambda upper: None,
    ) -> np.ndarray:
        """Try to improve the proved bound by these dual weights; returns neurons of large value."""
        directions, known = [], self.local_upper
        # Above rank 4 few dual weights are tried first: branch and bound takes less time on them.
        for weights in [dual] if self.exact else [self.trim_dual(dual), dual]:
            found = self.bound_neurons(
                self.coefficients(weights),
                floor=max(self.t, 0.5 * self.zero_margin),
                found=self.local_upper,
                attained=self.t if work is None else 0.0,
                work=work,
                report=report,
            )
            self.offer_bound(weights, found.upper_bound, found.proof)
            directions.append(found.directions)
            self._consider_values(found.directions)
            # A neuron that is valuable at trimmed weights alone says nothing about those before.
            met = np.abs(found.values).max(initial=0.0)
            if met <= known * (1 + 0.5 * self.tol) or self.local_upper > known:
                break
        return np.concatenate(directions)

    def prove_by_targets(self, report: Callable[[str], None]) -> np.ndarray:
        """Lower the proved bound by falling targets; returns the neurons that were met."""
        rows = self.restricted.rows
        if self._targets is None:  # over dual weights of the signs that the best ones have
            self._signs = np.where(self.centre == 0, np.sign(rows.target), np.sign(self.centre))
            self._targets = FallingTargets(
                self.Z,
                self._signs * rows.signs,
                self._signs * rows.target,
                self.options,
                slack_cost=rows.slack_cost,
            )
        self._targets.begin(np.abs(self.centre), self.t, self.restricted.U)
        found = self._targets.improve(
            upper=self.upper,
            lower=self.t,
            tol=self.tol,
            offer=lambda dual, *proof: self.offer_bound(self._signs * dual, *proof),
            report=report,
        )
        self._consider_values(found)
        return found

    def _consider_values(self, neurons: np.ndarray) -> None:
        """Let these neurons count at the centre."""
        there = np.abs(self.restricted.values(neurons, self.centre))
        self.consider_centre(self.centre, float(there.max(initial=0.0)))

    def trim_dual(self, dual: np.ndarray) -> np.ndarray:
        """Drop small dual weights, which make branching long, while no known value grows."""
        used = self.restricted.U[self.restricted.weights != 0]
        how: dict[str, Any] = {"count": 1, "activation": self.activation, "deadline": self.deadline}
        for threshold in _TRIMMED_PARTS:
            trimmed = self._keep_large(dual, threshold)
            _, values = search_neurons(self.Z, self.coefficients(trimmed), used, **how)
            if np.abs(values).max(initial=0.0) <= self.local_upper * (1 + 0.1 * self.tol):
                return trimmed
        return dual

    def _keep_large(self, dual: np.ndarray, threshold: float) -> np.ndarray:
        """The dual weights above this part of the largest, made feasible."""
        sizes = np.abs(dual)
        return self.restricted.normalize_dual(np.where(sizes > threshold * sizes.max(), dual, 0.0))

    def offer_bound(self, dual: np.ndarray, value: float, proof: str) -> None:
        """Keep dual weights if their bound is best; no value is larger there, by `proof`."""
        # The weights have p . target = 1 up to rounding: their bound is in units of what it is.
        terms = dual * self.restricted.rows.target
        total = math.fsum(terms)
        unit = total - (self.Z.shape[1] + _ULPS) * EPS * float(np.abs(terms).sum())
        if unit <= 0:  # weights that cancel each other say nothing
            return
        upper = max(value, self.restricted.slack_bound(dual)) / unit
        if upper < self.upper:
            self.upper, self.dual, self.proof = float(upper), dual / total, proof

    def drop_dust(self) -> None:
        """Drop dual weights that the proof does not need: mixing leaves some far away."""
        if not self.exact or self.upper >= 1.0:
            return
        # A tenth of the tolerance may be lost for a proof that rests on fewer samples.
        upper, dual, proof = self.upper, self.dual, self.proof
        enough = upper * (1 + 0.1 * self.tol)
        try:
            self.upper = np.inf
            for threshold in _DUST:
                self.prove_at(self._keep_large(dual, threshold))
                if self.upper <= enough:
                    return
        finally:  # also at Ctrl-C and at the deadline
            if self.upper > enough:
                self.upper, self.dual, self.proof = upper, dual, proof

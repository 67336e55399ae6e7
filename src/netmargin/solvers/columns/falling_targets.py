"""The proved bound of the largest t, by targets that fall: dual weights on as few samples as a
target allows, and a tree that proves it.

The best dual weights prove the best bound, but rest on many samples, and the time of a proof grows
exponentially with their number. So the first target is far above t, and the next ones fall as the
time allows. Neurons that refute a target were unknown: all are kept, and weights are chosen again.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..neurons.search import draw_starts, search_neurons
from ..pricing.rays import as_relu_sum, bound_rounding
from ..pricing.target_tree import Outcome, TargetTree
from .options import Options
from .sparse_weights import SparseWeights

# What proves the bound is the tree; all numbers here only decide which bounds are tried.

_FIRST_EXCESS, _SAFE_EXCESS, _FALL, _LEAST_EXCESS = 0.8, 1.5, 0.7, 0.01
"""Targets are (1 + excess) times the t that known neurons attain: the first one, one that is proved
within a second or two on most data if the first was not, how much it falls from one to the next,
and the last; below it the tree over sums (`ActivationBranchAndBound`) is faster where either ends.
"""
_PART_FOR_WEIGHTS, _SHARPENED = 0.6, 4
"""The part of the excess that weights may use to be few, beside the tree; and how often they are
made fewer by those before. On a hard set of clusters trees of a target of 1.8 had 28,000 nodes with
0.45 and 2, and 15,000 with these; with 0.75 neurons that search missed refuted every second target.
"""
_TOLERATED = 0.05
"""A part of the excess by which a neuron may exceed the level without being added."""
_KNOWN_STARTS, _STARTS, _THOROUGH_STARTS, _THOROUGH_EVERY = 150, 64, 192, 4
"""Starts of local search: known neurons, and random ones, more of them every so many rounds."""
_MOST_THOROUGH = 16
"""Random starts double where a tree that was refuted took longer than the search before it, at most
to so many times as many: the neuron that refuted it was one that search had missed.
"""
_NEURONS_PER_ROUND = 48
"""Neurons added in a round."""
_LEAST_SECONDS = 1.0
"""Seconds that the choice of weights may take, at least; otherwise as long as the last tree."""
_MOST_ROUNDS = 60
"""Rounds of the choice of weights, where there is no clock to end it."""
_LEAST_FALL = 0.9
"""The excess falls at least to this, also where time is short: a tree may end early."""
_GROWTH = 4.0
"""The time of a tree grows about like excess^-3 to excess^-5 on clusters in 15 dimensions."""
_MOST_REFUTED = 8
"""Refutations in a row that end a run without a time limit: search misses too many neurons."""
_AUTO_NODES = 10_000
"""Nodes of all trees of a run by "auto" without a time limit: some seconds."""
_SECONDS_BETWEEN, _NODES_OF_A_SAMPLE, _LEAST_SHARE, _OPTIMISM = 0.2, 3000, 1e-6, 1.5
"""Seconds between two measurements of a tree; nodes from which on the closed part says how long the
rest takes, and the least such part; and how many times the seconds left it may seem to take.
"""
_LARGE_PART = 0.05
"""The part of the time left that any tree may take: its first samples say little of the rest."""
_RISE_AFTER = 5
"""Refutations in a row after which the next target is halfway to the one that is proved."""
_LEAST_GAIN = 0.03
"""Targets that lower the excess by less than this part of it are not tried."""


class FallingTargets:
    """A search for bounds at dual weights p >= 0 with p . target = 1, whose response to a unit
    neuron u is sum_i p_i signs_i phi(u . z_i), as in `Constraints`.

    Where not `sparse`, weights are those that `begin` takes; "auto" without a deadline takes some
    seconds in all. `neurons` (k, D) are all that were met, and `nodes` counts those of all trees.
    """

    def __init__(
        self,
        Z: Any,
        signs: Any,
        target: Any,
        options: Options,
        *,
        slack_cost: float = np.inf,
        sparse: bool = True,
    ) -> None:
        self._Z, self.signs, self._target, self._activation = Z, signs, target, options.activation
        self._slack_cost, self._sparse = slack_cost, sparse
        self._random, self._deadline = np.random.default_rng(options.seed), options.deadline
        self._threads = options.threads
        patient = options.pricing != "auto" or options.deadline < np.inf
        self._last = np.inf if patient else _AUTO_NODES
        self.neurons, self._responses = np.zeros((0, Z.shape[1])), np.zeros((len(Z), 0))
        self._program: SparseWeights | None = None
        self._centre = np.zeros(len(Z))
        self._value, self._tree_seconds, self._out_of_reach, self.nodes = 0.0, 0.0, 0.0, 0
        self._thoroughness, self._failed = 1, False

    def begin(self, centre: np.ndarray, attained: float, neurons: np.ndarray) -> None:
        """Take the best dual weights, the t that is attained, and neurons."""
        # No weights have a smaller largest response than the t that neurons attain.
        self._value = max(attained, self._value)
        self._add(neurons)
        self._centre = centre
        if self._program is None and self._sparse:
            self._program = SparseWeights(self._target, self._slack_cost, centre, self._value)

    def improve(
        self,
        *,
        upper: float,
        lower: float,
        tol: float,
        offer: Callable[[np.ndarray, float, str], None],
        report: Callable[[str], None],
    ) -> np.ndarray:
        """Prove falling targets below `upper`, a bound that is known, until one is within tol of
        `lower`, or none is in reach; returns the neurons met. `offer` is called with the weights
        of each proof, the bound of the response of any neuron, and how it was proved, in words.
        """
        refuted, before = 0, len(self.neurons)
        while (
            (refuted < _MOST_REFUTED or self._deadline < np.inf)
            and time.monotonic() < self._deadline
            and self.nodes < self._last
        ):
            weights, known = self._centre, upper / self._value - 1
            excess = self._choose_excess(known)
            if excess > (1 - _LEAST_GAIN) * known and self._deadline < np.inf:
                # Neurons that were met since may have brought lower targets into reach.
                self._out_of_reach = 0.0
                excess = self._choose_excess(known)
            enough = (1 + excess) * self._value < lower * (1 + 0.5 * tol)
            if excess < _LEAST_EXCESS or excess > (1 - _LEAST_GAIN) * known or enough:
                break
            chosen = time.monotonic()
            if self._program is not None:
                weights = self._choose_weights(self._program, excess)
            target = (1 + excess) * self._value
            if target >= upper:
                continue
            grown = time.monotonic()
            c = weights * self.signs
            terms = as_relu_sum(self._Z, c, self._activation)
            # The tree allows for the rounding of the terms that it gets, not for that before.
            lost = bound_rounding(self._activation.slope * c, self._Z)
            tree = TargetTree(*terms, target, self._threads, lost=lost)
            outcome = self._grow(tree, f"target {target / lower:.3g} times that, ", report)
            if outcome is Outcome.PROVED and tree.upper_bound < upper:
                upper, refuted, self._thoroughness = tree.upper_bound, 0, 1
                offer(weights, upper, f"{tree.nodes:,} nodes")
            elif tree.neuron is not None:
                refuted, self._failed = refuted + 1, True
                if time.monotonic() - grown > grown - chosen:
                    self._thoroughness = min(2 * self._thoroughness, _MOST_THOROUGH)
                self._add(tree.neuron[None])
                if refuted % _RISE_AFTER == 0:
                    self._out_of_reach = target
                if not self._sparse:
                    self._value = max(self._value, float(np.abs(self._responses.T @ weights).max()))
            else:
                # Not in the time that is left, or not at all: the next target lies in between.
                self._out_of_reach, self._failed = target, True
        return self.neurons[before:]

    def _grow(self, tree: TargetTree, title: str, report: Callable[[str], None]) -> Outcome:
        """Grow a tree until it ends, or is seen not to end in time; reports begin with `title`."""
        started, before = time.monotonic(), self.nodes
        while True:
            pause = min(self._deadline, time.monotonic() + _SECONDS_BETWEEN)
            outcome = tree.grow(pause, self._last - self.nodes)
            self.nodes, seconds = before + tree.nodes, time.monotonic() - started
            if outcome is not Outcome.UNFINISHED:
                self._tree_seconds = seconds
                return outcome
            # The times of subtrees differ much, but not for long.
            missing = (1 - tree.share) / max(tree.share, _LEAST_SHARE)
            seconds_left, nodes_left = self._deadline - time.monotonic(), self._last - self.nodes
            report(
                f"{title}{tree.nodes:,} nodes, {tree.share:.0%} of the tree closed, about"
                f" {missing * seconds:.0f} s left"
            )
            judged = seconds > _LARGE_PART * seconds_left or self._deadline == np.inf
            too_long = missing * seconds > _OPTIMISM * seconds_left
            too_large = missing * tree.nodes > _OPTIMISM * nodes_left
            hopeless = judged and tree.nodes > _NODES_OF_A_SAMPLE and (too_long or too_large)
            if hopeless or seconds_left < 0 or nodes_left < 0:
                return outcome

    def _choose_excess(self, known: float) -> float:
        """The excess of the next target: below the known one, such that time allows its tree."""
        # Where the first target failed, any bound is better than that of the relaxation.
        safe = known > _SAFE_EXCESS and self._failed
        excess = min(_SAFE_EXCESS if safe else _FIRST_EXCESS, _FALL * known)
        if self._tree_seconds > 0 and known < _FIRST_EXCESS:
            left = self._deadline - time.monotonic()
            possible = known * (self._tree_seconds / left) ** (1 / _GROWTH)
            excess = max(excess, min(possible, _LEAST_FALL * known))
        missed = self._out_of_reach / self._value - 1
        return excess if excess > missed else 0.5 * (known + missed)

    def _choose_weights(self, program: SparseWeights, excess: float) -> np.ndarray:
        """Dual weights (n,) on few samples, to which no neuron found has a large response."""
        started = time.monotonic()
        seconds = max(_LEAST_SECONDS, self._tree_seconds)
        for stage in range(_SHARPENED + 1):
            for round_ in range(_MOST_ROUNDS):
                level = (1 + _PART_FOR_WEIGHTS * excess) * self._value
                weights, reached = program.solve(self._responses, level, self._deadline)
                # No weights keep the level: these neurons attain a larger t than was known.
                self._value = max(self._value, reached / (1 + _PART_FOR_WEIGHTS * excess))
                found, values = self._search_at(weights, thoroughly=round_ % _THOROUGH_EVERY == 0)
                allowed = reached + _TOLERATED * excess * self._value
                wrong = np.abs(values) > allowed
                if not wrong.any():
                    break
                self._add(found[wrong][:_NEURONS_PER_ROUND])
                spent = time.monotonic() - started
                if spent > seconds * (stage + 1) / (_SHARPENED + 1):
                    break
            if stage < _SHARPENED:
                program.sharpen(weights)
        return weights

    def _search_at(self, weights: np.ndarray, *, thoroughly: bool) -> tuple[np.ndarray, np.ndarray]:
        """Neurons of large response at dual weights, and their responses."""
        used = np.flatnonzero(weights)
        c = (weights * self.signs)[used]
        known = np.abs(self._responses.T @ weights)
        best = np.argsort(-known, kind="stable")[:_KNOWN_STARTS]
        count = self._thoroughness * (_THOROUGH_STARTS if thoroughly else _STARTS)
        Z = self._Z[used]
        drawn = draw_starts(Z, self._random, samples=len(used), normal=count)
        starts = np.concatenate([self.neurons[best], drawn])
        return search_neurons(Z, c, starts, count=_NEURONS_PER_ROUND, activation=self._activation)

    def _add(self, neurons: np.ndarray) -> None:
        """Add neurons."""
        responses = self.signs[:, None] * self._activation.feature(self._Z @ neurons.T)
        self.neurons = np.concatenate([self.neurons, neurons])
        self._responses = np.hstack([self._responses, responses])

"""Proves that |sum_i c_i relu(w . x_i)| is at most a target on the unit sphere, or finds a point
where it is not: depth-first search over the sides of hyperplanes.

A node whose bound (`node_bound`) is above the target is split by the hyperplane of one sample with
a positive coefficient. At a fixed target the order in which nodes are visited does not change how
many there are, so that the deepest come first: few are open at a time. Some groups of nodes are
split in each round, side by side in threads, whose number does not change what is found.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch

from ...core.matrices import floor_to_powers, split_lengths
from ...nets.threads import fitting_threads
from .node_bound import Nodes, SignedTerms
from .node_descent import NodeDescent

# Steps and batches trade time for sharper bounds; every node is judged.

_STEPS, _ROOT_STEPS, _LEAF_STEPS = 12, 150, 300
"""Steps from the parent's multipliers, at the root, and at a leaf; 8 to 20 take as long in all."""
_SMOOTHING, _ROOT_SMOOTHING, _ROOT_DECAY, _LEAF_SMOOTHING = 5e-3, 0.1, 0.93, 5e-4
"""Smoothing in units of the target: less makes steps rough, more makes bounds loose."""
_BATCH = 128
"""Nodes split at once: products of small matrices take 5% less with 256, and 10% more with 64."""
_GROUPS = 4
"""Batches of a round, so many threads are of use. Python itself takes a seventh of the time of a
batch, in which other threads wait.
"""
_BATCH_ENTRIES = 4_000_000
"""Entries of the multipliers of a batch, beyond which it gets fewer nodes."""
_FIRST_TAU = 2.5
"""1 / tau begins at |x| over this: a typical |z| for a random w in some 10 dimensions."""
_NOTHING = 1e-100
"""Terms below this part of the largest are left out, at the price of their sum."""


class Outcome(Enum):
    """How a proof of a target ended."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNFINISHED = "unfinished"


class TargetTree:
    """The search for both signs of the sum over points X (n, D) with coefficients c (n,), which is
    off by at most `lost`. Where it ends PROVED, `upper_bound` is the target, or the largest bound
    of a leaf above it; where REFUTED, the sum exceeds the target at the unit vector `neuron` (D,).
    """

    def __init__(
        self, X: np.ndarray, c: np.ndarray, target: float, threads: int = 1, lost: float = 0.0
    ) -> None:
        lengths, units = split_lengths(X)
        sizes = lengths * np.abs(c)
        used = sizes > _NOTHING * sizes.max(initial=0.0)
        # More dimensions than samples with a coefficient are not needed. By units, so that short
        # samples lose no more of their length than long ones.
        self._rows = np.linalg.svd(units[used], full_matrices=False)[2]
        # Powers of 2 round nothing: lengths of 1 to 2 and terms of size 1 have squares in float64.
        powers, unit = floor_to_powers(lengths[used]), floor_to_powers(sizes.max(initial=0.0))
        X, c = X[used] / powers[:, None] @ self._rows.T, c[used] * powers / unit
        self._unit, self._left_out = float(unit), float(sizes[~used].sum()) + lost
        self.upper_bound, self._threads = max(target, self._left_out), threads
        target = max(target - self._left_out, 0.0) / self._unit
        self._sides = [_Side(X, sign * c, target) for sign in (1.0, -1.0) if (sign * c > 0).any()]
        self._empty_share = 1 - 0.5 * len(self._sides)
        self.neuron: np.ndarray | None = None

    @property
    def nodes(self) -> int:
        """The number of nodes visited."""
        return sum(side.nodes for side in self._sides)

    @property
    def share(self) -> float:
        """The share of the tree that is closed."""
        return self._empty_share + 0.5 * sum(side.share for side in self._sides)

    def grow(self, deadline: float, most_nodes: float = np.inf) -> Outcome:
        """Go on until the outcome, to the deadline (time.monotonic), or for about so many nodes."""
        last = self.nodes + most_nodes
        with fitting_threads(0.0), ThreadPoolExecutor(self._threads) as pool:
            apply = pool.map if self._threads > 1 else map
            for side in self._sides:
                while side.stack and side.best <= side.target:
                    if time.monotonic() > deadline or self.nodes > last:
                        return Outcome.UNFINISHED
                    side.visit_groups(apply, deadline)
                if side.best > side.target:
                    self.neuron = side.witness @ self._rows
                    return Outcome.REFUTED
        stuck = max((side.stuck for side in self._sides), default=-np.inf)
        self.upper_bound = max(self.upper_bound, self._unit * stuck + self._left_out)
        return Outcome.PROVED


@dataclass(frozen=True)
class _Visit:
    """What became of a group of open nodes."""

    count: int  # how many nodes are below them
    children: Nodes  # those of these that stay open
    stuck: float  # the largest bound of a leaf above the target, or -infinity
    solver: NodeDescent  # holds the largest value of the sum that was met


class _Side:
    """The search for one sign of the sum: a stack of groups of open nodes."""

    def __init__(self, X: np.ndarray, c: np.ndarray, target: float) -> None:
        self.terms, self.target = SignedTerms(X, c), target
        self.nodes, self.share, self.stuck, self.best = 0, 0.0, -np.inf, -np.inf
        self.witness = np.zeros(X.shape[1])
        self._batch = max(1, min(_BATCH, _BATCH_ENTRIES // X.size))
        self.stack = [_make_root(self.terms)]

    def visit_groups(self, apply: Callable[..., Any], deadline: float) -> None:
        """Split the last open nodes by `apply`, a function like `map`, up to the deadline."""

        def descend(group: Nodes) -> _Visit | None:
            return None if time.monotonic() > deadline else self._descend(group)

        groups: list[Nodes] = []
        while self.stack and len(groups) < _GROUPS:
            groups.append(_pop(self.stack, self._batch))
        try:
            visits = list(apply(descend, groups))
        except BaseException:
            self.stack.extend(groups)  # at Ctrl-C nothing counts as closed
            raise
        for parents, visit in zip(groups, visits, strict=True):
            if visit is None:
                self.stack.append(parents)
                continue
            if len(visit.children):
                self.stack.append(visit.children)
            self.nodes += visit.count
            self.share += float(parents.share.sum()) - float(visit.children.share.sum())
            self.stuck = max(self.stuck, visit.stuck)
            if visit.solver.best > self.best:
                self.best, self.witness = visit.solver.best, visit.solver.witness.numpy()

    @torch.no_grad()  # here, as each thread has a setting of its own
    def _descend(self, parents: Nodes) -> _Visit:
        """Visit the children of these nodes; the root is its own child."""
        solver = NodeDescent(self.terms, self.target)
        stuck, nodes = -np.inf, parents
        if self.nodes:
            leaf = parents.branch < 0
            if leaf.any():  # no branching improves them: they take more steps
                smoothing = _LEAF_SMOOTHING * self.target
                left = solver.descend(parents.select(leaf), _LEAF_STEPS, smoothing)
                stuck = max([stuck, *left.bound.tolist()])
            nodes = _split(parents.select(~leaf))
        if not len(nodes):
            return _Visit(0, nodes, stuck, solver)
        steps, first = (_STEPS, 0.0) if self.nodes else (_ROOT_STEPS, _ROOT_SMOOTHING)
        children = solver.descend(
            nodes, steps, _SMOOTHING * self.target, first=first * self.target, decay=_ROOT_DECAY
        )
        return _Visit(len(nodes), children, stuck, solver)


def _make_root(terms: SignedTerms) -> Nodes:
    """The whole ball, with plain multipliers."""
    count, negative = terms.positive, len(terms.c) - terms.positive
    zero = torch.zeros(1, dtype=torch.float64, device="cpu")
    return Nodes(
        side=zero.new_zeros(1, count),
        scale=(math.log(_FIRST_TAU) - terms.lengths[:count].log())[None],
        a=zero.new_zeros(1, negative),
        b=zero.new_zeros(1, terms.dimension, negative),
        mu=zero.clone(),
        scale_speed=zero.new_zeros(1, count),
        cone_speed=zero.new_zeros(1, negative),
        share=zero + 1.0,
        bound=zero + torch.inf,
        branch=torch.zeros(1, dtype=torch.long, device="cpu"),
    )


def _pop(stack: list[Nodes], count: int) -> Nodes:
    """Take up to `count` of the last nodes; a group is only split where it is too large."""
    parts = [stack.pop()]
    taken = len(parts[0])
    while stack and taken + len(stack[-1]) <= count:
        parts.append(stack.pop())
        taken += len(parts[-1])
    nodes = Nodes.join(parts)
    if len(nodes) > count:
        stack.append(nodes.select(slice(None, -count)))
        nodes = nodes.select(slice(-count, None))
    return nodes


def _split(parents: Nodes) -> Nodes:
    """The two children of each node, on either side of the hyperplane of its branch."""
    children = Nodes.join([parents, parents])
    count = len(parents)
    rows, one = torch.arange(2 * count, device="cpu"), torch.ones(count, device="cpu").double()
    chosen = torch.cat([parents.branch, parents.branch])
    children.side[rows, chosen] = torch.cat([one, -one])
    children.scale[rows, chosen] = 0.0
    children.scale_speed[rows, chosen] = 0.0
    children.share *= 0.5
    return children

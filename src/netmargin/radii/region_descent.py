"""The nearest misclassified point of a linear region of a chain, and of the regions around it."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from .boundary import judge_points
from .exact.chain import Chain
from .least_distance import solve_least_distance

_ROUNDS = 30
"""Moves to a neighbouring region at most: few descents of 784-256-256-10 took as many."""
_CUT_ROUNDS = 6
"""Times that violated sides of a region are added. Nearly all regions need one to three; what is
left after six is judged as it is.
"""
_CUTS = 8
"""Violated sides of each layer that are added at once: the largest ones imply most of the rest."""
_NEIGHBOURS = 16
"""Active kinks that are crossed, those with the largest multipliers: more are rare."""
_LARGEST_CHAIN = 4_000_000
"""Entries of all layers up to which regions are searched: one pass for some hundred regions takes a
second. Convolutions written out are larger, and their regions smaller than what they gain.
"""
_LEAST_PROGRESS = 1e-9
"""A point nearer by less than this share is called the same."""
_BEHIND = 1e-13
"""How far behind the boundary points are placed, as a share of the two scores: some hundred
roundings, so that the net agrees.
"""
_ON_KINK = 1e-10
"""Share of a layer's largest value within which a unit counts as on its kink."""
_INFEASIBLE = 1e-14
"""Squared residual of the dual problem below which there is no point: its rows have norm 1."""

Kink = tuple[int, int]
"""A hidden layer and a unit of it."""
_GAP: Kink = (-1, 0)
"""Stands for the gap to the rival, which ends a region like a kink; no layer has this number."""


@dataclass
class _Region:
    """A linear region of one sample, as far as it is known."""

    sample: int
    signs: list[np.ndarray]  # (n_k,) each: which units of each hidden layer are on
    sides: list[Kink]  # the kinks that were looked at, the gap first
    rows: np.ndarray  # (sides, d): rows . step >= bounds is what they ask of a step from the sample
    bounds: np.ndarray  # (sides,)
    step: np.ndarray = field(default_factory=lambda: np.zeros(0))  # the shortest that they allow
    length: float = math.inf  # its length, infinite where it would be too long, or there is none
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (sides,): its multipliers


def has_small_layers(chain: Chain) -> bool:
    """Whether the layers of a chain are small enough for a search of its regions."""
    return sum(weight.size for weight in chain.weights) <= _LARGEST_CHAIN


def descend_through_regions(
    net: nn.Module, chain: Chain, x: Tensor, y: Tensor, points: Tensor
) -> Tensor:
    """Move misclassified points to the nearest one of their linear region, and on to regions beyond
    its active kinks, one by one, until none is nearer.

    In a region the nearest point is a least distance problem, which is solved by non-negative least
    squares in its sides, those that are violated. All samples move together. The net, with scores
    (N, C), C > 1, judges every point; the chain is the same net up to a factor on its scores, or
    one score f for (-f, f). None of the points returned is farther than the one given.

    Source: Lawson and Hanson 1974, chapter 23, for the least distance problem; the descent is
    beyond the papers.
    """
    descent = _Descent(net, chain, x, y, points)
    regions = descent.find_regions()
    for _ in range(_ROUNDS):
        descent.solve(regions)
        regions = [
            neighbour
            for region in descent.keep_nearer(regions)
            for neighbour in descent.list_neighbours(region)
        ]
        if not regions:
            break
    return descent.points


class _Descent:
    """One descent of all samples: what is known of each, and the regions looked at."""

    def __init__(self, net: nn.Module, chain: Chain, x: Tensor, y: Tensor, points: Tensor):
        self.net, self.chain, self.x, self.y, self.points = net, chain, x, y, points.clone()
        self.anchors = x.flatten(1).cpu().numpy()
        self.best = (points - x).flatten(1).norm(dim=1).cpu().numpy()

    def find_regions(self) -> list[_Region]:
        """The regions of the points, and the rival that wins there, for good."""
        values = self.chain.evaluate(self.points.cpu().numpy())
        own = self.y.cpu().numpy()
        self.gaps = _choose_gaps(self.chain.weights[-1].shape[0], values[-1], own)
        return [self._open(n, [z[n] > 0 for z in values[:-1]], [_GAP]) for n in range(len(own))]

    def solve(self, regions: list[_Region]) -> None:
        """Find the shortest steps to the rival within regions, as far as they are short enough."""
        at_sample = self._evaluate(regions, np.zeros((len(regions), self.anchors.shape[1])))
        places = {id(region): place for place, region in enumerate(regions)}
        alive = regions
        for _ in range(_CUT_ROUNDS):
            self._add_rows(alive, [z[[places[id(r)] for r in alive]] for z in at_sample])
            for region in alive:
                _find_shortest_step(region)
            alive = [r for r in alive if self._is_short(r)]
            if not alive:
                return
            values = self._evaluate(alive, np.stack([r.step for r in alive]))
            alive = [r for i, r in enumerate(alive) if _add_violated(r, [z[i] for z in values])]
            if not alive:
                return

    def keep_nearer(self, regions: list[_Region]) -> list[_Region]:
        """Judge the points that regions found; keep the nearest, and return their regions."""
        solved = [r for r in regions if r.length < math.inf]
        if not solved:
            return []
        samples = torch.tensor([r.sample for r in solved], device=self.x.device)
        steps = torch.from_numpy(np.stack([r.step for r in solved])).to(self.x)
        x = self.x[samples]
        distances, points = judge_points(
            self.net, x, self.y[samples], x + steps.reshape_as(x), None
        )
        nearer: dict[int, _Region] = {}
        for region, distance, point in zip(solved, distances.tolist(), points, strict=True):
            if distance < self.best[region.sample] * (1 - _LEAST_PROGRESS):
                self.best[region.sample] = distance
                self.points[region.sample] = point
                nearer[region.sample] = region
        return list(nearer.values())

    def list_neighbours(self, region: _Region) -> list[_Region]:
        """The regions beyond the kinks that hold the nearest point back most."""
        order = np.argsort(-region.weights)[:_NEIGHBOURS]
        active = [region.sides[i] for i in order if region.weights[i] > 0]
        kinks = [kink for kink in active if kink != _GAP]
        found = []
        for layer, unit in kinks:
            signs = list(region.signs)
            signs[layer] = signs[layer].copy()
            signs[layer][unit] ^= True
            # What holds the point back on this side often does so on the other.
            found.append(self._open(region.sample, signs, [_GAP, *kinks]))
        return found

    def _open(self, sample: int, signs: list[np.ndarray], sides: list[Kink]) -> _Region:
        """A region whose sides have no rows yet."""
        return _Region(sample, signs, sides, np.zeros((0, self.anchors.shape[1])), np.zeros(0))

    def _is_short(self, region: _Region) -> bool:
        """Whether the step of a region is nearer than the nearest point; else it is dropped."""
        limit = self.best[region.sample] * (1 - _LEAST_PROGRESS)
        if not region.length < limit:
            region.length = math.inf
        return region.length < limit

    def _evaluate(self, regions: list[_Region], steps: np.ndarray) -> list[np.ndarray]:
        """Compute z_1 .. z_{K+1} at samples plus steps by each region's linear map.

        Outside the region too, where their signs tell which of its sides are violated.
        """
        a = self.anchors[[r.sample for r in regions]] + steps
        values = []
        for layer, (weight, bias) in enumerate(
            zip(self.chain.weights, self.chain.biases, strict=True)
        ):
            values.append(a @ weight.T + bias)
            if layer < len(self.chain.slopes):
                a = values[-1] * self._factors(regions, layer)
        return values

    def _factors(self, regions: list[_Region], layer: int) -> np.ndarray:
        """By what the units of a layer multiply in these regions, (regions, n_k)."""
        signs = np.stack([r.signs[layer] for r in regions])
        return np.where(signs, 1.0, self.chain.slopes[layer])

    def _add_rows(self, regions: list[_Region], at_sample: list[np.ndarray]) -> None:
        """Compute the rows and bounds of sides that have none yet, for all regions at once."""
        wanted = [
            (place, kink)
            for place, region in enumerate(regions)
            for kink in region.sides[len(region.bounds) :]
        ]
        last = len(self.chain.slopes)
        rows, bounds = np.zeros((0, len(self.chain.weights[-1]))), np.zeros(len(wanted))
        owners: list[int] = []
        for layer in range(last, -1, -1):
            if owners:
                rows = rows * self._factors([regions[wanted[q][0]] for q in owners], layer)
            new = [q for q, (_, kink) in enumerate(wanted) if kink[0] % (last + 1) == layer]
            picks = np.zeros((len(new), len(self.chain.weights[layer])))
            for i, q in enumerate(new):
                place, kink = wanted[q]
                picks[i] = self._pick(regions[place], kink)
                z = at_sample[layer][place]
                bounds[q] = -(picks[i] @ z) + _BEHIND * (kink == _GAP) * (abs(picks[i]) @ abs(z))
            rows = np.concatenate([rows, picks]) if owners else picks
            owners += new
            rows = rows @ self.chain.weights[layer]
        ordered = np.empty_like(rows)
        ordered[owners] = rows
        ends = np.cumsum([len(r.sides) - len(r.bounds) for r in regions])[:-1]
        parts = zip(np.split(ordered, ends), np.split(bounds, ends), strict=True)
        for region, (more_rows, more_bounds) in zip(regions, parts, strict=True):
            region.rows = np.concatenate([region.rows, more_rows])
            region.bounds = np.concatenate([region.bounds, more_bounds])

    def _pick(self, region: _Region, kink: Kink) -> np.ndarray:
        """The combination of a layer's values that a side asks to be at least 0."""
        if kink == _GAP:
            return self.gaps[region.sample]
        layer, unit = kink
        picks = np.zeros(len(self.chain.weights[layer]))
        picks[unit] = 1.0 if region.signs[layer][unit] else -1.0
        return picks


def _choose_gaps(outputs: int, values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For each sample the combination of scores by which the rival is ahead, (N, outputs)."""
    n = np.arange(len(y))
    if outputs == 1:
        return np.where(y > 0, -1.0, 1.0)[:, None]
    others = values.copy()
    others[n, y] = -np.inf
    gaps = np.zeros_like(values)
    gaps[n, others.argmax(1)], gaps[n, y] = 1.0, -1.0
    return gaps


def _find_shortest_step(region: _Region) -> None:
    """Find the shortest step with rows . step >= bounds, and its multipliers."""
    norms = np.linalg.norm(region.rows, axis=1)
    norms[norms == 0] = 1.0
    rows, bounds = region.rows / norms[:, None], region.bounds / norms
    size = np.abs(bounds).max()
    region.length = math.inf
    if size == 0 or not np.isfinite(size):
        return
    weights, rest = solve_least_distance(rows, bounds / size)
    if rest @ rest > _INFEASIBLE:
        region.weights = weights / -rest[-1] * size
        region.step = rows.T @ region.weights
        region.length = float(np.linalg.norm(region.step))


def _add_violated(region: _Region, values: list[np.ndarray]) -> bool:
    """Add the most violated sides of each layer; whether there are any."""
    known, added = set(region.sides), []
    for layer, signs in enumerate(region.signs):
        z = np.where(signs, values[layer], -values[layer])
        worst = np.argsort(z)[:_CUTS]
        limit = -_ON_KINK * np.abs(z).max()
        added += [(layer, int(u)) for u in worst if z[u] < limit and (layer, int(u)) not in known]
    region.sides += added
    return bool(added)

"""The nearest misclassified point of a linear region of a chain, and of the regions around it."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .boundary import Attacked, judge_points
from .exact.chain import Chain
from .least_distance import find_nearest_point

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
Kink = tuple[int, int]
"""A hidden layer and a unit of it. The gap to the rival, which ends a region like a kink, is of the
layer behind all hidden ones.
"""


@dataclass
class _Region:
    """A linear region of one sample, as far as it is known."""

    sample: int
    signs: list[np.ndarray]  # (n_k,) each: which units of each hidden layer are on
    sides: list[Kink]  # the kinks that were looked at, the gap first
    rows: np.ndarray  # (sides, d): rows . step >= bounds is what they ask of a step from the sample
    bounds: np.ndarray  # (sides,)
    start: tuple[np.ndarray, ...] = ()  # z_1 .. z_{K+1} at the sample by the region's linear map
    found: bool = False  # whether it has a step that is short enough
    step: np.ndarray = field(init=False)  # the shortest that the sides allow
    weights: np.ndarray = field(init=False)  # (sides,): its multipliers


def has_small_layers(chain: Chain) -> bool:
    """Whether the layers of a chain are small enough for a search of its regions."""
    return sum(weight.size for weight in chain.weights) <= _LARGEST_CHAIN


def descend_through_regions(samples: Attacked, chain: Chain, points: Tensor) -> Tensor:
    """Move misclassified points to the nearest one of their linear region, and on to regions beyond
    its active kinks, one by one, until none is nearer.

    In a region the nearest point is a least distance problem, which is solved by non-negative least
    squares in its sides, those that are violated. All samples move together, and their net judges
    every point; the chain is the same net up to a factor on its scores, or one score f for (-f, f).
    There is no box. None of the points returned is farther than the one given.

    Source: Lawson and Hanson 1974, chapter 23, for the least distance problem; the descent is
    beyond the papers.
    """
    descent = _Descent(samples, chain, points)
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

    def __init__(self, samples: Attacked, chain: Chain, points: Tensor) -> None:
        self.samples, self.chain, self.points = samples, chain, points.clone()
        self.anchors = samples.x.flatten(1).cpu().numpy()
        self.best = (points - samples.x).flatten(1).norm(dim=1).cpu().numpy()
        self.gap: Kink = (len(chain.slopes), 0)

    def find_regions(self) -> list[_Region]:
        """The regions of the points, and the rival that wins there, for good."""
        values = self.chain.evaluate(self.points.cpu().numpy())
        own = self.samples.y.cpu().numpy()
        self.gaps = _choose_gaps(self.chain.weights[-1].shape[0], values[-1], own)
        return [self._open(n, [z[n] > 0 for z in values[:-1]], []) for n in range(len(own))]

    def solve(self, regions: list[_Region]) -> None:
        """Find the shortest steps to the rival within regions, as far as they are short enough."""
        at_sample = self._evaluate(regions, np.zeros((len(regions), self.anchors.shape[1])))
        for region, start in zip(regions, at_sample, strict=True):
            region.start = start
        alive = regions
        for _ in range(_CUT_ROUNDS):
            alive = [region for region in alive if self._find_step(region)]
            if not alive:
                return
            values = self._evaluate(alive, np.stack([r.step for r in alive]))
            alive = [r for r, z in zip(alive, values, strict=True) if _add_violated(r, z)]

    def keep_nearer(self, regions: list[_Region]) -> list[_Region]:
        """Judge the points that regions found; keep the nearest, and return their regions."""
        solved = [r for r in regions if r.found]
        if not solved:
            return []
        own = torch.tensor([r.sample for r in solved], device=self.points.device)
        steps = torch.from_numpy(np.stack([r.step for r in solved])).to(self.points)
        samples = self.samples.part(own)
        distances, points = judge_points(samples, samples.x + steps.reshape_as(samples.x))
        nearer: dict[int, _Region] = {}
        for region, distance, point in zip(solved, distances.tolist(), points, strict=True):
            if distance < self.best[region.sample] * (1 - _LEAST_PROGRESS):
                self.best[region.sample] = distance
                self.points[region.sample] = point
                nearer[region.sample] = region
        return list(nearer.values())

    def list_neighbours(self, region: _Region) -> list[_Region]:
        """The regions beyond the kinks that hold the nearest point back most."""
        pushes = region.weights * np.linalg.norm(region.rows, axis=1)
        order = np.argsort(-pushes)[:_NEIGHBOURS]
        active = [region.sides[i] for i in order if region.weights[i] > 0]
        kinks = [kink for kink in active if kink != self.gap]
        found = []
        for layer, unit in kinks:
            signs = list(region.signs)
            signs[layer] = signs[layer].copy()
            signs[layer][unit] ^= True
            # What holds the point back on this side often does so on the other.
            found.append(self._open(region.sample, signs, kinks))
        return found

    def _open(self, sample: int, signs: list[np.ndarray], kinks: list[Kink]) -> _Region:
        """A region whose sides have no rows yet."""
        no_rows = np.zeros((0, self.anchors.shape[1]))
        return _Region(sample, signs, [self.gap, *kinks], no_rows, np.zeros(0))

    def _evaluate(self, regions: list[_Region], steps: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """z_1 .. z_{K+1} at samples plus steps by the linear map of each region, outside it too."""
        a = self.anchors[[r.sample for r in regions]] + steps
        values = []
        for k, (weight, bias) in enumerate(zip(self.chain.weights, self.chain.biases, strict=True)):
            values.append(a @ weight.T + bias)
            if k < len(self.chain.slopes):
                signs = np.stack([region.signs[k] for region in regions])
                a = values[-1] * np.where(signs, 1.0, self.chain.slopes[k])
        return list(zip(*values, strict=True))

    def _find_step(self, region: _Region) -> bool:
        """Find the shortest step that a region's sides allow; whether it is short enough."""
        self._add_rows(region)
        region.found, size = False, float(np.abs(region.bounds).max())
        if not 0 < size < np.inf:
            return False
        region.weights, step = find_nearest_point(region.rows, region.bounds / size)
        limit = self.best[region.sample] * (1 - _LEAST_PROGRESS)
        if step is not None and np.linalg.norm(step) * size < limit:
            region.found, region.step = True, step * size
        return region.found

    def _add_rows(self, region: _Region) -> None:
        """Compute the rows and bounds of sides that have none yet."""
        # From the last layer back, as the slopes of all of them are.
        known = len(region.bounds)
        region.sides[known:] = new = sorted(region.sides[known:], reverse=True)
        last, rows, bounds = self.gap[0], self.gaps[:0], [region.bounds]
        for k in range(last, -1, -1):
            if k < last:
                rows = rows * np.where(region.signs[k], 1.0, self.chain.slopes[k])
            units = [unit for layer, unit in new if layer == k]
            picks = self.gaps[[region.sample] * len(units)]
            if k < last:
                # The combinations of the layer's values that sides ask to be at least 0.
                picks = np.zeros((len(units), len(region.signs[k])))
                picks[np.arange(len(units)), units] = np.where(region.signs[k][units], 1.0, -1.0)
            z = region.start[k]
            bounds.append(_BEHIND * (k == last) * (abs(picks) @ abs(z)) - picks @ z)
            rows = np.concatenate([rows, picks]) @ self.chain.weights[k]
        region.rows = np.concatenate([region.rows, rows])
        region.bounds = np.concatenate(bounds)


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


def _add_violated(region: _Region, values: tuple[np.ndarray, ...]) -> bool:
    """Add the most violated sides of each layer; whether there are any."""
    known, added = set(region.sides), []
    for layer, signs in enumerate(region.signs):
        z = np.where(signs, values[layer], -values[layer])
        worst = np.argsort(z)[:_CUTS]
        limit = -_ON_KINK * np.abs(z).max()
        added += [(layer, int(u)) for u in worst if z[u] < limit and (layer, int(u)) not in known]
    region.sides += added
    return bool(added)

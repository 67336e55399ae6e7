"""Complete pricing: the exact maximum of |sum_i c_i relu(u . z_i)^power| over the unit sphere, for
points z_i of rank at most 4.

The hyperplanes u . z_i = 0 cut the sphere into cells. On a face of a cell the sum is linear, <v, u>
with v the sum of c_i z_i over the active samples, so its maximum there is |P v|, P the projection
onto the span of the face, attained at P v / |P v| if that lies in the face, and on a smaller face
otherwise. It therefore suffices to visit every face and to evaluate the sum at P v / |P v| wherever
|P v| exceeds the best value so far. For squared ReLU the sum is a quadratic form u' M u; a maximum
inside the face is a top eigenvector of P M P there, by the second-order condition, a minimum a
bottom one.

Faces are visited along planes: each choice of D - 2 independent hyperplanes leaves a plane, which
the others cut into arcs. The order of the arcs does not depend on c: it is computed once, and
pricing is a cumulative sum per plane.
"""

import time
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ...core.matrices import EPS, split_lengths
from ..neurons.activations import Activation
from .best_directions import BestDirections, Pricing
from .faces import list_faces, sort_by_angle
from .rays import PARALLEL, bound_moves, bound_rounding, find_lines

MAX_RANK = 4
"""n hyperplanes have some n^(rank - 1) cells: rank 5 is out of reach for samples of any use."""
_ENTRIES_AT_ONCE = 4_000_000
"""Entries of an array that are handled at once: 32 MB, of which a few copies fit in any memory."""
_RANK_TOLERANCE = 1e-12
"""Singular values below this part of the largest count as 0; what is lost so is in the bound."""
_ROUNDINGS = 16
"""Roundings of a unit vector, and of a projection, that a direction is made of: a dozen at most."""
BY_ARRANGEMENT = "every cell of their hyperplanes"
"""How its bounds are proved, in words."""


@dataclass(frozen=True)
class _Planes:
    """P planes, in M hyperplanes each, and the E events on each circle at which samples switch."""

    basis: np.ndarray  # (P, 2, D): orthonormal bases
    lines: np.ndarray  # (P, M), int: hyperplanes around the plane, by the angle of their normals
    flips: np.ndarray  # (P, M), bool: whether a normal is turned round in that order
    order: np.ndarray  # (P, E), int: the samples of the events
    enters: np.ndarray  # (P, E): +1 becomes active, -1 inactive, 0 for samples on the plane
    angles: np.ndarray  # (P, E): of the events, from -pi on
    at_start: np.ndarray  # (P, n), bool: samples that are active at angle -pi
    tilts: np.ndarray  # (P,): how far the planes may be from the true ones, in radians
    # (P, E): how far the vertices at the events may be from the true ones: hyperplanes that are
    # nearly parallel meet in places that rounding moves far.
    moves: np.ndarray


class Arrangement:
    """The arrangement of the hyperplanes of points Z, shape (n, D) of rank at most 4, prepared for
    many prices c. TimeoutError is raised at the deadline: an incomplete visit proves nothing.
    """

    def __init__(self, Z: np.ndarray, power: int = 1, deadline: float = np.inf) -> None:
        self._power, self._deadline, self._given = power, deadline, Z
        # Directions outside the row space of the normals add nothing: work in its coordinates. Of
        # the normals, as samples of any length may matter, and each rank needs a hyperplane.
        normals, self._line, self._side, _ = find_lines(Z)
        _, singular, rows = np.linalg.svd(normals, full_matrices=False)
        rank = int((singular > singular.max(initial=0.0) * _RANK_TOLERANCE).sum())
        if rank > MAX_RANK:
            raise ValueError(
                f"complete pricing needs points of rank at most {MAX_RANK}; these have rank {rank}"
            )
        self._rows = rows[:rank]
        self._Z = Z @ self._rows.T
        self._rank = rank
        self._neglected = split_lengths(Z - self._Z @ self._rows)[0]
        if rank == 0:
            return
        self._normals = split_lengths(normals @ self._rows.T)[1]
        on_line = (split_lengths(self._Z)[0] * self._side)[:, None] * self._normals[self._line]
        self._neglected = self._neglected + split_lengths(self._Z - on_line)[0]
        self._groups = self._enumerate_planes() if rank >= 2 else []

    def price_neurons(self, c: np.ndarray, *, count: int = 1) -> Pricing:
        """Find the largest |sum_i c_i relu(u . z_i)^power| over unit u for prices c (n,), with a
        proved bound, and up to `count` distinct directions of large value.
        """
        if self._rank == 0:
            nothing = np.zeros((0, self._rows.shape[1])), np.zeros(0)
            return Pricing(*nothing, float(np.abs(c) @ self._neglected), BY_ARRANGEMENT)
        terms = c[:, None] * self._Z
        # Squares are linear in uu', so that they become sums of the same kind over matrices.
        if self._power == 2:
            terms = (terms[:, :, None] * self._Z[:, None, :]).reshape(len(c), -1)
        found = BestDirections(self._Z, c, count, self._power)
        if self._rank == 1:
            found.evaluate(np.array([[1.0], [-1.0]]))
        # Per line the sums over the samples that are active on each side of its hyperplane.
        sides = np.zeros((2, len(self._normals), terms.shape[1]))
        on_line = self._line >= 0
        for side, sign in enumerate((1.0, -1.0)):
            chosen = on_line & (self._side == sign)
            np.add.at(sides[side], self._line[chosen], terms[chosen])
        # By how much the sum may change per radian; rounding of the totals is some of it too.
        lengths = np.linalg.norm(self._Z, axis=1)
        steepness = self._power * float(np.abs(c) @ lengths**self._power)
        reached = 0.0
        for group in self._groups:
            step = max(1, _ENTRIES_AT_ONCE // (max(group.order.shape[1], 1) * terms.shape[1]))
            for start in range(0, len(group.basis), step):
                self._check_time()
                part = slice(start, start + step)
                reached = max(reached, self._visit(group, part, terms, sides, found, steepness))
        directions, values = found.result()
        # What was not evaluated is at most `found.best` by construction, or lies at a vertex, a
        # critical point or in a plane that rounding moved, up to rounding and what the preparation
        # neglected.
        tilted = found.best + steepness * max((g.tilts.max() for g in self._groups), default=0.0)
        neglected = bound_moves(self._neglected, lengths, self._power)
        # A total is a sum of at most 3 |c_i z_i| per sample.
        used = c != 0
        rounding = bound_rounding(c[used], self._given[used], Activation(power=self._power))
        allowance = rounding + float(np.abs(c) @ neglected)
        return Pricing(
            directions @ self._rows, values, max(tilted, reached) + allowance, BY_ARRANGEMENT
        )

    def _check_time(self) -> None:
        """Raise TimeoutError at the deadline."""
        if time.monotonic() > self._deadline:
            raise TimeoutError

    def _visit(
        self,
        group: _Planes,
        part: slice,
        terms: np.ndarray,
        sides: np.ndarray,
        found: BestDirections,
        steepness: float,
    ) -> float:
        """Visit all faces around planes; returns the most at true vertices and critical points."""
        reached = 0.0
        # Below this, the place of a critical point is rounding of the totals.
        blur = len(self._Z) * EPS * steepness
        basis, lines, flips = group.basis[part], group.lines[part], group.flips[part]
        v_start = group.at_start[part].astype(float) @ terms
        changes = terms[group.order[part]] * group.enters[part][:, :, None]
        # The totals of the active terms on each arc, shape (P, E + 1, D).
        v = np.concatenate([v_start[:, None], v_start[:, None] + np.cumsum(changes, 1)], 1)
        angles = group.angles[part]
        # The vertices come first: the larger the best so far, the fewer candidates are evaluated.
        if angles.shape[1]:
            rays = (
                np.cos(angles)[:, :, None] * basis[:, None, 0]
                + np.sin(angles)[:, :, None] * basis[:, None, 1]
            )
            sums = self._evaluate_sums(v[:, 1:], rays)
            found.offer(rays.reshape(-1, self._rank), sums.ravel())
            reached = float((np.abs(sums) + steepness * group.moves[part]).max())
        members = lines.shape[1]
        normals = self._normals[lines]  # (P, M, D)
        for signs, pinned in list_faces(members):
            # The totals in the face: those on the arc, and the samples whose lines contain it.
            around, walls = v, self._list_walls(group, part)
            for member, sign in enumerate(signs):
                if sign:
                    turned = np.where(flips[:, member], -sign, sign)
                    negative = (turned < 0).astype(int)
                    around = around + sides[negative, lines[:, member]][:, None]
                    walls.append((normals[:, member, None], turned[:, None]))
            # The projection onto the span of the face: all, a hyperplane, or the plane itself.
            onto = np.eye(self._rank)[None]
            if pinned == "plane":
                onto = np.einsum("pkd,pke->pde", basis, basis)
            elif pinned is not None:
                normal = normals[:, pinned]
                onto = onto - normal[:, :, None] * normal[:, None, :]
            for projected, bounds in self._find_critical(around, onto):
                inside = self._find_inside(projected, bounds, blur, walls)
                critical = found.consider(
                    np.concatenate([projected[inside[0]], -projected[inside[1]]]),
                    np.concatenate([bounds[inside[0]], bounds[inside[1]]]),
                    blur,
                    steepness,
                )
                reached = max(reached, critical)
        return reached

    def _evaluate_sums(self, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The sums at directions u (P, E, D), from the totals v of the active terms there."""
        if self._power == 1:
            return np.einsum("ped,ped->pe", v, u)
        return np.einsum("ped,pedk,pek->pe", u, v.reshape(*u.shape, self._rank), u)

    def _find_critical(
        self, v: np.ndarray, onto: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The critical points of the sum in the span of a face, up to their sign, with its size."""
        if self._power == 1:
            projected = np.einsum(
                "ped,pdk->pek", v, np.broadcast_to(onto, (len(v), *onto.shape[1:]))
            )
            return [(projected, np.linalg.norm(projected, axis=2))]
        forms = v.reshape(*v.shape[:2], self._rank, self._rank)
        eigenvalues, vectors = np.linalg.eigh(
            np.matmul(np.matmul(onto[:, None], forms), onto[:, None])
        )
        # The projection adds eigenvalues 0 outside the span; others than both ends are no extrema.
        return [(vectors[..., k], np.abs(eigenvalues[..., k])) for k in (0, -1)]

    def _find_inside(
        self, projected: np.ndarray, bounds: np.ndarray, blur: float, walls: list[Any]
    ) -> list[np.ndarray]:
        """Whether the directions, and whether their opposites, lie in the closed face."""
        # The sum at a critical point is its length, and for squares the units are `projected`.
        lengths = np.linalg.norm(projected, axis=2)
        size = lengths * (
            PARALLEL + np.divide(blur, bounds, out=np.ones_like(bounds), where=bounds > blur)
        )
        inside = [np.ones(size.shape, dtype=bool), np.ones(size.shape, dtype=bool)]
        for normal, side in walls:  # nearly inside counts: a candidate too many does no harm
            distance = side * (projected * normal).sum(-1)
            inside[0] &= distance >= -size
            inside[1] &= distance <= size
        return inside

    def _list_walls(self, group: _Planes, part: slice) -> list[tuple[np.ndarray, np.ndarray]]:
        """The unit normals of the hyperplanes at both ends of each arc, and its sides of them."""
        order, enters = group.order[part], group.enters[part]
        events = order.shape[1]
        if not events:
            return []
        left, right = (np.arange(shift, events + 1 + shift) % events for shift in (-1, 0))
        directions = split_lengths(self._Z)[1]
        return [
            (directions[order[:, left]], enters[:, left]),
            (directions[order[:, right]], -enters[:, right]),
        ]

    def _enumerate_planes(self) -> list[_Planes]:
        """List the planes in which D - 2 hyperplanes meet, grouped by how many contain them."""
        planes: dict[int, list[Any]] = {}
        seen = set()
        # Choices of dependent or shared hyperplanes lead to a plane that was seen.
        for chosen in combinations(range(len(self._normals)), self._rank - 2):
            self._check_time()
            normals = self._normals[list(chosen)]
            _, sizes, rows = np.linalg.svd(normals.reshape(-1, self._rank))
            span, complement = rows[: len(normals)], rows[len(normals) :]
            tilt = _ROUNDINGS * EPS / max(sizes.min(initial=1.0), EPS)
            near = np.abs(self._normals @ complement.T).max(1) < PARALLEL
            inside = np.flatnonzero(near & bool(chosen))
            if tuple(inside) in seen:
                continue
            seen.add(tuple(inside))
            planes.setdefault(len(inside), []).append(
                (complement, *sort_by_angle(self._normals[inside] @ span.T, inside), tilt)
            )
        return [self._sort_arcs(found) for found in planes.values()]

    def _sort_arcs(self, found: list[Any]) -> _Planes:
        """Sort the arcs of planes by the angles at which samples become active or inactive."""
        basis, lines, flips, tilts = (np.stack(part) for part in zip(*found, strict=True))
        flat = np.einsum("nd,pkd->pnk", self._Z, basis)
        on_plane = (self._line[None, :, None] == lines[:, None, :]).any(-1) | (self._line < 0)[None]
        angle = np.arctan2(flat[:, :, 1], flat[:, :, 0])
        # The angle of what is left of a sample in the plane, and the plane itself.
        lengths, left = np.linalg.norm(self._Z, axis=1), np.linalg.norm(flat, axis=2)
        errors = (_ROUNDINGS * EPS + tilts)[:, None] * lengths
        moves = tilts[:, None] + np.divide(errors, left, out=np.zeros_like(left), where=left > 0)
        moves[on_plane] = 0.0
        events = np.concatenate([angle - np.pi / 2, angle + np.pi / 2], 1)
        events = (events + np.pi) % (2 * np.pi) - np.pi
        enters = np.concatenate([np.ones_like(angle), -np.ones_like(angle)], 1)
        enters[np.concatenate([on_plane, on_plane], 1)] = 0.0
        # Active just after angle -pi: the next event of the sample is its leaving.
        n = angle.shape[1]
        at_start = (events[:, n:] < events[:, :n]) & ~on_plane
        order = np.argsort(events, 1)
        take = np.take_along_axis
        return _Planes(
            basis,
            lines,
            flips,
            (order % n).astype(np.int32),
            take(enters, order, 1),
            take(events, order, 1),
            at_start,
            tilts,
            take(np.concatenate([moves, moves], 1), order, 1),
        )

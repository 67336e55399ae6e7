"""The tree of regions that proves one rival's gap positive in a ball, depth first."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .chain import pull_back
from .inequality import Multipliers, Proof, Region
from .node_search import Finding, Verdict, search_region
from .proof import covers_ball
from .region_relaxation import Question, pass_forward

_MOST_PROJECTIONS = 20
"""Projections onto the boundary at most: they converge in a few, region by region."""
_BEYOND = 1e-9
"""Share by which projections go beyond the boundary, where the gap is 0 up to rounding."""
_LEAST_PROGRESS = 1e-9
"""Share of the distance that a projection must gain."""


@dataclass(frozen=True)
class Answer:
    """What the search about one rival came to."""

    proof: Proof | None  # every leaf of which the judge has accepted
    nearer: bool  # whether a misclassified input was found in the ball
    root: Finding  # what was found about the whole ball


def search_rival(
    question: Question,
    try_point: Callable[[np.ndarray], bool],
    is_over: Callable[[], bool],
    *,
    root: Finding | None = None,
    larger: Finding | None = None,
    most_regions: float = np.inf,
) -> Answer:
    """Search a proof that a gap is positive in a whole ball.

    try_point : whether a point (r,) where the gap may be smallest leads to a misclassified input in
    the ball, which ends the search. root : what is known about the whole ball. larger : about a
    larger ball, from whose multipliers the search begins. most_regions : 1 is the whole ball alone.
    """
    leaves: list[tuple[Region, Multipliers]] = []
    whole = question.root()
    first = root or search_region(question, whole, larger, is_over)
    stack: list[tuple[Region, Finding | None]] = [(whole, None)]
    regions = 0
    while stack and regions < most_regions:
        region, inherited = stack.pop()
        regions += 1
        finding = first
        if regions > 1:
            finding = search_region(question, region, inherited, is_over)
        if finding.verdict is Verdict.PROVED:
            leaves.append((region, finding.multipliers))
            continue
        if finding.verdict is Verdict.STOPPED:
            return Answer(None, False, first)
        # A root that was found earlier has been tried.
        if (root is None or regions > 1) and _try_near(question, finding.point, try_point):
            return Answer(None, True, first)
        if finding.branch is None:  # rounding stopped it
            return Answer(None, False, first)
        stack += [(child, finding) for child in _branch(question, region, finding)]
    if stack or not covers_ball(question.ball, [region for region, _ in leaves]):
        return Answer(None, False, first)
    return Answer(Proof(question.functional, tuple(leaves)), False, first)


def _branch(question: Question, region: Region, finding: Finding) -> list[Region]:
    """Both halves of a region; the one with the minimiser comes last, and is looked at first."""
    assert finding.branch is not None
    layer, unit = finding.branch
    y = pass_forward(question.ball, finding.point)[0][layer][unit]
    side = 1 if question.ball.anchors[layer][unit] + y >= 0 else -1
    halves = []
    for sign in (-side, side):
        signs = list(region.signs)
        signs[layer] = signs[layer].copy()
        signs[layer][unit] = sign
        halves.append(Region(tuple(signs)))
    return halves


def _try_near(question: Question, u: np.ndarray, try_point: Callable[[np.ndarray], bool]) -> bool:
    """Try the nearest point that projections on zeros of the linearized gap lead to."""
    nearest, best = None, question.ball.radius
    length = float(np.linalg.norm(u))
    u = u * min(1.0, best / length) if length > 0 else u
    if _measure_gap(question, u)[0] > 0 and length > 0:
        # Nearest points of a region lie on its sides: a little beyond, the gap may be 0 or less.
        u = u * min(1.0 + _BEYOND, best / float(np.linalg.norm(u)))
    for _ in range(_MOST_PROJECTIONS):
        gap, slope = _measure_gap(question, u)
        if gap <= 0:
            nearest, best = u, float(np.linalg.norm(u))
        size = float(np.abs(slope).max(initial=0.0))
        if size == 0:
            break
        slope, gap = slope / size, gap / size
        # A little beyond the zero: the gap there is negative, not rounding.
        u = (1 + _BEYOND) * (slope @ u - gap) / (slope @ slope) * slope
        if np.linalg.norm(u) >= best * (1 - _LEAST_PROGRESS):
            break
    return nearest is not None and try_point(nearest)


def _measure_gap(question: Question, u: np.ndarray) -> tuple[float, np.ndarray]:
    """The gap at a point of the ball, and its slope."""
    ball = question.ball
    y, t = pass_forward(ball, u)
    gap = question.gap + float(ball.weights[-1].T @ question.functional @ t)
    values = [z + own for z, own in zip(ball.anchors, y, strict=True)]
    return gap, pull_back(question.functional, ball.weights, ball.slopes, values)

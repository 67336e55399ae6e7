"""The search for multipliers that prove one region, or for why there are none."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .inequality import Multipliers, Region
from .leaf import solve_leaf
from .newton_system import take_step
from .program import Program
from .region_bound import bound_gap
from .region_relaxation import (
    Question,
    Relaxation,
    evaluate_bound,
    minimize_sides,
    pass_forward,
    relax,
    rescale,
    unit_minima,
    unscale,
)
from .start import start_multipliers

_FIRST_NU = 0.02
"""Complementarity at the start, as a share of what the first multipliers lack to 1. Smaller ones
block the first steps on 784-256-256-10, where the start is far from the central path.
"""
_INHERITED_NU = 0.015
"""Complementarity from which the regions of a branch go on; later iterates leave them no room: from
0.001 on every third region of 6-10-8-3 has to begin again.
"""
_MOST_STEPS = 60
"""Steps at most. Ten to twenty are usual."""
_CLOSED_GAP = 1e-9
"""The gap at which the bound is the best there is, up to rounding."""
_HOPELESS, _HOPELESS_IN_TREES = 1e-6, 0.1
"""Infeasibility of the moments, from 1, below which a primal value that is as much below 0 ends the
search: no multipliers prove the region, up to that. A region of a tree has to be branched then.
"""
_LEAST_STEP = 0.05
"""A step shorter than this shows that the start was too near the boundary for its distance from the
central path."""
_OUTWARDS = 8.0
"""Factor of the complementarity with which the search begins again then."""
_MOST_TRIES = 5
"""Times that it begins again: 8^5 leads from 1e-3 far beyond any start that is needed."""


class Verdict(Enum):
    """What a search found about a region."""

    PROVED = "the gap is positive on the region"
    OPEN = "no multipliers prove it"
    STOPPED = "the time was over"


@dataclass(frozen=True)
class Finding:
    """What the search of a region found."""

    verdict: Verdict  # PROVED: the judge has accepted the multipliers
    multipliers: Multipliers  # of the proof, or those from which the regions of a branch may start
    nu: float  # the complementarity to start with from there
    value: float  # the best scaled bound
    slope: float  # mu, scaled: by how much the bound changes with the logarithm of the radius
    point: np.ndarray  # (r,): where the gap may be smallest, in the coordinates of the ball
    # layer and unit whose sign is to be fixed next; None if none is free
    branch: tuple[int, int] | None


def search_region(
    question: Question, region: Region, inherited: Finding | None, is_over: Callable[[], bool]
) -> Finding:
    """Search multipliers for a region, from those of a larger one if any."""
    if all((signs != 0).all() for signs in region.signs):
        return _settle_leaf(question, region)
    relaxation = relax(question, region)
    v = None
    if inherited is not None:
        theta, mu = rescale(relaxation, inherited.multipliers)
        value, v = evaluate_bound(relaxation, theta, mu)
    if v is None:
        inherited = None  # or rounding took the room that its multipliers had
        theta, mu = start_multipliers(relaxation)
        value, v = evaluate_bound(relaxation, theta, mu)
    multipliers = unscale(relaxation, theta, mu)
    verdict = _judge(question, region, multipliers) if value > 0 else Verdict.OPEN
    if verdict is Verdict.PROVED or not np.isfinite(value) or v is None:
        point = np.zeros(relaxation.inputs) if v is None else v[: relaxation.inputs]
        return _report(relaxation, verdict, (multipliers, 0.0), value, (theta, mu), point)
    nu = _FIRST_NU * (1 - value) if inherited is None else inherited.nu
    # Iterates that overflow prove nothing, and end the search.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _iterate(relaxation, theta, mu, nu, is_over)


def _judge(question: Question, region: Region, multipliers: Multipliers) -> Verdict:
    """Whether the judge accepts multipliers."""
    bound = bound_gap(question.ball, question.functional, region, multipliers)
    return Verdict.PROVED if bound > 0 else Verdict.OPEN


def _settle_leaf(question: Question, region: Region) -> Finding:
    """Prove a region where the gap is affine, or find the nearest misclassified point in it."""
    ball, gap = question.ball, question.gap
    multipliers, point = solve_leaf(ball, question.functional, region)
    value = bound_gap(ball, question.functional, region, multipliers) / gap
    verdict = Verdict.PROVED if value > 0 else Verdict.OPEN
    slope = multipliers.mu * ball.radius**2 / gap
    point = np.zeros(ball.weights[0].shape[1]) if point is None else point
    return Finding(verdict, multipliers, 0.0, value, slope, point, None)


def _iterate(
    relaxation: Relaxation, theta: np.ndarray, mu: float, nu: float, is_over: Callable[[], bool]
) -> Finding:
    """Iterate until the judge accepts, no better bound is possible, or the time is over."""
    kept, best = (unscale(relaxation, theta, mu), nu), (-np.inf, theta, mu)
    verdict, point = Verdict.OPEN, np.zeros(relaxation.inputs)
    infeasible, tries = 1.0, 0
    # The bound of a whole ball says how much smaller a ball has to be, and is wanted to the end.
    trust = _HOPELESS if (relaxation.open.all(1)).all() else _HOPELESS_IN_TREES
    program, at = Program(relaxation), None
    for _ in range(_MOST_STEPS):
        if is_over():
            verdict = Verdict.STOPPED
            break
        begins = at is None
        try:
            at, gap, most, primal, dual = take_step(program, at or program.start(*best[1:], nu))
            blocked = min(primal, dual) < _LEAST_STEP
        except np.linalg.LinAlgError:
            if not begins:  # rounding has the last word near the optimum
                break
            blocked = True
        if blocked or at is None:
            if tries == _MOST_TRIES:
                break
            # Too far from the central path: begin farther out on it.
            tries, nu, infeasible, at = tries + 1, nu * _OUTWARDS, 1.0, None
            continue
        # The primal value bounds B but for what the moments still lack.
        hopeless = infeasible < trust and most < -infeasible
        infeasible *= 1 - min(primal, 1.0)
        point = at.X[0, 1 : 1 + relaxation.inputs] / at.X[0, 0]
        value, _ = evaluate_bound(relaxation, at.theta, at.mu)
        if value > best[0]:
            best = (value, at.theta, at.mu)
        if value > 0:
            found = unscale(relaxation, at.theta, at.mu)
            verdict = _judge(relaxation.question, relaxation.region, found)
            if verdict is Verdict.PROVED:
                return _report(relaxation, verdict, (found, 0.0), value, best[1:], point)
        if gap / program.pairs > _INHERITED_NU:
            kept = (unscale(relaxation, at.theta, at.mu), gap / program.pairs)
        if gap < _CLOSED_GAP or hopeless:
            break
    return _report(relaxation, verdict, kept, best[0], best[1:], point)


def _report(
    relaxation: Relaxation,
    verdict: Verdict,
    kept: tuple[Multipliers, float],
    value: float,
    best: tuple[np.ndarray, float],
    point: np.ndarray,
) -> Finding:
    """Put a finding together; for open regions with the unit to branch on."""
    u = relaxation.directions @ point * relaxation.question.ball.radius
    branch = None if verdict is Verdict.PROVED else _choose_unit(relaxation, best[0], u)
    return Finding(verdict, *kept, value, float(best[1]), u, branch)


def _choose_unit(
    relaxation: Relaxation, theta: np.ndarray, u: np.ndarray
) -> tuple[int, int] | None:
    """The free unit whose h is farthest below its -psi at the point u."""
    free = relaxation.open.all(1)
    if not free.any():
        return None
    y = pass_forward(relaxation.question.ball, u)[0]
    places = zip(relaxation.layers, relaxation.units, strict=True)
    at = np.array([y[k][i] for k, i in places]) / relaxation.reach
    values = minimize_sides(relaxation, theta, at[:, None], at[:, None])
    # The positive side begins at the kink.
    here = np.where(at >= relaxation.low[:, 0], values[:, 0], values[:, 1])
    worst = np.argmax(np.where(free, here - unit_minima(relaxation, theta), -np.inf))
    return int(relaxation.layers[worst]), int(relaxation.units[worst])

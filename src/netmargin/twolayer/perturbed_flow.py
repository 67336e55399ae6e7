"""Perturbed Wasserstein gradient flow in discrete time: gradient descent on weighted particles.

A little of their mass is always renewed.
"""

import math
import operator
import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from ..core.arguments import check_flag, check_seed
from ..core.progress import Progress
from ..core.records import short_repr
from ..core.saved_records import Record
from ..errors import DataError, DivergenceError
from ..nets.threads import fitting_threads
from ..result import Status
from .functionals import Functional
from .particles import Particles, Renewal, Row, read_particles

_LARGEST_GROWTH = 1.1
"""The factor by which L may grow between two records: new mass raises it a little, steps that are
too large raise it without bound.
"""
_SAME_VALUE = 0.05
"""Two step sizes that reach values of L this close to each other are both small enough: the growth
is that of new mass, and not an error of the steps, which would halve with their size.
"""
_LARGEST_HALVINGS = 12
"""If a rate 4,000 times smaller than the given one still raises L, the functional is wrong."""


@dataclass(frozen=True)
class PerturbedFlow(Record):
    """A run of perturbed flow: K records, the first at the start, and the particles at the end.

    Attributes
    ----------
    times : ndarray, shape (K,)
        The times t.
    values : ndarray, shape (K,)
        The objective L[rho_t].
    moments : ndarray, shape (K,)
        The second moments W^2 = int |theta|^2 d rho_t.
    positions : ndarray, shape (N, p)
        The particles at the end.
    weights : ndarray, shape (N,)
        Their weights; all weights and `resting` sum to 1.
    resting : float
        The mass at the origin.
    dropped : float
        What int |theta|^2 d rho lost to the budget of particles, in all.
    dropping_error : float
        The sum of all changes of L, in absolute value, by that.
    rate : float
        The step size at the end.
    status : Status
        FINISHED, or INTERRUPTED after the last record.
    """

    times: np.ndarray
    values: np.ndarray
    moments: np.ndarray
    positions: np.ndarray
    weights: np.ndarray
    resting: float
    dropped: float
    dropping_error: float
    rate: float
    status: Status

    __repr__ = short_repr


def perturbed_flow(
    functional: Functional,
    positions,
    *,
    weights=None,
    sigma: float,
    rate: float,
    steps: int,
    renew_every: int = 10,
    fresh: int = 64,
    budget: int = 2000,
    seed: int = 0,
    records: int = 100,
    progress: bool = True,
) -> PerturbedFlow:
    """Follow perturbed Wasserstein gradient flow of an objective over measures of neurons.

    rho_{t + rate} = rho_t + rate (-sigma rho_t + sigma U - div(v[rho_t] rho_t)), v = -grad L', U
    uniform on the unit sphere of positions. Every particle takes a step theta_j - rate grad
    L'(theta_j). After `renew_every` of them all weights shrink by (1 - sigma rate)^renew_every, and
    the mass that they lose goes to `fresh` new particles on the sphere.

    More than `budget` particles are reduced to it: half of it are those of largest mass w_j
    |theta_j|^2, the others those that grow fastest, and the rest moves to the origin, where a
    neuron contributes nothing. By a 2-homogeneous h with |h| <= B on the sphere, int h d rho
    changes by at most B times what is dropped.

    Where L grows by a tenth between two records, or is not finite, the run goes back to the last
    record and halves its rate until L falls or no longer depends on it, with a warning. Ctrl-C
    returns the records so far and the particles at the last of them, with `Status.INTERRUPTED`.

    Parameters
    ----------
    functional : Functional
        The objective L, such as `regularized_logistic(X, y, regularization=0.1)`.
    positions : array_like, shape (N, p)
        The particles at the start.
    weights : array_like, shape (N,), optional
        Their weights, > 0 with sum 1; equal by default.
    sigma : float
        The fraction of mass renewed per unit of time, in [0, 1); 0 is Wasserstein gradient flow.
    rate : float
        The step size, positive, with sigma rate < 1.
    steps : int
        The length of the run in units of the given rate.
    renew_every : int, default 10
        After how many steps mass is renewed.
    fresh : int, default 64
        How many new particles share the renewed mass.
    budget : int, default 2000
        How many particles are kept at most.
    seed : int, default 0
        Seed of the new particles.
    records : int, default 100
        How often L is recorded, at most once a step.
    progress : bool, default True
        Whether to show time, objective and mass as they come.

    Returns
    -------
    PerturbedFlow
        Records of shape (K,), and the particles at the end, all in float64.

    Raises
    ------
    DataError
        If positions or weights have wrong shapes, are not finite, or not a probability.
    ValueError
        If another argument is out of its range.
    DivergenceError
        If L grows at every step size.

    Examples
    --------
    The output of the only neuron is <= 0, so that it can only shrink; new ones save the run.

    >>> import netmargin as nm
    >>> X, y = [[1.0], [-1.0]], [1, 1]
    >>> problem = nm.twolayer.regularized_logistic(X, y, regularization=0.1)
    >>> options = {"rate": 0.1, "steps": 3000, "progress": False}
    >>> run = nm.twolayer.perturbed_flow(problem, [[1.0, 0.0, -1.0]], sigma=1e-4, **options)
    >>> best = nm.solvers.f1_logistic(X, y, regularization=0.1).objective
    >>> bool(run.values[-1] < 1.001 * best), bool(abs(run.weights.sum() + run.resting - 1) < 1e-12)
    (True, True)

    Source: Wei et al. 2018, (4.2) and Theorem E.21.
    """
    start = read_particles(positions, weights)
    _check_ranges(
        sigma,
        rate,
        steps=steps,
        renew_every=renew_every,
        fresh=fresh,
        budget=budget,
        records=records,
    )
    renewal = Renewal(sigma, renew_every, fresh, budget)
    random = torch.Generator().manual_seed(check_seed(seed))
    now, rows, status = start, [_record_start(start, functional)], Status.FINISHED
    times = np.linspace(0, steps * rate, min(records, steps) + 1)
    work = max(budget, len(start.weights)) * functional.features(start.positions[:1]).numel()
    display = Progress(check_flag("progress", progress), "perturbed flow")
    with fitting_threads(work), display:
        try:
            for begin, end in pairwise(times):
                display.draw(
                    begin,
                    times[-1] - begin,
                    f"t {begin:.4g}  L {rows[-1][1]:.6g}  mass {rows[-1][2]:.4g} "
                    f" {len(now.weights)} particles",
                )
                now, row, rate = _advance_halving(
                    now, rows[-1], functional, end, rate, renewal, random
                )
                rows.append(row)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    reached, values, moments = (np.array(column) for column in zip(*rows, strict=True))
    return PerturbedFlow(
        times=reached,
        values=values,
        moments=moments,
        positions=now.positions.numpy(),
        weights=now.weights.numpy(),
        resting=now.resting,
        dropped=now.dropped,
        dropping_error=now.dropping_error,
        rate=rate,
        status=status,
    )


def _check_ranges(sigma: float, rate: float, **counts: int) -> None:
    """Raise ValueError where the perturbation, the rate or a count is out of its range."""
    if (
        any(operator.index(count) < 1 for count in counts.values())
        or not 0 <= sigma < 1
        or not 0 < rate < np.inf
        or sigma * rate >= 1
    ):
        raise ValueError(
            f"need sigma in [0, 1), rate > 0, sigma rate < 1, and all of {counts} at least 1; got"
            f" sigma {sigma}, rate {rate}"
        )


def _record_start(start: Particles, functional: Functional) -> Row:
    """The record of the start. Raises DataError where positions do not fit the functional."""
    try:
        return start.row(0.0, functional)
    except RuntimeError as error:
        raise DataError(
            f"The functional cannot take positions of shape {tuple(start.positions.shape)}: {error}"
        ) from error


def _advance_halving(
    now: Particles,
    row: Row,
    functional: Functional,
    end: float,
    rate: float,
    renewal: Renewal,
    random: torch.Generator,
) -> tuple[Particles, Row, float]:
    """Advance the particles to time `end`, with half the rate as often as L grows by it.

    Returns the particles, their row, and the rate from now on; warns where it is a lower one. New
    mass makes L grow as well, but with half the rate as much: then the rate stays.
    """
    tried, state = math.nan, random.get_state()
    for halvings in range(_LARGEST_HALVINGS):
        slower = rate / 2**halvings
        # The same new particles for every rate, so that only the rate can change L.
        random.set_state(state)
        moved = now.advance(functional, end - row[0], slower, renewal, random)
        reached = moved.row(end, functional)
        if reached[1] <= _LARGEST_GROWTH * row[1]:
            if halvings:
                warnings.warn(
                    f"L grew by more than a tenth between t = {row[0]:.4g} and {end:.4g}; back to"
                    f" the first with rate {slower:.3g}",
                    UserWarning,
                    stacklevel=3,  # at the call of perturbed_flow
                )
            return moved, reached, slower
        if abs(reached[1] - tried) <= _SAME_VALUE * tried:
            return moved, reached, rate
        tried = reached[1]
    raise DivergenceError(
        f"L grows from {row[1]:.4g} at t = {row[0]:.4g} by steps of every size down to"
        f" {slower:.3g}. Check the functional, or take more records."
    )

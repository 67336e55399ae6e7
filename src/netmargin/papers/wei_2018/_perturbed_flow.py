"""Perturbed Wasserstein gradient flow: descent on particles whose mass is renewed a little."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...core.arguments import check_count, check_number, check_seed
from ...core.records import Shown
from ...errors import DataError, DivergenceError
from ...nets.threads import fitting_threads
from ...result import Status
from ._functionals import Functional
from ._particles import Dynamics, Particles, Row, read_particles

_LARGEST_GROWTH = 1.1
"""How far L may grow between records: new mass raises it a little, large steps without bound."""
_SAME_VALUE = 0.05
"""Where half the step reaches a value this close, new mass grows: errors of steps would halve."""
_LARGEST_HALVINGS = 12
"""If a rate 4,000 times smaller than the given one still raises L, the functional is wrong."""


@dataclass(frozen=True)
class PerturbedFlow(Shown):
    """K records of a perturbed flow, the first at the start, and the particles at the end."""

    times: np.ndarray  # (K,)
    values: np.ndarray  # L[rho_t], (K,)
    moments: np.ndarray  # int |theta|^2 d rho_t, (K,)
    end: Particles
    rate: float  # the step size at the end
    status: Status


def perturbed_flow(
    functional: Functional,
    positions: Any,
    *,
    weights: Any = None,
    sigma: float,
    rate: float,
    steps: int,
    renew_every: int = 10,
    fresh: int = 64,
    budget: int = 2000,
    seed: int = 0,
    records: int = 100,
) -> PerturbedFlow:
    """Follow perturbed Wasserstein gradient flow (Wei et al. 2018, (4.2) and Theorem E.21).

    rho_{t + rate} = rho_t + rate (-sigma rho_t + sigma U - div(v[rho_t] rho_t)), v = -grad L', U
    uniform on the unit sphere. The mass lost in `renew_every` steps goes to `fresh` new particles.
    More than `budget` are reduced to it: half are those of largest mass, half those that grow
    fastest; the rest moves to the origin, and int h d rho changes by at most B times what is
    `dropped`, for 2-homogeneous h with |h| <= B on the sphere. Where L grows by a tenth between two
    records, the run goes back and halves its rate until L falls or no longer depends on it. `steps`
    is in units of the given rate. Ctrl-C returns the records so far.
    """
    start = read_particles(positions, weights)
    counts = {"steps": steps, "renew_every": renew_every, "fresh": fresh}
    for name, count in (counts | {"budget": budget, "records": records}).items():
        check_count(name, count)
    sigma = check_number("sigma", sigma, at_least=0, below=1)
    rate = check_number("rate", rate, above=0)
    check_number("sigma rate", sigma * rate, below=1)
    random = torch.Generator().manual_seed(check_seed(seed))
    dynamics = Dynamics(functional, sigma, renew_every, fresh, budget, random)
    try:
        rows = [dynamics.record(start, 0.0)]
    except RuntimeError as error:
        raise DataError(
            f"The functional cannot take positions of shape {tuple(start.positions.shape)}: {error}"
        ) from error
    now, status = start, Status.FINISHED
    times = np.linspace(0, steps * rate, min(records, steps) + 1)
    work = max(budget, len(start.weights)) * functional.features(start.positions[:1]).numel()
    with fitting_threads(work):
        try:
            for end in times[1:]:
                now, row, rate = _advance_halving(dynamics, now, rows[-1], end, rate)
                rows.append(row)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    reached, values, moments = map(np.array, zip(*rows, strict=True))
    return PerturbedFlow(reached, values, moments, now, rate, status)


def _advance_halving(
    dynamics: Dynamics, now: Particles, row: Row, end: float, rate: float
) -> tuple[Particles, Row, float]:
    """Advance to time `end`, with half the rate as often as L grows by it, and warn."""
    tried, state = math.nan, dynamics.random.get_state()
    for halvings in range(_LARGEST_HALVINGS):
        slower = rate / 2**halvings
        # The same new particles for every rate, so that only the rate can change L.
        dynamics.random.set_state(state)
        moved = dynamics.advance(now, end - row[0], slower)
        reached = dynamics.record(moved, end)
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

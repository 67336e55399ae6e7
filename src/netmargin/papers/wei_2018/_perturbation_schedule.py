"""The perturbation and the time that prove that perturbed Wasserstein gradient flow is optimal."""

import math
from dataclasses import dataclass

from ...errors import ArgumentError
from ._functionals import Regularity

_SMALLEST_LOG_SIGMA = -700.0
"""Normal numbers of float64 end at e^-708."""


@dataclass(frozen=True)
class Schedule:
    """A perturbation and a time with which the flow provably comes close to the optimum."""

    sigma: float  # the share of the mass that is renewed per unit of time
    time: float  # t_epsilon, by which L has come within 2 epsilon of its infimum
    window: float  # l, in which new mass grows until it counts


def perturbation_schedule(bounds: Regularity | None, *, epsilon: float, start: float) -> Schedule:
    """The largest sigma = 2^-k for which the proof holds, min_t L[rho_t] <= inf L + 2 epsilon.

    Theorem E.4 of Wei et al. 2018 with explicit constants, its Lemma E.14 and the window l
    corrected (docs/errata.md). `start` is L[rho_0].
    """
    if bounds is None:
        raise ArgumentError("bounds are not known for this functional. Give it a Regularity.")
    if not (epsilon > 0 and start > 0 and bounds.b_V > 0):
        raise ArgumentError(
            f"epsilon, start and b_V must be positive; got {epsilon}, {start}, {bounds.b_V}"
        )
    # From large to small: the first sigma for which the proof goes through is the best.
    for steps in range(1, math.ceil(-_SMALLEST_LOG_SIGMA / math.log(2))):
        found = _follow_proof(bounds, 0.5**steps, epsilon, start)
        if found is not None:
            return found
    raise ArgumentError(
        f"The theory asks for a sigma below e^{_SMALLEST_LOG_SIGMA:g} for epsilon = {epsilon:g}."
        " Ask for less accuracy, or regularize more."
    )


def _follow_proof(
    bounds: Regularity, sigma: float, epsilon: float, start: float
) -> Schedule | None:
    """Follow the proof with this sigma; None where a step of it fails."""
    d = bounds.dimension - 1
    largest = bounds.M_R * bounds.B_Phi + bounds.B_V  # B_L
    # A 2-homogeneous function with values up to B on the sphere has a radial slope up to 2 B there.
    slope = math.hypot(bounds.M_Phi, 2 * bounds.B_Phi)
    c_1 = max(
        bounds.k * bounds.C_R * bounds.B_Phi**2,
        bounds.k * bounds.C_R * bounds.B_Phi * slope,
        largest,
    )
    c_2 = math.sqrt(bounds.k) * bounds.M_R * bounds.M_Phi + bounds.M_V
    moment = 4 * start / bounds.b_V  # W^2, as long as sigma t B_L stays small; checked below
    tau = epsilon / (2 * moment)
    if sigma >= tau / 2:
        return None
    # The share of the sphere within tau / 2c_2 of a point is at least 1 / (2 (4 c_2 / tau)^d).
    share = d * math.log(max(4 * c_2 / tau, 1.0)) + math.log(2)
    window = max(math.log(moment / sigma) + share, 0.0) / (tau - sigma) + 1
    noise = sigma * window * (moment + 1)
    if c_1 * noise >= tau / 8:
        return None
    falls = (
        (tau / 4 - c_1 * noise) ** 2 / (c_1**2 * moment * window) - 3 * c_1 * noise,
        window * epsilon**2 / (4 * moment) - 2 * largest * noise,
    )
    if min(falls) <= 0:
        return None
    time = 2 * window * (math.ceil(start / min(falls)) + 1)
    if sigma * time * largest > min(start, bounds.b_V / 2):  # then W^2 <= 2 start / (b_V / 2)
        return None
    return Schedule(sigma, time, window)

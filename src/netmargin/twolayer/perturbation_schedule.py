"""The perturbation and the time that prove that perturbed Wasserstein gradient flow is optimal."""

import math
from dataclasses import dataclass

from ..core.saved_records import Record
from .functionals import Regularity

_SMALLEST_LOG_SIGMA = -700.0
"""Normal numbers of float64 end at e^-708."""


@dataclass(frozen=True)
class Schedule(Record):
    """A perturbation and a time with which the flow provably comes close to the optimum.

    Attributes
    ----------
    sigma : float
        The fraction of the mass that is renewed per unit of time.
    time : float
        t_epsilon, by which the objective has come within 2 epsilon of its infimum.
    window : float
        l, the time in which new mass grows until it counts.
    """

    sigma: float
    time: float
    window: float


def perturbation_schedule(bounds: Regularity | None, *, epsilon: float, start: float) -> Schedule:
    """The perturbation and the time with which perturbed flow provably comes close to the optimum.

    With this sigma, min over t <= t_epsilon of L[rho_t] is at most inf L + 2 epsilon. The printed
    theorem hides its constants in polynomials; here its proof is followed with explicit ones, and
    sigma is the largest power of 1/2 for which every step of it holds. The numbers are huge and
    tiny: they prove, nobody runs them.

    Parameters
    ----------
    bounds : Regularity
        Constants of the functional, its `regularity`.
    epsilon : float
        Half of the excess over the infimum that is allowed, positive.
    start : float
        L[rho_0], positive.

    Returns
    -------
    Schedule
        sigma, the time t_epsilon and the window l.

    Raises
    ------
    ValueError
        If bounds are None, epsilon, start or b_V are not positive, or sigma would be below e^-700.

    Examples
    --------
    >>> import netmargin as nm
    >>> problem = nm.twolayer.regularized_logistic([[1.0], [-1.0]], [1, -1], regularization=0.1)
    >>> schedule = nm.twolayer.perturbation_schedule(problem.regularity, epsilon=0.1, start=0.7)
    >>> schedule.sigma < 1e-10, schedule.time > 1e6
    (True, True)

    Source: Wei et al. 2018, Theorem E.4, with Lemma E.14 and the window l corrected
    (docs/errata.md).
    """
    if bounds is None:
        raise ValueError("bounds are not known for this functional. Give it a Regularity.")
    if not (epsilon > 0 and start > 0 and bounds.b_V > 0):
        raise ValueError(
            f"epsilon, start and b_V must be positive; got {epsilon}, {start}, {bounds.b_V}"
        )
    # From large to small: the first sigma for which the proof goes through is the best.
    steps = 1
    while -steps * math.log(2) > _SMALLEST_LOG_SIGMA:
        found = _follow_proof(bounds, 0.5**steps, epsilon, start)
        if found is not None:
            return found
        steps += 1
    raise ValueError(
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

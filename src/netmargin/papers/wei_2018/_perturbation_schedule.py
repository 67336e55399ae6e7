"""The perturbation, step and time for which perturbed Wasserstein gradient flow is optimal."""

import math
from dataclasses import dataclass

from ...core.arguments import check_number
from ...errors import ArgumentError
from ._functionals import Regularity

_SMALLEST_LOG_SIGMA = -700.0
"""Normal numbers of float64 end at e^-708."""


@dataclass(frozen=True)
class Schedule:
    """A perturbation and a time with which the flow comes close to the optimum."""

    sigma: float  # the share of the mass that is renewed per unit of time
    time: float  # t_epsilon, by which L has come within 2 epsilon of its infimum
    window: float  # l, in which new mass grows until it counts
    rate: float = 0.0  # eta of descent; 0 for the flow itself


def perturbation_schedule(
    bounds: Regularity | None, *, epsilon: float, start: float, discrete: bool = False
) -> Schedule:
    """The largest sigma = 2^-k for which the proof holds, min_t L[rho_t] <= inf L + 2 epsilon.

    Theorem E.4 of Wei et al. 2018 with explicit constants, its Lemma E.14 and the window l
    corrected (docs/errata.md); `discrete` for Theorem E.21, with an eta. `start` is L[rho_0]. The
    theorems are about differentiable features, for E.21 with a Lipschitz gradient; constants of
    features with kinks, such as ReLU's, give numbers, and no guarantee.
    """
    if bounds is None:
        raise ArgumentError("bounds are not known for this functional. Give it a Regularity.")
    if discrete and not math.isfinite(bounds.C_Phi + bounds.C_V):
        raise ArgumentError("discrete time needs features and penalty with Lipschitz gradients.")
    for name, value in {"epsilon": epsilon, "start": start, "b_V": bounds.b_V}.items():
        check_number(name, value, above=0)
    # From large to small: the first sigma for which the proof goes through is the best.
    for steps in range(1, math.ceil(-_SMALLEST_LOG_SIGMA / math.log(2))):
        found = _follow_proof(bounds, 0.5**steps, epsilon, start, discrete)
        if found is not None:
            return found
    raise ArgumentError(
        f"The theory asks for a sigma below e^{_SMALLEST_LOG_SIGMA:g} for epsilon = {epsilon:g}."
        " Ask for less accuracy, or regularize more."
    )


def bound_slopes(bounds: Regularity) -> tuple[float, float, float]:
    """Bounds on the sphere: of every gradient of Phi_i, of L' along it (c_2), of |L'| (B_L)."""
    # A 2-homogeneous function with values up to B on the sphere has a radial slope up to 2 B there.
    slope = math.hypot(bounds.M_Phi, 2 * bounds.B_Phi)
    c_2 = math.sqrt(bounds.k) * bounds.M_R * bounds.M_Phi + bounds.M_V
    return slope, c_2, bounds.M_R * bounds.B_Phi + bounds.B_V


def largest_step(bounds: Regularity, sigma: float, moment: float) -> float:
    """An eta for which L falls by eta E|v|^2 / 2 at least, but for new mass, while W^2 <= moment.

    With H, S and G, bounds of the Hessian of L', of |v| and of the derivative of Phi on the sphere,
    (1 - eta sigma) (1 - eta H / 2) - C_R G^2 (1 + eta S)^2 eta W^2 >= 1/2.
    """
    _, c_2, largest = bound_slopes(bounds)
    H = math.sqrt(bounds.k) * bounds.M_R * bounds.C_Phi + bounds.C_V
    G2 = bounds.k * bounds.M_Phi**2 + 4 * bounds.B_Phi**2
    # eta S <= 1/4, which multiplies the last term by 25/16 at most.
    falls = sigma + H / 2 + 25 / 16 * bounds.C_R * G2 * moment
    # H / 2 + B_L: particles stay where L' is low (Claim E.18).
    return min(1 / (4 * math.hypot(c_2, 2 * largest)), 0.5 / falls, 1 / (H / 2 + largest))


def bound_growth(bounds: Regularity, share: float, moment: float) -> float:
    """The bound B of dL/dt <= B sigma (W^2 + 1) with a share eta sigma of new mass in a step."""
    _, _, largest = bound_slopes(bounds)
    return largest + share * bounds.C_R * bounds.B_Phi**2 * (moment + 1)


def _follow_proof(
    bounds: Regularity, sigma: float, epsilon: float, start: float, discrete: bool
) -> Schedule | None:
    """Follow the proof with this sigma; None where a step of it fails."""
    d = bounds.dimension - 1
    moment = 4 * start / bounds.b_V  # W^2, as long as sigma t B_L stays small; checked below
    tau = epsilon / (2 * moment)
    if sigma >= tau / 2:
        return None
    rate = largest_step(bounds, sigma, moment) if discrete else 0.0
    slope, c_2, _ = bound_slopes(bounds)
    largest = bound_growth(bounds, rate * sigma, moment)
    c_1 = max(
        bounds.k * bounds.C_R * bounds.B_Phi**2,
        # In steps Phi moves by 1 + eta S <= 5/4 times its slope, and half of E|v|^2 is L's fall.
        bounds.k * bounds.C_R * bounds.B_Phi * slope * (1.25 * math.sqrt(2) if discrete else 1),
        largest,
    )
    # The share of the sphere within tau / 2c_2 of a point is at least 1 / (2 (4 c_2 / tau)^d).
    share = d * math.log(max(4 * c_2 / tau, 1.0)) + math.log(2)
    # In steps |theta|^2 grows by (1 + eta tau / 2)^2, and windows are whole numbers of them.
    growth = tau - sigma
    if discrete:
        growth = (2 * math.log1p(rate * tau / 2) + math.log1p(-rate * sigma)) / rate
    window = max(math.log(moment / sigma) + share, 0.0) / growth + 1 + 2 * rate
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
    return Schedule(sigma, time, window, rate)

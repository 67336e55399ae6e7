"""The norm of quasi-homogeneous margins: the way of a net to the unit sphere along its scaling."""

import math
import sys
from collections.abc import Mapping

from ..homogeneity import Homogeneity

_MOST_STEPS = 100
"""Newton's method takes about ten steps; more would be the rounding of the last ones."""


def log_quasi_norm(
    squares: Mapping[str, float], homogeneity: Homogeneity
) -> tuple[float | None, str]:
    """The a* of `MarginReport.margins`, from ||theta_g||^2 by name, or None and the reason."""
    exponents = homogeneity.quasi_exponents
    if not exponents:
        return None, homogeneity.quasi_reason
    # Exponent 0 is that of weights whose size has no effect; zeros, such as a new bias, stay zeros.
    groups = [(float(k), squares[name]) for name, k in exponents.items() if k and squares[name]]
    if not groups:
        return None, "all parameters that the scores grow with are zero"
    return solve_for_unit_norm(groups), ""


def solve_for_unit_norm(groups: list[tuple[float, float]]) -> float:
    """Solve sum_g e^{-2 a k} square = 1 for a, of pairs (k, square) above 0, in log space."""
    logs = [(k, math.log(square)) for k, square in groups]
    # The log of the sum is convex and falls, and is at least 0 here, where one term is 1: Newton's
    # method rises to the solution without passing it.
    a = max(log / (2 * k) for k, log in logs)
    for _ in range(_MOST_STEPS):
        largest = max(log - 2 * a * k for k, log in logs)
        terms = [(k, math.exp(log - 2 * a * k - largest)) for k, log in logs]
        total = math.fsum(term for _, term in terms)
        slope = -2 * math.fsum(k * term for k, term in terms) / total
        step = -(largest + math.log(total)) / slope
        a += step
        if step <= 2 * sys.float_info.epsilon * abs(a):
            break
    return a

"""The norm of quasi-homogeneous margins: the way of a net to the unit sphere along its scaling."""

from collections.abc import Mapping

import numpy as np
from scipy.special import logsumexp

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
    return solve_for_unit_norm(*np.array(groups).T), ""


def solve_for_unit_norm(exponents: np.ndarray, squares: np.ndarray) -> float:
    """Solve sum_g e^{-2 a exponent_g} square_g = 1 for a, all numbers positive, in log space."""
    logs = np.log(squares)
    # The log of the sum is convex and falls, and is at least 0 here, where one term is 1: Newton's
    # method rises to the solution without passing it.
    a = float((logs / (2 * exponents)).max())
    for _ in range(_MOST_STEPS):
        terms = logs - 2 * a * exponents
        value = float(logsumexp(terms))
        slope = -2 * float(np.exp(terms - value) @ exponents)
        step = -value / slope
        a += step
        if step <= 2 * np.finfo(float).eps * abs(a):
            break
    return a

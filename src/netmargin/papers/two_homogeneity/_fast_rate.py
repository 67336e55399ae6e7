"""A bound of the test error that falls like 1 / n."""

import math
from typing import Any

from ...bounds.bound import INDEPENDENT_SAMPLES, Bound, check_delta, finite_array
from ...bounds.networks import describe_radius
from ...core.arguments import check_number
from ...errors import DataError


def fast_rate_bound(q: Any, *, radius: float, delta: float = 0.05, constant: float = 1e5) -> Bound:
    """A bound of the test error of a normalized two-layer net that falls like 1 / n.

    K (log^3 n Rad^2 / gamma^2 + log(log(4 b / gamma) / delta) / n), Rad <= b / sqrt n, b =
    `radius`, K = `constant`; q are margins over |a|^2 + |b|^2, (n,), and gamma is twice the least.
    "The ubiquity of 2-homogeneity" 2024, Theorem 4.1; Srebro, Sridharan, Tewari 2010, Theorem 5.
    """
    # With |a|^2 + |b|^2 = 2 sum |a_j b_j| twice these margins are those over the l1 norm.
    q = 2 * finite_array(q, "q")
    radius = check_number("radius", radius, above=0)
    constant = check_number("constant", constant, above=0)
    delta = check_delta(delta)
    gamma, n = float(q.min()), len(q)
    if not 0 < gamma <= radius:
        raise DataError(f"margins must be positive and at most radius / 2; got {gamma / 2:.4g}")
    return Bound(
        {
            "complexity, K log^3 n (Rad / gamma)^2": (
                constant * max(math.log(n), 1.0) ** 3 * (radius / gamma) ** 2 / n
            ),
            "confidence": constant * math.log(math.log(4 * radius / gamma) / delta) / n,
        },
        1 - delta,
        (
            INDEPENDENT_SAMPLES,
            describe_radius(radius),
            f"the universal constant of the theorem is at most {constant:g} (chosen)",
        ),
    )

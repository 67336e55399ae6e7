"""The norms that margins are divided by, from the homogeneity of the net."""

import math
import sys
from collections.abc import Mapping

from torch import nn

from ..errors import ModelError, NotHomogeneousError
from ..homogeneity import Homogeneity
from ..homogeneity.sentences import group_blockers
from ..nets.counted_weights import effective_weights
from ..nets.whole_tensors import euclidean_norm

_MOST_STEPS = 100
"""Newton's method takes about ten steps; more would be the rounding of the last ones."""


def normalizing_homogeneity(homogeneity: Homogeneity) -> Homogeneity:
    """The homogeneity that margins are normalized by: without later biases if only they block."""
    try:
        return homogeneity.ignoring_biases()
    except NotHomogeneousError:
        return homogeneity


def measure_norms(
    model: nn.Module, analysis: Homogeneity
) -> tuple[float, dict[str, float | None], dict[str, str]]:
    """||theta|| over the parameters that count, the natural log of every norm that the homogeneity
    of a net allows by normalization, as in `MarginReport.log_norms`, and why one is None, or what
    it leaves out; biases that block count in quasi alone.
    """
    homogeneity = normalizing_homogeneity(analysis)
    norms = _norms(model)
    # Sorted: the norm does not depend on the order of the parameters.
    counted = sorted(norm for name, norm in norms.items() if name not in homogeneity.ignored)
    total = math.hypot(*counted)
    if total == 0:
        raise ModelError(
            "All parameters are zero: the margin has no normalization. Initialize the model first."
        )

    # Logs of norms, never norms to a power: ||theta||^L of a deep net overflows float64.
    def log_norm(parts: list[float]) -> float:
        return math.log(norm) if (norm := math.hypot(*sorted(parts))) > 0 else -math.inf

    groups, members, order = homogeneity.groups, homogeneity.members, homogeneity.order
    logs: dict[str, float | None] = {"global": None, "layers": None, "partial": None}
    if order is not None:
        scaled = [norms[n] for name, k in groups.items() if k > 0 for n in members[name]]
        logs["partial"] = float(sum(k for k in groups.values() if k > 0)) * log_norm(scaled)
        # A partially homogeneous net has an order in its scaled part only.
        if homogeneity.whole:
            logs["global"] = float(order) * log_norm(counted)
            logs["layers"] = math.fsum(
                float(k) * log_norm([norms[n] for n in members[name]])
                for name, k in groups.items()
                if k
            )
    logs["quasi"], why = log_quasi_norm(norms, analysis)
    return total, logs, _reasons(homogeneity, logs) | {"quasi": why}


def _norms(model: nn.Module) -> dict[str, float]:
    """The norm of every parameter. Raises ModelError where one is not finite."""
    norms = {name: euclidean_norm(weight) for name, weight in effective_weights(model)}
    for name, norm in norms.items():
        if not math.isfinite(norm):
            raise ModelError(
                f"Parameter {name!r} holds NaN or infinite values. Load an earlier checkpoint, or"
                " lower the rate."
            )
    return norms


def _reasons(homogeneity: Homogeneity, logs: dict[str, float | None]) -> dict[str, str]:
    """Why a norm is missing, or what it leaves out, in words."""
    if homogeneity.ignored:
        left_out = f"leaves out {', '.join(map(repr, homogeneity.ignored))}"
        return dict.fromkeys(logs, left_out)
    if logs["global"] is not None:
        return {}
    blocked = "; ".join(group_blockers(homogeneity.blockers)) or str(homogeneity.kind)
    reasons = dict.fromkeys(("global", "layers"), f"blocked by {blocked}")
    if logs["partial"] is None:
        reasons["partial"] = "no group of weights scales the scores by a power"
    return reasons


def log_quasi_norm(
    norms: Mapping[str, float], homogeneity: Homogeneity
) -> tuple[float | None, str]:
    """The a* of `MarginReport.margins`, from ||theta_g|| by name, or None and the reason."""
    exponents = homogeneity.quasi_exponents
    if not exponents:
        return None, homogeneity.quasi_reason
    # Exponent 0 is that of weights whose size has no effect; zeros, such as a new bias, stay zeros.
    groups = [(float(k), norms[name]) for name, k in exponents.items() if k and norms[name]]
    if not groups:
        return None, "all parameters that the scores grow with are zero"
    return solve_for_unit_norm(groups), ""


def solve_for_unit_norm(groups: list[tuple[float, float]]) -> float:
    """Solve sum_g e^{-2 a k} norm^2 = 1 for a, of pairs (k, norm) above 0, in log space."""
    logs = [(k, 2 * math.log(norm)) for k, norm in groups]
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

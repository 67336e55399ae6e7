"""The steps of `compiled_steps` without numba, by whole arrays."""

import numpy as np

_LEAST_CURVATURE = 1e-6
"""As in `compiled_steps`."""
_GAPS_PER_PASS = 16
"""As in `compiled_steps`."""


def take_steps(K, y, a, g, caps, diagonal, hard, tol, budget):
    """Descend until the gap of these samples is at most `tol`, or `budget` steps are taken.

    Arguments and result are those of `compiled_steps.take_steps`, and so are the steps, up to
    rounding.
    """
    every = len(a) // _GAPS_PER_PASS + 1
    lengths = np.sqrt(diagonal)
    signs, slacks = y / lengths, g / lengths
    low, high = -a * lengths, (caps - a) * lengths
    for step in range(budget + 1):
        if step % every == 0 or step == budget:
            a[:], g[:] = np.where(high > 0, -low / lengths, caps), slacks * lengths
            if step == budget or measure_gap(a, g, caps, hard) <= tol:
                return step
        d = np.minimum(np.maximum(slacks, low), high)
        i = int(np.argmax(d * (2 * slacks - d)))
        first = d[i]
        # What a step of j gains after that of i, in the curvature that i leaves it.
        q = signs[i] * (signs * K[i])
        rest = slacks - first * q
        d = np.minimum(np.maximum(rest, low), high)
        gains = d * (2 * rest - d) / np.maximum(1 - q * q, _LEAST_CURVATURE)
        gains[i] = -1.0
        k = int(np.argmax(gains))
        if len(a) > 1:
            s, t = solve_two(q[k], slacks[i], slacks[k], (low[i], high[i], low[k], high[k]))
        else:
            s, t = first, 0.0
        for j, change in ((i, s), (k, t)):
            low[j] -= change
            high[j] -= change
        slacks -= s * q + (t * signs[k]) * (signs * K[k])
    return budget


def solve_two(q, u, v, box):
    """The steps (s, t) in a box that minimize (s^2 + 2 q s t + t^2) / 2 - u s - v t."""
    s_low, s_high, t_low, t_high = box
    determinant = 1 - q * q
    if determinant > _LEAST_CURVATURE**2:
        s, t = (u - q * v) / determinant, (v - q * u) / determinant
        if s_low <= s <= s_high and t_low <= t <= t_high:
            return s, t
    edges = [(s, min(max(v - q * s, t_low), t_high)) for s in (s_low, s_high)]
    edges += [(min(max(u - q * t, s_low), s_high), t) for t in (t_low, t_high)]
    edges = [edge for edge in edges if np.isfinite(edge).all()]

    def value(edge: tuple[float, float]) -> float:
        """The objective at a point, 0 at the present one."""
        s, t = edge
        return 0.5 * (s * s + 2 * q * s * t + t * t) - u * s - v * t

    best = min(edges, key=value)
    return best if value(best) < 0 else (min(max(u, s_low), s_high), 0.0)


def measure_gap(a, g, caps, hard):
    """The relative gap of weights (m,) that these samples alone would leave."""
    total, outputs = float(a.sum()), 1.0 - g
    square, least = float(a @ outputs), float(outputs.min())
    if hard:
        return 1.0 - least * total / square if square > 0 else 1.0
    primal = 0.5 * square + float(caps @ np.maximum(g, 0.0))
    if least > 0:  # scaled up, f has no hinge losses
        primal = min(primal, 0.5 * square / least**2)
    return (primal - (total - 0.5 * square)) / primal if primal > 0 else 0.0


def copy_part(K, chosen, part):
    """Write the rows and columns `chosen` (m,) of K (n, n) into `part` (m, m), which may round."""
    for row, i in zip(part, chosen, strict=True):
        row[:] = K[i].take(chosen)

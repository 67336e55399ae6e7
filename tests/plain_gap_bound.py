"""The bound of exact radii once more, in plain loops that share no code with the library."""

import math

import numpy as np


def plain_bound(chain, anchor, radius, ball, functional, region, multipliers) -> float:
    """B by loops, the quadratic by its dense inverse, or -infinity where it is not positive."""
    names = [("d", i) for i in range(len(anchor))]
    for k, signs in enumerate(region.signs[:-1]):
        names += [(k, i) for i in range(len(signs)) if signs[i] == 0]
    n = len(names)
    rows = [(np.eye(n)[i], 0.0) for i in range(len(anchor))]
    hessian = np.diag([multipliers.mu if name[0] == "d" else 0.0 for name in names])
    linear, constant = np.zeros(n), -multipliers.mu * radius**2 / 2
    w = [sum(functional[o] * chain.weights[-1][o, i] for o in range(len(functional)))
         for i in range(chain.weights[-1].shape[1])]  # fmt: skip
    z, total = np.array(anchor), 0.0
    a = z
    for k, signs in enumerate(region.signs):
        z = chain.weights[k] @ a + chain.biases[k]
        a = np.array([v if v >= 0 else s * v for v, s in zip(z, chain.slopes[k], strict=True)])
        last, outputs = k == len(region.signs) - 1, []
        for i, sign in enumerate(signs):
            y = sum(chain.weights[k][i, j] * rows[j][0] for j in range(len(rows)))
            y0 = sum(chain.weights[k][i, j] * rows[j][1] for j in range(len(rows)))
            g, e, al, be, de = multipliers.theta[k][:, i]
            s = chain.slopes[k][i] if sign < 0 else 1.0
            if sign:
                e, be, de = 0.0, 0.0, 0.0
                t, t0 = s * y, s * y0 + s * z[i] - a[i]
            elif last:
                e, be, de, t, t0 = -w[i], 0.0, 0.0, np.zeros(n), 0.0
            else:
                t, t0 = np.eye(n)[names.index((k, i))], 0.0
            outputs.append((t, t0))
            total += plain_unit(
                (g, e, al, be, de), z[i], chain.slopes[k][i], sign, ball.low[k][i], ball.high[k][i]
            )
            e = 0.0 if last else e
            linear = linear + g * y + e * t + al * y0 * y + be * (y0 * t + t0 * y) + de * t0 * t
            constant += g * y0 + e * t0 + al * y0**2 / 2 + be * y0 * t0 + de * t0**2 / 2
            hessian = hessian + al * np.outer(y, y) + de * np.outer(t, t)
            hessian = hessian + be * (np.outer(y, t) + np.outer(t, y))
        rows = outputs
    for i, (t, t0) in enumerate(rows):
        linear, constant = linear + w[i] * t, constant + w[i] * t0
    scales = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    if np.linalg.eigvalsh(hessian / scales / scales[:, None])[0] < 1e-7:
        return -math.inf
    gap = float(functional @ (chain.weights[-1] @ a + chain.biases[-1]))
    return gap + total + constant - linear @ np.linalg.solve(hessian, linear) / 2


def plain_unit(theta, z, slope, sign, low, high) -> float:
    """The minimum of -psi over a unit's graph, by its values at all candidates."""
    g, e, al, be, de = theta
    best = math.inf
    for side, s in ((1, 1.0), (-1, slope)):
        lo, hi = (max(low, -z), high) if side > 0 else (low, min(high, -z))
        if sign == -side or lo > hi:
            continue
        offset = s * z - (z if z >= 0 else slope * z)
        candidates = [lo, hi]
        curvature = al + 2 * be * s + de * s * s
        if curvature != 0:
            vertex = -(g + e * s + be * offset + de * s * offset) / curvature
            candidates += [vertex] if lo < vertex < hi else []
        for y in candidates:
            t = s * y + offset
            psi = g * y + e * t + al * y * y / 2 + be * y * t + de * t * t / 2
            best = min(best, -psi)
    return best

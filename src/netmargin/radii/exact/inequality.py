"""The records that the search of exact radii hands to the judge, and the inequality they prove.

docs/certified-radii.md states and proves it ("The bound"); its symbols stand here with these
indices. A chain has hidden layers k = 1 .. K with act_k(z) = z for z >= 0 and s_k z for z < 0. At
an anchor x^ (its values wear a hat) write d = x - x^ and, for each hidden unit, y = z - z^ and
t = a - a^. For a functional c of the scores the gap is F = G + w . t_K with G = F(x^) and
w = W_{K+1}' c. On a unit whose sign is fixed, t = s y + o; on a free one (y, t) lies on the graph.
The variables v are d and the t of free units of the layers 1 .. K-1.

For any multipliers (g, e, al, be, de) of each unit and any mu >= 0, with
psi(y, t) = g y + e t + al y^2/2 + be y t + de t^2/2, every d of the region has

    F >= G + sum over units of h + min over v of P(v),

    h    = min of -psi over the graph of a unit, its allowed piece if its sign is fixed,
    P(v) = sum over units of psi(y(v), t(v)) + w . t_K + (mu/2)(|d|^2 - rho^2).

Free units of layer K have **e = -w and be = de = 0**, so that t_K drops out of P, and fixed units
of every layer e = be = de = 0. A unit whose multipliers are all 0 has h = 0, whatever its interval:
that is how units that cannot change sign in the ball, fixed at their sign at the anchor, are left
out.
"""

from dataclasses import dataclass

import numpy as np

LINEAR, OUTPUT, SQUARE, PRODUCT, OUTPUT_SQUARE = range(5)
"""The rows of `Multipliers.theta`: g of y, e of t, al of y^2/2, be of y t, de of t^2/2."""


@dataclass(frozen=True)
class Region:
    """A part of a ball: the signs of some hidden units are fixed."""

    # (n_k,) per hidden layer: +1 or -1 where the sign of a unit's input is fixed, 0 where it is
    # free. Units whose interval in the whole ball has no kink in its interior are fixed too.
    signs: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Multipliers:
    """Multipliers that bound a score gap from below on a region, by this module's inequality."""

    # (5, n_k) per hidden layer: g, e, al, be, de of every unit. In the last layer e = -w on free
    # units and be = de = 0; on fixed units of every layer e = be = de = 0.
    theta: tuple[np.ndarray, ...]
    mu: float  # the multiplier of the ball, at least 0


@dataclass(frozen=True)
class Proof:
    """What proves that one rival's gap is positive in a whole ball: regions that cover it."""

    functional: np.ndarray  # (outputs,): 1 at the label, -1 at the rival; the sign of one output
    # those of a tree whose branches fix the sign of one unit each way, depth first
    leaves: tuple[tuple[Region, Multipliers], ...]

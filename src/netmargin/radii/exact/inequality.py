"""The records that the search of exact radii hands to the judge, and the inequality they prove.

A chain has hidden layers k = 1..K, a_0 = x, z_k = W_k a_{k-1} + b_k, a_k = act_k(z_k) with
act_k(z) = z for z >= 0 and s_k z for z < 0 (s_k = 0: ReLU, -1: absolute value), and outputs
z_{K+1} = W_{K+1} a_K + b_{K+1}. For a functional c of the outputs the score gap is
F(x) = c . z_{K+1}(x). At an anchor x^ (its values wear a hat) write d = x - x^ and, per hidden
unit, y = z - z^ and t = a - a^, so that

    y_1 = W_1 d,   y_{k+1} = W_{k+1} t_k,   F = G + w . t_K,   G = F(x^),   w = W_{K+1}' c.

**Where it holds.** A `Region` fixes the sign sigma_ki in {-1, +1} of some units and leaves others
free (sigma = 0). It is the set of all d with |d| <= rho and sigma_ki (z^_ki + y_ki) >= 0 wherever
sigma_ki is not 0. `low <= y <= high` are intervals that are true on that set: those of the whole
ball of radius rho, clipped at the kink (low = -z^ for +, high = -z^ for -) where a sign is fixed.

**Two kinds of units.** On a fixed unit t = s y + o with s = 1, o = z^ - act(z^) for sigma = +1, and
s = s_k, o = s_k z^ - act(z^) for sigma = -1. On a free unit (y, t) lies on the graph

    t = z^ + y - act(z^) for y in [-z^, high],   t = s_k (z^ + y) - act(z^) for y in [low, -z^].

**The variables.** v consists of d and, as variables of their own, of the t of the free units of the
layers 1..K-1. All y_k of all layers, and the t of fixed units, are affine functions of v.

**The inequality.** For any multipliers (g, e, al, be, de) of each unit and any mu >= 0, with
psi(y, t) = g y + e t + al y^2/2 + be y t + de t^2/2, every d of the region has

    F >= G + sum over units of h + min over v of P(v),

    h    = min of -psi(y, t) over the graph of a free unit,
    h    = min of -psi(y, s y + o) over y in [low, high] on a fixed unit,
    P(v) = sum over units of psi(y(v), t(v)) + w . t_K + (mu/2)(|d|^2 - rho^2),

since at a d of the region the psi cancel, P's last term is <= 0, and w . t_K = F - G. The t of free
units of layer K are no variables: there **e = -w and be = de = 0**, so that t_K drops out of P. On
fixed units of every layer e = be = de = 0 (t is a function of y: nothing is lost). P is a quadratic
of v; its minimum is -infinity unless its Hessian S(al, be, de, mu) is positive semidefinite. The
right side is jointly concave in all multipliers. F > 0 on the region is proved where it is positive
in exact arithmetic; a radius is proved by a set of regions that together cover the ball.

A unit whose multipliers are all 0 has h = 0, whatever its interval: that is how units that cannot
change sign in the ball, fixed at their sign at the anchor, are left out.
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

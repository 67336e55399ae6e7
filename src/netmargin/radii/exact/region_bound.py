"""The proved lower bound of a score gap on a region of a ball, given multipliers.

It evaluates the inequality of `inequality.py` in float64, and takes from it what rounding may have
added. All roundings become one number: the inequality is needed at points of the ball only, where
every variable is bounded, so that an error in a coefficient changes its value by no more than the
error times those bounds. The quadratic that is minimized is then exactly the one in memory.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..products import share
from .ball import Ball
from .inequality import Multipliers, Region
from .quadratics import bound_minimum
from .units import Branch, bound_reach, minimize_on_branch, negative_branch, positive_branch


@dataclass
class _Affine:
    """Values as affine functions of the variables: linear v + constant, up to errors."""

    linear: np.ndarray  # (n, variables)
    constant: np.ndarray
    size: np.ndarray  # upper bounds of the sums of the absolute terms in the ball
    error: np.ndarray  # how far the values are at most from the true ones in the ball


def bound_gap(
    ball: Ball, functional: np.ndarray, region: Region, multipliers: Multipliers
) -> float:
    """Prove a lower bound of the smallest score gap c . scores of the net on a region of a ball.

    It holds for any multipliers, and is good for few. Entries for which the inequality leaves no
    choice (e, be and de on fixed units and in the last hidden layer) are not read. Infinite for an
    empty region, -infinity where nothing is proved. Beyond the papers.
    """
    functional = np.asarray(functional, dtype=np.float64)
    last = functional @ ball.weights[-1]
    # The functional's own rounding: entries of `last` are multiplied by t of the last layer.
    last_error = share(len(functional)) * (np.abs(functional) @ np.abs(ball.weights[-1]))
    gap = float(functional @ ball.scores)
    lost = share(len(functional)) * float(np.abs(functional) @ np.abs(ball.scores))
    lost += float(np.abs(functional) @ ball.output_errors)
    quadratic = _Quadratic(ball, region, multipliers.mu)
    units = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(len(ball.slopes)):
            branches = _list_branches(ball, region, k)
            if np.all([branch.low > branch.high for branch in branches], axis=0).any():
                return math.inf  # no point of the ball has such a sign
            theta = _read_theta(multipliers, region, k, last if k == len(ball.slopes) - 1 else None)
            h = np.minimum.reduce([minimize_on_branch(theta, branch) for branch in branches])
            units += float(h.sum())
            lost += share(len(h)) * float(np.abs(h).sum())
            quadratic.add_layer(k, theta, branches)
        quadratic.add_outputs(last, last_error)
        least, rounding = quadratic.bound()
        lower = gap + units + least
        lost += rounding + share(4) * (abs(gap) + abs(units) + abs(least))
        lower -= lost * (1 + share(64))
    return lower if math.isfinite(lower) else -math.inf


def _list_branches(ball: Ball, region: Region, k: int) -> tuple[Branch, Branch]:
    """The positive and the negative branch of all units of a layer; empty where a sign forbids."""
    signs = region.signs[k]
    sides = []
    for make, sign in ((positive_branch, 1), (negative_branch, -1)):
        branch = make(ball.anchors[k], ball.slopes[k], ball.low[k], ball.high[k])
        sides.append(branch._replace(high=np.where(signs == -sign, -np.inf, branch.high)))
    return sides[0], sides[1]


def _read_theta(
    multipliers: Multipliers, region: Region, k: int, last: np.ndarray | None
) -> np.ndarray:
    """The multipliers of a layer, (5, n), as prescribed; `last` is w for the last hidden layer."""
    theta = np.array(multipliers.theta[k], dtype=np.float64)
    free = region.signs[k] == 0
    theta[[1, 3, 4]] *= free
    if last is not None:
        theta[1] = np.where(free, -last, 0.0)
        theta[3:] = 0.0
    return theta


class _Quadratic:
    """P(v), v being u and the free t of all hidden layers but the last, and its rounding."""

    def __init__(self, ball: Ball, region: Region, mu: float) -> None:
        self.ball, self.region, self.mu = ball, region, max(float(mu), 0.0)
        inputs = ball.weights[0].shape[1]
        free = [int((signs == 0).sum()) for signs in region.signs[:-1]]
        self.count = inputs + sum(free)
        self.used = inputs
        self.hessian = np.zeros((self.count, self.count))
        self.hessian[np.arange(inputs), np.arange(inputs)] = self.mu
        self.linear = np.zeros(self.count)
        self.constant = -self.mu * ball.radius**2 / 2
        self.terms = 2 * self.mu * ball.radius**2
        self.error = 0.0
        self.reach = np.full(self.count, ball.radius)
        identity = np.eye(inputs, self.count)
        self.outputs = _Affine(identity, np.zeros(inputs), self.reach[:inputs], np.zeros(inputs))
        self.last_reach = self.reach[:inputs]  # bounds of |t| of the last layer, or of |u|

    def add_layer(self, k: int, theta: np.ndarray, branches: tuple[Branch, Branch]) -> None:
        """Add psi(y, t) of all units of the next layer, and pass on to its outputs t."""
        y = self._apply(self.ball.weights[k])
        free = self.region.signs[k] == 0
        t = self._make_outputs(k, y, free, branches)
        g, e, al, be, de = theta
        last = k == len(self.ball.slopes) - 1
        if last:
            e = np.zeros_like(e)  # it cancels w t, which has not been added
        self.linear += (g + al * y.constant + be * t.constant) @ y.linear
        self.linear += (e + be * y.constant + de * t.constant) @ t.linear
        self._add_products(al, y.linear, y.linear)
        self._add_products(2 * be, y.linear, t.linear)
        self._add_products(de, t.linear, t.linear)
        self.constant += float(g @ y.constant + e @ t.constant)
        self.constant += float(
            (al * y.constant**2 / 2 + be * y.constant * t.constant + de * t.constant**2 / 2).sum()
        )
        g, e, al, be, de = np.abs(np.stack([g, e, al, be, de]))
        self.terms += float(g @ y.size + e @ t.size)
        self.terms += float((al * y.size**2 + 2 * be * y.size * t.size + de * t.size**2).sum())
        by_y = g + al * (y.size + y.error) + be * (t.size + t.error)
        by_t = e + be * (y.size + y.error) + de * (t.size + t.error)
        self.error += float(by_y @ y.error + by_t @ t.error)
        self.outputs = t

    def _add_products(self, weights: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
        """Add sum_i weights_i left_i right_i' to the Hessian, whose symmetric part is used."""
        used = weights != 0
        if used.any():
            self.hessian += left[used].T @ (weights[used, None] * right[used])

    def _apply(self, weight: np.ndarray) -> _Affine:
        """The inputs of the next layer, of its t before."""
        t, size = self.outputs, np.abs(weight)
        linear, constant = weight @ t.linear, weight @ t.constant
        error = size @ (t.error + share(weight.shape[1]) * t.size)
        return _Affine(linear, constant, np.abs(linear) @ self.reach + np.abs(constant), error)

    def _make_outputs(
        self, k: int, y: _Affine, free: np.ndarray, branches: tuple[Branch, Branch]
    ) -> _Affine:
        """The t of a layer: variables if free, 0 in the last one, else affine in y."""
        positive = self.region.signs[k] > 0
        slope = np.where(free, 0.0, np.where(positive, 1.0, self.ball.slopes[k]))
        offset = np.where(positive, branches[0].offset, branches[1].offset)
        offset = np.where(free, 0.0, offset)
        linear, constant = slope[:, None] * y.linear, slope * y.constant + offset
        size = np.abs(slope) * y.size + np.abs(offset)
        error = np.abs(slope) * y.error + share(4) * size
        reach = self.last_reach = np.maximum(*(bound_reach(branch)[1] for branch in branches))
        if k < len(self.ball.slopes) - 1:
            columns = self.used + np.arange(free.sum())
            self.used += len(columns)
            linear[free, columns] = 1.0
            self.reach[columns] = size[free] = reach[free]
        return _Affine(linear, constant, size, error)

    def add_outputs(self, last: np.ndarray, last_error: np.ndarray) -> None:
        """Add w . t_K, for which the rows of free units are 0."""
        t = self.outputs
        self.linear += last @ t.linear
        self.constant += float(last @ t.constant)
        self.terms += float(np.abs(last) @ t.size)
        self.error += float(np.abs(last) @ t.error)
        self.error += float(last_error @ self.last_reach)

    def bound(self) -> tuple[float, float]:
        """A lower bound of the minimum of P, and what its roundings may have added."""
        symmetric = (self.hessian + self.hessian.T) / 2
        least = self.constant + bound_minimum(symmetric, self.linear)
        count = sum(map(len, self.ball.weights)) + self.count + 16
        return least, 2 * (self.error + share(count) * self.terms)

"""The relaxation of one region: its variables, its units, and its bound at given multipliers.

The bound is that of `inequality`, which has the symbols. Here everything is scaled: the score gap
at the anchor is 1, the ball has radius 1, and y and t of a unit are divided by the unit's reach,
the largest |y| of its interval. Whatever the size of the parameters, multipliers are of order 1.
"""

from dataclasses import dataclass

import numpy as np

from ...core.matrices import Floats
from .ball import Ball
from .chain import activate
from .inequality import LINEAR, OUTPUT, OUTPUT_SQUARE, PRODUCT, SQUARE, Multipliers, Region
from .units import Branch, minimize_on_branch, negative_branch, positive_branch


@dataclass(frozen=True)
class Question:
    """Is the score gap c . scores, c the functional, positive in a whole ball?"""

    ball: Ball
    functional: Floats

    @property
    def gap(self) -> float:
        """G, the score gap at the anchor."""
        return float(self.functional @ self.ball.scores)

    @property
    def weight(self) -> Floats:
        """w, the coefficients of the last hidden layer, over the gap: (n_K,)."""
        return self.ball.weights[-1].T @ self.functional / self.gap

    def root(self) -> Region:
        """The whole ball: signs are fixed of the units that cannot change there."""
        return Region(tuple(map(self.ball.fix_stable, range(len(self.ball.anchors)))))


@dataclass(frozen=True)
class Relaxation:
    """The scaled relaxation of one region, whose units are ordered: full ones, then the others.

    Full units are free and have their t among the m variables v; only they have the multipliers e,
    be, de. Others have g and al: free ones of the last hidden layer, and those whose sign the
    region fixes though the ball does not. On each side of a unit t = slope y + offset for y in
    [low, high].
    """

    question: Question
    region: Region
    layers: np.ndarray  # (U,): which unit each one is
    units: np.ndarray
    full: int  # the number of full units
    # (1 + U + full, 1 + m): the functionals 1, y of all units and t of full ones, of (1, v)
    rows: np.ndarray
    inputs: int  # how many variables are coordinates of d: the first ones
    # orthonormal: u = directions @ v[:inputs] * radius in the coordinates of the ball
    directions: np.ndarray
    target: np.ndarray  # 1 + w . t_K without the free units of layer K, as a functional of (1, v)
    weight: np.ndarray  # (U,): w of free units of layer K, 0 elsewhere
    reach: np.ndarray  # (U,): the scale of y and t
    slope: np.ndarray  # (U, 2), as are all below: on the positive and on the negative side
    offset: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open: np.ndarray  # which sides the region has

    @property
    def count(self) -> int:
        """U, the number of units with multipliers."""
        return len(self.units)


def relax(question: Question, region: Region) -> Relaxation:
    """Set up the relaxation of a region."""
    ball, w = question.ball, question.weight
    last = len(ball.anchors) - 1
    signs = question.root().signs
    active = [np.flatnonzero(s == 0) for s in signs]
    layers = np.concatenate([np.full(len(u), k) for k, u in enumerate(active)])
    units = np.concatenate(active)
    is_free = np.concatenate([s[u] == 0 for s, u in zip(region.signs, active, strict=True)])
    is_full = is_free & (layers < last)
    order = np.argsort(~is_full, kind="stable")
    layers, units, is_free, full = layers[order], units[order], is_free[order], int(is_full.sum())

    def gather(values: tuple[np.ndarray, ...]) -> np.ndarray:
        return np.concatenate([v[u] for v, u in zip(values, active, strict=True)])[order]

    parts = (ball.low, ball.high, ball.anchors, region.signs, ball.slopes)
    low, high, value, sign, negative = map(gather, parts)
    reach = np.maximum(-low, high)
    y, t_last = write_functionals(ball, region, layers[:full], units[:full], reach[:full])
    target = (w * (region.signs[last] != 0)) @ t_last
    target[0] += 1.0
    functionals = np.concatenate([gather(tuple(y)) / reach[:, None], target[None]])
    functionals, directions = _reduce_inputs(functionals, ball.weights[0].shape[1])
    size = functionals.shape[1]
    branches = [make(value, negative, low, high) for make in (positive_branch, negative_branch)]
    is_last = is_free & (layers == last)
    return Relaxation(
        question=question,
        region=region,
        layers=layers,
        units=units,
        full=full,
        rows=np.concatenate([np.eye(1, size), functionals[:-1], np.eye(full, size, size - full)]),
        inputs=directions.shape[1],
        directions=directions,
        target=functionals[-1],
        weight=np.where(is_last, w[np.where(is_last, units, 0)], 0.0) * reach,
        reach=reach,
        slope=np.stack([np.ones_like(negative), negative], 1),
        offset=np.stack([branch.offset for branch in branches], 1) / reach[:, None],
        low=np.stack([branch.low for branch in branches], 1) / reach[:, None],
        high=np.stack([branch.high for branch in branches], 1) / reach[:, None],
        open=np.stack([sign >= 0, sign <= 0], 1),
    )


_NONE = np.zeros(0, int)


def write_functionals(
    ball: Ball,
    region: Region,
    layers: np.ndarray = _NONE,
    units: np.ndarray = _NONE,
    reach: np.ndarray = _NONE,
) -> tuple[list[np.ndarray], np.ndarray]:
    """y of every hidden layer and t of the last one as functionals of (1, v), scaled by reach."""
    inputs = ball.weights[0].shape[1]
    t = np.zeros((inputs, 1 + inputs + len(units)))
    t[:, 1 : 1 + inputs] = np.eye(inputs) * ball.radius
    y = []
    for k, (value, signs) in enumerate(zip(ball.anchors, region.signs, strict=True)):
        y.append(ball.weights[k] @ t)
        negative = ball.slopes[k]
        slope = np.where(signs > 0, 1.0, np.where(signs < 0, negative, 0.0))
        t = slope[:, None] * y[-1]
        t[:, 0] += np.where(signs == 0, 0.0, slope * value - activate(value, negative))
        here = np.flatnonzero(layers == k)
        t[units[here], 1 + inputs + here] = reach[here]
    return y, t


def _reduce_inputs(functionals: np.ndarray, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep only directions of d that some functional of (1, v) sees; returns these, too."""
    seen = functionals[:, 1 : 1 + inputs]
    if len(seen) >= inputs:
        return functionals, np.eye(inputs)
    directions, triangle = np.linalg.qr(seen.T)
    kept = [functionals[:, :1], triangle.T, functionals[:, 1 + inputs :]]
    return np.concatenate(kept, 1), directions


def quadratic_matrix(relaxation: Relaxation, theta: np.ndarray, mu: float) -> np.ndarray:
    """The matrix M, (1 + m, 1 + m), with P(v) = (1, v) M (1, v)' / 2; theta is (U, 5), scaled."""
    rows, count, full = relaxation.rows, relaxation.count, relaxation.full
    y, t = rows[1 : 1 + count], rows[1 + count :]
    weighted = theta[:, SQUARE, None] * y
    weighted[:full] += theta[:full, PRODUCT, None] * t
    matrix: np.ndarray = y.T @ weighted
    inner = theta[:full, PRODUCT, None] * y[:full] + theta[:full, OUTPUT_SQUARE, None] * t
    matrix += t.T @ inner
    linear = relaxation.target + theta[:, LINEAR] @ y + theta[:full, OUTPUT] @ t
    matrix[0] += linear
    matrix[:, 0] += linear
    inputs = np.arange(1, 1 + relaxation.inputs)
    matrix[inputs, inputs] += mu
    matrix[0, 0] -= mu
    return matrix


def unit_minima(relaxation: Relaxation, theta: np.ndarray) -> np.ndarray:
    """h of every unit, (U,): the minimum of -psi over its open sides."""
    minima = minimize_sides(relaxation, theta, relaxation.low, relaxation.high)
    return np.where(relaxation.open, minima, np.inf).min(1)


def minimize_sides(
    relaxation: Relaxation, theta: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The minima of -psi over intervals on both sides, (U, 2)."""
    g, e, al, be, de = theta.T[..., None]
    e = e - relaxation.weight[:, None]  # that of free units of the last layer is -w
    branch = Branch(relaxation.slope, relaxation.offset, low, high)
    return minimize_on_branch((g, e, al, be, de), branch)


def evaluate_bound(
    relaxation: Relaxation, theta: np.ndarray, mu: float
) -> tuple[float, np.ndarray | None]:
    """The scaled bound B at multipliers, and the minimiser v; -infinity and None without one."""
    matrix = quadratic_matrix(relaxation, theta, mu)
    try:
        factor = np.linalg.cholesky(matrix[1:, 1:])
    except np.linalg.LinAlgError:
        return -np.inf, None
    solved = np.linalg.solve(factor, matrix[1:, 0])
    value = float((matrix[0, 0] - solved @ solved) / 2 + unit_minima(relaxation, theta).sum())
    return value, -np.linalg.solve(factor.T, solved)


def unscale(relaxation: Relaxation, theta: np.ndarray, mu: float) -> Multipliers:
    """The multipliers of the net itself, for the judge."""
    question, reach = relaxation.question, relaxation.reach
    powers = np.stack([reach, reach, reach**2, reach**2, reach**2], 1)
    scaled = question.gap * theta / powers
    scaled[:, OUTPUT] -= question.gap * relaxation.weight / reach
    found = []
    for k, value in enumerate(question.ball.anchors):
        here, own = relaxation.layers == k, np.zeros((5, len(value)))
        own[:, relaxation.units[here]] = scaled[here].T
        found.append(own)
    return Multipliers(tuple(found), float(question.gap * mu / question.ball.radius**2))


def rescale(relaxation: Relaxation, multipliers: Multipliers) -> tuple[np.ndarray, float]:
    """Scaled multipliers from those of the net, which may come from a larger region.

    Where this region fixes the sign of a unit that was free there, t = s y + o is put into its
    psi: the bound does not drop, and the quadratic stays positive definite.
    """
    question, reach = relaxation.question, relaxation.reach
    theta = np.empty((relaxation.count, 5))
    for k, own in enumerate(multipliers.theta):
        here = relaxation.layers == k
        theta[here] = own[:, relaxation.units[here]].T
    theta *= np.stack([reach, reach, reach**2, reach**2, reach**2], 1) / question.gap
    fixed = ~relaxation.open.all(1)
    side = np.where(relaxation.open[:, 0], 0, 1)
    index = np.arange(relaxation.count)
    s, o = relaxation.slope[index, side], relaxation.offset[index, side]
    _, e, _, be, de = theta.T.copy()
    theta[:, LINEAR] += np.where(fixed, e * s + be * o + de * s * o, 0.0)
    theta[:, SQUARE] += np.where(fixed, 2 * be * s + de * s * s, 0.0)
    theta[relaxation.full :, OUTPUT] = 0.0
    theta[relaxation.full :, PRODUCT:] = 0.0
    return theta, multipliers.mu * question.ball.radius**2 / question.gap


def pass_forward(ball: Ball, u: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Compute y of every hidden layer at a point u of the ball, and t of the last one."""
    y, t = [], u
    for weight, z, slope in zip(ball.weights, ball.anchors, ball.slopes, strict=False):
        y.append(weight @ t)
        t = activate(z + y[-1], slope) - activate(z, slope)
    return y, t

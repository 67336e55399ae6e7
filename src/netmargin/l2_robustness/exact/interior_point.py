"""The best multipliers of a relaxation, by a primal-dual interior point method.

Maximizing B over all multipliers is a semidefinite program: maximize sigma + sum of tau over units,
such that P - sigma >= 0 for all v (one matrix S of size 1 + m), and on each side [l, u] of a unit's
graph -psi - tau - kappa (y - l)(u - y) >= 0 for all y (a 2 x 2 matrix) with kappa >= 0. Its primal
variables are moments of (1, v) and, per side, of (1, y): Shor's relaxation with the convex hull of
each unit's graph. Directions are those called HKM (Helmberg, Rendl, Vanderbei and Wolkowicz 1996)
with Mehrotra's corrector. tau and kappa are eliminated unit by unit. Every other multiplier belongs
to a product f_i f_j of two functionals, so that the Schur matrix is made of products of entries of
F X F' and F S^-1 F'.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from .multipliers import LINEAR, OUTPUT, OUTPUT_SQUARE, PRODUCT, SQUARE
from .relaxation import Relaxation, quadratic_matrix, widened

_STEP = 0.95
"""Share of the step to the boundary that is taken."""
_RIDGES = (1e-13, 1e-11, 1e-9)
"""Relative ridges of the Schur matrix, the first with which it has a Cholesky factor: 1e-8 stalls
along nearly flat multipliers.
"""
_CENTRING_STEPS = 50
"""Newton steps for tau and kappa of all units at the start, at most: three variables a unit."""
_CENTRED = 0.1
"""The Newton decrement at which they are near enough to the centre."""
_LEAST_CENTRING, _MOST_CENTRING = 0.02, 0.8
"""Limits of the share of the complementarity that a step keeps; between them Mehrotra's square of
what the predictor leaves.
"""
_SHORT_PREDICTION, _CENTRING_OF_SHORT = 0.2, 0.6
"""Steps of the predictor below the first keep the second: away from the central path it comes
first to go back there.
"""
_LEAST_PREDICTION = 0.1
"""Steps of the predictor below which there is no corrector: with one, 784-256-256-10 needs twice as
many steps.
"""
_ONE = slice(0, 1)
_SYMMETRIC = np.array([1.0, 2.0, 1.0])
"""Weights of the entries (11, 12, 22) of symmetric 2 x 2 matrices in their inner product."""


@dataclass
class Iterate:
    """Multipliers and moments of one iteration.

    Attributes
    ----------
    theta : float64 array, (U, 5)
    mu, sigma : float
    tau : float64 array, (U,)
    kappa : float64 array, (U, 2)
    X : float64 array, (1 + m, 1 + m)
    sides : float64 array, (U, 2, 3)
        The moments of (1, y) on each side: entries 11, 12, 22.
    slack : float64 array, (U, 2)
        The primal variables of kappa >= 0.
    mu_slack : float
        That of mu >= 0.
    """

    theta: np.ndarray
    mu: float
    sigma: float
    tau: np.ndarray
    kappa: np.ndarray
    X: np.ndarray
    sides: np.ndarray
    slack: np.ndarray
    mu_slack: float


@dataclass(frozen=True)
class _Kind:
    """One kind of multiplier: rows i and j of its functionals, its factor, its place."""

    column: int
    i: slice
    j: slice
    factor: float
    place: slice


class InteriorPoint:
    """The semidefinite program of one relaxation, and iterations on it.

    Parameters
    ----------
    relaxation : Relaxation
        The relaxation.
    theta : float64 array, (U, 5)
        Scaled multipliers with a positive definite quadratic, to start from.
    mu : float
        The multiplier of the ball.
    nu : float
        The complementarity of each pair at the start.
    """

    def __init__(self, relaxation: Relaxation, theta: np.ndarray, mu: float, nu: float):
        self.relaxation = relaxation
        count, full = relaxation.count, relaxation.full
        y, first, t = slice(1, 1 + count), slice(1, 1 + full), slice(1 + count, None)
        ends = np.cumsum([0, count, count, full, full, full])
        self.kinds = [
            _Kind(column, i, j, factor, slice(int(a), int(b)))
            for (column, i, j, factor), a, b in zip(
                [
                    (LINEAR, _ONE, y, 1.0),
                    (SQUARE, y, y, 0.5),
                    (OUTPUT, _ONE, t, 1.0),
                    (PRODUCT, first, t, 1.0),
                    (OUTPUT_SQUARE, t, t, 0.5),
                ],
                ends[:-1],
                ends[1:],
                strict=True,
            )
        ]
        self.sigma_at = int(ends[-1])
        self.kinds.append(_Kind(-1, _ONE, _ONE, -1.0, slice(self.sigma_at, self.sigma_at + 1)))
        self.open = relaxation.open
        self.map, self.fixed = _map_sides(relaxation)
        size = len(relaxation.rows[0])
        self.pairs = size / 2 + 2 * int(self.open.sum()) + 1
        tau, kappa = self._centre(theta, nu)
        matrix = quadratic_matrix(relaxation, theta, mu)
        inner = np.linalg.solve(matrix[1:, 1:], matrix[1:, 0])
        sigma = float(matrix[0, 0] - matrix[0, 1:] @ inner - nu) / 2
        matrix[0, 0] -= 2 * sigma
        inverse = _invert_sides(self._side_matrices(theta, tau, kappa))
        self.at = Iterate(
            theta.copy(),
            mu,
            sigma,
            tau,
            kappa,
            nu * np.linalg.inv(matrix),
            nu * inverse,
            nu / kappa,
            nu / mu,
        )

    def _side_matrices(self, theta: np.ndarray, tau: np.ndarray, kappa: np.ndarray) -> np.ndarray:
        """The 2 x 2 matrices of both sides, (U, 2, 3)."""
        local = np.concatenate([theta, tau[:, None], kappa], 1)
        return self.fixed + np.einsum("ubrp,up->ubr", self.map, local)

    def _centre(self, theta: np.ndarray, nu: float) -> tuple[np.ndarray, np.ndarray]:
        """Maximize tau + nu (sum of log kappa + (1/2) log det of its sides) for every unit."""
        zero = np.zeros((len(theta), 1))
        fixed = self._side_matrices(theta, zero[:, 0], np.concatenate([zero, zero], 1))
        constant, slope, square = fixed[..., 0] / 2, fixed[..., 1], fixed[..., 2]
        kappa = np.where(self.open, np.maximum(-square / 2, 0.0) + nu, 1.0)
        least = constant - kappa - slope**2 / (2 * np.maximum(square + 2 * kappa, 1e-300))
        tau = np.where(self.open, least, np.inf).min(1) - nu
        for _ in range(_CENTRING_STEPS):
            inverse = _invert_sides(self._side_matrices(theta, tau, kappa))
            hessian, gradient = self._local_system(
                nu * inverse, inverse, nu / kappa, kappa, nu, None, None
            )
            step = np.linalg.solve(hessian[:, 5:, 5:], gradient[:, 5:, None])[..., 0]
            # (1/2) log det is self-concordant up to a factor of 2: such a step stays inside.
            size = np.sqrt(2 * np.maximum((step * gradient[:, 5:]).sum(1), 0) / nu)
            tau = tau + step[:, 0] / (1 + size)
            kappa = kappa + step[:, 1:] / (1 + size)[:, None]
            if size.max(initial=0.0) < _CENTRED:
                break
        return tau, kappa

    def _local_system(self, sides, inverse, slack, kappa, nu, side_corrector, slack_corrector):
        """Schur matrices (U, 8, 8) and right sides (U, 8) of theta, tau, kappa of every unit."""
        products = _multiply_sides(sides, inverse) / 2
        mapped = np.einsum("ubrs,ubsp->ubrp", products, self.map)
        hessian = np.einsum("ubrp,ubrq->upq", self.map, mapped)
        wanted = nu * inverse if side_corrector is None else nu * inverse - side_corrector
        right = np.einsum("ubrp,ubr->up", self.map, wanted * _SYMMETRIC) / 2
        right[:, 5] += 1.0
        diagonal = np.where(self.open, slack / kappa, 1.0)
        hessian[:, [6, 7], [6, 7]] += diagonal
        scalar = nu / kappa if slack_corrector is None else (nu - slack_corrector) / kappa
        right[:, 6:] += np.where(self.open, scalar, 0.0)
        return hessian, right

    def step(self) -> tuple[float, float]:
        """Do one iteration with predictor and corrector.

        Returns the gap before it, and the primal value before it: where the moments are feasible,
        no multipliers have a larger B.
        """
        at, relaxation = self.at, self.relaxation
        matrix = quadratic_matrix(relaxation, at.theta, at.mu)
        matrix[0, 0] -= 2 * at.sigma
        side = self._side_matrices(at.theta, at.tau, at.kappa)
        system = _System(self, matrix, side)
        gap = self._measure_gap(at, matrix, side)
        nu, dual_value = gap / self.pairs, float(at.sigma + at.tau.sum())
        affine = system.solve(0.0, None)
        primal, dual = system.longest_steps(affine)
        moved = _move(at, affine, primal, dual)
        after = self._measure_gap(moved, matrix + dual * affine.S, side + dual * affine.side_change)
        centring = min(max((max(after, 0.0) / gap) ** 2, _LEAST_CENTRING), _MOST_CENTRING)
        if min(primal, dual) < _SHORT_PREDICTION:
            centring = _CENTRING_OF_SHORT
        # Second-order terms of a direction that is blocked at once mislead.
        useful = min(primal, dual) > _LEAST_PREDICTION
        direction = system.solve(centring * nu, affine if useful else None)
        primal, dual = system.longest_steps(direction)
        self.at = _move(at, direction, min(1.0, _STEP * primal), min(1.0, _STEP * dual))
        self.steps = (primal, dual)
        return gap, dual_value + gap

    def _measure_gap(self, at: Iterate, matrix: np.ndarray, side: np.ndarray) -> float:
        total = (at.X * matrix).sum() / 2 + (at.slack * at.kappa)[self.open].sum()
        total += ((at.sides * side * _SYMMETRIC).sum(2) / 2)[self.open].sum()
        return float(total + at.mu * at.mu_slack)


@dataclass
class _Direction:
    theta: np.ndarray
    mu: float
    sigma: float
    tau: np.ndarray
    kappa: np.ndarray
    S: np.ndarray
    side_change: np.ndarray
    X: np.ndarray
    sides: np.ndarray
    slack: np.ndarray
    mu_slack: float


class _System:
    """The Schur system at one iterate, factored once, solved for predictor and corrector."""

    def __init__(self, program: InteriorPoint, matrix: np.ndarray, side: np.ndarray):
        self.program, self.matrix, self.side = program, matrix, side
        at, rows = program.at, program.relaxation.rows
        self.factor = np.linalg.cholesky(matrix)
        half = solve_triangular(self.factor, np.eye(len(matrix)), lower=True, check_finite=False)
        self.inverse = half.T @ half
        self.half = half
        self.side_inverse = _invert_sides(side)
        self.XF, self.SF = at.X @ rows.T, self.inverse @ rows.T
        self.FX, self.FS = rows @ self.XF, rows @ self.SF
        self._assemble()

    def _assemble(self) -> None:
        program, at = self.program, self.program.at
        kinds, n = program.kinds, program.sigma_at + 2
        X, S, H = self.FX, self.FS, np.empty((n, n))
        d = slice(1, 1 + program.relaxation.inputs)
        for a, p in enumerate(kinds):
            for q in kinds[: a + 1]:
                block = X[p.j, q.i] * S[p.i, q.j]
                block += X[p.j, q.j] * S[p.i, q.i]
                block += X[p.i, q.i] * S[p.j, q.j]
                block += X[p.i, q.j] * S[p.j, q.i]
                block *= p.factor * q.factor / 2
                H[p.place, q.place] = block
                if p is not q:
                    H[q.place, p.place] = block.T
            mixed = np.einsum("dp,dp->p", self.XF[d, p.j], _wide(self.SF[d, p.i], self.XF[d, p.j]))
            mixed += np.einsum("dp,dp->p", _wide(self.XF[d, p.i], self.SF[d, p.j]), self.SF[d, p.j])
            H[-1, p.place] = p.factor * mixed / 2
        Xd, Sd = at.X[d, d], self.inverse[d, d]
        zero = kinds[-1].place.start
        # A_mu = E - e0 e0', and sigma's is -2 e0 e0'.
        with_e0 = H[-1, zero]
        H[-1, : zero + 1] += H[zero, : zero + 1] / 2
        H[-1, -1] = (Xd * Sd).sum() / 2 + with_e0 + H[zero, zero] / 4
        H[-1, -1] += at.mu_slack / at.mu
        H[: zero + 1, -1] = H[-1, : zero + 1]
        self.local, _ = program._local_system(
            at.sides, self.side_inverse, at.slack, at.kappa, 0.0, None, None
        )
        outer = self.local[:, :5, 5:]
        self.reduced = np.linalg.solve(self.local[:, 5:, 5:], outer.transpose(0, 2, 1))
        own = self.local[:, :5, :5] - outer @ self.reduced
        for p in kinds[:-1]:
            for q in kinds[:-1]:
                both = min(p.place.stop - p.place.start, q.place.stop - q.place.start)
                index = np.arange(both)
                H[p.place.start + index, q.place.start + index] += own[:both, p.column, q.column]
        if not (np.diag(H) > 0).all():
            raise np.linalg.LinAlgError("rounding has made the Schur matrix indefinite")
        scale = 1 / np.sqrt(np.diag(H))
        H *= scale
        H *= scale[:, None]
        self.scale, self.schur = scale, _factor(H)

    def solve(self, nu: float, affine: _Direction | None) -> _Direction:
        """The direction to complementarity nu, with second-order terms of another direction."""
        program, at = self.program, self.program.at
        relaxation, rows = program.relaxation, program.relaxation.rows
        d = slice(1, 1 + relaxation.inputs)
        wanted, wanted_rows = nu * self.inverse, nu * self.SF
        side_corrector = slack_corrector = None
        mu_right = nu / at.mu
        if affine is not None:
            second = affine.X @ (affine.S @ self.inverse)
            second = (second + second.T) / 2
            wanted = wanted - second
            wanted_rows = wanted @ rows.T
            side_corrector = _twist_sides(affine.sides, affine.side_change, self.side_inverse)
            slack_corrector = affine.slack * affine.kappa
            mu_right -= affine.mu_slack * affine.mu / at.mu
        right = np.zeros(program.sigma_at + 2)
        for p in program.kinds:
            values = (rows[p.i] * wanted_rows[:, p.j].T).sum(1)
            right[p.place] = p.factor * values
        right[program.sigma_at] += 1.0
        trace = wanted[d, d].trace() - wanted[0, 0]
        right[-1] = trace / 2 + mu_right
        _, local = program._local_system(
            at.sides, self.side_inverse, at.slack, at.kappa, nu, side_corrector, slack_corrector
        )
        pushed = local[:, :5] - np.einsum("ulp,ul->up", self.reduced, local[:, 5:])
        for p in program.kinds[:-1]:
            right[p.place] += pushed[: p.place.stop - p.place.start, p.column]
        z = self.scale * cho_solve(self.schur, self.scale * right, check_finite=False)
        theta = np.zeros_like(at.theta)
        for p in program.kinds[:-1]:
            theta[: p.place.stop - p.place.start, p.column] = z[p.place]
        inner = np.linalg.solve(self.local[:, 5:, 5:], local[:, 5:, None])[..., 0]
        inner -= np.einsum("ulp,up->ul", self.reduced, theta)
        tau, kappa = inner[:, 0], np.where(program.open, inner[:, 1:], 0.0)
        S = quadratic_matrix(relaxation, theta, z[-1])
        S[0] -= relaxation.target
        S[:, 0] -= relaxation.target
        S[0, 0] -= 2 * z[-2]
        side_change = program._side_matrices(theta, tau, kappa) - program.fixed
        twisted = at.X @ (S @ self.inverse)
        X = wanted - at.X - (twisted + twisted.T) / 2
        sides = nu * self.side_inverse - at.sides
        sides -= _twist_sides(at.sides, side_change, self.side_inverse)
        slack = nu / at.kappa - at.slack - at.slack * kappa / at.kappa
        mu_slack = mu_right - at.mu_slack - at.mu_slack * z[-1] / at.mu
        if side_corrector is not None and slack_corrector is not None:
            sides -= side_corrector
            slack -= slack_corrector / at.kappa
        return _Direction(
            theta, z[-1], z[-2], tau, kappa, S, side_change, X, sides, slack, mu_slack
        )

    def longest_steps(self, direction: _Direction) -> tuple[float, float]:
        """The steps to the boundary, of the moments and of the multipliers, at most 1 each."""
        program, at = self.program, self.program.at
        half = self.half
        least = [np.linalg.eigvalsh(half @ direction.S @ half.T)[0]]
        least.append(_least_of_sides(self.side_inverse, direction.side_change)[program.open].min())
        least.append((direction.kappa / at.kappa)[program.open].min())
        least.append(direction.mu / at.mu)
        dual = _longest(least)
        if not hasattr(self, "moment_half"):
            factor = np.linalg.cholesky(at.X)
            self.moment_half = solve_triangular(
                factor, np.eye(len(factor)), lower=True, check_finite=False
            )
            self.moment_side_inverse = _invert_sides(at.sides)
        half = self.moment_half
        least = [np.linalg.eigvalsh(half @ direction.X @ half.T)[0]]
        least.append(_least_of_sides(self.moment_side_inverse, direction.sides)[program.open].min())
        least.append((direction.slack / at.slack)[program.open].min())
        least.append(direction.mu_slack / at.mu_slack)
        return _longest(least), dual


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """A Cholesky factor of a matrix with a unit diagonal, and of as small a ridge as there is."""
    for ridge in _RIDGES[:-1]:
        matrix[np.diag_indices(len(matrix))] = 1 + ridge
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
    matrix[np.diag_indices(len(matrix))] = 1 + _RIDGES[-1]
    return cho_factor(matrix, lower=True, check_finite=False)


def _longest(least: list) -> float:
    worst = min(least)
    return min(1.0 / _STEP, -1.0 / worst) if worst < 0 else 1.0 / _STEP


def _wide(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Repeat one column as often as another matrix has columns."""
    return np.broadcast_to(values, like.shape) if values.shape[1] == 1 else values


def _move(at: Iterate, by: _Direction, primal: float, dual: float) -> Iterate:
    return Iterate(
        at.theta + dual * by.theta,
        at.mu + dual * by.mu,
        at.sigma + dual * by.sigma,
        at.tau + dual * by.tau,
        at.kappa + dual * by.kappa,
        at.X + primal * by.X,
        at.sides + primal * by.sides,
        at.slack + primal * by.slack,
        at.mu_slack + primal * by.mu_slack,
    )


def _map_sides(relaxation: Relaxation) -> tuple[np.ndarray, np.ndarray]:
    """The 2 x 2 matrices of the sides as affine functions of (theta, tau, kappa).

    Returns the linear part, (U, 2, 3, 8), and the constant one, (U, 2, 3); a closed side is the
    unit matrix.
    """
    s, o = relaxation.slope, relaxation.offset
    linear = np.zeros((*s.shape, 3, 8))
    linear[..., 1, LINEAR] = -1
    linear[..., 0, OUTPUT], linear[..., 1, OUTPUT] = -2 * o, -s
    linear[..., 2, SQUARE] = -1
    linear[..., 1, PRODUCT], linear[..., 2, PRODUCT] = -o, -2 * s
    linear[..., 0, OUTPUT_SQUARE] = -(o**2)
    linear[..., 1, OUTPUT_SQUARE], linear[..., 2, OUTPUT_SQUARE] = -s * o, -(s**2)
    linear[..., 0, 5] = -2
    weight = relaxation.weight[:, None]
    constant = np.stack([2 * weight * o, weight * s, 0 * o], 2)
    # In coordinates where the side is [-1, 1]: a side as narrow as 1e-8 would leave no digits.
    low, high = widened(relaxation)
    middle, half = (low + high)[..., None] / 2, (high - low)[..., None] / 2
    parts = np.concatenate([linear, constant[..., None]], 3)
    first = parts[..., 0, :] + 2 * middle * parts[..., 1, :] + middle**2 * parts[..., 2, :]
    mixed = half * (parts[..., 1, :] + middle * parts[..., 2, :])
    parts = np.stack([first, mixed, half**2 * parts[..., 2, :]], 2)
    linear, constant = parts[..., :-1], parts[..., -1]
    for side in (0, 1):  # kappa (y - l)(u - y), with kappa in the same units
        linear[:, side, 0, 6 + side], linear[:, side, 2, 6 + side] = -2, 2
    linear[~relaxation.open] = 0
    constant[~relaxation.open] = [1.0, 0.0, 1.0]
    return linear, constant


def _invert_sides(a: np.ndarray) -> np.ndarray:
    determinant = a[..., 0] * a[..., 2] - a[..., 1] ** 2
    return np.stack([a[..., 2], -a[..., 1], a[..., 0]], -1) / determinant[..., None]


def _multiply_sides(x: np.ndarray, r: np.ndarray) -> np.ndarray:
    """tr(E_a X E_c R) for the basis E of symmetric 2 x 2 matrices, (..., 3, 3)."""
    x1, x2, x3 = x[..., 0], x[..., 1], x[..., 2]
    r1, r2, r3 = r[..., 0], r[..., 1], r[..., 2]
    a, b, c = x1 * r2 + x2 * r1, x2 * r2, x3 * r2 + x2 * r3
    middle = 2 * b + x3 * r1 + x1 * r3
    parts = [x1 * r1, a, b, a, middle, c, b, c, x3 * r3]
    return np.stack(parts, -1).reshape(*x1.shape, 3, 3)


def _twist_sides(x: np.ndarray, change: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """The symmetric part of X dS S^-1."""
    x1, x2, x3 = x[..., 0], x[..., 1], x[..., 2]
    c1, c2, c3 = change[..., 0], change[..., 1], change[..., 2]
    r1, r2, r3 = inverse[..., 0], inverse[..., 1], inverse[..., 2]
    p11, p12 = x1 * c1 + x2 * c2, x1 * c2 + x2 * c3
    p21, p22 = x2 * c1 + x3 * c2, x2 * c2 + x3 * c3
    q12, q21 = p11 * r2 + p12 * r3, p21 * r1 + p22 * r2
    return np.stack([p11 * r1 + p12 * r2, (q12 + q21) / 2, p21 * r2 + p22 * r3], -1)


def _least_of_sides(inverse: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The least eigenvalue of S^-1 dS, for 2 x 2 matrices."""
    trace = (inverse * change * _SYMMETRIC).sum(-1)
    determinant = (inverse[..., 0] * inverse[..., 2] - inverse[..., 1] ** 2) * (
        change[..., 0] * change[..., 2] - change[..., 1] ** 2
    )
    return trace / 2 - np.sqrt(np.maximum(trace**2 / 4 - determinant, 0.0))

"""The semidefinite program of one relaxation: its multipliers, its iterates, its gap."""

from dataclasses import dataclass

import numpy as np

from .inequality import LINEAR, OUTPUT, OUTPUT_SQUARE, PRODUCT, SQUARE
from .region_relaxation import Relaxation, quadratic_matrix
from .sides import invert_sides, map_sides

_CENTRING_STEPS = 50
"""Newton steps for tau and kappa of all units at the start, at most: three variables a unit."""
_CENTRED = 0.1
"""The Newton decrement at which they are near enough to the centre."""
_ONE = slice(0, 1)
"""The coordinate of the constant 1, the first of the homogenised variables."""


@dataclass
class Iterate:
    """Multipliers and moments of one iteration."""

    theta: np.ndarray  # (U, 5)
    mu: float
    sigma: float
    tau: np.ndarray  # (U,)
    kappa: np.ndarray  # (U, 2)
    X: np.ndarray  # (1 + m, 1 + m)
    sides: np.ndarray  # (U, 2, 2, 2): the moments of (1, y) on each side
    slack: np.ndarray  # (U, 2): the primal variables of kappa >= 0
    mu_slack: float  # that of mu >= 0

    def move(self, by: "Direction", primal: float, dual: float) -> "Iterate":
        """Take a step of each kind along a direction."""
        steps = dict.fromkeys(("theta", "mu", "sigma", "tau", "kappa"), dual)
        steps |= dict.fromkeys(("X", "sides", "slack", "mu_slack"), primal)
        moved = {name: getattr(self, name) + h * getattr(by, name) for name, h in steps.items()}
        return Iterate(**moved)


@dataclass
class Direction(Iterate):
    """Changes of an iterate, and of the matrices of the multipliers."""

    S: np.ndarray
    side_change: np.ndarray


@dataclass(frozen=True)
class Kind:
    """One kind of multiplier: rows i and j of its functionals, its factor, its place."""

    column: int
    i: slice
    j: slice
    factor: float
    place: slice


class Program:
    """The semidefinite program of one relaxation, as `newton_system` states it.

    `kinds` has theta by kind and sigma, at `sigma_at`; mu comes after all of them. `map` and
    `fixed`, from `map_sides`, make the matrices of the sides from (theta, tau, kappa). There are
    `pairs` complementary pairs: gap / pairs is the complementarity nu.
    """

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation = relaxation
        count, full = relaxation.count, relaxation.full
        y, first, t = slice(1, 1 + count), slice(1, 1 + full), slice(1 + count, None)
        self.kinds, end = [], 0
        for column, i, j, factor, size in (
            (LINEAR, _ONE, y, 1.0, count),
            (SQUARE, y, y, 0.5, count),
            (OUTPUT, _ONE, t, 1.0, full),
            (PRODUCT, first, t, 1.0, full),
            (OUTPUT_SQUARE, t, t, 0.5, full),
            (-1, _ONE, _ONE, -1.0, 1),
        ):
            self.kinds.append(Kind(column, i, j, factor, slice(end, end + size)))
            end += size
        self.sigma_at = end - 1
        self.open = relaxation.open
        self.map, self.fixed = map_sides(relaxation)
        self.pairs = len(relaxation.rows[0]) / 2 + 2 * int(self.open.sum()) + 1

    def start(self, theta: np.ndarray, mu: float, nu: float) -> Iterate:
        """An iterate at given multipliers: of complementarity nu, and without feasible moments."""
        tau, kappa = self._centre(theta, nu)
        matrix = quadratic_matrix(self.relaxation, theta, mu)
        inner = np.linalg.solve(matrix[1:, 1:], matrix[1:, 0])
        sigma = float(matrix[0, 0] - matrix[0, 1:] @ inner - nu) / 2
        matrix[0, 0] -= 2 * sigma
        inverse = invert_sides(self.side_matrices(theta, tau, kappa))
        return Iterate(
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

    def side_matrices(self, theta: np.ndarray, tau: np.ndarray, kappa: np.ndarray) -> np.ndarray:
        """The 2 x 2 matrices of both sides, (U, 2, 2, 2)."""
        local = np.concatenate([theta, tau[:, None], kappa], 1)
        moved: np.ndarray = np.einsum("upsij,up->usij", self.map, local)
        return moved + self.fixed

    def _centre(self, theta: np.ndarray, nu: float) -> tuple[np.ndarray, np.ndarray]:
        """Maximize tau + nu (sum of log kappa + (1/2) log det of its sides) for every unit."""
        zero = np.zeros((len(theta), 1))
        fixed = self.side_matrices(theta, zero[:, 0], np.concatenate([zero, zero], 1))
        constant, slope, square = fixed[..., 0, 0] / 2, fixed[..., 0, 1], fixed[..., 1, 1]
        kappa = np.where(self.open, np.maximum(-square / 2, 0.0) + nu, 1.0)
        least = constant - kappa - slope**2 / (2 * np.maximum(square + 2 * kappa, 1e-300))
        tau = np.where(self.open, least, np.inf).min(1) - nu
        for _ in range(_CENTRING_STEPS):
            inverse = invert_sides(self.side_matrices(theta, tau, kappa))
            hessian = self.local_hessian(nu * inverse, inverse, nu / kappa, kappa)
            gradient = self.local_gradient(nu * inverse, nu / kappa)
            step = np.linalg.solve(hessian[:, 5:, 5:], gradient[:, 5:, None])[..., 0]
            # (1/2) log det is self-concordant up to a factor of 2: such a step stays inside.
            size = np.sqrt(2 * np.maximum((step * gradient[:, 5:]).sum(1), 0) / nu)
            tau = tau + step[:, 0] / (1 + size)
            kappa = kappa + step[:, 1:] / (1 + size)[:, None]
            if size.max(initial=0.0) < _CENTRED:
                break
        return tau, kappa

    def local_hessian(
        self, sides: np.ndarray, inverse: np.ndarray, slack: np.ndarray, kappa: np.ndarray
    ) -> np.ndarray:
        """Schur matrices of theta, tau, kappa of every unit, (U, 8, 8)."""
        moved = sides[:, None] @ self.map @ inverse[:, None]
        flat = (len(moved), 8, 8)
        hessian: np.ndarray = self.map.reshape(flat) @ moved.reshape(flat).transpose(0, 2, 1) / 2
        hessian[:, [6, 7], [6, 7]] += np.where(self.open, slack / kappa, 1.0)
        return hessian

    def local_gradient(self, wanted_sides: np.ndarray, wanted_slack: np.ndarray) -> np.ndarray:
        """Right sides of theta, tau, kappa of every unit, (U, 8), for the moments to reach."""
        right: np.ndarray = np.einsum("upsij,usij->up", self.map, wanted_sides) / 2
        right[:, 5] += 1.0
        right[:, 6:] += np.where(self.open, wanted_slack, 0.0)
        return right

    def measure_gap(self, at: Iterate, matrix: np.ndarray, side: np.ndarray) -> float:
        """The sum of all products of complementary pairs."""
        total = (at.X * matrix).sum() / 2 + (at.slack * at.kappa)[self.open].sum()
        total += (at.sides * side)[self.open].sum() / 2
        return float(total + at.mu * at.mu_slack)

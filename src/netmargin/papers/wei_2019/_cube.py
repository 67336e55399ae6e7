"""The tangent kernel on the hypercube distribution of Section 2: its second moments over all points
are finite sums of positive terms, so that bounds hold for every predictor of its span at once.

x = (a, z), z in {-1, 1}^N uniform, a one of four signals. Of two points t = x . x' is an integer,
and |x|^2 = N + 1 = R. A predictor is f(x) = sum_i beta_i k(x . x_i).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linprog, minimize
from scipy.stats import beta, norm

from ...core.matrices import Floats

SIGNALS = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
LABELS = np.array([1, 1, -1, -1])
_POWERS = (2.2, 2.5, 3.0)
"""Norms of the certificate; larger ones need the kernel's small Fourier coefficients exactly."""
_CONDITION = 1e-10
"""Second moments are exact to 1e-13: eigenvalues below this share are not told from 0."""
_STARTS = 24
"""Random starts of four means: a few local minima are right on three signals, one on all."""


def arc_parts(c: Floats) -> tuple[Floats, Floats]:
    """The parts h_r and h_g of the kernel, of the output and the hidden layer, at cosines c."""
    angle = np.pi - np.arccos(np.clip(c, -1, 1))
    return np.sqrt(np.maximum(1 - c * c, 0)) + c * angle, c * angle


def draw_distinct(random: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples, (n, d) and signs (n,), whose noise differs up to sign: z and -z are one point
    to even functions, and two equal z with different labels would tell the signal by themselves.
    """
    kept = np.empty((0, d - 2), dtype=int)
    while len(kept) < n:
        z = random.choice([-1, 1], (2 * n, d - 2))
        z = np.concatenate([kept, z * 1])
        _, first = np.unique(z * z[:, :1], axis=0, return_index=True)
        kept = z[np.sort(first)]
    which = random.integers(4, size=n)
    return np.hstack([SIGNALS[which], kept[:n]]), LABELS[which]


def draw_fresh(random: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples of the distribution itself."""
    which = random.integers(4, size=n)
    return np.hstack([SIGNALS[which], random.choice([-1, 1], (n, d - 2))]), LABELS[which]


@dataclass(frozen=True)
class CubeKernel:
    """The kernel R / (2 pi) (A h_r(c) + B h_g(c)) of points in d dimensions, c = t / R.

    `netmargin.kernels.ntk` without bias has A = r_u^2 / d and B = r_w^2.
    """

    d: int
    A: float
    B: float

    @property
    def noise(self) -> int:
        """The number of noise coordinates."""
        return self.d - 2

    def __call__(self, t: np.ndarray) -> Floats:
        """The kernel of points with x . x' = t."""
        R = self.d - 1
        relu, gradient = arc_parts(t / float(R))
        return R / (2 * np.pi) * (self.A * relu + self.B * gradient)

    @cached_property
    def levels(self) -> np.ndarray:
        """The products z . z' of two noises, -N to N."""
        return np.arange(-self.noise, self.noise + 1, 2)

    def second_difference(self) -> Floats:
        """k(t + 1) - 2 k(t) + k(t - 1) at all levels t."""
        return self(self.levels + 1) - 2 * self(self.levels) + self(self.levels - 1)

    def total(self) -> Floats:
        """k(t + 1) + 2 k(t) + k(t - 1) at all levels t."""
        return self(self.levels + 1) + 2 * self(self.levels) + self(self.levels - 1)


def pair_moments(p: Floats, r: Floats) -> Floats:
    """E p(z . z_i) r(z . z_j) by the disagreements of z_i and z_j, of functions at all levels."""
    N = len(p) - 1
    found = np.zeros(N + 1)
    for q in range(N + 1):
        # a of the N - q signs where both agree are right, and b of the q others.
        a, b = np.arange(N - q + 1)[:, None], np.arange(q + 1)
        found[q] = _binomials(N - q) @ (p[a + b] * r[a - b + q]) @ _binomials(q)
    return found


def _binomials(n: int) -> np.ndarray:
    """The probabilities of 0 to n heads in n throws."""
    return np.array([math.comb(n, k) / 2**n for k in range(n + 1)])


def kravchuk(N: int) -> np.ndarray:
    """K_s(j), the sum of (-1)^{S in J} over sets S of size s, |J| = j: integers, (N + 1, N + 1)."""
    table = np.zeros((N + 1, N + 1), dtype=object)
    for s, j in np.ndindex(N + 1, N + 1):
        parts = ((-1) ** i * math.comb(j, i) * math.comb(N - j, s - i) for i in range(s + 1))
        table[s, j] = sum(parts)
    return table


def fourier(values: np.ndarray) -> np.ndarray:
    """The coefficients by size of sets of z -> p(z . z'), given p at all levels -N to N."""
    N, table = len(values) - 1, kravchuk(len(values) - 1)
    backward = values[::-1]  # j disagreements are the level N - 2 j
    return np.array(
        [
            math.fsum(
                float(v) * (math.comb(N, j) * int(table[s, j]) / (math.comb(N, s) * 2**N))
                for j, v in enumerate(backward)
            )
            for s in range(N + 1)
        ]
    )


@dataclass(frozen=True)
class Span:
    """All predictors sum_i beta_i k(x . x_i) of samples X (n, d) with signs y (n,)."""

    kernel: CubeKernel
    X: np.ndarray
    y: np.ndarray

    @cached_property
    def _disagreements(self) -> np.ndarray:
        """In how many coordinates the noises of two samples differ."""
        agreements: np.ndarray = self.X[:, 2:] @ self.X[:, 2:].T
        return (self.kernel.noise - agreements) // 2

    def _moments(self, p: Floats, r: Floats) -> Floats:
        """The matrix E p(z . z_i) r(z . z_j)."""
        return pair_moments(p, r).take(self._disagreements)

    @cached_property
    def total_moments(self) -> np.ndarray:
        """E G^2 as a form of beta, G = f_+ + f_-."""
        total = self.kernel.total()
        return self._moments(total, total)

    def parts(
        self, weights: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """f_+, f_- and g at noises z (m, N): sums over a class's signals, and what neither sees."""
        levels, second = self.X[:, 2:] @ z.T, self.kernel.second_difference()
        index = (levels + self.kernel.noise) // 2
        mine = weights[:, None] * second[index]
        g = 2 * weights @ self.kernel(levels)
        return g + mine[self.y > 0].sum(0), g + mine[self.y < 0].sum(0), g

    def prove_error(self, share: float = 1.0) -> float:
        """A lower bound of the error of every predictor: 1/4 ((1 - lambda) / kappa)^{p / (p - 2)}.

        lambda bounds E (f_+ - f_-)^2 / E G^2, and kappa E |T G|^2 / E G^2, T the noise operator for
        which G in L_p is at most T G in L_2. 0 where nothing is proved. `share` stands for 1/4.
        """
        second, signs = self.kernel.second_difference(), np.outer(self.y, self.y)
        G, values = self.total_moments, np.linalg.eigvalsh(self.total_moments)
        if values[0] <= _CONDITION * values[-1]:
            return 0.0
        blind = float(eigh(signs * self._moments(second, second), G, eigvals_only=True)[-1])
        if blind >= 1:
            return 0.0
        coefficients, table = fourier(self.kernel.total()), kravchuk(self.kernel.noise)
        best = 0.0
        for p in _POWERS:
            weights = [float(p - 1) ** s * coefficients[s] ** 2 for s in range(len(coefficients))]
            smoothed = np.array(weights) @ table.astype(float)
            kappa = float(eigh(smoothed[self._disagreements], G, eigvals_only=True)[-1])
            best = max(best, share / 4 * ((1 - blind) / kappa) ** (p / (p - 2)))
        return best

    @cached_property
    def _seen(self) -> np.ndarray:
        """The products a . a_i of the signals, (n, 4)."""
        return np.tensordot(self.X[:, :2], SIGNALS, (1, 1))

    @cached_property
    def _tables(self) -> dict[int, np.ndarray]:
        """The kernel at all levels, by the product of the signals."""
        return {shift: self.kernel(self.kernel.levels + shift) for shift in (-1, 0, 1)}

    @cached_property
    def _means(self) -> np.ndarray:
        """The means of k(x . x_i) given the signal, (n, 4)."""
        noise = _binomials(self.kernel.noise)
        means = np.array([noise @ self._tables[shift] for shift in (-1, 0, 1)])
        return means.take(self._seen + 1)

    def _population_moments(self) -> Floats:
        """The matrix E k(x . x_i) k(x . x_j)."""
        M = np.zeros((len(self.y),) * 2)
        for p, first in self._tables.items():
            for r, other in self._tables.items():
                pairs = (self._seen == p).astype(float) @ (self._seen == r).T.astype(float) / 4
                M += pairs * self._moments(first, other)
        return M

    def fit_least_squares(self) -> np.ndarray:
        """The beta of least mean squared error over all points."""
        target: Floats = self._means @ LABELS / 4
        return np.linalg.lstsq(self._population_moments(), target, rcond=1e-13)[0]

    def find_best(self) -> np.ndarray:
        """The beta of least error found if noise is normal: four means, noise of variance 1."""
        Q = self._means
        S = self._population_moments() - Q @ Q.T / 4
        solved = np.linalg.lstsq(S, Q, rcond=1e-13)[0]
        inverse: Floats = np.linalg.pinv(Q.T @ solved)

        def scale(means: Floats) -> Floats:
            """Means in this direction with noise 1."""
            return means / math.sqrt(means @ inverse @ means)

        def error(means: Floats) -> float:
            return float(norm.cdf(-LABELS * scale(means)).mean())

        starts = np.random.default_rng(0).normal(size=(_STARTS, 4))
        best = min((minimize(error, means) for means in starts), key=lambda found: found.fun).x
        return solved @ inverse @ scale(best)

    def bound_by_separation(
        self, random: np.random.Generator, fresh: int, draws: int
    ) -> tuple[float, int]:
        """A lower bound of the error of every predictor at 95% confidence, and how many of `draws`
        sets of so many fresh samples no predictor separates, each by weights that prove it.

        Each predictor separates a set with probability (1 - error)^fresh at least.
        """
        values, vectors = np.linalg.eigh(self._population_moments())
        white, inseparable = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1])), 0
        for _ in range(draws):
            X, y = draw_fresh(random, fresh, self.kernel.d)
            signed = y[:, None] * (self.kernel(X @ self.X.T) @ white)
            system = np.vstack([signed.T, np.ones(fresh)])
            right = np.append(np.zeros(len(self.y)), 1.0)
            weights = linprog(np.zeros(fresh), A_eq=system, b_eq=right).x
            if weights is not None:
                weights = np.maximum(weights, 0)
                off = np.abs(weights @ signed).max()
                inseparable += bool(off <= 1e-9 * np.abs(signed).max() and weights.sum() > 0.5)
        least = beta.ppf(0.05, inseparable, draws - inseparable + 1) if inseparable else 0.0
        return float(1 - (1 - least) ** (1 / fresh)), inseparable

    def error(self, weights: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
        """The share of samples X (m, d) that a predictor gets wrong; ties are wrong."""
        return float((y * (self.kernel(X @ self.X.T) @ weights) <= 0).mean())

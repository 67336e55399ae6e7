"""The projected interclass distance: how far apart two classes are in the best r-dimensional view."""

import math
import operator
from dataclasses import dataclass

import numpy as np
import torch

from ..records import short_repr
from ..result import Bracket
from ..solvers.data import binary_data
from ..training.lbfgs import minimize
from .bound import Bound, confidence_term, require_delta

_PAIRS = 4000
_ROUNDS = 30
_RELAXED_STEPS = 300
_COLDEST_START = 3
_TEMPERATURES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)


@dataclass(frozen=True)
class InterclassDistance:
    """distance : attained by `basis`. upper_bound : proved. basis : (d, r), orthonormal columns that span the view."""

    distance: float
    upper_bound: float
    basis: np.ndarray

    __repr__ = short_repr

    @property
    def bracket(self) -> Bracket:
        """[distance, upper_bound]."""
        return Bracket(self.distance, self.upper_bound)


def interclass_distance(X, y, r: int, *, starts: int = 6, iterations: int = 60, seed: int = 0) -> InterclassDistance:
    """Delta_r = max over orthogonal projections P of rank r of min over pairs of different class of |P x_i - P x_j|.

    For r = d the least distance. Below, ascent of a smoothed minimum over subspaces, from the optimum of a convex relaxation and from random ones, with ever sharper smoothing, over the pairs that can
    matter; the attained value is that of all pairs. The upper bound: for any weights p of pairs, Delta_r^2 <= the sum of the r largest eigenvalues of sum p z z', z the differences.

    X : (n, d); y : (n,) labels {-1, +1} or {0, 1}, both present. r : 1 .. d. Raises DataError, ValueError.

    >>> import netmargin as nm
    >>> X, y = nm.datasets.hypercube(60, 4)                       # the two first coordinates alone tell the classes apart
    >>> found = nm.bounds.interclass_distance(X, y, 2)
    >>> found.distance >= 2**0.5 * (1 - 1e-3) and found.distance <= found.upper_bound
    True

    Source: Chizat and Bach 2020, (10).
    """
    data = binary_data(X, y, bias=False)
    d, r = data.Z.shape[1], operator.index(r)
    if not 1 <= r <= d or not 0 < (data.y > 0).sum() < len(data):
        raise ValueError(f"r must be between 1 and d = {d}, and both classes present; got r = {r}")
    Z = data.Z / data.size
    differences = (Z[data.y > 0][:, None] - Z[data.y < 0][None]).reshape(-1, d)
    squares = (differences**2).sum(1)
    scale = math.sqrt(float(squares.min()))
    if r == d or scale == 0:
        return InterclassDistance(data.size * scale, data.size * scale, np.eye(d)[:, :r])
    # No view shows a pair further apart than it is: Delta_r is at most the distance of the nearest pair.
    best, upper = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, r)))[0], float(squares.min())
    value = _least(differences, best)
    generator = torch.Generator().manual_seed(seed)
    relaxed, proved = _relaxation(differences, r, float(squares.min()))
    upper = min(upper, proved)
    for start in range(starts):
        basis = torch.randn(d, r, dtype=torch.float64, generator=generator) if start else torch.from_numpy(relaxed)
        active = np.argsort(squares)[:_PAIRS]
        # Hot starts all end alike, cold ones scatter; that of the relaxation is not to be lost.
        for temperature in _TEMPERATURES[start % _COLDEST_START if start else _COLDEST_START :]:
            for _ in range(_ROUNDS):
                basis, p = _ascend(torch.from_numpy(differences[active]), basis, temperature, iterations)
                Q = np.linalg.qr(basis.numpy())[0]
                z = differences[active]
                upper = min(upper, float(np.linalg.eigvalsh((z * p[:, None]).T @ z)[-r:].sum()))
                here = ((differences @ Q) ** 2).sum(1)
                if here.min() > value:
                    best, value = Q, float(here.min())
                nearest = np.argsort(here)[: _PAIRS // 4]
                if np.isin(nearest, active).all():
                    break
                active = np.union1d(active, nearest)
    return InterclassDistance(data.size * math.sqrt(value), data.size * math.sqrt(max(upper, value)), best)


def interclass_bound(
    n: int, *, distance: float, radius: float, r: int, constant: float, epsilon: float = 0.5, delta: float = 0.05
) -> Bound:
    """Test error of the F_1-max-margin classifier: C / sqrt n (R / Delta_r)^{(r + 3) / (2 - epsilon)} + sqrt(log B / n) + confidence, whatever the dimension d.

    B = log_2(4 (R + 1) C) + (r + 2) log_2(R / Delta_r). distance : Delta_r of the distribution, at most that of the samples. radius : R >= |x|. constant : the paper's C_epsilon(r), which it does not
    give; the bound is a rate, and its number as good as this choice. For r = d it holds for F_2 too.

    Raises ValueError. Source: Chizat and Bach 2020, Theorem 8 (Theorem 21).
    """
    require_delta(delta)
    n, r = operator.index(n), operator.index(r)
    if not (n >= 1 and r >= 1 and 0 < distance <= 2 * radius < math.inf and constant > 0 and 0 < epsilon < 1):
        raise ValueError(
            f"need n, r >= 1, 0 < distance <= 2 radius, constant > 0 and epsilon in (0, 1); got {n}, {r}, {distance}, {radius}, {constant}, {epsilon}"
        )
    counted = max(math.log2(4 * (radius + 1) * constant) + (r + 2) * math.log2(radius / distance), 1.0)
    return Bound(
        {
            "complexity": constant / math.sqrt(n) * (radius / distance) ** ((r + 3) / (2 - epsilon)),
            "all margins at once": math.sqrt(math.log(counted) / n),
            "confidence": confidence_term(n, delta),
        },
        1 - delta,
        (
            "samples drawn independently from one distribution",
            f"|x| <= {radius:.4g}; Delta_{r} of the distribution is at most {distance:.4g}, and small enough",
            f"the constant C_epsilon({r}) is {constant:g} (chosen)",
        ),
    )


def _relaxation(z: np.ndarray, r: int, scale: float) -> tuple[np.ndarray, float]:
    """The convex relaxation, projections replaced by 0 <= M <= 1 with trace r: the r leading directions of M, and an upper bound of Delta_r^2.

    By Frank and Wolfe's method on the smoothed least z' M z; the best response to weights p of pairs is the span of the r leading eigenvectors of sum p z z'.
    """
    d = z.shape[1]
    M, upper = np.eye(d) * r / d, math.inf
    for step in range(_RELAXED_STEPS):
        values = np.einsum("pi,ij,pj->p", z, M, z, optimize=True)
        temperature = scale * max(1e-3, 1 / (step + 1) ** 0.7)
        p = np.exp((values.min() - values) / temperature)
        p /= p.sum()
        found, vectors = np.linalg.eigh((z * p[:, None]).T @ z)
        upper = min(upper, float(found[-r:].sum()))
        M += 2 / (step + 3) * (vectors[:, -r:] @ vectors[:, -r:].T - M)
    return np.linalg.eigh(M)[1][:, -r:].copy(), upper


def _ascend(z: torch.Tensor, basis: torch.Tensor, temperature: float, iterations: int) -> tuple[torch.Tensor, np.ndarray]:
    """Of the smoothed least squared distance in the span, relative to the nearest pair; the basis, and the weights of the pairs there."""
    basis = torch.linalg.qr(basis).Q.contiguous().requires_grad_(True)
    scale = z.square().sum(1).min()

    def projected() -> torch.Tensor:
        return (z @ torch.linalg.qr(basis).Q).square().sum(1) / scale

    minimize([basis], lambda: temperature * torch.logsumexp(-projected() / temperature, 0), iterations)
    with torch.no_grad():
        p = torch.softmax(-projected() / temperature, 0)
        return torch.linalg.qr(basis).Q, p.numpy()


def _least(differences: np.ndarray, Q: np.ndarray) -> float:
    return float(((differences @ Q) ** 2).sum(1).min())

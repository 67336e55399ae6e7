"""The projected interclass distance: how far apart two classes are in the best r-dimensional
view.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch

from ..core.arguments import check_count, check_number, check_seed
from ..core.deadline import Deadline
from ..core.lbfgs import minimize
from ..core.matrices import binary_data
from ..core.records import short_repr
from ..errors import DataError
from ..result import Bracket
from .bound import Bound, check_delta, confidence_term

_PAIRS = 4000
_ROUNDS = 30
_RELAXED_STEPS = 300
_RELAXED_PAIRS = 100_000
"""The relaxation takes the nearest pairs only, a few milliseconds a step: weights of any pairs
prove its bound, and far ones get none.
"""
_COLDEST_START = 3
_TEMPERATURES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)


@dataclass(frozen=True)
class InterclassDistance:
    """distance : attained by `basis`.

    upper_bound : proved.
    basis : (d, r), orthonormal columns that span the view.
    """

    distance: float
    upper_bound: float
    basis: np.ndarray

    __repr__ = short_repr

    @property
    def bracket(self) -> Bracket:
        """[distance, upper_bound]."""
        return Bracket(self.distance, self.upper_bound)


def interclass_distance(
    X,
    y,
    r: int,
    *,
    starts: int = 6,
    iterations: int = 60,
    seed: int = 0,
    time_limit: float | None = None,
) -> InterclassDistance:
    """Delta_r = max over orthogonal projections P of rank r of min over pairs of different class of
    |P x_i - P x_j|.

    For r = d the least distance. Below, ascent of a smoothed minimum over subspaces, from the
    optimum of a convex relaxation and from random ones, with ever sharper smoothing, over the pairs
    that can matter; the attained value is that of all pairs. The upper bound: for any weights p of
    pairs, Delta_r^2 <= the sum of the r largest eigenvalues of sum p z z', z the differences.

    Parameters
    ----------
    X : (n, d).
    y : (n,) labels {-1, +1} or {0, 1}, both present.
    r : 1 .. d.
    starts : of the ascent.
    iterations : of each ascent, for each smoothing.
    seed : of the random starts.
    time_limit : seconds, after which the best view so far is returned with a warning; its bracket
        is valid. Ctrl-C goes through.

    Raises
    ------
    DataError : data of a wrong shape or kind, or of one class.
    ArgumentError : the other arguments.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.hypercube(60, 4)                       # the two first coordinates alone tell the classes apart
    >>> found = nm.bounds.interclass_distance(X, y, 2)
    >>> found.distance >= 2**0.5 * (1 - 1e-3) and found.distance <= found.upper_bound
    True

    Source: Chizat and Bach 2020, (10).
    """
    deadline, seed = Deadline(time_limit), check_seed(seed)
    starts, iterations = check_count("starts", starts), check_count("iterations", iterations)
    data = binary_data(X, y, bias=False)
    d = data.Z.shape[1]
    r = check_count("r", r, at_most=d)
    if not 0 < (data.y > 0).sum() < len(data):
        raise DataError(
            "An interclass distance needs samples of both classes; all labels are the same."
        )
    Z = data.Z / data.size
    differences = (Z[data.y > 0][:, None] - Z[data.y < 0][None]).reshape(-1, d)
    squares = (differences**2).sum(1)
    scale = math.sqrt(float(squares.min()))
    if r == d or scale == 0:
        return InterclassDistance(data.size * scale, data.size * scale, np.eye(d)[:, :r])
    search = _Search(differences, squares, r, seed, deadline)
    try:
        search.run(starts, iterations)
    except TimeoutError:
        warnings.warn(
            f"interclass_distance was stopped at its time limit of {time_limit:g} s: the bracket is"
            " valid, but wider than it could be. Raise time_limit, or take fewer samples.",
            UserWarning,
            stacklevel=2,
        )
    return InterclassDistance(
        data.size * math.sqrt(search.value),
        data.size * math.sqrt(max(search.upper, search.value)),
        search.best,
    )


class _Search:
    """The best view of the differences between samples of both classes so far, its least squared
    distance, and a proved bound of that.
    """

    def __init__(
        self, differences: np.ndarray, squares: np.ndarray, r: int, seed: int, deadline: Deadline
    ):
        self._differences, self._r, self._deadline, d = (
            differences,
            r,
            deadline,
            differences.shape[1],
        )
        self._generator = torch.Generator().manual_seed(seed)
        self._nearest_first = np.argsort(squares, kind="stable")[:_RELAXED_PAIRS]
        # No view shows a pair further apart than it is: Delta_r is at most the distance of the
        # nearest pair.
        self.upper = self._scale = float(squares.min())
        self.best = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, r)))[0]
        self.value = float(self._squares(self.best).min())

    def run(self, starts: int, iterations: int) -> None:
        """Raises TimeoutError at the deadline."""
        relaxed = self._relax()
        for start in range(starts):
            basis = torch.from_numpy(relaxed)
            if start:
                basis = torch.randn(*relaxed.shape, dtype=torch.float64, generator=self._generator)
            active = self._nearest_first[:_PAIRS]
            # Hot starts all end alike, cold ones scatter; that of the relaxation is not to be lost.
            for temperature in _TEMPERATURES[start % _COLDEST_START if start else _COLDEST_START :]:
                for _ in range(_ROUNDS):
                    self._check_time()
                    basis, p = _ascend(
                        torch.from_numpy(self._differences[active]), basis, temperature, iterations
                    )
                    Q = np.linalg.qr(basis.numpy())[0]
                    self._bound(self._differences[active], p)
                    here = self._offer(Q)
                    nearest = np.argsort(here)[: _PAIRS // 4]
                    if np.isin(nearest, active).all():
                        break
                    active = np.union1d(active, nearest)

    def _relax(self) -> np.ndarray:
        """The convex relaxation, projections replaced by 0 <= M <= 1 with trace r: the r leading
        directions of M.

        By Frank and Wolfe's method on the smoothed least z' M z; the best response to weights p of
        pairs is the span of the r leading eigenvectors of sum p z z'.
        """
        z = self._differences[self._nearest_first]
        M = np.eye(z.shape[1]) * self._r / z.shape[1]
        for step in range(_RELAXED_STEPS):
            self._check_time()
            values = np.einsum("pd,pd->p", z @ M, z)
            temperature = self._scale * max(1e-3, 1 / (step + 1) ** 0.7)
            p = np.exp((values.min() - values) / temperature)
            leading = self._bound(z, p / p.sum())
            if step == 0:  # a view that means something, should the time be short
                self._offer(leading)
            M += 2 / (step + 3) * (leading @ leading.T - M)
        return np.linalg.eigh(M)[1][:, -self._r :].copy()

    def _bound(self, z: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Improve the bound by weights of pairs; their r leading eigenvectors."""
        found, vectors = np.linalg.eigh((z * p[:, None]).T @ z)
        self.upper = min(self.upper, float(found[-self._r :].sum()))
        return vectors[:, -self._r :]

    def _offer(self, Q: np.ndarray) -> np.ndarray:
        """Keep this view if it is the best so far; the squared distances of all pairs in it."""
        here = self._squares(Q)
        if here.min() > self.value:
            self.best, self.value = Q, float(here.min())
        return here

    def _squares(self, Q: np.ndarray) -> np.ndarray:
        return ((self._differences @ Q) ** 2).sum(1)

    def _check_time(self) -> None:
        if self._deadline.passed:
            raise TimeoutError


def interclass_bound(
    n: int,
    *,
    distance: float,
    radius: float,
    r: int,
    constant: float,
    epsilon: float = 0.5,
    delta: float = 0.05,
) -> Bound:
    """Test error of the F_1-max-margin classifier: C / sqrt n (R / Delta_r)^{(r + 3) / (2 -
    epsilon)} + sqrt(log B / n) + confidence, whatever the dimension d.

    B = log_2(4 (R + 1) C) + (r + 2) log_2(R / Delta_r).
    distance : Delta_r of the distribution, at most that of the samples.
    radius : R >= |x|.
    constant : the paper's C_epsilon(r), which it does not give; the bound is a rate, and its number
        as good as this choice. For r = d it holds for F_2 too.

    Raises ArgumentError. Source: Chizat and Bach 2020, Theorem 8 (Theorem 21).
    """
    n, r, delta = check_count("n", n), check_count("r", r), check_delta(delta)
    radius, constant = (
        check_number("radius", radius, above=0),
        check_number("constant", constant, above=0),
    )
    distance = check_number("distance", distance, above=0, at_most=2 * radius)
    epsilon = check_number("epsilon", epsilon, above=0, below=1)
    counted = max(
        math.log2(4 * (radius + 1) * constant) + (r + 2) * math.log2(radius / distance), 1.0
    )
    return Bound(
        {
            "complexity": (
                constant / math.sqrt(n) * (radius / distance) ** ((r + 3) / (2 - epsilon))
            ),
            "all margins at once": math.sqrt(math.log(counted) / n),
            "confidence": confidence_term(n, delta),
        },
        1 - delta,
        (
            "samples drawn independently from one distribution",
            (
                f"|x| <= {radius:.4g}; Delta_{r} of the distribution is at most {distance:.4g}, and"
                " small enough"
            ),
            f"the constant C_epsilon({r}) is {constant:g} (chosen)",
        ),
    )


def _ascend(
    z: torch.Tensor, basis: torch.Tensor, temperature: float, iterations: int
) -> tuple[torch.Tensor, np.ndarray]:
    """Of the smoothed least squared distance in the span, relative to the nearest pair; the basis,
    and the weights of the pairs there.
    """
    basis = torch.linalg.qr(basis).Q.contiguous().requires_grad_(True)
    scale = z.square().sum(1).min()

    def projected() -> torch.Tensor:
        return (z @ torch.linalg.qr(basis).Q).square().sum(1) / scale

    minimize(
        [basis], lambda: temperature * torch.logsumexp(-projected() / temperature, 0), iterations
    )
    with torch.no_grad():
        p = torch.softmax(-projected() / temperature, 0)
        return torch.linalg.qr(basis).Q, p.numpy()

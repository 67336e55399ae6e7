"""The search for the view in which two classes are furthest apart, with a proved bound."""

from collections.abc import Callable

import numpy as np
import torch

from ..core.deadline import Deadline
from ..core.lbfgs import minimize

_INITIAL_PAIRS = 4000
"""Nearest pairs that each ascent begins with: a step over them takes milliseconds. Pairs that turn
out to be near in the view are added, so that a smaller number costs more rounds, not the result.
"""
_LARGEST_ROUNDS = 30
"""A limit on how often pairs are added at one temperature; rounds end by themselves when no new
pair is near. It only guards against views that alternate.
"""
_RELAXED_STEPS = 300
"""Steps of Frank and Wolfe's method. Its error falls like 1 / steps, so that more of them tighten
the bound slowly; the ascents improve it further.
"""
_RELAXED_PAIRS = 100_000
"""The relaxation takes the nearest pairs only, a few milliseconds a step: weights of any pairs
prove its bound, and far ones get none.
"""
_TEMPERATURES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
"""Smoothing of the minimum over pairs, relative to the squared distance of the nearest pair; at the
last one, 1,000 equally near pairs cost log(1000) 1e-4 < 0.1 % of it.
"""
_START_LEVELS, _RELAXED_LEVEL = 6, 3
"""Random starts begin at the first six temperatures in turn: hot starts all end alike, cold ones
scatter, and in planes where hot ones miss the best view by a quarter some find it. That of the
relaxation begins at the fourth, in order not to be lost.
"""


class ViewSearch:
    """The best view of the differences between samples of both classes that was found so far.

    `best` has orthonormal columns, (d, r), that span it; `value` is the least squared length of a
    difference in it, and `upper` a proved upper bound of that over all views.
    """

    def __init__(
        self, differences: np.ndarray, squares: np.ndarray, r: int, seed: int, deadline: Deadline
    ) -> None:
        self._differences, self._r, self._deadline = differences, r, deadline
        d = differences.shape[1]
        self._generator = torch.Generator().manual_seed(seed)
        self._nearest_first = np.argsort(squares, kind="stable")[:_RELAXED_PAIRS]
        # No view shows a pair further apart than it is: Delta_r is at most the distance of the
        # nearest pair.
        self.upper = self._scale = float(squares.min())
        self.best = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, r)))[0]
        self.value = float(self._square_lengths(self.best).min())

    def run(self, starts: int, iterations: int) -> None:
        """Search from the relaxation and from random views. Raises TimeoutError at the deadline."""
        relaxed = self._relax()
        for start in range(starts):
            basis = torch.from_numpy(relaxed)
            if start:
                basis = torch.randn(
                    *relaxed.shape, dtype=torch.float64, generator=self._generator, device="cpu"
                )
            active = self._nearest_first[:_INITIAL_PAIRS]
            hottest = start % _START_LEVELS if start else _RELAXED_LEVEL
            for temperature in _TEMPERATURES[hottest:]:
                for _ in range(_LARGEST_ROUNDS):
                    self._check_time()
                    near = torch.from_numpy(self._differences[active])
                    basis, p = _ascend_smoothed_distance(
                        near, basis, temperature, iterations, self._check_time
                    )
                    Q = np.linalg.qr(basis.numpy())[0]
                    self._bound(self._differences[active], p)
                    here = self._offer(Q)
                    nearest = np.argsort(here)[: _INITIAL_PAIRS // 4]
                    # The pairs left out are all further apart than these, so they do not matter.
                    if np.isin(nearest, active).all():
                        break
                    active = np.union1d(active, nearest)

    def _relax(self) -> np.ndarray:
        """The r leading directions, (d, r), of the best M, 0 <= M <= 1 with trace r, in place of a
        projection, by Frank and Wolfe's method: its linear step, the r leading eigenvectors of
        sum p z z', bounds Delta_r^2.
        """
        z = self._differences[self._nearest_first]
        M = np.eye(z.shape[1]) * self._r / z.shape[1]
        for step in range(_RELAXED_STEPS):
            self._check_time()
            values = np.einsum("pd,pd->p", z @ M, z)
            # Smoothing has to fall slower than the step sizes 2 / (step + 3), or M jumps about.
            temperature = self._scale * max(1e-3, 1 / (step + 1) ** 0.7)
            p = np.exp((values.min() - values) / temperature)
            leading = self._bound(z, p / p.sum())
            if step == 0:  # a view that means something, should the time be short
                self._offer(leading)
            M += 2 / (step + 3) * (leading @ leading.T - M)
        return np.linalg.eigh(M)[1][:, -self._r :].copy()

    def _bound(self, z: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Improve the bound by weights p of the pairs z; returns their r leading eigenvectors."""
        found, vectors = np.linalg.eigh((z * p[:, None]).T @ z)
        self.upper = min(self.upper, float(found[-self._r :].sum()))
        return vectors[:, -self._r :]

    def _offer(self, Q: np.ndarray) -> np.ndarray:
        """Keep this view if it is the best so far; returns the squared lengths of all pairs."""
        here = self._square_lengths(Q)
        if here.min() > self.value:
            self.best, self.value = Q, float(here.min())
        return here

    def _square_lengths(self, Q: np.ndarray) -> np.ndarray:
        """Squared lengths of all differences in the view spanned by Q."""
        return ((self._differences @ Q) ** 2).sum(1)

    def _check_time(self) -> None:
        """Raise TimeoutError from the deadline on."""
        if self._deadline.passed:
            raise TimeoutError


def _ascend_smoothed_distance(
    z: torch.Tensor,
    basis: torch.Tensor,
    temperature: float,
    iterations: int,
    check_time: Callable[[], None],
) -> tuple[torch.Tensor, np.ndarray]:
    """Ascend the smoothed least squared distance, relative to that of the nearest pair of z, in the
    span of the basis by L-BFGS. Returns the orthonormal basis that was reached, and the weights of
    the pairs there, which prove a bound.
    """
    basis = torch.linalg.qr(basis).Q.contiguous().requires_grad_(True)
    scale = z.square().sum(1).min()

    def projected() -> torch.Tensor:
        return torch.matmul(z, torch.linalg.qr(basis).Q).square().sum(1) / scale

    def loss() -> torch.Tensor:
        check_time()  # as an evaluation takes long where there are many pairs
        return temperature * torch.logsumexp(-projected() / temperature, 0)

    minimize([basis], loss, iterations)
    with torch.no_grad():
        p = torch.softmax(-projected() / temperature, 0)
        return torch.linalg.qr(basis).Q, p.numpy()

"""The one engine of the kernel problems: steps of two samples; an interior point for what they do
not solve, samples that nothing separates, kernels that are singular to rounding, a huge C; and a
judge that recomputes what either of them proposes.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import clarabel
import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from ..core.cone_program import minimize
from ..core.deadline import Deadline
from ..core.matrices import EPS, Floats
from ..core.parallel import count_threads
from ..result import Solution, Status
from .kernel_matrix import KernelMatrix
from .pair_descent import descend

_AIM = 0.9
"""Part of the tolerance that the search aims at: the judge counts roundings on top of it."""
_GOOD = 0.1
"""Part of the tolerance below which dust may stay."""
_AFFORDABLE = 1500
"""Samples up to which an interior point is tried: 20 steps are needed, of a second each there."""

Found = TypeVar("Found", bound=Solution)


class KernelProblem(ABC, Generic[Found]):
    """A problem over weights 0 <= p <= caps of the samples, in units of the values of the matrix.

    `y` (n,) are labels -1.0 and +1.0, `caps` (n,) the largest weights, infinite for a hard margin.
    `known` (n,) are weights that need no search.
    """

    known: np.ndarray | None = None

    def __init__(self, matrix: KernelMatrix, y: np.ndarray, caps: np.ndarray, tol: float) -> None:
        self.matrix, self.y, self.caps, self.tol = matrix, y, caps, tol

    @abstractmethod
    def rate(self, weights: np.ndarray) -> tuple[float, float]:
        """The judged gap of weights, and what decides where it is equal; less is better."""

    def settle(self, weights: np.ndarray) -> np.ndarray:
        """Weights in the scale in which they are judged."""
        return weights

    @abstractmethod
    def judge(
        self, weights: np.ndarray, outputs: np.ndarray, ended: Status, seconds: float
    ) -> Found:
        """The solution with settled weights and their labelled outputs."""


def solve_kernel(
    problems: Sequence[KernelProblem[Found]],
    *,
    deadline: Deadline,
    starts: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> list[Found]:
    """Solve problems with one matrix and one tolerance, in as many threads as `n_jobs` says.

    Each gets an equal part of the time that is left. `starts` (n, k) are weights to begin with.
    Ctrl-C ends all searches, with the best so far.
    """
    matrix, count = problems[0].matrix, len(problems)
    labels = np.stack([problem.y for problem in problems])
    weights = np.zeros(labels.shape) if starts is None else starts.T * matrix.scale
    weights = np.ascontiguousarray(np.clip(weights, 0.0, problems[0].caps))
    ended = [(Status.INTERRUPTED, 0.0)] * count
    threads = count_threads(n_jobs)
    in_turn = threads == 1 or count == 1

    def run(k: int) -> None:
        """Search for one, and note how it ended."""
        began = time.monotonic()
        # What one problem does not need of its part is left to the next ones.
        limit = Deadline(deadline.share(count - k if in_turn else 1))
        _search(problems[k], weights[k], limit)
        status = Status.TIME_LIMIT if limit.passed else Status.STALLED
        ended[k] = (status, time.monotonic() - began)

    try:
        if in_turn:
            for k in range(count):
                run(k)
        else:  # the compiled steps let threads run side by side
            Parallel(n_jobs=threads, backend="threading")(delayed(run)(k) for k in range(count))
    except KeyboardInterrupt:
        pass
    weights = np.stack([problem.settle(p) for problem, p in zip(problems, weights, strict=True)])
    outputs = labels * matrix.multiply((labels * weights).T).T
    return [
        problem.judge(p, q, *end)
        for problem, p, q, end in zip(problems, weights, outputs, ended, strict=True)
    ]


def _search(problem: KernelProblem[Any], weights: np.ndarray, limit: Deadline) -> None:
    """Find weights (n,), in place, whose gap is the tolerance or as small as it gets."""
    matrix, y, tol = problem.matrix, problem.y, problem.tol
    if problem.known is not None:
        weights[:] = problem.known
        return
    gap = descend(matrix.values, y, problem.caps, weights, tol=_AIM * tol, deadline=limit.at)
    # Steps of nearly equal samples can end in NaN: the cone program goes on from 0 there.
    weights[np.isnan(weights)] = 0.0
    if gap <= tol or limit.passed or len(y) > _AFFORDABLE or matrix.compute is not None:
        return
    best = problem.rate(weights)
    for p in _drop_dust(propose_weights(y[:, None] * matrix.values * y, problem.caps, limit.at)):
        rated = problem.rate(p)
        if rated < best:
            weights[:], best = p, rated
        if best[0] <= _GOOD * tol:
            return


def propose_weights(Q: Floats, caps: Floats, deadline: float) -> Floats:
    """Weights p that minimize p'Qp / 2 - sum p over 0 <= p <= caps; with infinite caps p'Qp over p
    >= 0 with sum 1.

    With Q = F F' and v = F'p / sqrt(C), C the largest cap, |v|^2 is what is minimized, which keeps
    its scaling for every C and has few equations where Q is singular to rounding.
    """
    n, C = len(Q), float(caps.max())
    hard = np.isinf(C)
    if hard:  # features of one length, as the weight of a long one is as small as it is long
        lengths = np.sqrt(np.maximum(np.diagonal(Q), 0.0))
        lengths = np.where(lengths > 0, lengths, 1.0)
        units, sums, cost = 1 / lengths, sparse.csc_matrix(lengths.min() / lengths), np.zeros(n)
    else:
        units, sums, cost = caps / C, sparse.eye(n), -caps / C
    eigenvalues, vectors = np.linalg.eigh(units[:, None] * Q * units)
    kept = eigenvalues > n * EPS * eigenvalues[-1]
    F = vectors[:, kept] * np.sqrt(eigenvalues[kept] * (1.0 if hard else C))
    (m, _), rank = sums.shape, F.shape[1]
    A = sparse.block_array([
        [-sparse.eye(rank), F.T],
        [sparse.csc_matrix((m, rank)), sums],
        [sparse.csc_matrix((n, rank)), -sparse.eye(n)],
    ])  # fmt: skip
    b = np.concatenate([np.zeros(rank), np.ones(m), np.zeros(n)])
    equations = rank + m if hard else rank
    cones = [clarabel.ZeroConeT(equations), clarabel.NonnegativeConeT(len(b) - equations)]
    quadratic = sparse.diags(np.append(np.ones(rank), np.zeros(n)))
    cost = np.append(np.zeros(rank), cost)
    x, _ = minimize(cost, A, b, cones, quadratic=quadratic, tol=1e-12, deadline=deadline)
    p: Floats = units * np.maximum(x[rank:], 0.0)
    if hard:
        return p if p.any() else units
    return np.minimum(C * p, caps)


def _drop_dust(weights: np.ndarray) -> Iterator[np.ndarray]:
    """Copies of weights without those below a part of the largest, the largest part first: an
    interior point leaves dust on every sample, and a support vector should be one.
    """
    for part in (1e-4, 1e-6, 1e-8, 1e-10, 0.0):
        yield np.where(weights > part * weights.max(initial=0.0), weights, 0.0)

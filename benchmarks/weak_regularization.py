"""Weak regularization on 20 random sets: the best of ten starts beside the exact minimizer.

    python -m benchmarks weak_regularization

Sets are drawn with the seeds 0 to 19, and none is left out. On each:
- two layers of ReLUs in l2, on points of the plane with random labels: the exact minimizer is that
  of `f1_logistic`, certified, and gamma* that of `f1_max_margin`. A start is what many short
  descents find while lambda falls, each with the neurons that vanished brought back, small, next to
  where their boundary passes through two samples; beside it starts as `mlp` makes them;
- the same in l_infinity: the minimum over nets of all widths, with weights of this width, whose
  neurons are corners of the cells into which the samples cut the cube of weights;
- linear nets of 2, 3 and 4 layers in l1, l2 and l_infinity, on points of space that a linear
  classifier tells apart: ||Theta||^depth is a multiple of the norm of the product.

The power of the norm is the depth, so that each problem is convex in its predictors, and weights of
the dual prove a bound. Prints, for the weakest lambda, how far the objective of the best start is
above that bound, its margin over the exact minimizer's, and both margins over gamma*. Starts end
at the first that is within 1% of the exact minimizer, at ten otherwise.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product

import numpy as np
import torch
from scipy.optimize import linprog, minimize, minimize_scalar
from scipy.special import entr, expit, log_expit, xlog1py
from torch import nn

from netmargin import regularization_path
from netmargin.losses import Logistic
from netmargin.models import mlp
from netmargin.papers.ledger.draws import draw_points
from netmargin.papers.ledger.points import make_linear_net
from netmargin.papers.wei_2018.claims_path import draw_classes
from netmargin.solvers import f1_logistic, f1_max_margin, linear_max_margin

SEEDS = range(20)
LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-6, 1e-12)
"""From strong to weak: minima of weak ones are many, and those of strong ones choose among them."""
WIDTH, STARTS, ITERATIONS = 20, 10, 40
"""Twice as many neurons as samples, the number that is always enough; the default of 100 iterations
a lambda takes twice the time for the same first digits.
"""
DESCENT_WIDTH, DESCENTS, DESCENT_LAMBDAS = 60, 4, (1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12)
"""Neurons for most kinks at a time, and descents for each lambda: half a second a start."""
LINEAR_WIDTH = 3
"""Hidden units of deep linear nets, whose best margins are known for every width."""
CLOSE = 0.01
"""What counts as within reach of the exact minimizer: both objective and margin, relative."""


@dataclass(frozen=True)
class Exact:
    """A minimum, the bound that proves it, the minimizer's margin and the largest one."""

    objective: float
    bound: float
    margin: float
    best: float


@dataclass(frozen=True)
class Row:
    """What the best start reached on a set, beside the exact minimizer."""

    name: str
    samples: int
    exact: Exact
    objective: float = math.inf
    margin: float = 0.0
    starts: int = 0

    @property
    def excess(self) -> float:
        """How far the objective is above the proved bound, relative."""
        return self.objective / self.exact.bound - 1

    @property
    def close(self) -> bool:
        """Whether objective and margin are within 1% of the exact minimizer's."""
        return self.excess <= CLOSE and self.margin >= (1 - CLOSE) * self.exact.margin

    def __str__(self) -> str:
        exact = self.exact
        return (
            f"{self.name} | {self.samples} | {self.starts} | {100 * self.excess:.2f}% |"
            f" {self.margin / exact.margin:.4f} | {self.margin / exact.best:.4f} |"
            f" {exact.margin / exact.best:.4f} | {'yes' if self.close else 'no'} |"
        )


def minimize_over(features: np.ndarray, price: float) -> Exact:
    """Minimize mean log(1 + e^{-q}) + price |a|_1, q = features a, over a >= 0; (n, k)."""
    n, k = features.shape
    rows, variables = np.hstack([-features, np.ones((n, 1))]), [(0, None)] * k + [(None, None)]
    total = np.append(np.ones(k), 0.0)[None]
    found = linprog(-np.eye(k + 1)[k], rows, np.zeros(n), total, [1.0], variables)
    best = -found.fun

    def evaluate(a: np.ndarray) -> tuple[float, np.ndarray]:
        """The log of the objective, and its gradient: the objective itself may be 1e-12."""
        q = features @ a
        whole = np.logaddexp(Logistic().log_sum(q) - math.log(n), math.log(price * a.sum()))
        return whole, price / np.exp(whole) - np.exp(log_expit(-q) - whole) @ features / n

    # The largest margin at the size at which its loss equals the price, with all features in play.
    start = found.x[:k] * math.log1p(1 / price) / best + 1e-6
    solved = minimize(
        evaluate,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-12, None)] * k,
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    q = features @ solved.x
    # Weights whose products with no feature are beyond the price: their mean entropy is a bound.
    p = expit(-q)
    p *= min(1.0, n * price / (p @ features).max())
    bound = float((entr(p) - xlog1py(1 - p, -p)).mean())
    return Exact(math.exp(solved.fun), bound, q.min() / solved.x.sum(), best)


def solve_with_engine(X: np.ndarray, y: np.ndarray, price: float, best: float, **net) -> Exact:
    """The certified minimizer of mean loss + price ||Theta||^2 over two-layer nets in l2."""
    exact = f1_logistic(X, y, regularization=price, **net)
    margin = exact.normalized_margin(X, y)
    return Exact(exact.objective, exact.lower_bound, margin, best)


def list_corners(X: np.ndarray) -> np.ndarray:
    """The corners of the cells into which the planes w . x = 0 of samples (n, 3) cut the cube of
    weights: linear functions of w on each cell are largest there.
    """
    planes = np.vstack([X, np.eye(3), -np.eye(3)])
    sides = np.append(np.zeros(len(X)), np.ones(6))
    triples = np.array(list(combinations(range(len(planes)), 3)))
    solid = triples[np.abs(np.linalg.det(planes[triples])) > 1e-9]
    corners = np.linalg.solve(planes[solid], sides[solid][..., None])[..., 0]
    return np.unique(corners[np.abs(corners).max(1) <= 1 + 1e-9].round(12), axis=0)


def follow(row: Row, make: Callable, data: tuple, norm: str, depth: int, **options) -> Row:
    """Follow the path from one start after the other, until one ends close to the exact minimizer;
    `make` takes the number of the start, and margins are over ||Theta||^depth in the norm.
    """
    tensors = tuple(map(torch.as_tensor, data))
    settings = {"lambdas": LAMBDAS, "iterations": ITERATIONS, "starts": 1, "progress": False}
    settings |= {"norm": "global" if norm == "l2" else norm, "r": depth} | options
    for start in range(STARTS):
        path = regularization_path(lambda k=start: make(k), tensors, seed=start, **settings)
        state, last = path.states[min(path.states)], path.rows[-1]
        theta = torch.cat([part.reshape(-1) for part in state.values()])
        size = torch.linalg.vector_norm(theta, {"l1": 1, "l2": 2, "linf": math.inf}[norm]).item()
        objective = math.exp(last["log_objective"])
        row = replace(row, starts=start + 1)
        if objective < row.objective:
            margin = last["normalized_margin"] * (last["norm"] / size) ** depth
            row = replace(row, objective=objective, margin=margin)
        if row.close:
            break
    return row


@dataclass(frozen=True)
class ShortDescents:
    """Descents of log(mean loss + lambda ||theta||^2) for two layers of ReLUs on samples Z (n, D),
    theta their weights one after the other, (width (D + 1),).
    """

    Z: np.ndarray
    y: np.ndarray

    def evaluate(
        self, theta: np.ndarray, value: float, smoothing: float = 0.0
    ) -> tuple[float, np.ndarray]:
        """The objective and its gradient, ReLUs rounded as (t + sqrt(t^2 + smoothing^2)) / 2."""
        W, a = self._split(theta)
        T = self.Z @ W.T
        root = np.sqrt(T * T + smoothing**2)
        H = (T + root) / 2
        q = self.y * (H @ a)
        log_loss = Logistic().log_sum(q) - math.log(len(q))
        whole = np.logaddexp(log_loss, math.log(value * (theta @ theta)))
        slopes = -np.exp(log_expit(-q) - whole) * self.y / len(q)
        into = (slopes[:, None] * a * (1 + T / np.maximum(root, 1e-300)) / 2).T @ self.Z
        penalty = 2 * value * theta / np.exp(whole)
        return whole, np.append(into.ravel(), H.T @ slopes) + penalty

    def _split(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The hidden weights (width, D), and those of the output."""
        W, a = np.split(theta, [-(len(theta) // (self.Z.shape[1] + 1))])
        return W.reshape(len(a), -1), a

    def rescale(self, theta: np.ndarray, value: float) -> np.ndarray:
        """The best multiple."""
        size = lambda log: self.evaluate(theta * math.exp(log), value)[0]  # noqa: E731
        return theta * math.exp(minimize_scalar(size, bounds=(-10, 10), method="bounded").x)

    def descend(self, theta: np.ndarray, value: float) -> np.ndarray:
        """A local minimizer, through smoothings relative to the typical product w . x."""
        theta = self.rescale(theta, value)
        for share in (1e-1, 1e-2, 1e-3, 1e-5):
            W, _ = self._split(theta)
            smoothing = share * np.linalg.norm(W) / math.sqrt(len(W))
            found = minimize(
                self.evaluate,
                theta,
                (value, smoothing),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 100, "maxcor": 20},
            )
            theta = found.x
        return self.rescale(theta, value)

    def revive(self, theta: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Neurons that vanished, with 1, 10 or 30% of all mass again."""
        W, a = (part.copy() for part in self._split(theta))
        mass = np.linalg.norm(W, axis=1) * np.abs(a)
        dead = mass < 1e-3 * mass.max()
        count = dead.sum()
        pairs = self.Z[np.array([random.permutation(len(self.Z))[:2] for _ in a])[dead]]
        u = np.cross(pairs[:, 0], pairs[:, 1]) * random.choice([-1, 1], (count, 1))
        u = u / np.linalg.norm(u, axis=1, keepdims=True) + 0.1 * random.normal(size=u.shape)
        size = math.sqrt(random.choice([0.01, 0.1, 0.3]) * mass.sum() / max(count, 1))
        W[dead] = size * u / np.linalg.norm(u, axis=1, keepdims=True)
        a[dead] = size * random.choice([-1, 1], count)
        return np.append(W.ravel(), a)

    def run(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The weights of both layers after descents for each lambda, of which the best counts."""
        first = random.normal(size=DESCENT_WIDTH * (self.Z.shape[1] + 1)) / DESCENT_WIDTH**0.5
        theta = self.descend(first, DESCENT_LAMBDAS[0])
        for value in DESCENT_LAMBDAS:
            if theta @ theta < 1e-6:  # lambda was so strong that the net vanished
                theta = first
            tried = [self.descend(theta, value)]
            for _ in range(DESCENTS - 1):
                tried.append(self.descend(self.revive(tried[-1], random), value))
            theta = min(tried, key=lambda found: self.evaluate(found, value)[0])
        return self._split(theta)


def compare_relu(seed: int, norm: str, *, revived: bool = False, **options) -> Row:
    """Compare two layers of ReLUs on 6 to 10 points of the plane with random labels."""
    random, n = np.random.default_rng(seed), 6 + seed % 5
    X, y = draw_points(random, n)
    y[:2] = 1, -1
    Z = np.column_stack([X, np.ones(n)])
    price = LAMBDAS[-1]
    if norm == "l2":
        exact = solve_with_engine(X, y, price, f1_max_margin(X, y).upper_bound)
    else:
        H = np.maximum(Z @ list_corners(Z).T, 0) * y[:, None]
        # With weights up to t the sum of |a|, at weights up to 1, is WIDTH t^2 at most.
        exact = minimize_over(WIDTH * np.hstack([H, -H]), price)

    def make(start: int) -> nn.Module:
        """A net at its start."""
        if not revived:
            return mlp([2, WIDTH, 1])
        W, a = ShortDescents(Z, y).run(np.random.default_rng([seed, start]))
        net = mlp([2, len(a), 1]).double()
        theta = np.concatenate([W[:, :2].ravel(), W[:, 2], a])
        nn.utils.vector_to_parameters(torch.tensor(theta), net.parameters())
        return net

    if revived:
        options["lambdas"] = LAMBDAS[-1:]
    return follow(Row(f"ReLU, 2, {norm}", n, exact), make, (X, y), norm, 2, **options)


def compare_linear(seed: int, norm: str, depth: int, **options) -> Row:
    """Compare a linear net on 4 to 10 points of space."""
    random, n = np.random.default_rng(seed), 4 + seed % 7
    X, y, Z = draw_classes(random, n, 2)
    price = LAMBDAS[-1]
    # Of all nets with the same product the balanced one is least, or the one of equal entries.
    if norm == "l2":
        # The engine's are nets of two layers, with ||Theta||^2 = 2 |w|; depth^(depth / 2) |w| here.
        unit = 2 * float(depth) ** (-depth / 2)
        best = linear_max_margin(X, y, norm="l2").upper_bound
        exact = solve_with_engine(X, y, price / unit, best / 2, bias=False, activation=lambda t: t)
        exact = Exact(exact.objective, exact.bound, unit * exact.margin, unit * exact.best)
    else:
        columns = np.array(list(product((-1, 1), repeat=3)))
        unit = LINEAR_WIDTH ** (depth - 1.0)
        if norm == "l1":
            columns, unit = np.vstack([np.eye(3), -np.eye(3)]), float(depth) ** -depth
        exact = minimize_over(unit * np.squeeze(Z, 1) @ columns.T, price)
    row = Row(f"linear, {depth}, {norm}", n, exact)
    make = lambda start: make_linear_net([3, *[LINEAR_WIDTH] * (depth - 1), 1])  # noqa: E731
    return follow(row, make, (X, y), norm, depth, **options)


HEAD = (
    "| seed | net, depth, norm | n | starts | above the bound | margin over exact | over gamma* |"
    " exact over gamma* | within 1% |\n" + "|---" * 9 + "|"
)
KINDS = {
    "ReLU, l2": partial(compare_relu, norm="l2", revived=True),
    **{
        f"linear, {depth} layers, {norm}": partial(compare_linear, norm=norm, depth=depth)
        for depth, norm in product((2, 3, 4), ("l1", "l2", "linf"))
    },
    "ReLU, l_infinity": partial(compare_relu, norm="linf"),
    "ReLU, l2, starts as mlp makes them": partial(compare_relu, norm="l2"),
}


def main() -> None:
    """Print a row a set, and how many of 20 are within 1% (target: 18 of each kind)."""
    for kind, compare in KINDS.items():
        print(HEAD)
        started, close = time.process_time(), 0
        for seed in SEEDS:
            row = compare(seed)
            close += row.close
            print(f"| {seed} | {row}", flush=True)
        seconds = time.process_time() - started
        print(f"{kind}: {close} of {len(SEEDS)} within 1%, {seconds:.0f} s of CPU", flush=True)

"""Claims of Wei et al. 2018, Appendix E: the assumptions, and the proof's lemmas along runs."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...solvers import f1_logistic
from ..ledger.claim import claim
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial
from ._functionals import Functional, regularized_logistic
from ._instances import W18, W19
from ._particles import Dynamics, read_particles
from ._perturbation_schedule import bound_growth, bound_slopes, largest_step


@claim(
    "wei/flow-assumptions",
    "on the sphere |Phi| <= B_Phi, |Phi_i(s) - Phi_i(t)| <= M_Phi |s - t| and b_V <= V <= B_V, and"
    " |grad R| <= M_R, |Hess R| <= C_R, for nets of squared ReLU with signs, whose gradients are"
    " C_Phi-Lipschitz, and for ReLU, whose gradients jump",
    source=f"{W18}, Assumptions 4.1, E.1 - E.3, Theorem E.21; {W19}, (3.1)",
    hypotheses="up to six samples in up to four dimensions; directions of samples too",
    tolerance=1e-6,
    because="rounding of the differences of points 1e-4 apart",
    trials=(20, 400),
    sharpen={"factor": -1},
)
def assumptions(trial: Trial, *, factor: float = 1.0, jump: float = 100.0) -> Finding:
    random, n, D = trial.random, 1 + trial.number // 2 % 6, 1 + trial.number // 2 % 4
    power, X = 1 + trial.number % 2, random.normal(size=(n, D))
    y = random.choice([-1, 1], n)
    problem = regularized_logistic(X, y, regularization=0.1, bias=False, power=power)
    known, along = problem.regularity, X / np.linalg.norm(X, axis=1, keepdims=True)
    assert known is not None
    outer = along if power == 2 else np.ones((n, 1))
    # Along samples gradients turn; halfway between a sample's signs features are steepest.
    marked = [np.hstack([along, 0 * outer]), np.hstack([along, outer])]
    marked.append(np.hstack([0 * along, outer]))
    ends = np.vstack([*marked, random.normal(size=(100, known.dimension))])
    others = ends + 1e-4 * random.normal(size=ends.shape)
    others[n : 3 * n] = ends[n : 3 * n] + np.tile(1e-4 * np.hstack([along, 0 * outer]), (2, 1))
    points = torch.nn.functional.normalize(torch.tensor(np.stack([ends, others])), dim=2)
    points.requires_grad_(True)
    values = problem.features(points.flatten(0, 1)).unflatten(0, (2, -1))
    # (n, 2, N, p)
    gradients = torch.stack(
        [torch.autograd.grad(values[..., i].sum(), points, retain_graph=True)[0] for i in range(n)]
    )
    apart = (points[0] - points[1]).norm(dim=1)
    turn = ((gradients[:, 0] - gradients[:, 1]).norm(dim=2) / apart).max().item()
    # Half of the trials far out, where losses are steep; the others at 0, where they bend most.
    q = torch.full((n,), -40.0 * (trial.number // 2 % 2), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(problem.risk(q), q)
    bend = torch.linalg.matrix_norm(torch.autograd.functional.hessian(problem.risk, q), 2)
    V = problem.penalty(points[0])
    reached = {
        "B_Phi": (values.norm(dim=2).max().item(), known.B_Phi),
        "M_Phi": (((values[0] - values[1]).abs().amax(1) / apart).max().item(), known.M_Phi),
        "M_R": (slope.norm().item(), known.M_R),
        "C_R": (bend.item(), known.C_R),
    }
    if power == 2:
        reached["C_Phi"] = turn, known.C_Phi
    shares = {name: found / bound for name, (found, bound) in reached.items()}
    violations = [share - factor for share in shares.values()]
    violations += [known.b_V - V.min().item(), V.max().item() - known.B_V]
    size = np.linalg.norm(X, axis=1).max()
    violations.append(0.0 if power == 2 else jump * size / turn - 1)
    where = f"{n} samples in {D} dimensions, power {power}"
    return Finding.of_one(violations, where, f"nearest: {max(shares, key=shares.__getitem__)}")


@dataclass(frozen=True)
class _Run:
    """Records of a run; L' at M fixed points of the sphere."""

    times: np.ndarray  # (K,)
    values: np.ndarray  # L, (K,)
    moments: np.ndarray  # W^2, (K,)
    totals: np.ndarray  # int Phi d rho, (K, n)
    means: np.ndarray  # E_rho L', (K,)
    prices: np.ndarray  # L', (K, M)


def _follow(
    problem: Functional,
    start: np.ndarray,
    sphere: Tensor,
    times: np.ndarray,
    rate: float,
    **options: Any,
) -> _Run:
    """Follow the flow without a budget from one neuron, and record it at these times."""
    random = torch.Generator().manual_seed(0)
    rules: dict[str, Any] = {"every": 200, "fresh": 16, "budget": 10**6, "random": random} | options
    dynamics, now, rows = Dynamics(problem, **rules), read_particles(start[None], None), []
    for k, time in enumerate(times):
        if k:
            now = dynamics.advance(now, time - times[k - 1], rate)
        at, mass = torch.cat([now.positions, sphere]), torch.zeros(len(sphere)).double()
        value, first, _ = problem.slopes(at, torch.cat([now.weights, mass]))
        size = now.weights @ now.positions.square().sum(1)
        total, inside = now.weights @ problem.features(now.positions), len(now.weights)
        mean = now.weights @ first[:inside]
        rows.append((time, value.item(), size.item(), total, mean.item(), first[inside:]))
    return _Run(*map(np.array, zip(*rows, strict=True)))


def _draw_sphere(
    random: np.random.Generator, X: np.ndarray, marked: Any
) -> tuple[Tensor, np.ndarray]:
    """Points of the sphere: a grid of both signs' neurons, marked ones and, last, close pairs."""
    turns = np.arange(64) * math.pi / 32
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    grid = np.vstack([np.hstack([ring, 0 * ring]), np.hstack([0 * ring, ring])])
    # L' is steepest halfway between the two signs of a sample.
    ends = np.vstack([random.normal(size=(100, 4)), np.hstack([X, X])])
    others = ends + 1e-3 * np.vstack([random.normal(size=(100, 4)), np.hstack([X, -X])])
    pairs = np.stack([ends, others], 1)
    pairs /= np.linalg.norm(pairs, axis=2, keepdims=True)
    points = torch.tensor(np.vstack([grid, marked, pairs.reshape(-1, 4)]))
    return points, np.linalg.norm(pairs[:, 0] - pairs[:, 1], axis=1)


@claim(
    "wei/flow-lemmas",
    "along runs L grows by sigma s B_L (W^2 + 1) at most in a time s; L' moves on the sphere by z ="
    " C_R B_Phi int |Q'|_1 at most, and z by sigma s c_1 (W^2 + 1) + c_1 W (s (fall + sigma s c_1"
    " (W^2 + 1)))^{1/2}; |L'(s) - L'(t)| <= c_2 |s - t|; min L' <= -tau + z, and {L' <= -tau / 2 +"
    " z} does not shrink; after l(tau) L has fallen by (E.8), after 2 l by (E.16); L - L* <= E L' -"
    " W*^2 min(min L', 0); L falls by s m^2 / W^2 while E L' >= m; steps eta leave half the fall",
    source=(
        f"{W18}, Lemmas E.10, E.12, E.13, E.16 (l corrected), Claims E.17, E.18, (E.13),"
        f" (E.14) - (E.17), step of Theorem E.21; {W19}, E.6, E.8"
    ),
    hypotheses=(
        "squared ReLU with signs, one to three samples in the plane, from one neuron of the wrong"
        " sign; W^2 the largest of a run; Euler steps without a budget; a second run, sigma = .3;"
        " (E.8) and (E.16) have a room of 10^4 and more"
    ),
    tolerance=1e-6,
    because="rounding; L' is looked at on a grid of 356 points, and where the optimum has neurons",
    trials=(2, 16),
    ascent=4,
)
def lemmas(
    trial: Trial,
    *,
    growth: float = 1.0,
    curvature: float = 1.0,
    moved: float = 1.0,
    steep: float = 1.0,
    sigma: float = 1e-12,
    lead: float = 1.0,
    speed: float = 1.0,
    left: float = 0.5,
    fallen: float = 1.0,
) -> Finding:
    random, n = trial.random, 1 + trial.number % 3
    angles = random.uniform(0, 2 * math.pi) + np.arange(n) + 0.5
    X = random.uniform(0.8, 1.2, (n, 1)) * np.column_stack([np.cos(angles), np.sin(angles)])
    y, price = 1 - 2 * (np.arange(n) % 2), 0.2 / n
    options: dict[str, Any] = {"regularization": price, "bias": False}
    problem = regularized_logistic(X, y, power=2, **options)
    best = f1_logistic(X, y, power=2, **options)
    known = problem.regularity
    assert known is not None
    optimum = np.where(best.atoms[:, 2:] > 0, [1.0, 1, 0, 0], [0.0, 0, 1, 1])
    optimum = optimum * np.tile(best.atoms[:, :2], 2)
    sphere, near = _draw_sphere(random, X, optimum)
    start = np.concatenate([0 * X[0], X[0]]) * random.uniform(1, 2)
    times = np.concatenate([[0.0], np.geomspace(0.25, 100 + 300 * n, 50)])
    runs = [
        _follow(problem, start, sphere, times, sigma=sigma, rate=0.25),
        _follow(problem, start / 9, sphere, np.linspace(0, 10, 11), sigma=0.3, rate=0.1, every=10),
    ]
    room = dict.fromkeys(("E.10", "E.12", "E.5", "E.13", "E.8", "E.16", "E.17"), MOST)
    violations = [0.0]

    def compare(name: str, found: Any, bound: Any, factor: float) -> None:
        """Note how far a bound is from failing, and its room."""
        ratio = float(np.max(np.asarray(found) / np.maximum(factor * np.asarray(bound), 1e-12)))
        violations.append(ratio - 1)
        room[name] = min(room[name], 1 / ratio if ratio > 0 else MOST)

    for run, share in zip(runs, (1e-12, 0.3), strict=True):
        W2, (slope, c_2, largest) = run.moments.max(), bound_slopes(known)
        c_1 = max(known.k * known.C_R * known.B_Phi * max(known.B_Phi, slope), largest)
        noise = share * (W2 + 1)
        i, j = np.triu_indices(len(run.times), 1)
        span, fall = run.times[j] - run.times[i], run.values[i] - run.values[j]
        compare("E.10", -fall - 1e-10, noise * span * largest, growth)
        steps = np.abs(np.diff(run.totals, axis=0)).sum(1)
        z = known.C_R * known.B_Phi * np.append(0, np.cumsum(steps))
        change = np.abs(run.prices[j] - run.prices[i]).max(1)
        compare("E.12", change - 1e-9, z[j] - z[i], curvature)
        promised = c_1 * (noise * span + np.sqrt(W2 * span * (fall + noise * span * c_1 + 1e-12)))
        compare("E.5", z[j] - z[i], promised, moved)
        low = run.prices.min(1)
        violations += list(low[j] - low[i] - curvature * (z[j] - z[i]) - 1e-9)  # E.17
        drift = np.diff(run.prices, axis=0).max(1) - curvature * np.diff(z)
        violations += list(drift - 1e-9)  # E.18
        pairs = np.abs(run.prices[:, -2 * len(near) :: 2] - run.prices[:, 1 - 2 * len(near) :: 2])
        compare("E.13", pairs, c_2 * np.broadcast_to(near, pairs.shape), steep)
        bound = run.means - lead * best.mass * np.minimum(low, 0)
        violations += list(run.values - best.objective - bound)
        least = np.minimum.accumulate(run.means)[j]
        from_start = (i == 0) & (least > 0)
        if from_start.any():
            falls = span * (least**2 / W2 - share * largest * (W2 + 1))
            compare("E.17", falls[from_start], fall[from_start] + 1e-10, 1 / speed)
        for begin, tau in enumerate(-low):
            if tau <= 2 * share:
                continue
            caps = (known.dimension - 1) * math.log(max(4 * c_2 / tau, 1)) + math.log(2)
            l = max(math.log(W2 / share) + caps, 0) / (tau - share) + 1  # noqa: E741
            for name, length, drawn in (("E.8", l, 1), ("E.16", 2 * l, 3)):
                end = np.searchsorted(run.times, run.times[begin] + length)
                if end == len(run.times):
                    continue
                long = run.times[end] - run.times[begin]
                part = tau / 4 - long * c_1 * noise
                if part > 0:
                    gain = part**2 / (long * c_1**2 * W2) - drawn * long * c_1 * noise
                    compare(name, gain, run.values[begin] - run.values[end] + 1e-12, 1 / fallen)
    violations += _measure_steps(problem, start, left)
    where = f"{n} samples in the plane, lambda = {price:.2g}"
    shown = f"room of (E.8) {room['E.8']:.2g}"
    return Finding.of_one(violations, where, shown, **{k: v for k, v in room.items() if v < MOST})


def _measure_steps(problem: Functional, start: np.ndarray, left: float) -> list[float]:
    """How far steps of the longest eta are from what is left of the fall, with much new mass."""
    now, known, found = read_particles(start[None], None), problem.regularity, []
    assert known is not None
    random = torch.Generator().manual_seed(0)
    for sigma in (1e-12, 0.3) * 20:
        _, _, velocity = problem.slopes(now.positions, now.weights)
        moved = (now.weights @ velocity.square().sum(1)).item()
        dynamics = Dynamics(problem, sigma, every=1, fresh=16, budget=10**6, random=random)
        (_, before, W2) = dynamics.record(now, 0.0)
        eta = largest_step(known, sigma, W2)
        now = dynamics.advance(now, eta, eta)
        noise = eta * sigma * bound_growth(known, eta * sigma, W2) * (W2 + 1)
        change = dynamics.record(now, eta)[1] - before
        found.append((change + left * eta * moved - noise) / (eta * moved + noise))
    return found

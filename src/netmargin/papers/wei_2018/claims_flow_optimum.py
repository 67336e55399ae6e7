"""Claims of Wei et al. 2018 and 2019: perturbed flow comes to the optimum, and how fast."""

import math
from typing import Any

import numpy as np
import torch

from ...datasets import hypercube
from ...solvers import f1_logistic
from ..ledger.claim import claim
from ..ledger.draws import draw_directions
from ..ledger.trial import Finding, Trial, excess
from ._functionals import Functional, regularized_logistic
from ._instances import W18, W19
from ._perturbation_schedule import perturbation_schedule
from ._perturbed_flow import PerturbedFlow, perturbed_flow


def _draw_problem(random: np.random.Generator, n: int, d: int) -> Any:
    """Draw n <= d unit samples, their certified optimum, and one neuron of the wrong sign."""
    X = np.zeros((n, d))
    X[:, :n] = draw_directions(random, n, n)
    y = 1 - 2 * (np.arange(n) % 2)
    price = random.uniform(0.15, 0.25) / n
    options: dict[str, Any] = {"regularization": price, "bias": False, "power": 2}
    best = f1_logistic(X[:, :n], y, **options)
    return regularized_logistic(X, y, **options), best, np.concatenate([0 * X[0], X[0]])


def _time_to(run: PerturbedFlow, level: float) -> float:
    """The first recorded time at which L is at most the level; infinite where there is none."""
    reached = run.values <= level
    return float(run.times[reached.argmax()]) if reached.any() else math.inf


def _start_value(problem: Functional, start: np.ndarray) -> float:
    """L of one neuron."""
    return problem.value(torch.tensor(start[None]), torch.ones(1).double()).item()


@claim(
    "wei/flow-optimum",
    "with the sigma of its proof, 1e-24 and less, the perturbed flow from one neuron comes within"
    " epsilon of the certified optimum before t_epsilon, and so does descent with the eta of E.21",
    source=f"{W18}, Theorems 4.3, E.4 and E.21, constants as docs/errata.md; {W19}, Theorem 3.3",
    hypotheses=(
        "squared ReLU with signs, one to four samples in up to six dimensions, epsilon 5% of what"
        " the start is above it; Euler steps of .5 for the flow; new mass as particles"
    ),
    tolerance=0.0,
    because="no statement is near its bound: t_epsilon is 1e15 times longer than the runs",
    trials=(2, 16),
    sharpen="trend",
)
def optimum(trial: Trial, *, renewal: float = 1.0, share: float = 1.0) -> Finding:
    discrete, n = trial.number % 4 == 3, 1 + (trial.number + 1) % 4
    d = n + trial.number // 4 % 3
    problem, best, start = _draw_problem(trial.random, n, d)
    start = start / 2
    value = _start_value(problem, start)
    epsilon = 0.05 * (value - best.objective)
    options: dict[str, Any] = {"epsilon": epsilon, "start": value, "discrete": discrete}
    found = perturbation_schedule(problem.regularity, **options)
    # Mass along a sample grows from sigma on like e^{t / n} and faster, before others have grown.
    rate, time = (found.rate, 60) if discrete else (0.5, 400 * n)
    options = {"rate": rate, "steps": math.ceil(time / rate), "seed": trial.number}
    options |= {"fresh": 16, "budget": 200, "records": 400}
    run = perturbed_flow(problem, start[None], sigma=renewal * found.sigma, **options)
    reached = _time_to(run, best.objective + share * epsilon)
    violations = [excess(reached, found.time), best.lower_bound - run.values.min(), run.rate - rate]
    where = f"{n} samples in {d} dimensions, {'descent' if discrete else 'flow'}"
    shown = f"sigma = {found.sigma:.1g}, at t = {reached:.3g} of {found.time:.1g}"
    return Finding.of_one(violations, where, shown)


@claim(
    "wei/flow-rates",
    "the time until L is within 2 epsilon of the optimum grows like log(1 / sigma) / (4 tau), tau ="
    " -min L' where the unperturbed flow rests, hence no faster than epsilon^-4 and d^2 with the"
    " sigma of the proof; halving Euler steps halves their error",
    source=f"{W18}, Theorem 4.3, Claim E.19, Theorem E.21; {W19}, Theorem 3.3",
    hypotheses=(
        "one sample, squared ReLU with signs, 1 to 16 dimensions, epsilon from 20 to .3% of what"
        " there is to gain; exponents fitted, measured near 0.1 to 0.2: a trend"
    ),
    tolerance=0.0,
    because="a tenth is left to fitted slopes: few values of epsilon and d, records .4 apart",
    trials=(1, 6),
    sharpen="trend",
)
def rates(
    trial: Trial,
    *,
    growth: float = 4.0,
    accuracy: float = 4.0,
    dimension: float = 2.0,
    order: float = 1.0,
) -> Finding:
    rate, times = 0.2, []
    shares = [0.2, 0.05, 0.0125, 0.003]
    for d, share in [(1, share) for share in shares] + [(4, 0.05), (16, 0.05)]:
        problem, best, start = _draw_problem(trial.random, 1, d)
        value, gain = _start_value(problem, start), math.log(2) - best.objective
        found = perturbation_schedule(problem.regularity, epsilon=share * gain, start=value)
        options: dict[str, Any] = {"sigma": found.sigma, "rate": rate, "steps": 450}
        run = perturbed_flow(problem, start[None], **options, fresh=16, budget=100, records=225)
        # The coarsest level for all sigma, to compare the times in which new mass grows.
        levels = best.objective + 2 * gain * np.array([share, shares[0]])
        times.append((found.sigma, *(_time_to(run, level) for level in levels)))
    sigma, hit, grown = np.array(times).T
    assert problem.regularity is not None
    # At f = 0 a sample of length 1 pulls by 1/2, against its price.
    tau = 0.5 - problem.regularity.b_V
    per_time = 2 * math.log1p(growth * rate * tau / 2) / rate  # in Euler steps
    slope = np.polyfit(-np.log(sigma[:4]), grown[:4], 1)[0] * per_time
    in_epsilon = np.polyfit(-np.log(shares), np.log(hit[:4]), 1)[0]
    in_d = np.polyfit(np.log([1, 4, 16]), np.log(hit[[1, 4, 5]]), 1)[0]
    options = {"sigma": 0.0, "records": 1}
    ends = [
        perturbed_flow(problem, start[None], rate=0.2 / 2**k, steps=5 * 2**k, **options).values[-1]
        for k in range(5)
    ]
    errors = np.abs(np.diff(ends))
    fitted = -np.polyfit(np.arange(4), np.log2(errors), 1)[0]
    violations = [abs(slope - 1) - 0.1, in_epsilon - accuracy, in_d - dimension]
    violations.append(abs(fitted - order) - 0.1)
    shown = f"exponents {in_epsilon:.2f} of 1/epsilon, {in_d:.2f} of d, {fitted:.2f} of eta"
    return Finding.of_one(violations, f"slope in log(1/sigma) {slope:.2f} of the prediction", shown)


@claim(
    "wei/noisy-descent",
    "noisy descent from one neuron learns the distribution of (2.5): it comes to the certified"
    " optimum, with a test error of 1% at most, where descent without noise errs on 25% and more",
    source=f"{W19}, Section 3 after Theorem 3.3, with Theorem 2.1",
    hypotheses=(
        "36 to 72 samples in 6 to 12 dimensions, two-layer ReLU nets, lambda = 1e-3, sigma ="
        " 1e-4, far above that of the proof; 4,000 test samples"
    ),
    tolerance=0.0,
    because="within 2% of the certified optimum counts as reached: the noise keeps .1 to 1%",
    trials=(1, 6),
    sharpen="trend",
)
def noisy_descent(
    trial: Trial, *, sigma: float = 1e-4, within: float = 0.02, stuck: float = 0.25
) -> Finding:
    d = (10, 6, 8, 12)[trial.number % 4]
    (X, y), (T, labels) = (
        [array.numpy() for array in hypercube(n, d, seed=2 * trial.number + k)]
        for k, n in enumerate((6 * d, 4000))
    )
    options: dict[str, Any] = {"regularization": 1e-3, "bias": False}
    problem, best = regularized_logistic(X, y, **options), f1_logistic(X, y, **options, tol=1e-3)
    start = np.append(X[0] / np.linalg.norm(X[0]), y[0])[None]
    above, errors = [], []
    for share in (sigma, 0.0):
        run = perturbed_flow(problem, start, sigma=share, rate=1.0, steps=2500, budget=250)
        neurons, weights = run.end.positions.numpy(), run.end.weights.numpy()
        f = np.maximum(T @ neurons[:, :-1].T, 0) @ (weights * neurons[:, -1])
        above.append(run.values[-1] / best.lower_bound - 1)
        errors.append(np.mean(labels * f <= 0))
    violations = [above[0] - within, errors[0] - 0.01, stuck - errors[1], -above[0]]
    shown = f"{above[0]:.2%} above the optimum, without noise {above[1]:.0%}"
    where = f"d = {d}, test errors {errors[0]:.2%} and, without noise, {errors[1]:.0%}"
    return Finding.of_one(violations, where, shown)

"""Claims of Chizat and Bach 2020 on the limit: F_1 margin, slackness, norms, generalization."""

import math
from typing import Any

import numpy as np
from scipy.stats import binom

from ...bounds import interclass_bound
from ...kernels import arc_cosine
from ...solvers import ReLUMeasure, f1_max_margin, f2_max_margin
from ...twolayer import slackness, train_both_layers
from ..ledger.claim import claim
from ..ledger.directions import best_margins
from ..ledger.draws import draw_blobs, draw_points, draw_signed
from ..ledger.regression import slope
from ..ledger.slack import MOST, shrinking
from ..ledger.trial import Finding, Trial
from ._instances import PAPER, Intervals
from ._projected_flow import projected_flow

_STEPS = (4000, 16_000)
"""Most draws are within 5% after the first, half a second; all but a few after the second."""


@claim(
    "chizat-bach/f1-limit",
    "the normalized margin of a wide two-layer net tends to gamma_1, the largest of any measure on"
    " the sphere, on samples or on the support of a population",
    source=f"{PAPER}, Theorem 3 and Corollary 4 (squared ReLU), Theorem 5 (ReLU)",
    hypotheses=(
        "exponential loss (odd trials on samples: logistic), balanced start that covers the"
        " sphere: 256 neurons; 4,000 steps of 0.5 / sqrt(t + 1) (half for squared ReLU), 16,000"
        " where these do not come within 5% or do not converge; 24 points in 2 or 3 dimensions,"
        " gamma_1 certified; in every third trial intervals on the line, uniform density, 128 fresh"
        " samples a step, gamma_1 by the ends of the intervals and attained on all of them, and 64"
        " fixed samples beside it: a trend"
    ),
    tolerance=1e-6,
    because=(
        "never above gamma_1, and within 5% of it where the convergences asked for are seen: since"
        " half of the steps the classifier has moved by .1 gamma_1 at most, and the weights of"
        " samples, averaged over a quarter of the steps, by .1; gamma_1 to 1e-6"
    ),
    trials=(3, 12),
    sharpen="trend",
)
def f1_limit(trial: Trial, *, width: int = 256, factor: float = 1.0) -> Finding:
    random, kind = trial.random, ("squared ReLU", "ReLU", "a population")[trial.number % 3]
    d = 2 + trial.number // 3 % 2
    options: dict[str, Any] = {"width": width, "seeds": (trial.number,)}
    if trial.number % 2 and kind != "a population":
        options["loss"] = "logistic"
    options |= {"records": 4, "progress": False}
    population = Intervals.drawn(random, d)
    X, y = draw_blobs(random, 24)
    X = np.hstack([X, random.uniform(-0.5, 0.5, (24, d - 2))])
    if kind == "squared ReLU":
        # The output of a neuron grows with the cube of its size: smaller steps.
        options |= {"power": 2, "rate": lambda t: 0.25 / np.sqrt(t + 1)}
    if kind == "a population":
        X, y = population.draw(64, [trial.number])
    exact = f1_max_margin(X, y, power=options.get("power", 1))
    tasks: list[tuple[Any, ...]] = [(X, y, None, exact)]
    proved = []
    if kind == "a population":
        X = population.corners
        exact = f1_max_margin(X, population.label(X))
        proved = [1 - population.margin(exact) / exact.upper_bound - 1e-5]
        draw = lambda t: population.draw(128, [trial.number, t])  # noqa: E731
        tasks.append((X, population.label(X), draw, exact))
    for steps in _STEPS:
        options |= {"steps": steps, "snapshots": [steps // 2]}
        criteria, found, near = proved.copy(), [], True
        for at, labels, fresh, best in tasks:
            run = train_both_layers(at, labels, resample=fresh, **options)
            optimum = factor * best.upper_bound
            nets = [snapshot.measures[0] for snapshot in run.snapshots]
            margins = [population.margin(net) for net in nets] if fresh else run.margins[:, 0]
            share = np.array(margins) / optimum
            moved = np.abs(np.subtract(*(net.decision_function(X) for net in nets))).max() / optimum
            # Of fresh samples the weights jump, and so does their mean: there they are not asked.
            weights = np.abs(np.subtract(*(s.duals[0] for s in run.snapshots))).sum()
            seen = moved < 0.1 and (fresh is not None or weights < 0.1)
            criteria += [share.max() - 1, 0.95 - share[-1] if seen else 0.0]
            near &= seen and share[-1] >= 0.95
            found.append(f"{share[-1]:.4f} gamma_1" + ("" if seen else " (has not converged)"))
        if near:
            break
    if not seen and max(criteria) <= 0:
        criteria = []  # What has not converged is no instance of what it tends to.
    shown = f"{kind}: margin {', '.join(found)} after {steps:,} steps"
    return Finding.of_one(criteria, f"{kind}, {len(X)} points in {X.shape[1]} dimensions", shown)


@claim(
    "chizat-bach/slackness",
    "nu is optimal for gamma_1 if and only if weights p exist with nu where J' is largest and p"
    " where q is least: max J' - min q >= gamma_1 - margin(nu) for all nu, p, with equality at"
    " optimal p, also of populations; along training it tends to 0",
    source=f"{PAPER}, Propositions 12 and 29; Theorem 10 for the limit",
    hypotheses=(
        "gamma_1 > 0; random measures and weights in the plane, or on intervals of the line with"
        " their whole support in min q, with proved maxima; training in the first trial, a trend"
    ),
    tolerance=1e-5,
    because=(
        "gamma_1 to 1e-6, relative to the largest feature; a fall by 10 over 4,000 steps, or"
        " 16,000, counts as tending to 0"
    ),
    trials=(6, 60),
    sharpen={"factor": -1},
)
def complementary_slackness(trial: Trial, *, factor: float = 1.0) -> Finding:
    if trial.number == 0:
        X, y = draw_blobs(trial.random, 24)
        for steps in (4000, 16_000):
            runs = train_both_layers(X, y, width=256, steps=steps, snapshots=[0], progress=False)
            found = [slackness(s.measures[0], X, y, s.duals[0]) for s in runs.snapshots]
            first, last = (factor * f.residual for f in found)
            # A residual from local search is no proof: that counts as a violation.
            criteria = [10 * last / first - 1, float(not all(f.proved for f in found))]
            if max(criteria) <= 0:
                break
        shown = f"residual {first:.3g} -> {last:.3g} in units of the margin"
        return Finding.of_one(criteria, "ReLU, 24 points, 256 neurons", shown)
    random, n = trial.random, 2 + trial.number % 6
    X, y = draw_points(random, n)
    if on_line := trial.number % 3 == 2:
        population = Intervals.drawn(random, 2 + trial.number // 3 % 3)
        X = np.concatenate([population.corners, population.draw(n, [trial.number])[0]])
        y = population.label(X)
    best = f1_max_margin(X, y)
    size = float(np.sqrt((X**2).sum(1) + 1).max()) / 2

    def compare(measure: ReLUMeasure, dual: np.ndarray) -> float:
        """What the residual exceeds the lack of margin by, with the worst input of all for both."""
        worst = measure.normalized_margin(X, y)
        least = population.margin(measure) if on_line else worst
        residual = slackness(measure, X, y, dual).residual + worst - least
        return (factor * residual - best.margin + least) / size

    # At optimal weights the inequality is an equality, whatever the measure, and 0 at the best one.
    violations = [abs(compare(best, best.dual)), slackness(best, X, y, best.dual).residual / size]
    for k in range(5):
        measure = ReLUMeasure.projected(
            random.normal(size=(5, X.shape[1] + 2)), random.random(5), bias=True
        )
        dual = best.dual if k == 0 else random.dirichlet(np.ones(len(X)))
        violations.append(-compare(measure, dual) if k else abs(compare(measure, dual)))
    return Finding.of(violations, f"{len(X)} points in {X.shape[1]} dimensions")


@complementary_slackness.printed(
    "p_i(infinity) = 0 for all i in argmin q_i (proof of Theorem 10, step 2)"
)
def _() -> Finding:
    weight = f1_max_margin([[1.0, 0.0]], [1]).dual[0]
    return Finding.of(weight, "n = 1: the one sample attains the minimum, and its weight is 1")


@claim(
    "chizat-bach/superlevel-mass",
    "once J' is within min(v, u / 2) of its limit and so is its slope, u the least slope of the"
    " limit where it is M - v or M - 4 v, M its maximum: no mass leaves the set where the limit is"
    " at least M - v, and that mass grows like exp(4 (M - 2 v) t) at least; none enters where it is"
    " below M - 4 v, and what is there grows like exp(4 (M - 3 v) t) at most",
    source=f"{PAPER}, proof of Theorem 10, steps 1 and 3",
    hypotheses=(
        "squared ReLU with signs, exponential loss, 2 to 5 points of the circle, apart; 48"
        " directions of either sign, until the mass is e^7 or so; v = .02 to .12 M; the limit from"
        " the certified largest margin, slopes on 4,000 directions"
    ),
    tolerance=1e-3,
    because="the flow's error, relative to what a mass gains in 1/32 of the time",
    trials=(3, 24),
    ascent=10,  # a flow takes a second
)
def superlevel_mass(
    trial: Trial, *, growth: float = 4.0, outside: float = 4.0, near: float = 1.0
) -> Finding:
    random, n = trial.random, 2 + trial.number % 4
    # Apart, as margins of near points are small, and flows then long.
    samples = 2 * np.pi * (np.arange(n) + random.uniform(0, 0.6, n)) / n
    y = random.choice([-1.0, 1.0], n)
    X = np.column_stack([np.cos(samples), np.sin(samples)])

    def act(angles: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J' and its slope at neurons +1 of these angles, for weights p of the samples."""
        off = angles[:, None] - samples
        positive = np.maximum(np.cos(off), 0)
        return positive**2 @ (y * p).T, -2 * positive * np.sin(off) @ (y * p).T

    best = f1_max_margin(X, y, bias=False, power=2)
    fine, angles = (2 * np.pi * np.arange(k) / k for k in (4000, 48))
    atoms = np.column_stack([np.cos(angles), np.sin(angles), np.ones(48)])
    start = ReLUMeasure(
        atoms=np.concatenate([atoms, atoms * [1, 1, -1]]),
        weights=np.full(96, 1 / 96),
        bias=False,
        power=2,
    )
    # The mass grows like exp(4 gamma_1 t).
    times = np.linspace(0, 2 / best.margin, 33).tolist()
    run = projected_flow(start, X, y, times=times, rtol=1e-5)
    apart = np.max([np.abs(part).max(0) for part in act(fine, run.duals - best.dual)], 0)
    J, slopes = map(np.abs, act(fine, best.dual))
    atoms, M = np.array([measure.atoms for measure in run.measures]), J.max()
    limit = act(np.arctan2(atoms[..., 1], atoms[..., 0]).ravel(), best.dual)[0]
    limit = atoms[..., 2] * limit.reshape(atoms.shape[:2])
    masses = np.array([m.weights for m in run.measures]) * np.exp(run.log_masses)[:, None]
    violations, room = [], {"growth": MOST, "outside": MOST}
    for v in np.array([0.02, 0.05, 0.1, 0.12]) * M:
        crossed = [(J[1:] >= level) != (J[:-1] >= level) for level in (M - v, M - 4 * v)]
        u = slopes[1:][np.any(crossed, 0)].min()
        begin = np.flatnonzero(apart > near * min(v, u / 2)).max(initial=-1) + 1
        high, low = limit[begin:] >= M - v, limit[begin:] < M - 4 * v
        violations += [float((high[:-1] & ~high[1:]).any()), float((low[1:] & ~low[:-1]).any())]
        time, mass = np.diff(run.times[begin:]), masses[begin:]
        for name, sign, rate, part in (
            ("growth", 1, growth * (M - 2 * v), high),
            ("outside", -1, outside * (M - 3 * v), low),
        ):
            # Where all mass has left the low set, there is nothing to grow.
            gained = np.diff(np.log((mass * part).sum(1) + 1e-300)) / (rate * time)
            violations += list(sign * (1 - gained))
            room[name] = min([room[name], *(gained[gained > 0] ** sign)])
    shown = f"the mass grows to e^{run.log_masses[-1]:.1f}, gamma_1 {best.margin:.3f}"
    return Finding.of_one(violations, f"{n} points of the circle", shown, **room)


@claim(
    "chizat-bach/norm-equivalence",
    "the norm over the sphere of (a, c) is twice that over unit-norm features, and only neurons"
    " with |a| = |c| carry it",
    source=f"{PAPER}, Proposition 9",
    hypotheses=(
        "24 random directions with both signs and three splits of the norm between the layers, 1 to"
        " 5 samples; best margins of both balls by linear programs"
    ),
    tolerance=1e-7,
    because="feasibility of the linear programs",
    trials=(5, 105),
    sharpen="identity",
)
def norm_equivalence(trial: Trial, *, factor: float = 2.0) -> Finding:
    signed = draw_signed(trial)
    both = np.concatenate([signed, -signed], 2)
    flat, _ = best_margins(both)
    # Balanced neurons, and two kinds that give one of the layers more: the latter get no weight.
    angle = np.pi / 4 + np.array([0.0, 0.3, -0.5])
    kinds = np.concatenate([math.cos(t) * math.sin(t) * both for t in angle], 2)
    sphere, weights = best_margins(kinds)
    unbalanced = weights[:, both.shape[2] :].sum(1)
    worst = np.maximum(np.abs(factor * sphere - flat) / flat, unbalanced)
    return Finding.of(worst, f"{both.shape[1]} samples, {both.shape[2]} signed directions")


@claim(
    "chizat-bach/interclass",
    "gamma_1 >= C (Delta_r / R)^{(r + 3) / (2 - epsilon)}, whatever the other dimensions, and so is"
    " gamma_2 for r = d",
    source=f"{PAPER}, Lemma 20 with epsilon = 1/7; C is not given, so exponents are fitted",
    hypotheses=(
        "alternating points at random distances on a line (r = 1), checkerboards of them (r = 2), R"
        " fixed; both margins by the solvers; noise coordinates added"
    ),
    tolerance=0.0,
    because=(
        "the fitted exponent with its 95% interval; the margin with noise coordinates, solved from"
        " scratch, at least that without, to 1e-5"
    ),
    trials=(1, 6),
    sharpen="trend",
)
def interclass(trial: Trial, *, shift: float = 0.0) -> Finding:
    random, r = trial.random, 1 + trial.number % 2
    counts = (12, 24, 32, 48, 64) if r == 1 else (3, 4, 5, 6, 7)
    deltas, margins, noisy = [], [], 0.0
    for k in counts:
        ticks = np.cumsum(random.uniform(1, 1.1, (r, k)), 1)
        ticks = 2 * (ticks - ticks[:, :1]) / np.ptp(ticks, 1, keepdims=True) - 1
        X = np.stack(np.meshgrid(*ticks, indexing="ij"), -1).reshape(-1, r)
        y = 1 - 2 * (np.indices((k,) * r).sum(0).ravel() % 2)
        deltas.append(np.diff(ticks).min())
        margins.append([f1_max_margin(X, y).margin, f2_max_margin(X, y).margin])
        # Once, where the problem is small: coordinates that may be ignored cannot lower the margin.
        if k == counts[0]:
            wide = np.hstack([X, 0.5 * random.uniform(-1, 1, (len(X), 2))])
            noisy = 1 - f1_max_margin(wide, y, time_limit=20).margin / margins[0][0] - 1e-5
    claimed = (r + 3) / (2 - 1 / 7) + shift
    fits = [slope(np.log(deltas), np.log(found)) for found in np.transpose(margins)]
    shown = ", ".join(
        f"gamma_{index} ~ Delta^({fit.value:.2f} +- {fit.error:.2f})"
        for index, fit in enumerate(fits, 1)
    )
    criteria = [fit.value + fit.error - claimed for fit in fits]
    where = f"r = {r}"
    return Finding.of_one([*criteria, noisy], where, f"{where}: {shown}, claim at most {claimed:g}")


@interclass.printed(
    "the unit ball of F_1 has Rademacher complexity at most 1 / sqrt n on |x| <= R (proof of"
    " Theorem 8)"
)
def _() -> Finding:
    n, R = 100, 3.0
    # All x_i equal: sup over the ball of f(x) is |x~| / 2, so it is |x~| / 2 E |sum of n signs| /
    # n.
    signs = np.arange(-n, n + 1, 2)
    mean = np.sum(np.abs(signs) * binom.pmf(np.arange(n + 1), n, 0.5))
    found, bound = math.sqrt(R**2 + 1) / 2 * mean / n, 1 / math.sqrt(n)
    return Finding.of(found - bound, f"n = 100, all x_i = 3: {found:.4f} against {bound:.4f}")


@claim(
    "chizat-bach/interclass-bound",
    "the max-margin classifier of F_1 errs on at most C / sqrt n (R / Delta_r)^{(r + 3) / (2 -"
    " epsilon)} + sqrt(log B / n) + sqrt(log(1 / delta) / 2n) of new samples, and so does that of"
    " F_2 for r = d",
    source=f"{PAPER}, Theorems 8 and 21, with Delta_r of the samples at least that of all",
    hypotheses=(
        "C = 1 (it is not given; .5 is needed here), epsilon = 1/7, delta = .05, bounds below 1,"
        " exact errors; F_1, r = 1: four or six points of a line, labels alternate, each sample"
        " with a coordinate of noise of its own, n of the order of (R / Delta)^{2 (r + 3) / (2 -"
        " epsilon)}, neurons alike on all samples of a point (so they have the largest margin of"
        " all where that was proved, n = 16); F_2, r = d: parity on the cube in 8 or 9 dimensions"
    ),
    tolerance=0.0,
    because="the bound may fail with probability .05, which it is too loose to do",
    trials=(2, 30),
    ascent=0,  # true of most samples: of chosen ones it need not be
)
def interclass_errors(trial: Trial, *, complexity: float = 1.0) -> Finding:
    random, k, d = trial.random, 4 + 2 * (trial.number % 2), 8 + trial.number // 2 % 2
    options: dict[str, Any] = {"constant": 1.0, "epsilon": 1 / 7, "radius": 1.0}
    gaps, ratio, power = random.uniform(1, 1.1, k - 1), random.uniform(3, 5), 4 / (2 - 1 / 7)
    n = round(ratio ** (2 * power) * random.uniform(1.5, 3))
    line = np.append(0, np.cumsum(gaps)) / (ratio * gaps.min())
    line, y = line - line.mean(), 1 - 2 * (np.arange(k) % 2)
    counts = random.multinomial(n, np.ones(k) / k)
    # A neuron has one weight for the noise of all samples of a point, new samples have none of it.
    noise = np.diag(np.sqrt((1 - line**2) / counts))
    best = f1_max_margin(np.column_stack([line, noise]), y)
    f = best.decision_function(np.column_stack([line, 0 * noise]))
    errors = {"F_1": float((y * f < 0).mean())}
    bounds = {"F_1": interclass_bound(n, r=1, distance=1 / ratio, **options)}
    cube = 1 - 2 * (np.arange(2**d)[:, None] >> np.arange(d) & 1)
    y, X = cube.prod(1), cube / math.sqrt(d)
    seen = random.integers(2**d, size=int(2**d * random.uniform(0.56, 0.8)))
    f = f2_max_margin(X[seen], y[seen]).decision_function(arc_cosine(X, X[seen]))
    errors["F_2"] = float((y * f < 0).mean())
    bounds["F_2"] = interclass_bound(len(seen), r=d, distance=2 / math.sqrt(d), **options)
    room = {name: shrinking(bound, errors[name]) for name, bound in bounds.items()}
    violations = [1 / factor - complexity for factor in room.values()]
    violations += [0.0 if bound.value < 1 else math.inf for bound in bounds.values()]
    shown = ", ".join(f"{name}: {errors[name]:.3f} <= {bounds[name].value:.3f}" for name in bounds)
    setting = f"{k} points, {n} samples with noise; {len(seen)} of the cube, {d} dimensions"
    return Finding.of(violations, setting, shown, **room)

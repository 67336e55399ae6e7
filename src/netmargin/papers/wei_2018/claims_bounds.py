"""Claims of Wei et al. 2018 and 2019: bounds of test errors, of nets and of kernels."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import datasets
from ...bounds import deep_bound, kernel_bound, regression_bound, two_layer_bound, variation_ball
from ...kernels import arc_cosine
from ...regularization.weak import weak_regularization
from ...solvers import f1_logistic, f1_max_margin, min_norm_interpolation
from ..ledger.claim import claim
from ..ledger.regression import slope
from ..ledger.slack import MOST, shrinking
from ..ledger.trial import Finding, Trial
from ._instances import W18, W19

_LIPSCHITZ = ((np.ones_like, 0.0), (lambda z: 1 + np.sin(5 * z) / 5, 1.0), (np.tanh, 1.0))
"""Activations that are not homogeneous, with their Lipschitz constants."""
_AXES = 10_000
"""Axes for each sample, so many that next to none is drawn twice."""


@dataclass(frozen=True)
class _Memory:
    """Hard samples, unit vectors along one axis each of very many, and easy ones along one more;
    f = v . x is 1 on easy samples, less on hard ones, and 0 along the axes that no sample has (or,
    at no cost, a little less): there it is wrong. All labels are +1.
    """

    axes: np.ndarray  # of the hard samples
    lengths: np.ndarray  # |x|, (n,), hard samples first
    values: np.ndarray  # f(x), (n,)
    size: float  # |v|
    fresh: float  # the share of the axes that no sample has

    @classmethod
    def drawn(cls, random: np.random.Generator, n: int, hard: float, value: float) -> "_Memory":
        """Draw n samples, each hard with a probability, on which f has the value."""
        axes = random.integers(_AXES * n, size=random.binomial(n, hard))
        seen, easy = len(np.unique(axes)), n - len(axes)
        # So short that they add nothing to mean |x|^2, so long that |v| comes from hard samples.
        length = math.sqrt(20 / (n * hard)) / value
        return cls(
            axes,
            np.repeat([1.0, length], [len(axes), easy]),
            np.repeat([value, 1.0], [len(axes), easy]),
            math.sqrt(seen * value**2 + 1 / length**2),
            1 - seen / (_AXES * n),
        )


@claim(
    "wei/bounds-hold",
    "Theorem 3.1, Lemma 3.4 (two-layer nets, kernel predictors), Proposition D.1 of 2019 (depth 2,"
    " 3, 4), with training errors as in Theorem C.1, and Lemmas D.4, D.5 (regression): the test"
    " error is at most the bound, with probability 0.95",
    source=(
        f"{W18}, Theorem 3.1, Lemmas 3.4, D.4, D.5; {W19}, Proposition D.1, Theorem D.2;"
        " constants as in netmargin.bounds"
    ),
    hypotheses=(
        "500,000 samples (kernels 3,000), hard ones along 10,000 n axes, which one neuron learns by"
        " heart, and easy ones along one more, of which 0 to 30% are flipped; margins of hard ones"
        " are small, or the largest (kernels); errors known exactly, bounds below 1 (else drawn"
        " anew); limits of the slack for large n: 12 (nets), 5.7 (kernels), 10.7 to 13.4 (depth)"
    ),
    tolerance=0.0,
    because="test error minus the bound, which is below 1; no trial may violate it",
    trials=(2, 40),
    ascent=0,  # true of most samples: of chosen ones it need not be
)
def bounds_hold(trial: Trial, *, complexity: float = 1.0) -> Finding:
    random = trial.random
    hard, flipped = random.uniform(0.5, 0.65), random.uniform(0, 0.3)
    # As large as the bound of depth 4 allows, which is the loosest, to be below 1.
    value = 0.9 * (1 - hard) * (1 - flipped) / hard / (13.5 / math.sqrt(hard) - 1)
    memory = _Memory.drawn(random, 500_000, hard, value)
    y = np.where((memory.values == 1) & (random.random(500_000) < flipped), -1, 1)
    # One neuron: balanced, ||Theta||^2 is its depth.
    q, unit, X = y * memory.values / memory.size, 1 / memory.size, memory.lengths[:, None]
    bounds = {"3.1": two_layer_bound(q / 2, X, margin=unit / 2, radius=1.0)}
    for depth in (2, 3, 4):
        scale = depth ** (-depth / 2)
        options: dict[str, Any] = {"depth": depth, "margin": scale * unit, "radius": 1.0}
        bounds[f"D.1, {depth}"] = deep_bound(scale * q, **options)
    # Lengths tell all that bounds take from X. In the space of the kernel v . x has the norm 2
    # sqrt d |v|, and K(x, x) = |x|^2 / (2 d): d = 1 serves for every d.
    losses = np.clip(1 - y * memory.values, 0, 1)
    for name, norm in (("D.4", memory.size), ("D.5", 2 * memory.size)):
        options = {"norm": norm, "largest_loss": 1.0, "lipschitz": 1.0, "kernel": name == "D.5"}
        bounds[name] = regression_bound(losses, X, **options)
    wrong = flipped * (1 - hard) + hard * memory.fresh
    errors = dict.fromkeys(bounds, wrong)
    errors |= dict.fromkeys(("D.4", "D.5"), wrong + hard * (1 - memory.fresh) * (1 - value))
    while "3.4" not in bounds or bounds["3.4"].value >= 1:  # one draw in a hundred: from 1 on
        hard = random.uniform(0.12, 0.135)
        memory = _Memory.drawn(random, 3000, hard, 1.0)
        axes = np.concatenate([memory.axes, np.full(3000 - len(memory.axes), -1)])
        K = np.where(axes == axes[:, None], 0.5, 0.5 / np.pi)
        K *= np.outer(memory.lengths, memory.lengths)
        bounds["3.4"] = kernel_bound(memory.values / (2 * memory.size), K, largest=math.sqrt(0.5))
    errors["3.4"] = hard * memory.fresh
    room = {name: shrinking(bound, errors[name]) for name, bound in bounds.items()}
    violations = [1 / factor - complexity for factor in room.values()]
    violations += [0.0 if bound.value < 1 else math.inf for bound in bounds.values()]
    shown = ", ".join(f"{name}: {errors[name]:.2f} <= {bounds[name].value:.2f}" for name in bounds)
    where = f"{100 * flipped:.0f}% of easy samples flipped"
    return Finding.of(violations, where, shown, **room)


@claim(
    "wei/complexities",
    "the Rademacher complexity of two-layer nets with an M-Lipschitz, homogeneous phi is at most 3"
    " M |X|_F / n per unit of |alpha|_1, that of q layers with norms 1 at most (sqrt(2 log(2) q) +"
    " 1) |X|_F / n",
    source=f"{W18}, Lemma C.4; {W19}, Lemma D.3 (Golowich et al.)",
    hypotheses=(
        "ReLU, leaky ReLU, |.|, slopes of either sign to 3; 5 to 24 points in the plane and space,"
        " where suprema over neurons are exact; of any M-Lipschitz phi, with its largest values in"
        " place of |x|, on 1 to 5 points and 2,001 directions of the plane; more layers"
        " contain the nets of two, ReLU"
    ),
    tolerance=0.0,
    because="the estimate less three standard errors must be below the bound",
    trials=(2, 24),
)
def complexities(trial: Trial, *, factor: float = 1.0) -> Finding:
    random, d = trial.random, 2 + trial.number % 2
    X = random.normal(size=(5 + trial.number % 20, d))
    steep = random.uniform(-3, 3)
    n, size = len(X), float(np.linalg.norm(X)) / len(X)
    # At ||Theta|| <= 1 two layers have a product of norms of 1/2 at most.
    deep = deep_bound(np.full(n, 1e-3), depth=2, radius=size * math.sqrt(n))
    golowich = 2 * deep.terms["complexity, 4 Rad / gamma"] * 1e-3 / 4
    shown, violations, room = [], [], {"C.4": MOST, "D.3": MOST}
    for below in (0.0, -1.0, steep):
        phi = lambda z, a=below: z.clamp(min=0) + a * z.clamp(max=0)  # noqa: E731
        found = variation_ball(X, bias=False, draws=30, seed=trial.number, activation=phi)
        bounds = {"C.4": 3 * max(1.0, abs(below)) * size}
        violations.append(abs(found.bound / bounds["C.4"] - 1) - 1e-12)
        if not below:
            bounds["D.3"] = golowich
        for name, bound in bounds.items():
            violations.append(found.estimate - 3 * found.error - factor * bound)
            room[name] = min(room[name], bound / found.estimate)
        shown.append(f"{found.estimate / size:.2f}")
    # The lemma itself: (sqrt(sum max phi^2) + 2 M |X|_F) / n, which a constant attains at n = 1.
    bend, M = _LIPSCHITZ[trial.number % len(_LIPSCHITZ)]
    few, angle = random.normal(size=(1 + trial.number % 5, 2)), np.linspace(0, 2 * np.pi, 2001)
    values = bend(few @ np.array([np.cos(angle), np.sin(angle)]))
    suprema = np.abs(random.choice([-1, 1], (400, len(few))) @ values).max(1)
    most = math.sqrt((np.abs(values).max(1) ** 2).sum()) + 2 * M * np.linalg.norm(few)
    violations.append(suprema.mean() - 0.15 * suprema.std() - factor * most)
    room["C.4, any phi"] = most / suprema.mean()
    where = f"{n} points, {d} dimensions, slope {steep:.2f}"
    return Finding.of(violations, where, f"{', '.join(shown)} |X|_F / n", **room)


@claim(
    "wei/regularized-bound",
    "on the hypercube the largest margin gamma* is at least 1/8, so that the bound at the minimizer"
    " for lambda -> 0 is at most 48 sqrt(D / n) + epsilon(gamma*), like sqrt(d / n); test errors"
    " are below it, and below the bound with its own margin at the weak lambda of Theorem 2.2",
    source=f"{W18}, (3.3); {W19}, Corollary 4.2 (depth 2) and Theorem 2.1, upper half",
    hypotheses=(
        "d = 3 to 7, n = 3 d and 40,000; errors over all points of the cube; the bound of two-layer"
        " nets and the one of Golowich et al.; 300,000 samples as in wei/bounds-hold, of which 6 to"
        " 7% are hard, so that (3.3) is below 1, or 80 to 100%, where Corollary 4.2 has the least"
        " slack; limits of the slack 12 and 10.7"
    ),
    tolerance=1e-4,
    because="gamma* as far as the solver gets; it is 1/8 where all points are among the samples",
    trials=(2, 10),
    ascent=0,
)
def regularized_bound(
    trial: Trial, *, factor: float = 1.0, share: float = 1.0, complexity: float = 1.0
) -> Finding:
    d, few = 3 + trial.number % 5, trial.number % 2 == 0
    n, seed = 3 * d if few else 40_000, int(trial.random.integers(2**31))
    X, y = (part.numpy().astype(float) for part in datasets.hypercube(n, d, seed=seed))
    points, index = np.unique(X, axis=0, return_index=True)
    labels = y[index]
    everything, classes = (part.numpy() for part in datasets.hypercube(40_000, d, seed=seed + 1))
    everything, index = np.unique(everything, axis=0, return_index=True)
    classes = classes[index]
    best = f1_max_margin(points, labels, bias=False)
    weak = weak_regularization(best.margin, n=len(points))
    weakly = f1_logistic(points, labels, regularization=weak.regularization, bias=False)
    violations, room, shown = [], {}, []
    radius = math.sqrt(d - 1)
    if d <= 5:  # in more dimensions it takes minutes
        fitted = min_norm_interpolation(everything, classes, bias=False, norm="l1")
        violations.append(fitted.norm / 4 - factor)
        gap = regression_bound(np.zeros(n), X, norm=fitted.norm, largest_loss=1.0, lipschitz=2.0)
        violations.append(gap.terms["complexity"] / (96 * math.sqrt((d - 1) / n)) - factor)
    for name, net in (("limit", best), ("weak", weakly)):
        gamma = net.normalized_margin(points, labels)
        error = float((classes * net.decision_function(everything) <= 0).mean())
        q = np.full(n, gamma)
        bounds = [two_layer_bound(q, X, radius=radius), deep_bound(q, depth=2, radius=radius)]
        violations += [error - share * bound.value for bound in bounds]
        room[name] = min(min(bound.value for bound in bounds) / max(error, 1 / MOST), MOST)
        shown.append(
            f"{name}: error {error:.3f}, bounds {bounds[0].value:.2f}, {bounds[1].value:.2f}"
        )
        if name == "limit":
            leading = bounds[0].terms["complexity, 4 Rad / gamma"]
            violations.append(leading / (48 * math.sqrt((d - 1) / n)) - factor)
        else:
            violations.append(1 - gamma / weak.guarantee)
    # The largest margin of all two-layer nets is 1 / (2 |v|): so it is for four samples.
    hard = trial.random.uniform(*((0.06, 0.07) if few else (0.8, 1.0)))
    memory = _Memory.drawn(trial.random, 300_000, hard, 1.0)
    lengths = memory.lengths[[0, 0, 0, -1]]
    four = f1_max_margin(np.diag(lengths), np.ones(4), bias=False)
    violations.append(abs(2 * four.margin * math.sqrt((lengths**-2).sum()) - 1))
    q, X = memory.values / (2 * memory.size), memory.lengths[:, None]
    for name, bound in {
        "by heart, (3.3)": two_layer_bound(q, X, radius=1.0),
        "by heart, 4.2": deep_bound(q, depth=2, radius=1.0),
    }.items():
        room[name] = shrinking(bound, hard * memory.fresh)
        violations.append(1 / room[name] - complexity)
        shown.append(f"{name}: {hard * memory.fresh:.3f} <= {bound.value:.2f}")
    return Finding.of(violations, f"d = {d}, n = {n}", "; ".join(shown), **room)


@claim(
    "wei/regression-gap",
    "x normal, y = relu(u . x) for one fixed u: E y' K^-1 y = n, so that the complexity of Lemma"
    " D.5 stays above 1 while that of D.4, at |alpha|_1 = 1, is of order sqrt(d / n): their ratio"
    " grows like sqrt(n / d)",
    source=f"{W18}, Section 3.4, Theorem D.6 and its proof; Figure 3: a kernel bound constant in n",
    hypotheses="d = 4 to 16, n = 16 to 128, 12 draws for each; truncated squares, M = 2",
    tolerance=0.0,
    because=(
        "the mean of y' K^-1 y / n within 4 standard errors of 1; exponents within .1, intervals"
        " included"
    ),
    trials=(1, 5),
    sharpen="trend",
)
def regression_gap(trial: Trial, *, exponent: float = 0.5, norm: float = 1.0) -> Finding:
    random = trial.random
    norms, ratios, kernels, nets, sizes = [], [], [], [], []
    for d, n in [(d, n) for d in (4, 8, 16) for n in (16, 32, 64, 128)] * 12:
        X, u = random.normal(size=(n, d)), np.eye(d)[0]
        y = np.maximum(X @ u, 0)
        norms.append(y @ np.linalg.solve(arc_cosine(X, bias=False), y) / n)
        terms = [
            regression_bound(np.zeros(n), X, norm=size, largest_loss=1.0, lipschitz=2.0, kernel=on)
            for size, on in ((1.0, False), (math.sqrt(norms[-1] * n), True))
        ]
        net, kernel = (bound.terms["complexity"] for bound in terms)
        ratios.append(kernel / net)
        kernels.append(kernel)
        nets.append(net)
        sizes.append((d, n))
    d, n = np.log(np.array(sizes)).T
    fits = [slope(n - d, np.log(ratios)), slope(n, np.log(kernels)), slope(n - d, np.log(nets))]
    error = np.std(norms, ddof=1) / math.sqrt(len(norms))
    violations = [abs(np.mean(norms) - norm) / (4 * error) - 1, 1 - min(kernels)]
    violations += [
        fit.off(claimed) - 0.1 for fit, claimed in zip(fits, (exponent, 0, -exponent), strict=True)
    ]
    shown = f"ratio ~ (n / d)^({fits[0].value:.3f} +- {fits[0].error:.3f})"
    shown += f", kernel's term n^({fits[1].value:.3f} +- {fits[1].error:.3f})"
    return Finding.of_one(violations, "d = 4 to 16, n = 16 to 128", shown)

"""Claims of Wei et al. 2018 and 2019: bounds of test errors, of nets and of kernels."""

import math

import numpy as np

from ... import datasets
from ...bounds import (
    deep_bound,
    kernel_bound,
    regression_bound,
    truncated_squares,
    two_layer_bound,
    variation_ball,
)
from ...kernels import arc_cosine
from ...regularization.weak import weak_regularization
from ...solvers import f1_logistic, f1_max_margin
from ..ledger.claim import claim
from ..ledger.draws import draw_directions
from ..ledger.regression import slope
from ..ledger.slack import MOST
from ..ledger.trial import Finding, Trial
from ._instances import W18, W19

_SIGMA = 0.7
"""Noise +-.7 of regression: its square, 1/2, is what no predictor falls below, and is not cut."""


@claim(
    "wei/bounds-hold",
    "Theorem 3.1, Lemma 3.4 (two-layer nets, kernel predictors), Proposition D.1 of 2019 (depth 2,"
    " 3, 4), with training errors as in Theorem C.1, and Lemmas D.4, D.5 (regression): the test"
    " error is at most the bound, with probability 0.95",
    source=(
        f"{W18}, Theorem 3.1, Lemmas 3.4, D.4, D.5; {W19}, Proposition D.1; constants as in"
        " netmargin.bounds"
    ),
    hypotheses=(
        "random half spaces of 2 to 6 dimensions with a gap, 30 to 45% of all labels flipped, noise"
        " +-.7 of regression; linear functions learnt from 160,000 samples (kernels 2,000), which"
        " nets and kernels represent; their errors are known exactly"
    ),
    tolerance=0.0,
    because="test error minus the bound, which is below 1; no trial may violate it",
    trials=(2, 40),
    ascent=0,  # true of most samples: of chosen ones it need not be
)
def bounds_hold(trial: Trial, *, share: float = 1.0) -> Finding:
    random, d, gap = trial.random, 2 + trial.number % 5, 0.6
    w, flipped = draw_directions(random, d), random.uniform(0.3, 0.45)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw unit vectors with |w . x| >= .6, and the class of each."""
        side, across = random.uniform(gap, 1, n), random.normal(size=(n, d))
        y = random.choice([-1.0, 1.0], n)
        across -= np.outer(across @ w, w)
        across *= np.sqrt(1 - side**2)[:, None] / np.linalg.norm(across, axis=1, keepdims=True)
        return across + np.outer(y * side, w), y

    def learn(X: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, float]:
        """The unit vector along the mean of t x, and its angle to w."""
        u = t @ X / np.linalg.norm(t @ X)
        return u, math.acos(min(1.0, u @ w))

    bounds, n, radius = {}, 160_000, 1 + 1e-9  # with rounding
    X, y = draw(n)
    t = y * np.where(random.random(n) < flipped, -1, 1)
    u, angle = learn(X, t)
    # relu(s) - relu(-s) = s through every layer: balanced, ||Theta||^2 is twice the depth.
    q = t * (X @ u)
    bounds["3.1"] = two_layer_bound(q / 4, X, margin=gap / 4, radius=radius)
    for depth in (2, 3, 4):
        unit = (2 * depth) ** (-depth / 2)
        bounds[f"D.1, {depth}"] = deep_bound(
            q * unit, depth=depth, margin=gap * unit, radius=radius
        )
    # The angle is below that of the gap, so that only what was flipped is wrong.
    errors = dict.fromkeys(bounds, flipped if angle < math.asin(gap) else math.inf)
    noise = _SIGMA * random.choice([-1.0, 1.0], n)
    losses = truncated_squares(X @ u, X @ w + noise)
    expected = _SIGMA**2 + _mean_square(u - w, w, gap, d)
    for name, kernel, norm in (("D.4", False, 2.0), ("D.5", True, 2 * math.sqrt(d))):
        scale = {"norm": norm, "largest_loss": 1.0, "lipschitz": 2.0}
        bounds[name], errors[name] = regression_bound(losses, X, kernel=kernel, **scale), expected
    X, y = draw(2000)
    t = y * np.where(random.random(2000) < flipped, -1, 1)
    u, angle = learn(X, t)
    unit = 1 / (2 * math.sqrt(d))  # u . x is of norm 2 sqrt d in the space of the kernel
    largest = math.sqrt(1 / (2 * d))
    K = arc_cosine(X, bias=False)
    bounds["3.4"] = kernel_bound(t * (X @ u) * unit, K, largest=largest, margin=gap * unit)
    errors["3.4"] = flipped if angle < math.asin(gap) else math.inf
    violations = [errors[name] - share * bound.value for name, bound in bounds.items()]
    violations += [0.0 if bound.value < 1 else math.inf for bound in bounds.values()]
    room = {name: min(bound.value / errors[name], MOST) for name, bound in bounds.items()}
    shown = ", ".join(f"{name}: {bound.value:.2f}" for name, bound in bounds.items())
    where = f"{d} dimensions, {100 * flipped:.0f}% flipped"
    return Finding.of(
        violations, where, f"errors {flipped:.2f} and {expected:.2f}; {shown}", **room
    )


def _mean_square(v: np.ndarray, w: np.ndarray, gap: float, d: int) -> float:
    """E (v . x)^2 where w . x is +-uniform on [gap, 1] and the rest of x uniform on its sphere."""
    along = (1 + gap + gap**2) / 3
    return float((v @ w) ** 2 * along + (v @ v - (v @ w) ** 2) * (1 - along) / (d - 1))


@claim(
    "wei/complexities",
    "the Rademacher complexity of two-layer nets with an M-Lipschitz, homogeneous phi is at most 3"
    " M |X|_F / n per unit of |alpha|_1, that of q layers with norms 1 at most (sqrt(2 log(2) q) +"
    " 1) |X|_F / n",
    source=f"{W18}, Lemma C.4; {W19}, Lemma D.3 (Golowich et al.)",
    hypotheses=(
        "ReLU, leaky ReLU, |.|, slopes of either sign to 3; 5 to 24 points in the plane and space,"
        " where suprema over neurons are exact; more layers contain the nets of two, ReLU"
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
        " nets and the one of Golowich et al."
    ),
    tolerance=1e-4,
    because="gamma* as far as the solver gets; it is 1/8 where all points are among the samples",
    trials=(2, 10),
    ascent=0,
)
def regularized_bound(trial: Trial, *, factor: float = 1.0, share: float = 1.0) -> Finding:
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
            violations.append(leading / (factor * 48 * math.sqrt((d - 1) / n)) - 1)
        else:
            violations.append(1 - gamma / weak.guarantee)
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

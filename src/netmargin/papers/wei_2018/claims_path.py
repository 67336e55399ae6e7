"""Claims of Wei et al. 2018 and 2019: weak regularization ends at the largest margin."""

import numpy as np
import torch

from ... import datasets
from ...models import mlp
from ...regularization import regularization_path
from ...regularization.weak import weak_regularization
from ...solvers import f1_max_margin, linear_max_margin, min_norm_interpolation, narrow_max_margin
from ..ledger.claim import claim
from ..ledger.trial import Finding, Trial
from ._instances import W18, W19
from ._interpolation import interpolation_path

_ANGLE = 2 * np.pi * np.arange(6) / 6
# Sets whose exact minimizer at lambda = 1e-12 is itself within 1% of the max margin.
PATHS = {
    "two pairs on a line": ([[-2.0], [-1.0], [1.0], [2.0]], [1, 1, -1, -1]),
    "inside and outside": ([[-3.0], [-1.0], [1.0], [3.0]], [-1, 1, 1, -1]),
    "square": datasets.parity(2, 2),
    "hexagon": (np.column_stack([np.cos(_ANGLE), np.sin(_ANGLE)]), [1, -1, 1, -1, 1, -1]),
    "XOR with noise": datasets.gaussian_xor(20, 2),
}


@claim(
    "wei/max-margin-path",
    "as lambda -> 0 the normalized margin of the minimizers of mean loss + lambda ||Theta||^r tends"
    " to the best one gamma*",
    source=f"{W18}, Theorem 2.1; {W19}, Theorem 4.1",
    hypotheses=(
        "two-layer nets with biases, r = 2, separable data; gamma* certified; global minimizers,"
        " as far as five starts find them; lambda = 1e-3, 1e-6, 1e-12"
    ),
    tolerance=1e-3,
    because=(
        "within 1% at 1e-12, gaps not growing, none above gamma*: that counts as holding;"
        " minimizers are found to 1e-3 of gamma*"
    ),
    trials=(1, 5),
    sharpen="trend",
)
def max_margin_path(trial: Trial, *, weakest: float = 1e-12) -> Finding:
    name = list(PATHS)[trial.number % len(PATHS)]
    X, y = (torch.as_tensor(part) for part in PATHS[name])
    X = X.double()
    best = f1_max_margin(X, y)
    # The way to the weakest lambda, along which minimizers are followed from stage to stage.
    lambdas = [*(v for v in (1e-3, 1e-6) if v > weakest), weakest]
    make = lambda: mlp([X.shape[1], 16, 1])  # noqa: E731
    path = regularization_path(make, (X, y), lambdas=lambdas, seed=trial.seed, progress=False)
    gaps = 1 - np.array(path.column("normalized_margin")) / best.upper_bound
    measured = f"{name}: gaps to gamma* {', '.join(f'{gap:.2g}' for gap in gaps)}"
    where = f"{name}, 16 neurons, lambda down to {weakest:g}"
    return Finding.of_one([gaps[-1] - 0.01, *np.diff(gaps), *-gaps], where, measured)


@claim(
    "wei/path-accuracy",
    "with lambda = gamma*^{r/a} / (n (l - 1))^c every Theta with L_lambda <= 2 min L_lambda has a"
    " margin of gamma* / (2 4^{a/r}) at least, c the smallest exponent that the proof allows",
    source=f"{W18}, Theorem 2.2 with n (l - 1) >= 2 and its constants computed",
    hypotheses=(
        "all linear classifiers in the plane on a grid of 2,001 directions and sizes, logistic"
        " loss, r = 2, separable data"
    ),
    tolerance=0.0,
    because="the worst margin of the grid against the promise, relative",
    trials=(3, 30),
    sharpen={"stronger": 1},
)
def path_accuracy(trial: Trial, *, stronger: float = 1.0, guarantee: float = 1.0) -> Finding:
    random, n = trial.random, 2 + trial.number % 6
    X = random.normal(size=(n, 2))
    y = np.where(X @ random.normal(size=2) > 0, 1, -1)  # separable through the origin
    gamma = linear_max_margin(X, y).margin
    weak = weak_regularization(gamma, n=n, order=1.0)
    worst = _find_worst_margin(X * y[:, None], stronger * weak.regularization, gamma)
    lacking = 1 - worst / (guarantee * weak.guarantee)
    shown = f"worst margin {worst / gamma:.3f} gamma*, promised {weak.guarantee / gamma:.3f}"
    room = worst / weak.guarantee
    return Finding.of(lacking, f"{n} points in the plane", shown, guarantee=room)


def _find_worst_margin(
    Z: np.ndarray, regularization: float, gamma: float, angles: int = 2000
) -> float:
    """Find the smallest margin of the linear classifiers u with L(u) <= 2 min L, on a grid."""
    # Sizes around 1 / gamma, at which the loss begins to vanish, by three decades to both sides.
    angle, size = np.linspace(0, 2 * np.pi, angles + 1), np.geomspace(1e-3, 1e3, 2001) / gamma
    margins = np.column_stack([np.cos(angle), np.sin(angle)]) @ Z.T
    losses = sum(np.logaddexp(0, -np.multiply.outer(q, size)) for q in margins.T)
    L = losses / len(Z) + regularization * size**2
    return float(margins.min(1)[(2 * L.min() >= L).any(1)].min())


@path_accuracy.printed(
    "Theorem 2.2 for any n and l, thus for n (l - 1) = 1: some c gives a margin of gamma* / (2"
    " 4^{a/r}) = gamma* / 4"
)
def _() -> Finding:
    # n (l - 1) = 1: lambda = gamma*^2 for every c. One weight, gamma* = 1.
    worst = _find_worst_margin(np.array([[1.0, 0.0]]), 1.0, 1.0, angles=2)
    return Finding.of(
        1 / 4 - worst,
        "logistic loss, x = 1, r = 2, lambda = 1: Theta = -1/2 has less than twice the least loss,"
        f" and margin {worst:g}",
    )


@path_accuracy.printed("its proof: c >= 4 makes (c - 2) / (c + 1) at least 3/5")
def _() -> Finding:
    return Finding.of(3 / 5 - (4 - 2) / (4 + 1), "c = 4: 2/5")


@claim(
    "wei/width-monotone",
    "the best margin gamma*,m of nets of width m does not fall with m, and is the same from m ="
    " n on",
    source=f"{W18}, Theorem 3.2; {W19}, Theorem 4.3",
    hypotheses=(
        "3 (later 4) points in general position in the plane, or the square; gamma*,m exact by all"
        " activation patterns, gamma*,infinity certified"
    ),
    tolerance=1e-5,
    because="a cone solver for each pattern, to 1e-7 relative",
    trials=(2, 8),
    sharpen="monotone",
)
def width_monotone(trial: Trial, *, from_width: int = 0) -> Finding:
    random = trial.random
    n = 3 + trial.number % 2
    X, y = random.normal(size=(n, 2)), np.where(np.arange(n) % 2, 1, -1)
    # The square is symmetric, where several optima tie; later trials move its corners.
    if trial.number % 2:
        X, y = (part.numpy() for part in datasets.parity(2, 2))
        X = X + 0.2 * (trial.number > 1) * random.normal(size=X.shape)
    best = f1_max_margin(X, y, bias=False)
    nets = [narrow_max_margin(X, y, m) for m in range(1, n + 1)]
    margins = np.array([net.normalized_margin(X, y) for net in nets]) / best.margin
    measured = "gamma*,m / gamma* for m = 1 .. n: " + ", ".join(f"{m:.4f}" for m in margins)
    off = [*-np.diff(margins), *np.abs(margins[n - 1 + from_width :] - 1), best.gap]
    return Finding.of_one(off, f"{n} points in the plane", measured)


@width_monotone.printed("gamma* > 0 for distinct points")
def _() -> Finding:
    none = f1_max_margin([[1.0], [2.0]], [1, -1], bias=False).upper_bound <= 1e-9
    return Finding.of(float(none), "{x, 2x} with opposite labels, no bias: margin 0, proved")


@claim(
    "wei/regression-limit",
    "weakly regularized squared loss ends at the interpolation of least norm: ||Theta||^2 -> 2 min"
    " |alpha|_1",
    source=f"{W18}, Theorem D.3; {W19}, Theorem B.10",
    hypotheses=(
        "4 points on a line with random targets, 40 neurons, global minimizers, as far as three"
        " starts find them; lambda = 1e-6; least norm certified"
    ),
    tolerance=0.01,
    because="within 1%: that counts as holding",
    trials=(1, 4),
    sharpen="trend",
)
def regression_limit(trial: Trial, *, factor: float = 2.0) -> Finding:
    X, y = np.linspace(-1, 1, 4)[:, None], trial.random.normal(size=4)
    least = min_norm_interpolation(X, y, norm="l1")
    # From a strong penalty on, as minimizers of weak ones are many: the path chooses among them.
    data, lambdas = (torch.tensor(X), torch.tensor(y)), [1e-1, 1e-2, 1e-3, 1e-6]
    make = lambda: mlp([1, 40, 1])  # noqa: E731
    path = interpolation_path(make, *data, lambdas=lambdas, starts=3, seed=trial.seed)
    ratio = path.rows[-1]["norm"] ** 2 / (factor * least.norm)
    shown = f"||Theta||^2 / (2 |alpha|_1) = {ratio:.5f}"
    return Finding.of_one(abs(ratio - 1), "4 points on a line", shown)

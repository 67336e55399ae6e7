"""Claims of Wei et al. 2018 and 2019: weak regularization ends at the largest margin."""

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog

from ... import datasets
from ...models import mlp
from ...regularization import regularization_path
from ...regularization.weak import weak_regularization
from ...solvers import f1_max_margin, linear_max_margin, min_norm_interpolation
from ..ledger.claim import claim
from ..ledger.draws import draw_blobs, draw_points
from ..ledger.points import make_linear_net
from ..ledger.trial import Finding, Trial, excess
from ._instances import W18, W19
from ._interpolation import interpolation_path
from ._narrow import narrow_max_margin

NORMS = {"global": 2.0, "l1": 1.0, "linf": np.inf}
"""The norms of the penalty, with the p of each l_p."""
_WIDTH = 3
"""Hidden units of deep linear nets, whose best margins are known for every width."""


def draw_classes(random: np.random.Generator, n: int, classes: int) -> tuple[Any, ...]:
    """Draw linearly separable points, labels, and Z (n, classes - 1, 3 classes): margins Z W."""
    X, W = random.normal(size=(n, 3)), random.normal(size=(3, classes))
    y = (X @ W).argmax(1)
    one = np.eye(classes)
    better = [[one[k] - one[j] for j in range(classes) if j != k] for k in y]
    Z = np.einsum("nkc,nd->nkcd", better, X)
    if classes == 2:  # one output
        return X, 2 * y - 1, Z[:, :, 1]
    return X, y, Z.reshape(n, classes - 1, -1)


def maximize_linear_margin(Z: np.ndarray, norm: str) -> tuple[float, np.ndarray]:
    """The largest t with Z w >= t for a w of norm 1, Z (n, classes - 1, p), and that w."""
    m, p = Z.shape[0] * Z.shape[1], Z.shape[2]
    Z = Z.reshape(m, p)
    if norm != "linf":
        signs = np.where(np.arange(m) % 2, 1, -1)  # a solver of two classes
        chosen = "l2" if norm == "global" else norm
        best = linear_max_margin(Z * signs[:, None], signs, norm=chosen)
        return best.upper_bound, best.weights
    rows, bounds = np.hstack([-Z, np.ones((m, 1))]), [(-1.0, 1.0)] * p + [(None, None)]
    found = linprog(np.append(np.zeros(p), -1.0), A_ub=rows, b_ub=np.zeros(m), bounds=bounds)
    return -found.fun, found.x[:p]


@claim(
    "wei/max-margin-path",
    "minimizers Theta of L = mean loss + lambda ||Theta||^r have, s = ||Theta||, log(1 + e^(-s^a"
    " gamma)) / n + lambda s^r <= L <= log(1 + (l - 1) e^(-M^a gamma*)) + lambda M^r for all M; so"
    " s <= (L / lambda)^{1/r}, s tends to infinity as lambda -> 0, and gamma to gamma*, up to about"
    " log(n (l - 1)) / s^a",
    source=(
        f"{W18}, Theorems 2.1, A.3, Claim A.1, Lemma A.2, (A.2) to (A.5) and what follows; {W19},"
        " Theorems 4.1, C.1, Claim C.3, Lemma C.4"
    ),
    hypotheses=(
        "random separable sets, r = 1, 2, 3, lambda = 1e-3, 1e-12, 1e-300; linear classifiers of 2"
        " to 4 classes and linear nets of 2 and 3 layers, norms l2, l1, linf; every fourth trial"
        " two-layer ReLU nets on four blobs, l2, r = 2; gamma* certified; both bounds also at"
        " random Theta"
    ),
    tolerance=1e-3,
    because="within 1% at 1e-300 counts as tending; minimizers are found to 1e-3 of gamma*",
    trials=(3, 20),
    sharpen="trend",
)
def max_margin_path(
    trial: Trial,
    *,
    weakest: float = 1e-300,
    others: float = 1.0,
    share: float = 1.0,
    ball: float = 1.0,
) -> Finding:
    random, number = trial.random, trial.number
    violations: list[float] = []
    if number % 4 == 3:
        order, norm, r, classes = 2, "global", 2.0, 2
        X, y = draw_blobs(random, 6 + number // 4)
        make, best = lambda: mlp([2, 12, 1]), f1_max_margin(X, y).upper_bound
        name = "two-layer ReLU net"
    else:
        k = number - number // 4
        order, norm, r = 1 + k % 3, list(NORMS)[k // 3 % 3], 1.0 + k // 2 % 3
        classes = 2 + (k // 3 + k // 9) % 3 if order == 1 else 2
        X, y, Z = draw_classes(random, 4 + number % 7, classes)
        q = np.einsum("wp,nkp->wnk", random.normal(size=(100, Z.shape[2])), Z)
        losses = np.logaddexp.reduce([np.zeros(q.shape[:2]), *np.moveaxis(-q, 2, 0)])
        count = np.arange(1, len(X) + 1)  # of each number of samples
        least, mean = np.minimum.accumulate(q.min(2), 1), losses.cumsum(1) / count
        violations += [*(mean / np.log1p(others * (classes - 1) * np.exp(-least)) - 1).ravel()]
        violations += [*(share * np.log1p(np.exp(-least)) / count / mean - 1).ravel()]
        widths = [3, *[_WIDTH] * (order - 1), classes if classes > 2 else 1]
        make = partial(make_linear_net, widths)
        best, _ = maximize_linear_margin(Z, norm)
        # Of all nets with the same product the balanced one is least, or the one of equal entries.
        units = {"global": order ** (-order / 2), "l1": float(order) ** -order}
        best *= units.get(norm, _WIDTH ** (order - 1.0))
        name = f"linear net, depth {order}, {classes} classes, {norm}"
    lambdas = [*(v for v in (1e-3, 1e-12) if v > weakest), weakest]
    data, starts = (torch.as_tensor(X), torch.as_tensor(y)), 5 if number % 4 == 3 else 2
    options: dict[str, Any] = {"r": r, "norm": norm, "starts": starts, "seed": trial.seed}
    path = regularization_path(make, data, lambdas=lambdas, progress=False, **options)
    n, sizes, gaps = len(X), [], []
    for row, (value, state) in zip(path.rows, path.states.items(), strict=True):
        theta = torch.cat([part.reshape(-1) for part in state.values()])
        s, L = torch.linalg.vector_norm(theta, NORMS[norm]).item(), math.exp(row["log_objective"])
        gamma = row["normalized_margin"] * (row["norm"] / s) ** order
        M = s * np.append(np.geomspace(0.1, 10, 200), 1.0)
        above = np.log1p((classes - 1) * np.exp(-(M**order) * best))
        below = math.log1p(math.exp(-(s**order) * gamma)) / n + value * s**r
        # (A.4) and (A.5) without what both share.
        promised = -math.log(math.expm1(n * above[-1])) / s**order
        violations += [excess(L, (above + value * M**r).min()), (promised - gamma) / best]
        violations += [s / (L / value) ** (1 / r) - ball, excess(gamma, best), below / L - 1]
        sizes.append(s)
        gaps.append(1 - gamma / best)
    violations += [*-np.diff(sizes), gaps[-1] - 0.01]
    measured = f"gaps to gamma* {', '.join(f'{gap:.2g}' for gap in gaps)}"
    return Finding.of_one(violations, f"{name}, {n} points, r = {r:g}", f"{name}: {measured}")


@claim(
    "wei/path-accuracy",
    "with lambda = gamma*^{r/a} / (n (l - 1))^c every Theta with L_lambda <= alpha min L_lambda has"
    " a margin of gamma* / (2 (2 alpha)^{a/r}) at least, c the smallest exponent that the proof"
    " allows",
    source=(
        f"{W18}, Theorem 2.2 with n (l - 1) >= 2 and its constants computed; {W19}, Theorem C.2"
        " (10 alpha^{a/r} as far as its text can be read, which is weaker for a <= 2.3 r)"
    ),
    hypotheses=(
        "||W||^{a-1} W x on random separable points, 2 to 4 classes, a = 1, 2, r = 1, 2, 3, norms"
        " l2, l1, linf, alpha = 2, 1.1, 5; 2,000 directions around the best one, 400 sizes"
    ),
    tolerance=0.0,
    because="the worst margin that was found against the promise, relative",
    trials=(3, 36),
    sharpen={"stronger": 1},
)
def path_accuracy(trial: Trial, *, stronger: float = 1.0, guarantee: float = 1.0) -> Finding:
    random, number = trial.random, trial.number
    n, classes = 2 + number % 6, 2 + number // 3 % 3
    order, r = 1.0 + number % 2, 1.0 + number // 2 % 3
    alpha, norm = (2.0, 1.1, 5.0)[number // 4 % 3], list(NORMS)[number % 3]
    _, _, Z = draw_classes(random, n, classes)
    gamma, best = maximize_linear_margin(Z, norm)
    weak = weak_regularization(gamma, n=n, classes=classes, order=order, r=r, approximation=alpha)
    # Random weights at all distances from the best ones.
    noise = random.normal(size=(2000, len(best))) * 10 ** random.uniform(-2, 1, (2000, 1))
    W = best / np.linalg.norm(best) + noise
    W /= np.linalg.norm(W, NORMS[norm], axis=1, keepdims=True)
    margins = np.einsum("wp,nkp->nkw", W, Z)
    penalty = stronger * weak.regularization
    worst = _find_worst_margin(margins, penalty, gamma, order=order, r=r, alpha=alpha)
    lacking = 1 - worst / (guarantee * weak.guarantee)
    shown = f"worst margin {worst / gamma:.3f} gamma*, promised {weak.guarantee / gamma:.3f}"
    room = worst / weak.guarantee
    where = f"{n} points, {classes} classes, a = {order:g}, r = {r:g}, alpha = {alpha:g}, {norm}"
    return Finding.of(lacking, where, shown, guarantee=room)


def _find_worst_margin(
    margins: np.ndarray,
    regularization: float,
    gamma: float,
    *,
    order: float,
    r: float,
    alpha: float,
) -> float:
    """The least margin where L <= alpha min L, of multiples of units with margins (n, l - 1, k)."""
    # Sizes around the one at which the loss begins to vanish, by two decades to both sides.
    size = np.geomspace(1e-2, 1e2, 400) * gamma ** (-1 / order)
    scaled = np.multiply.outer(margins, size**order)
    losses = sum(np.logaddexp.reduce([0 * q[0], *-q]) for q in scaled)
    L = losses / len(margins) + regularization * size**r
    return float(margins.min((0, 1))[(alpha * L.min() >= L).any(1)].min())


@path_accuracy.printed(
    "Theorem 2.2 for any n and l, thus for n (l - 1) = 1: some c gives a margin of gamma* / (2"
    " 4^{a/r}) = gamma* / 4"
)
def _() -> Finding:
    # n (l - 1) = 1: lambda = gamma*^2 for every c. One weight, gamma* = 1.
    one = np.array([[[1.0, -1.0]]])
    worst = _find_worst_margin(one, 1.0, 1.0, order=1.0, r=2.0, alpha=2.0)
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
    " n on; a net of any depth is one of every wider architecture, with its margins and norm",
    source=f"{W18}, Theorem 3.2; {W19}, Theorem 4.3",
    hypotheses=(
        "4 or 5 points in the plane whose best net has three neurons or more and two neurons reach"
        " less, or the square; gamma*,m exact by all activation patterns, m <= 4, gamma*,infinity"
        " certified; nets of 2 to 4 layers that are widened"
    ),
    tolerance=1e-5,
    because="a cone solver for each pattern, to 1e-7 relative",
    trials=(2, 9),
    sharpen="monotone",
)
def width_monotone(trial: Trial, *, from_width: int = 0, more: float = 0.0) -> Finding:
    random, number = trial.random, trial.number
    if number % 3 == 1:
        # The square is symmetric, where several optima tie; later trials move its corners.
        X, y = (part.numpy() for part in datasets.parity(2, 2))
        X = X + 0.2 * (number > 1) * random.normal(size=X.shape)
        best = f1_max_margin(X, y, bias=False)
    else:
        X, y, best = _draw_for_three_neurons(random, 4 + number % 3 // 2)
    n = len(X)
    nets = [narrow_max_margin(X, y, m) for m in range(1, 5 if n == 4 else 4)]
    margins = np.array([net.normalized_margin(X, y) for net in nets]) / best.margin
    measured = f"gamma*,m / gamma* from m = 1 on: {', '.join(f'{m:.4f}' for m in margins)}"
    off = [*-np.diff(margins), *np.abs(margins[n - 1 + from_width :] - 1), best.gap]
    # A deep net, and what is added to its layers.
    widths, added = random.integers(1, 5, size=3 + number % 3), random.integers(0, 3, size=9)
    widths[[0, -1]], added[[0, len(widths) - 1]] = (2, 1), 0
    narrow = wide = random.normal(size=(20, 2))
    for k, (inputs, outputs) in enumerate(pairwise(widths)):
        W = random.normal(size=(outputs, inputs))
        around = ((0, added[k + 1]), (0, added[k]))
        wider = np.pad(W, around, constant_values=more)
        narrow, wide = narrow @ W.T, wide @ wider.T
        off.append(abs(np.linalg.norm(wider) - np.linalg.norm(W)))
        if k < len(widths) - 2:
            narrow, wide = np.maximum(narrow, 0), np.maximum(wide, 0)
    off.append(np.abs(narrow - wide).max())
    return Finding.of_one(off, f"{n} points in the plane, {len(widths) - 1} layers", measured)


def _draw_for_three_neurons(random: np.random.Generator, n: int) -> tuple[Any, ...]:
    """Draw points, labels and the solution of a set that two neurons separate, but three better."""
    for _ in range(1000):
        X, y = draw_points(random, n)
        y[:2] = 1, -1
        best = f1_max_margin(X, y, bias=False)
        if best.margin > 1e-3 and len(best.weights) > 2:
            two = narrow_max_margin(X, y, 2).normalized_margin(X, y) / best.margin
            if 0 < two < 0.99:
                return X, y, best
    raise RuntimeError("none of 1,000 sets needs three neurons")


@width_monotone.printed("gamma* > 0 for distinct points")
def _() -> Finding:
    none = f1_max_margin([[1.0], [2.0]], [1, -1], bias=False).upper_bound <= 1e-9
    return Finding.of(float(none), "{x, 2x} with opposite labels, no bias: margin 0, proved")


@claim(
    "wei/regression-limit",
    "weakly regularized squared loss ends at the interpolation of least norm: ||Theta||^2 -> 2 min"
    " |alpha|_1, and L_lambda <= lambda 2 min |alpha|_1 -> 0",
    source=f"{W18}, Theorem D.3; {W19}, Theorem B.10",
    hypotheses=(
        "4, 6 and 8 points on a line and 4 in the plane with random targets; lambda from .01 or"
        " .001 to 1e-6; best of four starts with 100, 200 or 400 neurons: judged is the first path"
        " with L_lambda at most 0.5% above the certified net's; two at most are left out"
    ),
    tolerance=0.01,
    because="within 1%: that counts as holding",
    trials=(1, 4),
    sharpen="trend",
)
def regression_limit(trial: Trial, *, factor: float = 2.0, objective: float = 1.0) -> Finding:
    random, n, d = trial.random, *((4, 1), (6, 1), (4, 2), (8, 1))[trial.number % 4]
    X = np.linspace(-1, 1, n)[:, None] if d == 1 else random.normal(size=(n, d))
    y = random.normal(size=n)
    least, data = min_norm_interpolation(X, y, norm="l1"), (torch.tensor(X), torch.tensor(y))
    # From a strong penalty on, as minimizers of weak ones are many: the path chooses among them. At
    # .1 it turns off so many neurons that paths end in local minima, up to 10% above; at .01, some.
    lambdas = [1e-2, 1e-3, *([1e-4, 1e-5] if n > 4 else []), 1e-6]
    # The theorem is about minimizers: a path with L_lambda above the certified net's has others.
    for left_out, (width, iterations) in enumerate([(100, 100), (200, 300), (400, 1000)]):
        net, penalties = partial(mlp, [d, width, 1]), lambdas[min(left_out, 1) :]
        options: dict[str, Any] = {"starts": 4, "seed": trial.seed, "iterations": iterations}
        path = interpolation_path(net, *data, lambdas=penalties, **options)
        values = np.exp(path.column("log_objective")) / (2 * least.norm * np.array(penalties))
        if minimal := values.max() < 1.005:  # half of the tolerance
            break
    ratios = np.array(path.column("norm")) ** 2 / (factor * least.norm)
    # Of any net L_lambda >= lambda ||Theta||^2.
    off = [1 - ratios[-1], *(ratios - values.clip(max=1)), *-np.diff(ratios), *(values - objective)]
    where = f"{n} points in {d} dimensions, {left_out + (not minimal)} paths left out"
    shown = f"||Theta||^2 / (2 |alpha|_1) = {ratios[-1]:.5f}"
    return Finding.of_one(off if minimal else [np.inf], where, shown)

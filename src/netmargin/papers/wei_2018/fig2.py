"""Figure 2: two-layer net with one input: margin as lambda decreases, and the functions of the net
and the l1 SVM.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

from ...figures.style import BOTH, EXACT, OUTPUT, open_canvas
from ...models import mlp
from ...regularization.path import regularization_path
from ...solvers import f1_max_margin
from ..gallery.figure import Check, Figure, Row, Settings, by_scale
from ._interpolation import evaluate_minimizer


def compute(run: Row, settings: Settings) -> Row:
    """Follow the margins along the path, and both functions divided by their norms."""
    X, y = torch.tensor(settings["x"], dtype=torch.float64)[:, None], torch.tensor(settings["y"])
    exact = f1_max_margin(X, y)
    make = partial(mlp, [1, settings["width"], 1])
    options = {"lambdas": settings["lambdas"], "starts": settings["starts"]}
    path = regularization_path(make, (X, y), seed=run["seed"], progress=False, **options)
    grid = np.linspace(1.3 * min(settings["x"]), 1.3 * max(settings["x"]), 401)
    values = evaluate_minimizer(make, path, torch.tensor(grid)[:, None])
    return {
        "lambdas": path.column("regularization"),
        "margins": path.column("normalized_margin"),
        "optimum": exact.margin,
        "upper_bound": exact.upper_bound,
        "grid": grid.tolist(),
        "net": (values / path.rows[-1]["norm"] ** 2).tolist(),
        "exact": exact.decision_function(grid[:, None]).tolist(),
    }


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw margins (left), and functions with the labels (right)."""
    row, (drawn, ((left, right),)) = rows[0], open_canvas(2)
    optimum, lambdas, dashed = row["optimum"], row["lambdas"], {"color": EXACT, "linestyle": "--"}
    left.plot(lambdas, row["margins"], color=BOTH, marker="o", markersize=3, label="net")
    left.axhline(optimum, label=rf"exact $\ell_1$ SVM, {optimum:.4f}", **dashed)
    left.set_xscale("log")
    left.invert_xaxis()
    left.set(xlabel=r"$\lambda$", ylabel=r"normalized margin $q_{\min}/\|\Theta\|^2$")
    left.legend(frameon=False, loc="lower right")
    behind = dashed | {"linewidth": 2.5, "alpha": 0.5}
    right.plot(row["grid"], row["exact"], label=r"exact $\ell_1$ SVM", **behind)
    right.plot(row["grid"], row["net"], color=BOTH, label=rf"net, $\lambda$ = {min(lambdas):.0e}")
    heights = np.array(settings["y"]) * optimum
    right.scatter(settings["x"], heights, color=OUTPUT, zorder=3, label="labels times margin")
    right.set(xlabel="x", ylabel=r"$f(x)/\|\Theta\|^2$")
    right.legend(frameon=False, fontsize=8)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the margin is within 1% of the optimum at the end, and never above it."""
    row = rows[0]
    gap = 1 - row["margins"][-1] / row["optimum"]
    apart = np.abs(np.array(row["net"]) - row["exact"]).max() / np.abs(row["exact"]).max()
    near = (
        f"at lambda = {row['lambdas'][-1]:.0e} the net's margin is {100 * gap:.2f}% below the"
        " certified optimum (at most 1%)"
    )
    same = f"the two functions differ by {100 * apart:.1f}% of the largest value at most"
    below = max(row["margins"]) <= row["upper_bound"] * (1 + 1e-6)
    return [
        Check(near, gap < 0.01),
        Check("no margin is above the proved bound", below),
        Check(f"{same} (at most 10%)", bool(apart < 0.1)),
    ]


FIGURE = Figure(
    finding=(
        "the net's margin tends to that of the l1 SVM as lambda goes to 0, and the functions become"
        " the same"
    ),
    differs=(
        "the l1 SVM is exact, not that of 1,000 chosen features; the minimizers are found by"
        " L-BFGS; the points and the width are assumed"
    ),
    # Four symmetric points. By Theorem 3.2 four neurons suffice for them; wider nets have fewer bad
    # local minima.
    scales=by_scale(
        x=[-3.0, -1.0, 1.0, 3.0],
        y=[-1, 1, 1, -1],
        width=20,
        lambdas=(
            [1e-2, 1e-4, 1e-8, 1e-14],
            [10.0**-k for k in range(2, 15)],
            [10.0 ** (-k / 2) for k in range(4, 29)],
        ),
        starts=(2, 5, 10),
    ),
    minutes={"smoke": 0.1, "laptop": 0.6, "paper": 2.0},
    compute=compute,
    draw=draw,
    check=check,
)

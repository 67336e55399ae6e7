"""Figure 1: 60 sampled points of the distribution D in 3 dimensions."""

from typing import Any

import numpy as np

from ...datasets import gaussian_xor
from ...figures.style import BOTH, OUTPUT, open_canvas
from ...solvers import f1_max_margin, f2_max_margin, linear_max_margin
from ..gallery.figure import Check, Figure, Row, Settings, by_scale


def compute(run: Row, settings: Settings) -> Row:
    """Draw the samples, and solve for the margins of nets, kernels and linear classifiers."""
    X, y = gaussian_xor(settings["n"], 3, seed=run["seed"])
    f1, f2 = f1_max_margin(X, y, bias=False, time_limit=20), f2_max_margin(X, y, bias=False)
    margins = {"f1": 2 * f1.margin, "f2": f2.margin}
    margins["linear"] = linear_max_margin(X, y, bias=True).upper_bound
    return margins | {"X": X.tolist(), "y": y.tolist()}


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw positive samples in blue and negative ones in red, as in the paper."""
    drawn, ((axis,),) = open_canvas(width=4.6, height=4.2, projection="3d")
    X, y = np.array(rows[0]["X"]), np.array(rows[0]["y"])
    for label, colour, marker in ((1, BOTH, "o"), (-1, OUTPUT, "^")):
        axis.scatter(*X[y == label].T, color=colour, marker=marker, s=18, label=f"y = {label:+d}")
    axis.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$")
    axis.set_box_aspect(None, zoom=0.88)
    axis.legend(frameon=False, loc="upper left")
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check Lemma D.1, and that kernels have a smaller margin."""
    f1, f2, linear = (rows[0][name] for name in ("f1", "f2", "linear"))
    lemma = f"the l1 margin is {f1:.4f}, at least sqrt(2) / 4 = 0.3536 (Lemma D.1)"
    none = f"no linear classifier separates the samples: margin at most {linear:.1g}, proved"
    return [
        Check(lemma, f1 >= 2**0.5 / 4 * (1 - 1e-5)),
        Check(none, linear < 1e-6),
        Check(f"the kernel margin is {f2:.4f}, less than half", f2 < f1 / 2),
    ]


FIGURE = Figure(
    finding="no linear classifier separates the four groups, four neurons do",
    scales=by_scale(n=60, seed=0),
    minutes={"smoke": 0.01, "laptop": 0.01, "paper": 0.01},
    compute=compute,
    draw=draw,
    check=check,
)

"""Figure 5: the experiment of 2018, figure 2, on other points."""

from ..gallery.figure import Figure
from ..wei_2018.fig2 import check, compute, draw

# Points of our own, as the text has lost the paper's; the width as in the experiment of 2018.
_POINTS = {"x": [-2.0, -1.4, -0.6, 0.6, 1.4, 2.0], "y": [1, 1, -1, -1, 1, 1], "width": 20}

FIGURE = Figure(
    id="wei-2019/fig5",
    title="margin convergence for one-dimensional inputs, and the final networks",
    finding="the network margin approaches the ideal one as lambda goes to 0",
    differs=(
        "the l1 SVM is exact, not that of 1,000 chosen features; the points are ours, as the text"
        " has lost them"
    ),
    scales={
        "smoke": _POINTS | {"lambdas": [1e-2, 1e-4, 1e-8, 1e-14], "starts": 2},
        "laptop": _POINTS | {"lambdas": [10.0**-k for k in range(2, 15)], "starts": 5},
        "paper": _POINTS | {"lambdas": [10.0 ** (-k / 2) for k in range(4, 29)], "starts": 10},
    },
    minutes={"smoke": 0.1, "laptop": 0.5, "paper": 2.0},
    runs=lambda settings: [{"seed": 0}],
    compute=compute,
    draw=draw,
    check=check,
)

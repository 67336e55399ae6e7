"""Figure 5: margin convergence for one-dimensional inputs, and the final networks."""

from dataclasses import replace

from ..wei_2018.fig2 import FIGURE as FIGURE_2018

# Points of our own, as the text has lost the paper's.
_POINTS = {"x": [-2.0, -1.4, -0.6, 0.6, 1.4, 2.0], "y": [1, 1, -1, -1, 1, 1]}

FIGURE = replace(
    FIGURE_2018,
    finding="the network margin approaches the ideal one as lambda goes to 0",
    differs=(
        "the l1 SVM is exact, not that of 1,000 chosen features; the points are ours, as the text"
        " has lost them"
    ),
    scales={name: {**settings, **_POINTS} for name, settings in FIGURE_2018.scales.items()},
    minutes={"smoke": 0.1, "laptop": 0.5, "paper": 2.0},
)

"""Figure 4: generalization of nets and kernels as n varies, classification and regression."""

from dataclasses import replace
from functools import partial

from ..wei_2018.fig3 import FIGURE as FIGURE_2018, check, draw

_VALUES = {"smoke": [30, 150], "laptop": [60, 120, 240, 480]}
"""Numbers of samples that differ from those of 2018."""

FIGURE = replace(
    FIGURE_2018,
    finding=(
        "the net's test error is below that of the kernel as n grows, most of all in regression"
    ),
    differs=(
        "minimized by L-BFGS to lambda = 1e-8 instead of 20,000 gradient steps; the kernel (r_w ="
        " 0, r_u = 1) is exact; targets are divided by the standard deviation of those in training;"
        " regression has the same inputs as classification, after rejection; the values of n are"
        " assumed"
    ),
    scales={
        name: {**settings, "n": _VALUES.get(name, settings["n"])}
        for name, settings in FIGURE_2018.scales.items()
    },
    minutes={"smoke": 0.15, "laptop": 1.5, "paper": 200.0},
    draw=partial(draw, bounds=False),
    check=check,
)

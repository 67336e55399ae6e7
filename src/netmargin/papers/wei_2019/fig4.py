"""Figure 4: the experiment of 2018, figure 3, without the bounds."""

from functools import partial

from ..gallery.figure import Figure
from ..wei_2018.fig3 import check, compute, concerns, draw

FIGURE = Figure(
    id="wei-2019/fig4",
    title="generalization of nets and kernels as n varies, classification and regression",
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
        "smoke": {
            "d": 6,
            "n": [30, 150],
            "runs": 3,
            "tested": 1000,
            "iterations": 30,
            "standard_errors": 0,
        },
        "laptop": {
            "d": 20,
            "n": [60, 120, 240, 480],
            "runs": 4,
            "tested": 4000,
            "iterations": 60,
            "standard_errors": 2,
        },
        "paper": {
            "d": 20,
            "n": [50, 100, 150, 200, 250, 300, 400, 500],
            "runs": 100,
            "tested": 10_000,
            "iterations": 100,
            "standard_errors": 2,
        },
    },
    minutes={"smoke": 0.15, "laptop": 1.5, "paper": 200.0},
    runs=lambda settings: [
        {"n": n, "seed": seed} for n in reversed(settings["n"]) for seed in range(settings["runs"])
    ],
    compute=compute,
    concerns=concerns,
    draw=partial(draw, bounds=False),
    check=check,
)

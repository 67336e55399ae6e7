"""Example 4.1 and Theorem 4.1: test error on 2-parity against n, gradient flow of a normalized net
and tangent kernel (the paper states it, without a figure).
"""

from typing import Any

import numpy as np

from ...datasets import parity
from ...figures.style import BOTH, OUTPUT, open_canvas
from ..gallery.comparison import draw_means, tabulate
from ..gallery.figure import Check, Figure, Row, Settings, by_scale, cross
from ..wei_2018._separation import SCALES
from ._parity_flow import flow_and_kernels


def compute(run: Row, settings: Settings) -> Row:
    """Errors of the flow and of tangent kernels of several scales."""
    n = run["n"]
    X, y = parity(settings["d"], 2, n + settings["tested"], seed=run["seed"])
    net, kernels = flow_and_kernels((X[:n], y[:n]), (X[n:], y[n:]), seed=run["seed"])
    return {"net": net, "kernels": kernels}


def _by_n(rows: list[Row]) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Collect n, errors of the net, and of the kernel scale that is best in the mean, (runs, n)."""
    (ns, net), (_, kernels) = (tabulate(rows, name, "n") for name in ("net", "kernels"))
    best = kernels.mean(0).argmin(1)
    return ns, net, kernels[:, np.arange(len(ns)), best]


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw means with two standard errors."""
    ns, net, kernel = _by_n(rows)
    drawn, ((axis,),) = open_canvas()
    draw_means(axis, ns, net, color=BOTH, label="flow of the normalized net")
    draw_means(axis, ns, kernel, color=OUTPUT, label=f"best of {len(SCALES)} tangent kernels")
    axis.axhline(0.5, color="0.6", linestyle=":", label="guessing")
    d = settings["d"]
    axis.set(xlabel=f"samples n (d = {d}, d$^2$ = {d**2})", ylabel="test error", ylim=(-0.02, 0.55))
    axis.legend(frameon=False, fontsize=8)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that for some n below d^2 nets generalize and kernels do not."""
    ns, *errors = _by_n(rows)
    means = [values.mean(0) for values in errors]
    best = int((means[1] - means[0]).argmax())
    n, net, kernel = ns[best], float(means[0][best]), float(means[1][best])
    sentence = (
        f"at n = {n} the net errs on {100 * net:.1f}%, the best tangent kernel on"
        f" {100 * kernel:.1f}%"
    )
    return [Check(sentence, net < 0.05 and kernel > 0.15 and n < settings["d"] ** 2)]


FIGURE = Figure(
    finding=(
        "with a few times d samples the net generalizes and fitted tangent kernel machines do not"
    ),
    differs=(
        "200 neurons and t = 200 of the summed loss; the width and the time from which Theorem 4.1"
        " promises its margin are out of reach"
    ),
    scales=by_scale(
        d=(15, 15, 20),
        n=([30, 60], [30, 45, 60, 90, 120, 180], [40, 60, 80, 120, 160, 240, 320]),
        runs=(2, 5, 20),
        tested=(500, 2000, 4000),
    ),
    minutes={"smoke": 0.15, "laptop": 0.6, "paper": 15.0},
    runs=lambda settings: cross(n=reversed(settings["n"]), seed=range(settings["runs"])),
    compute=compute,
    concerns=lambda run, setting: setting not in ("n", "runs"),
    draw=draw,
    check=check,
)

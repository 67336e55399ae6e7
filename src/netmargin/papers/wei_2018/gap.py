"""Theorem 3.5: margins of nets and kernels on d^2 samples, and the ratio of their bounds (the paper
states it, without a figure).
"""

from typing import Any

import numpy as np

from ...figures.style import BOTH, OUTPUT, open_canvas
from ..gallery.figure import Check, Figure, Row, Settings, by_scale, cross
from ..ledger.regression import slope
from ._separation import measure_gap


def compute(run: Row, settings: Settings) -> Row:
    """Draw the samples and measure both margins."""
    gap = measure_gap(run["d"] ** 2, run["d"], run["seed"])
    return {"net": gap.net, "kernel": gap.kernel, "ratio": gap.ratio(run["d"])}


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw the margins on the left, and the ratio of the bounds' leading terms on the right."""
    drawn, ((left, right),) = open_canvas(2, width=3.8, height=3.0)
    d = [row["d"] for row in rows]
    left.plot(d, [row["net"] for row in rows], "o", color=BOTH, label="net of four neurons")
    left.plot(d, [row["kernel"] for row in rows], "^", color=OUTPUT, label="kernel, the best")
    left.set(xlabel="d", ylabel="margin", xscale="log", yscale="log")
    left.legend(frameon=False)
    ratio = np.array([row["ratio"] for row in rows])
    right.plot(d, ratio, "o", color=OUTPUT, label="kernel's bound / net's")
    grid = np.array(sorted(set(d)))
    line = np.sqrt(grid) * np.median(ratio / np.sqrt(d))
    right.plot(grid, line, color="black", linewidth=0.8, label=r"$\propto \sqrt{d}$")
    right.set(xlabel="d", ylabel="ratio of leading terms", xscale="log", yscale="log")
    right.set_yticks([2, 3, 4, 6], ["2", "3", "4", "6"])
    right.tick_params(axis="y", which="minor", left=False, labelleft=False)
    right.legend(frameon=False)
    for axis in (left, right):
        axis.set_xticks(grid, [str(size) for size in grid], minor=False)
        axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the net's margin stays, and that the ratio grows like sqrt d."""
    fit = slope(np.log([row["d"] for row in rows]), np.log([row["ratio"] for row in rows]))
    least, kernels = min(row["net"] for row in rows), [row["kernel"] for row in rows]
    return [
        Check(f"the net's margin is {least:.4f} at every d (Lemma D.1: 0.3536)", least > 0.3535),
        Check(
            f"the kernel's falls from {kernels[0]:.4f} to {kernels[-1]:.4f}",
            kernels[-1] < kernels[0],
        ),
        Check(
            f"the kernel's bound over the net's grows like d^({fit.value:.2f} +- {fit.error:.2f})"
            " (paper: 1/2, up to logarithms)",
            fit.off(0.5) < 0.15,
        ),
    ]


FIGURE = Figure(
    finding="with d^2 samples the kernel's margin falls like 1 / d and the net's stays",
    scales=by_scale(d=([8, 16, 24], [8, 12, 16, 24, 32, 48], [8, 16, 32, 64]), draws=(4, 3, 10)),
    minutes={"smoke": 0.05, "laptop": 0.3, "paper": 10.0},
    runs=lambda settings: cross(d=settings["d"], seed=range(settings["draws"])),
    compute=compute,
    draw=draw,
    check=check,
)

"""Figure 2 (d): the F_1 margin against the number of neurons, with the exact optimum."""

from pathlib import Path

import numpy as np

from ...datasets import clusters
from ...drawing.style import BOTH, EXACT, draw_band, open_canvas
from ...solvers import f1_max_margin
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Measure the margins of nets of all widths on one sample, and gamma_1 by the solver, with its
    proved bound.
    """
    X, y = clusters(settings["n"], settings["d"], k=3, seed=run["seed"])
    runs = train_both_layers(
        X, y, width=settings["m"], steps=settings["steps"], seeds=(run["seed"],), progress=False
    )
    exact = f1_max_margin(X, y, time_limit=settings["time_limit"])
    return {
        "margins": runs.margins[-1].tolist(),
        "gamma_1": exact.margin,
        "upper_bound": exact.upper_bound,
        "certified": exact.certified,
    }


def draw(settings: Settings, rows: list[Row]):
    """Draw the mean margin over samples (thick) and the mean of gamma_1 (dashed)."""
    drawn, ((axis,),) = open_canvas()
    draw_band(
        axis,
        settings["m"],
        np.array([row["margins"] for row in rows]),
        colour=BOTH,
        label="both layers",
    )
    exact = np.mean([row["gamma_1"] for row in rows])
    axis.axhline(
        exact,
        color=EXACT,
        linestyle="--",
        linewidth=1.5,
        label=f"best found by the solver, mean {exact:.4f}",
    )
    axis.set_xscale("log", base=2)
    axis.set_xticks(settings["m"], [str(m) for m in settings["m"]])
    axis.set(
        xlabel=f"neurons m (n = {settings['n']}, d = {settings['d']})",
        ylabel=r"$\mathcal{F}_1$ margin",
    )
    axis.legend(frameon=False, loc="lower right")
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check Corollary 4: the margin tends to gamma_1 with m, and never exceeds it."""
    margins, exact = (
        np.array([row["margins"] for row in rows]),
        np.array([row["gamma_1"] for row in rows]),
    )
    means, share = margins.mean(0), (margins[:, -1] / exact).mean()
    allowed = settings["lacking"]
    certified = sum(row["certified"] for row in rows)
    return [
        Check(
            f"the mean margin rises from {means[0]:.4f} (m = {settings['m'][0]}) to {means[-1]:.4f}"
            f" (m = {settings['m'][-1]})",
            bool(means[-1] > means[0]),
        ),
        Check(
            f"the widest nets reach {100 * share:.1f}% of the best margin that the solver found, in"
            f" the mean (at least {100 * (1 - allowed):.0f}%)",
            bool(share > 1 - allowed),
        ),
        Check(
            f"no net of {len(rows)} samples beats the solver's margin, certified as gamma_1 for"
            f" {certified} of them (a local optimum for the others)",
            bool((margins <= exact[:, None] * (1 + 1e-6)).all()),
        ),
    ]


FIGURE = Figure(
    id="chizat-bach/fig2d",
    title="F_1 margin at convergence as a function of m, training both layers",
    finding=(
        "the margin rises with m towards the best margin of any net that the solver knows, which"
        " the paper could not draw"
    ),
    differs="balanced start on the sphere instead of N(0, 1); the solver's optimum is drawn",
    scales={
        "smoke": {
            "n": 32,
            "d": 5,
            "m": [8, 32, 128],
            "runs": 3,
            "steps": 6000,
            "time_limit": 10,
            "lacking": 0.2,
        },
        "laptop": {
            "n": 256,
            "d": 15,
            "m": [8, 32, 128, 512],
            "runs": 6,
            "steps": 15_000,
            "time_limit": 60,
            "lacking": 0.25,
        },
        "paper": {
            "n": 256,
            "d": 15,
            "m": [8, 16, 32, 64, 128, 256, 512, 1024],
            "runs": 30,
            "steps": 50_000,
            "time_limit": 20,
            "lacking": 0.1,
        },
    },
    minutes={"smoke": 0.15, "laptop": 3.5, "paper": 21.0},
    runs=lambda settings: [{"seed": seed} for seed in range(settings["runs"])],
    compute=compute,
    concerns=lambda run, setting: setting not in ("lacking", "runs"),
    draw=draw,
    check=check,
)

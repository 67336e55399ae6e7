"""Figure 2 (d): the F_1 margin against the number of neurons, with the band in which the optimum is
proved to lie.
"""

from pathlib import Path

import numpy as np

from ...datasets import clusters
from ...figures.style import BOTH, EXACT, draw_band, open_canvas
from ...solvers import f1_max_margin
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings, by_scale


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
    """Draw the mean margin over samples (thick) with the mean of gamma_1 and what is proved of it;
    beside it every sample by itself.
    """
    drawn, ((means, samples),) = open_canvas(2)
    margins = np.array([row["margins"] for row in rows])
    found, proved = (np.array([row[name] for row in rows]) for name in ("gamma_1", "upper_bound"))
    draw_band(means, settings["m"], margins, colour=BOTH, label="both layers")
    means.axhline(
        found.mean(),
        color=EXACT,
        linestyle="--",
        linewidth=1.5,
        label=f"best found by the solver, mean {found.mean():.4f}",
    )
    means.axhspan(
        found.mean(),
        proved.mean(),
        color=EXACT,
        alpha=0.12,
        linewidth=0,
        label=f"no net is above: proved, mean {proved.mean():.4f}",
    )
    means.set_xscale("log", base=2)
    means.set_xticks(settings["m"], [str(m) for m in settings["m"]])
    means.set(
        xlabel=f"neurons m (n = {settings['n']}, d = {settings['d']})",
        ylabel=r"$\mathcal{F}_1$ margin",
    )
    means.legend(frameon=False, loc="lower right")
    _draw_samples(samples, margins[:, -1], found, proved, settings["m"][-1])
    return drawn


def _draw_samples(axis, widest: np.ndarray, found: np.ndarray, proved: np.ndarray, m: int) -> None:
    """Draw for each sample, by its margin, the widest net and the band in which gamma_1 lies."""
    order, places = np.argsort(found), np.arange(1, len(found) + 1)
    axis.vlines(
        places,
        found[order],
        proved[order],
        color=EXACT,
        alpha=0.25,
        linewidth=5,
        label=r"$\gamma_1$ is in between: proved",
    )
    axis.plot(places, found[order], "_", color=EXACT, label="best found by the solver")
    axis.plot(places, widest[order], "o", color=BOTH, markersize=3, label=f"both layers, m = {m}")
    axis.set(xlabel="samples, by their margin", ylabel=r"$\mathcal{F}_1$ margin")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_ylim(bottom=0.0)
    axis.legend(frameon=False, loc="upper left")


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check Corollary 4: the margin tends to gamma_1 with m, and never exceeds it."""
    margins, exact, proved = (
        np.array([row[name] for row in rows]) for name in ("margins", "gamma_1", "upper_bound")
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
        Check(
            f"proved: no net of any width has more than {(proved / exact).mean():.3f} times that"
            f" margin in the mean, {(proved / exact).max():.3f} times on the hardest sample (in the"
            f" mean at most {settings['band']:g} times)",
            bool((proved / exact).mean() <= settings["band"]),
        ),
    ]


FIGURE = Figure(
    id="chizat-bach/fig2d",
    title="F_1 margin at convergence as a function of m, training both layers",
    finding=(
        "the margin rises with m towards the best margin of any net that the solver knows, which"
        " the paper could not draw"
    ),
    differs=(
        "balanced start on the sphere instead of N(0, 1); the solver's optimum is drawn, with the"
        " proved bound of every sample beside it"
    ),
    scales=by_scale(
        n=(32, 256, 256),
        d=(5, 15, 15),
        m=([8, 32, 128], [8, 32, 128, 512], [8, 16, 32, 64, 128, 256, 512, 1024]),
        runs=(3, 6, 30),
        steps=(6000, 15_000, 50_000),
        time_limit=(10, 60, 60),
        lacking=(0.2, 0.25, 0.1),
        band=1.5,
    ),
    minutes={"smoke": 0.15, "laptop": 3.5, "paper": 30.0},
    runs=lambda settings: [{"seed": seed} for seed in range(settings["runs"])],
    compute=compute,
    concerns=lambda run, setting: setting not in ("lacking", "band", "runs"),
    draw=draw,
    check=check,
)

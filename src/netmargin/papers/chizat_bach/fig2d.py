"""Figure 2 (d): F_1 margin at convergence as a function of m, training both layers."""

from typing import Any

import numpy as np

from ...datasets import clusters
from ...figures.style import BOTH, EXACT, draw_band, open_canvas
from ...solvers import f1_max_margin
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings, by_scale


def compute(run: Row, settings: Settings) -> Row:
    """Measure margins of nets of all widths on one sample, and bracket gamma_1 by the solver."""
    X, y = clusters(settings["n"], settings["d"], k=3, seed=run["seed"])
    widths, steps, seeds = settings["m"], settings["steps"], (run["seed"],)
    runs = train_both_layers(X, y, width=widths, steps=steps, seeds=seeds, progress=False)
    exact = f1_max_margin(X, y, time_limit=settings["time_limit"])
    return {
        "margins": runs.margins[-1].tolist(),
        "gamma_1": exact.margin,
        "upper_bound": exact.upper_bound,
        "certified": exact.certified,
    }


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw mean margins with what is proved of gamma_1; beside them every sample by itself."""
    drawn, ((means, samples),) = open_canvas(2)
    margins, found, proved = _collect(rows)
    best, bound, widths = found.mean(), proved.mean(), settings["m"]
    draw_band(means, widths, margins, colour=BOTH, label="both layers")
    label = f"best found by the solver, mean {best:.4f}"
    means.axhline(best, color=EXACT, linestyle="--", linewidth=1.5, label=label)
    label = f"no net is above: proved, mean {bound:.4f}"
    means.axhspan(best, bound, color=EXACT, alpha=0.12, linewidth=0, label=label)
    means.set_xscale("log", base=2)
    means.set_xticks(widths, [str(m) for m in widths])
    means.set(xlabel=f"neurons m (n = {settings['n']}, d = {settings['d']})")
    means.legend(frameon=False, loc="lower right")

    order, places = np.argsort(found), np.arange(1, len(found) + 1)
    ends = found[order], proved[order]
    band = {"alpha": 0.25, "linewidth": 5, "label": r"$\gamma_1$ is in between: proved"}
    samples.vlines(places, *ends, color=EXACT, **band)
    samples.plot(places, ends[0], "_", color=EXACT, label="best found by the solver")
    label = f"both layers, m = {widths[-1]}"
    samples.plot(places, margins[order, -1], "o", color=BOTH, markersize=3, label=label)
    samples.set(xlabel="samples, by their margin")
    samples.xaxis.get_major_locator().set_params(integer=True)
    samples.set_ylim(bottom=0.0)
    samples.legend(frameon=False, loc="upper left")
    for axis in (means, samples):
        axis.set_ylabel(r"$\mathcal{F}_1$ margin")
    return drawn


def _collect(rows: list[Row]) -> list[np.ndarray]:
    """The margins (samples, widths), the best ones that the solver found, and what is proved."""
    return [np.array([row[name] for row in rows]) for name in ("margins", "gamma_1", "upper_bound")]


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check Corollary 4: the margin tends to gamma_1 with m, and never exceeds it."""
    margins, exact, proved = _collect(rows)
    first, *_, last = margins.mean(0)
    share, ratio = (margins[:, -1] / exact).mean(), proved / exact
    allowed, band, widths = settings["lacking"], settings["band"], settings["m"]
    certified = sum(row["certified"] for row in rows)
    rises = (
        f"the mean margin rises from {first:.4f} (m = {widths[0]}) to {last:.4f} (m = {widths[-1]})"
    )
    near = (
        f"the widest nets reach {100 * share:.1f}% of the best margin that the solver found, in the"
        f" mean (at least {100 * (1 - allowed):.0f}%)"
    )
    below = (
        f"no net of {len(rows)} samples beats the solver's margin, certified as gamma_1 for"
        f" {certified} of them (a local optimum for the others)"
    )
    bound = (
        f"proved: no net of any width has more than {ratio.mean():.3f} times that margin in the"
        f" mean, {ratio.max():.3f} times on the hardest sample (in the mean at most {band:g} times)"
    )
    return [
        Check(rises, bool(last > first)),
        Check(near, bool(share > 1 - allowed)),
        Check(below, bool((margins <= exact[:, None] * (1 + 1e-6)).all())),
        Check(bound, bool(ratio.mean() <= band)),
    ]


FIGURE = Figure(
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
    compute=compute,
    concerns=lambda run, setting: setting not in ("lacking", "band", "runs"),
    draw=draw,
    check=check,
)

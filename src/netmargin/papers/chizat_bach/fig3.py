"""Figure 3: dynamics of the classifier for an initialization with a large variance and a small
step-size.
"""

from typing import Any

import numpy as np

from ...datasets import clusters
from ...figures.style import open_canvas
from ...solvers import f1_max_margin
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings, by_scale
from ._lazy import tangent_margin, tangent_max_margin, tangent_values
from ._plane import draw_classifier, list_points, round_values

_SMALL_SHARE = 0.25
"""What counts as hardly any of a largest margin: well below what `lazy` and `rich` ask for."""


def compute(run: Row, settings: Settings) -> Row:
    """Evaluate snapshots on a grid: shares of both margins, and cosines with their classifiers."""
    X, y = clusters(settings["n"], 2, k=3, seed=run["seed"])
    scale, times = settings["scale"], settings["times"]
    runs = train_both_layers(
        X,
        y,
        width=settings["width"],
        steps=times[-1],
        scale=scale,
        paired=True,
        rate=lambda t: np.full(len(t), settings["rate"] / scale),
        seeds=(run["seed"],),
        snapshots=times,
        progress=False,
    )
    grid, start = list_points(settings["grid"]), runs.snapshots[0].positions(0)
    best, exact = tangent_max_margin(start, X, y), f1_max_margin(X, y, time_limit=60)
    lazy, rich = tangent_values(best, start, X, grid), exact.decision_function(grid)
    found: Row = {"values": [], "tangent": [], "margins": [], "as_lazy": [], "as_rich": []}
    found |= {"lazy": round_values(lazy), "X": X.tolist(), "y": y.tolist()}
    for snapshot in runs.snapshots:
        measure, begun = snapshot.measures[0], snapshot.time > 0
        # At the start pairs cancel, up to rounding.
        values = begun * measure.decision_function(grid)
        moved = tangent_margin(start, snapshot.positions(0), X, y) if begun else 0.0
        found["values"].append(round_values(values))
        found["tangent"].append(moved / best.margin)
        found["margins"].append(max(measure.normalized_margin(X, y), 0.0) / exact.margin)
        for name, other in (("as_lazy", lazy), ("as_rich", rich)):
            sizes = max(float(np.linalg.norm(values)), 1e-300) * float(np.linalg.norm(other))
            found[name].append(float(values @ other) / sizes)
    return found


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw one panel for each time; dashed is the boundary of the tangent kernel's classifier."""
    row, times = rows[0], settings["times"]
    drawn, (axes,) = open_canvas(len(times), width=2.3, height=3.0)
    panels = zip(times, row["values"], row["tangent"], row["margins"], strict=True)
    for axis, (time, values, tangent, margin) in zip(axes, panels, strict=True):
        draw_classifier(axis, row, values, row["lazy"])
        axis.set_title(f"t = {time:,}")
        shares = f"tangent margin {tangent:.0%}\n$\\mathcal{{F}}_1$ margin {margin:.0%}"
        axis.set_xlabel(shares, fontsize=8)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the net is lazy first, and rich in the end."""
    shares = list(zip(rows[0]["tangent"], rows[0]["margins"], strict=True))
    lazy = int(np.argmax(rows[0]["tangent"]))
    words = "{:.0%} of the tangent kernel's largest margin and {:.0%} of gamma_1"
    (tangent, margin), (last_tangent, last_margin) = shares[lazy], shares[-1]
    is_lazy = tangent > settings["lazy"] and margin < _SMALL_SHARE
    is_rich = last_margin > settings["rich"] and last_tangent < _SMALL_SHARE
    first, last = ([rows[0][name][t] for name in ("as_lazy", "as_rich")] for t in (lazy, -1))
    cosines = "{:.3f} with the tangent kernel's max-margin classifier and {:.3f} with that of F_1"
    said = (
        f"values have a cosine of {cosines.format(*first)} then, {cosines.format(*last)} at the end"
    )
    time = settings["times"][lazy]
    return [
        Check(f"at t = {time:,} the net has {words.format(*shares[lazy])}", is_lazy),
        Check(f"at the end it has {words.format(*shares[-1])}", is_rich),
        Check(f"on the square its {said}", first[0] > first[1] and last[1] > last[0]),
    ]


FIGURE = Figure(
    finding=(
        "the classifier first has most of the margin of the tangent kernel and hardly any F_1"
        " margin; in the end it is the other way round"
    ),
    differs=(
        "pairs of neurons that cancel at the start, so that the classifier begins at 0; sphere of"
        " radius 40 instead of N(0, 40^2); n = 60, the rate and the times are assumed"
    ),
    scales=by_scale(
        n=(30, 60, 60),
        width=(300, 1000, 1000),
        scale=(20.0, 40.0, 40.0),
        rate=(0.05, 0.02, 0.02),
        times=(
            [0, 300, 20_000],
            [0, 300, 2000, 20_000, 80_000, 250_000],
            [0, 300, 2000, 20_000, 100_000, 500_000],
        ),
        grid=(61, 101, 101),
        seed=1,
        lazy=0.5,
        rich=(0.5, 0.9, 0.95),
    ),
    minutes={"smoke": 0.05, "laptop": 1.5, "paper": 3.0},
    compute=compute,
    concerns=lambda run, setting: setting not in ("lazy", "rich"),
    draw=draw,
    check=check,
)

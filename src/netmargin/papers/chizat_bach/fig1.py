"""Figure 1: decision boundaries of training both layers and the output layer, on four training sets
in the plane.
"""

from pathlib import Path

import numpy as np

from ...datasets import clusters
from ...figures.style import EXACT, draw_samples, open_canvas
from ...kernels import arc_cosine, random_features
from ...solvers import f1_max_margin, f2_max_margin
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings
from ._fixed_features import train_output_layer


def _grid(points: int) -> np.ndarray:
    """List the points of a regular grid on the square, (points^2, 2)."""
    first, second = np.meshgrid(np.linspace(-0.5, 0.5, points), np.linspace(-0.5, 0.5, points))
    return np.column_stack([first.ravel(), second.ravel()])


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Evaluate both nets, and the exact F_1 and F_2 max-margin classifiers, on a grid."""
    X, y = clusters(settings["n"], 2, k=3, seed=run["seed"])
    grid, m = _grid(settings["grid"]), settings["width"]
    both = (
        train_both_layers(
            X, y, width=m, steps=settings["steps"], seeds=(run["seed"],), progress=False
        )
        .measures[0]
        .decision_function(grid)
    )
    features = random_features(X, m, seed=run["seed"])
    weights = train_output_layer(features, y, steps=settings["output_steps"]).weights
    output = random_features(grid, m, seed=run["seed"]) @ weights
    f1 = f1_max_margin(X, y, time_limit=60).decision_function(grid)
    f2 = f2_max_margin(X, y).decision_function(arc_cosine(grid, X))
    values = {"both": both, "output": output, "f1": f1, "f2": f2}
    rounded = {name: np.round(v / np.abs(v).max(), 4).tolist() for name, v in values.items()}
    return rounded | {"X": X.tolist(), "y": y.tolist()}


def draw(settings: Settings, rows: list[Row]):
    """Draw both layers (top) and the output layer (bottom), with the exact classifiers dashed."""
    drawn, axes = open_canvas(len(rows), 2, width=2.3, height=2.3)
    shape = (settings["grid"], settings["grid"])
    ticks = np.linspace(-0.5, 0.5, settings["grid"])
    for column, row in zip(axes.T, rows, strict=True):
        for axis, (net, exact) in zip(column, (("both", "f1"), ("output", "f2")), strict=True):
            values = np.array(row[net]).reshape(shape)
            axis.contourf(
                ticks, ticks, np.sign(values), levels=[-1.5, 0, 1.5], colors=["#f6cdb4", "#bcd9ec"]
            )
            for grid, style in ((values, "-"), (np.array(row[exact]).reshape(shape), "--")):
                if grid.min() < 0 < grid.max():
                    axis.contour(
                        ticks,
                        ticks,
                        grid,
                        levels=[0.0],
                        colors=EXACT,
                        linewidths=1.2,
                        linestyles=style,
                    )
            draw_samples(axis, np.array(row["X"]), np.array(row["y"]))
            axis.set(xlim=(-0.5, 0.5), ylim=(-0.5, 0.5), xticks=[], yticks=[], aspect="equal")
    axes[0, 0].set_ylabel("both layers\n(dashed: exact $\\mathcal{F}_1$)")
    axes[1, 0].set_ylabel("output layer\n(dashed: exact $\\mathcal{F}_2$)")
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check on how much of the square each net agrees with its exact max-margin classifier."""
    checks = []
    methods = (
        ("both", "f1", "both layers and the exact F_1"),
        ("output", "f2", "the output layer and the exact F_2"),
    )
    for (net, exact, words), least in zip(methods, settings["agreement"], strict=True):
        agreement = np.mean([np.sign(row[net]) == np.sign(row[exact]) for row in rows])
        checks.append(
            Check(
                f"{words} max-margin classifier agree on {100 * agreement:.1f}% of the square",
                bool(agreement > least),
            )
        )
    return checks


FIGURE = Figure(
    id="chizat-bach/fig1",
    title="implicit bias of training both layers and the output layer, d = 2, four training sets",
    finding=(
        "training both layers gives piecewise affine boundaries, that of the F_1 max margin; the"
        " output layer smooth ones, of the F_2 max margin"
    ),
    differs=(
        "the exact max-margin classifiers are drawn as well, and the output layer, which converges"
        " slowly, is trained for longer; n = 80 is assumed"
    ),
    scales={
        "smoke": {
            "n": 40,
            "sets": 2,
            "width": 200,
            "steps": 10_000,
            "output_steps": 30_000,
            "grid": 61,
            "agreement": [0.9, 0.8],
        },
        "laptop": {
            "n": 80,
            "sets": 4,
            "width": 1000,
            "steps": 20_000,
            "output_steps": 300_000,
            "grid": 101,
            "agreement": [0.95, 0.85],
        },
        "paper": {
            "n": 80,
            "sets": 4,
            "width": 1000,
            "steps": 50_000,
            "output_steps": 300_000,
            "grid": 101,
            "agreement": [0.95, 0.85],
        },
    },
    minutes={"smoke": 0.05, "laptop": 0.5, "paper": 1.0},
    runs=lambda settings: [{"seed": seed} for seed in range(settings["sets"])],
    compute=compute,
    concerns=lambda run, setting: setting not in ("agreement", "sets"),
    draw=draw,
    check=check,
)

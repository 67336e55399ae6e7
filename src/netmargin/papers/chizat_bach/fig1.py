"""Figure 1: implicit bias of training both layers and the output layer, d = 2, four training
sets.
"""

from typing import Any

import numpy as np

from ...datasets import clusters
from ...figures.style import open_canvas
from ...kernels import arc_cosine, random_features
from ...solvers import f1_max_margin, f2_max_margin
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings, by_scale
from ._fixed_features import train_output_layer
from ._plane import draw_classifier, list_points, round_values

PAIRS = {"both": ("f1", "both layers", "F_1"), "output": ("f2", "the output layer", "F_2")}
"""The nets by what was trained, each with the exact classifier that it tends to."""


def compute(run: Row, settings: Settings) -> Row:
    """Evaluate both nets, and the exact F_1 and F_2 max-margin classifiers, on a grid."""
    seed, m, steps = run["seed"], settings["width"], settings["steps"]
    X, y = clusters(settings["n"], 2, k=3, seed=seed)
    grid = list_points(settings["grid"])
    both = train_both_layers(X, y, width=m, steps=steps, seeds=(seed,), progress=False)
    features = random_features(X, m, seed=seed)
    weights = train_output_layer(features, y, steps=settings["output_steps"]).weights
    values = {
        "both": both.measures[0].decision_function(grid),
        "output": random_features(grid, m, seed=seed) @ weights,
        "f1": f1_max_margin(X, y, time_limit=60).decision_function(grid),
        "f2": f2_max_margin(X, y).decision_function(arc_cosine(grid, X)),
    }
    kept = {name: round_values(found) for name, found in values.items()}
    return kept | {"X": X.tolist(), "y": y.tolist()}


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw both layers (top) and the output layer (bottom), with the exact classifiers dashed."""
    drawn, axes = open_canvas(len(rows), 2, width=2.3, height=2.3)
    for line, (net, (exact, words, space)) in zip(axes, PAIRS.items(), strict=True):
        for axis, row in zip(line, rows, strict=True):
            draw_classifier(axis, row, row[net], dashed=row[exact])
        exactly = f"(dashed: exact $\\mathcal{{F}}_{space[-1]}$)"
        line[0].set_ylabel(f"{words.removeprefix('the ')}\n{exactly}")
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check on how much of the square each net agrees with its exact max-margin classifier."""
    checks = []
    for (net, (exact, words, space)), least in zip(
        PAIRS.items(), settings["agreement"], strict=True
    ):
        share = float(np.mean([np.sign(row[net]) == np.sign(row[exact]) for row in rows]))
        sentence = f"{words} and the exact {space} max-margin classifier agree on"
        checks.append(Check(f"{sentence} {100 * share:.1f}% of the square", share > least))
    return checks


FIGURE = Figure(
    finding=(
        "training both layers gives piecewise affine boundaries, that of the F_1 max margin; the"
        " output layer smooth ones, of the F_2 max margin"
    ),
    differs=(
        "the exact max-margin classifiers are drawn as well, and the output layer, which converges"
        " slowly, is trained for longer; n = 80 is assumed"
    ),
    scales=by_scale(
        n=(40, 80, 80),
        runs=(2, 4, 4),
        width=(200, 1000, 1000),
        steps=(10_000, 20_000, 50_000),
        output_steps=(30_000, 300_000, 300_000),
        grid=(61, 101, 101),
        agreement=([0.9, 0.8], [0.95, 0.85], [0.95, 0.85]),
    ),
    minutes={"smoke": 0.05, "laptop": 0.5, "paper": 1.0},
    compute=compute,
    concerns=lambda run, setting: setting not in ("agreement", "runs"),
    draw=draw,
    check=check,
)

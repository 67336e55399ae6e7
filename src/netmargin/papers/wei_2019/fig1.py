"""Figure 1: the first two coordinates of the distribution."""

from typing import Any

import numpy as np

from ...datasets import hypercube
from ...figures.style import draw_samples, open_canvas
from ..gallery.figure import Check, Figure, Row, Settings, by_scale


def compute(run: Row, settings: Settings) -> Row:
    """Draw the samples; only their first two coordinates are kept."""
    X, y = hypercube(settings["n"], 20, seed=run["seed"])
    return {"X": X[:, :2].tolist(), "y": y.tolist()}


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw the two coordinates that count."""
    drawn, ((axis,),) = open_canvas(height=4.0)
    X, y = np.array(rows[0]["X"]), np.array(rows[0]["y"])
    draw_samples(axis, X + np.random.default_rng(0).normal(scale=0.03, size=X.shape), y)
    axis.set(xlabel="$x_1$", ylabel="$x_2$", title="drawn with a little noise")
    axis.set(aspect="equal", xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check (2.5): four groups with alternating labels and equal shares."""
    X, y = np.array(rows[0]["X"]), np.array(rows[0]["y"])
    right = (np.abs(X).sum(1) == 1).all() and (y == np.where(X[:, 0] != 0, 1, -1)).all()
    corners = ([1, 0], [-1, 0], [0, 1], [0, -1])
    shares = [float(np.isclose(X, corner).all(1).mean()) for corner in corners]
    near = f"each with a share near 1/4: {', '.join(f'{share:.2f}' for share in shares)}"
    return [
        Check("samples are +-e_1 with label +1 and +-e_2 with label -1", bool(right)),
        Check(near, max(abs(share - 0.25) for share in shares) < 0.1),
    ]


FIGURE = Figure(
    finding=(
        "all signal is in two coordinates, where four groups alternate; the other d - 2 are noise"
    ),
    scales=by_scale(n=300, seed=0),
    minutes={"smoke": 0.01, "laptop": 0.01, "paper": 0.01},
    compute=compute,
    draw=draw,
    check=check,
)

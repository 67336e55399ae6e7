"""Figure 2 (a): projection of the data on the first two dimensions."""

from typing import Any

from ...bounds import interclass_distance
from ...datasets import clusters
from ...figures.style import draw_samples, open_canvas
from ..gallery.figure import Check, Figure, Row, Settings, by_scale


def compute(run: Row, settings: Settings) -> Row:
    """Draw the samples, and measure how far their classes are apart in two coordinates."""
    X, y = clusters(settings["n"], settings["d"], k=3, seed=run["seed"])
    found = interclass_distance(X[:, :2], y, 2)
    return {
        "X": X[:, :2].tolist(),
        "y": y.tolist(),
        "distance": found.distance,
        "upper_bound": found.upper_bound,
    }


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw the first two coordinates of the samples."""
    drawn, ((axis,),) = open_canvas(height=4.0)
    draw_samples(axis, rows[0]["X"], rows[0]["y"])
    axis.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=(-0.5, 0.5), ylim=(-0.5, 0.5))
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check the separation of the classes that Section 7 states."""
    found = rows[0]["distance"]
    apart = f"projected to two coordinates, classes are {found:.4f} apart"
    return [Check(f"{apart}, at least 1 / (3k - 1) = 0.125", found >= 0.125 - 1e-9)]


FIGURE = Figure(
    finding="nine disks on a grid with random labels; the other 13 coordinates are noise",
    scales=by_scale(n=(128, 512, 512), d=15, seed=1),
    minutes={"smoke": 0.01, "laptop": 0.01, "paper": 0.01},
    compute=compute,
    draw=draw,
    check=check,
)

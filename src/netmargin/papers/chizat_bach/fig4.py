"""Figure 4: 2-d slice of the vector field of a neuron, ReLU (illustration)."""

from typing import Any

import numpy as np

from ...datasets import clusters
from ...figures.style import BOTH, OUTPUT, open_canvas
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings, by_scale


def compute(run: Row, settings: Settings) -> Row:
    """Evaluate grad F' for a = alpha u on a grid of (alpha, b), and how far |a_j| is from |b_j|."""
    X, y = clusters(settings["n"], 2, k=3, seed=run["seed"])
    options = {"steps": settings["steps"], "rate": settings["rate"], "seeds": (run["seed"],)}
    runs = train_both_layers(X, y, width=200, progress=False, **options)
    snapshot = runs.snapshots[-1]
    positions = snapshot.positions(0)
    inner, outer = np.linalg.norm(positions[:, :-1], axis=1), np.abs(positions[:, -1])
    Z = np.column_stack([X.numpy(), np.ones(len(X))])
    prices = snapshot.duals[0] * y.numpy()
    u = np.array([1.0, 0.0, 0.0])
    ticks = np.linspace(-1, 1, settings["grid"])
    alpha, b = np.meshgrid(ticks, ticks)
    # F'(a, b) = b sum_n p_n y_n relu(a . x~_n), differentiated numerically along alpha, for a =
    # alpha u, and b.
    h = 1e-6
    below, up, above = (
        np.maximum(at[..., None] * (Z @ u), 0) @ prices for at in (alpha - h, alpha, alpha + h)
    )
    along = b * (above - below) / (2 * h)
    along[alpha == 0] = 0.0  # the kink
    return {
        "ticks": ticks.tolist(),
        "along": along.tolist(),
        "b": up.tolist(),
        "grown": float(np.median(outer)),
        "apart": float((np.abs(inner - outer) / np.maximum(inner, outer)).max()),
    }


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw the field as stream lines, and the invariant set."""
    drawn, ((axis,),) = open_canvas(height=4.0)
    ticks, along, up = (np.array(rows[0][name]) for name in ("ticks", "along", "b"))
    axis.streamplot(ticks, ticks, along, up, color=BOTH, linewidth=0.8, density=1.1, arrowsize=0.9)
    for b, label in (([-1, 1], "$|a| = |b|$"), ([1, -1], None)):
        axis.plot([-1, 1], b, color=OUTPUT, linewidth=1.8, label=label)
    axis.set(
        xlabel=r"$\alpha$, $a = \alpha u$", ylabel="$b$", xlim=(-1, 1), ylim=(-1, 1), aspect="equal"
    )
    axis.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that no neuron leaves the set by more than steps of that size explain."""
    row = rows[0]
    sentence = (
        f"200 neurons that began with |a| = |b|: after {settings['steps']:,} steps | |a| - |b| | is"
        f" at most {100 * row['apart']:.2g}% of either, at a median |b| of {row['grown']:.2g}"
    )
    return [Check(sentence, row["apart"] < settings["rate"])]


FIGURE = Figure(
    finding=(
        "the lines |a| = |b| are invariant: starting there, a neuron avoids a = 0, where the field"
        " jumps"
    ),
    scales=by_scale(n=64, steps=1000, rate=0.01, grid=41, seed=0),
    minutes={"smoke": 0.02, "laptop": 0.02, "paper": 0.02},
    compute=compute,
    draw=draw,
    check=check,
)

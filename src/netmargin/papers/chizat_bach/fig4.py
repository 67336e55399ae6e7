"""Figure 4: a slice of the velocity field of a neuron, and the set |a| = |b| that it never leaves."""

from pathlib import Path

import numpy as np

from ...datasets import clusters
from ...twolayer import train_both_layers
from ..drawing import BOTH, OUTPUT, canvas
from ..figure import Check, Figure, Row, Settings


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """grad F'(a, b) for a = alpha u with a direction u, at a net in training: (b s(alpha), relu(alpha) s) on a grid of (alpha, b)."""
    X, y = clusters(settings["n"], 2, k=3, seed=run["seed"])
    snapshot = train_both_layers(X, y, width=200, steps=settings["steps"], seeds=(run["seed"],), progress=False).snapshots[-1]
    Z = np.column_stack([X.numpy(), np.ones(len(X))])
    prices = snapshot.duals[0] * y.numpy()
    u = np.array([1.0, 0.0, 0.0])
    ticks = np.linspace(-1, 1, settings["grid"])
    alpha, b = np.meshgrid(ticks, ticks)
    # F'(a, b) = b sum_n p_n y_n relu(a . x~_n), differentiated numerically along alpha, for a = alpha u, and b.
    sums = lambda alpha: np.maximum(alpha[..., None] * (Z @ u), 0) @ prices  # noqa: E731
    h = 1e-6
    along, up = b * (sums(alpha + h) - sums(alpha - h)) / (2 * h), sums(alpha)
    along[alpha == 0] = 0.0  # the kink
    return {"ticks": ticks.tolist(), "along": along.tolist(), "b": up.tolist()}


def draw(settings: Settings, rows: list[Row]):
    """Arrows, and the invariant set."""
    drawn, ((axis,),) = canvas(height=4.0)
    ticks, along, up = (np.array(rows[0][name]) for name in ("ticks", "along", "b"))
    axis.streamplot(ticks, ticks, along, up, color=BOTH, linewidth=0.8, density=1.1, arrowsize=0.9)
    for sign in (1, -1):
        axis.plot([-1, 1], [-sign, sign], color=OUTPUT, linewidth=1.8, label="$|a| = |b|$" if sign > 0 else None)
    axis.set(xlabel=r"$\alpha$, $a = \alpha u$", ylabel="$b$", xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
    axis.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """On |a| = |b| the field is tangent: alpha' alpha = b' b."""
    ticks, along, up = (np.array(rows[0][name]) for name in ("ticks", "along", "b"))
    alpha, b = np.meshgrid(ticks, ticks)
    on = np.isclose(np.abs(alpha), np.abs(b)) & (alpha != 0)
    off = np.abs(along * alpha - up * b)[on].max() / np.abs(up).max()
    return [Check(f"on |a| = |b| the field points along that set, to {off:.1g}", bool(off < 1e-8))]


FIGURE = Figure(
    id="chizat-bach/fig4",
    title="2-d slice of the vector field of a neuron, ReLU (illustration)",
    finding="the lines |a| = |b| are invariant: starting there, a neuron avoids a = 0, where the field jumps",
    differs="",
    scales={scale: {"n": 64, "steps": 50, "grid": 41, "seed": 0} for scale in ("smoke", "laptop", "paper")},
    minutes={"smoke": 0.02, "laptop": 0.02, "paper": 0.02},
    runs=lambda settings: [{"seed": settings["seed"]}],
    compute=compute,
    draw=draw,
    check=check,
)

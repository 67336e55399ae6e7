"""Theorem 3.6: margins of normalized nets and a transformer along gradient flow (the paper states
it, without a figure).
"""

import math
from typing import Any

import numpy as np
import torch

from ...figures.style import BOTH, EXACT, OTHER, OUTPUT, open_canvas
from ...flow.gradient_flow import gradient_flow
from ..gallery.figure import Check, Figure, Row, Settings, by_scale, cross
from ._normalized_nets import FEATURES, NormalizedNet

# Widths of nets that are small enough for a flow that is followed to t = 3000.
INNER = {"normalized ReLU": 30, "LayerNorm": 8, "RMSNorm": 8, "transformer": 8}


def compute(run: Row, settings: Settings) -> Row:
    """Follow log t, the smooth margin and the margin, where the summed loss is below log 2."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        inner = FEATURES[run["net"]](INNER[run["net"]]).double()
        x = torch.randn(8, 4, dtype=torch.float64)
    net = NormalizedNet(inner, inner(x).shape[1], seed=2)
    y = torch.where(x[:, 0] * x[:, 1] > 0, 1, -1)
    flow = gradient_flow(net, (x, y), time=settings["time"], rtol=1e-6, progress=False)
    rows = [row for row in flow.rows if row["log_loss"] < math.log(math.log(2))]
    names = {"log_time": "log_time", "smooth": "partial_smoothed_margin"}
    names["hard"] = "partial_normalized_margin"
    curves = {name: [row[key] for row in rows] for name, key in names.items()}
    return curves | {"status": flow.status}


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw smooth margins (solid) and margins (dotted)."""
    drawn, ((axis,),) = open_canvas(width=5.2)
    for row, colour in zip(rows, (BOTH, OUTPUT, OTHER, EXACT), strict=True):
        times = np.exp(row["log_time"])
        axis.plot(times, row["smooth"], color=colour, label=row["net"])
        axis.plot(times, row["hard"], color=colour, linestyle=":")
    axis.set_xscale("log")
    axis.set(xlabel="time t of the summed loss")
    axis.set(ylabel=r"$\psi\,/\,(\|a\|^2+\|b\|^2)$ (dotted: $q_{\min}$)")
    axis.legend(frameon=False, fontsize=8)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the smooth margin never falls."""
    checks = []
    for row in rows:
        smooth = np.array(row["smooth"])
        fall = max(float((-np.diff(smooth) / smooth[1:]).max()), 0.0)
        sentence = (
            f"{row['net']}: from {smooth[0]:.4f} to {smooth[-1]:.4f} in {len(smooth)} steps,"
            f" largest fall {fall:.1g} of it"
        )
        checks.append(Check(sentence, fall < 1e-6 and smooth[-1] > smooth[0]))
    return checks


FIGURE = Figure(
    finding=(
        "from the time at which the data are separated, the smooth margin over (a, b) never falls,"
        " although the inner parameters move freely"
    ),
    scales=by_scale(time=(20.0, 300.0, 3000.0)),
    minutes={"smoke": 0.1, "laptop": 0.1, "paper": 0.2},
    runs=lambda settings: cross(net=INNER),
    compute=compute,
    draw=draw,
    check=check,
)

"""Figure 2: regularizer against none, from the same start N(0, 1): test accuracy, normalized
margin, activations changed.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...datasets import teacher
from ...figures.style import BOTH, OUTPUT, draw_band, open_canvas
from ...margins import measure
from ...models import mlp
from ...training import AnnealedLR, Epochs, train
from ..gallery.comparison import is_positive, standard_errors, tabulate
from ..gallery.figure import Check, Figure, Row, Settings, by_scale, cross

_LOOKS = 24
"""The number of looks at a run, in geometric distances: about six in each decade of its steps."""
PANELS = {
    "test_accuracy": ("test accuracy", ""),
    "margin": ("normalized margin", r" $q_{\min}/\|\Theta\|^2$"),
    "changed": ("share of activations that changed", ""),
}
"""What is looked at, in words and in symbols."""


def compute(run: Row, settings: Settings) -> Row:
    """Descend on mean loss + lambda ||Theta||^2 with all samples; look at growing distances."""
    n, d, seed = settings["n"], settings["d"], run["seed"]
    X, y = teacher(n + settings["tested"], d, units=10, margin=0.01, seed=seed)
    (X, T), (y, t) = (part.split([n, settings["tested"]]) for part in (X, y))
    net = mlp([d, settings["hidden"], 1], bias="none").double()
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_(generator=random)
    begun, step = _active(net, X), 0
    found: dict[str, list[Any]] = {name: [] for name in ("steps", *PANELS)}
    # The decay of a step is that of lambda ||Theta||^2, so twice lambda.
    decay = {"weight_decay": 2 * run["lambda"], "rate_drops": {}, "decay_drops": {}}
    lr = AnnealedLR(settings["rate"], **decay)
    for end in np.unique([0, *np.geomspace(1, settings["steps"], _LOOKS).round()]).astype(int):
        if end:
            until = Epochs(int(end - step))
            train(net, (X, y), until=until, lr=lr, batch_size=None, progress=False)
        step = end
        found["steps"].append(int(end))
        found["test_accuracy"].append(measure(net, (T, t)).accuracy)
        found["margin"].append(measure(net, (X, y)).normalized_margin)
        found["changed"].append(float((_active(net, X) != begun).double().mean()))
    return found


def _active(net: nn.Sequential, X: Tensor) -> Tensor:
    """List which hidden units are active on which samples, (n, m)."""
    with torch.no_grad():
        return torch.gt(net[0](X), 0)


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw single teachers (thin) and their mean (thick)."""
    drawn, (axes,) = open_canvas(len(PANELS), width=3.6)
    for axis, (name, words) in zip(axes, PANELS.items(), strict=True):
        for strength, colour in ((settings["lambda"], BOTH), (0.0, OUTPUT)):
            of_strength = [row for row in rows if row["lambda"] == strength]
            values = np.array([row[name] for row in of_strength])
            label = rf"$\lambda$ = {strength:g}"
            draw_band(axis, of_strength[0]["steps"], values, colour=colour, label=label)
        axis.set_xscale("symlog", linthresh=1)
        axis.set(xlabel="steps", ylabel="".join(words))
        axis.legend(frameon=False, fontsize=8)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the regularized net ends ahead in all three, by two standard errors."""
    checks = []
    for name, (words, _) in PANELS.items():
        ends = [row | {"end": row[name][-1]} for row in rows]
        without, with_it = tabulate(ends, "end", "lambda")[1].T
        gain = with_it - without
        sentence = (
            f"{words}: {with_it.mean():.3g} with the regularizer, {without.mean():.3g} without"
            f" (difference {gain.mean():.3g} +- {standard_errors(gain):.2g})"
        )
        checks.append(Check(sentence, is_positive(gain)))
    return checks


FIGURE = Figure(
    finding=(
        "the regularized net generalizes better, with a larger margin, and more of its activations"
        " change; without a regularizer it stays nearer to its start, in the kernel regime"
    ),
    differs=(
        "assumed, as the text lost its numbers: d = 20, n = 200, 500 hidden units, rate 0.1, lambda"
        " 5e-4, 20,000 steps"
    ),
    scales=by_scale(
        d=20,
        n=200,
        rate=0.1,
        **{"lambda": 5e-4},
        hidden=(100, 500, 500),
        steps=(800, 10_000, 20_000),
        runs=(3, 5, 20),
        tested=(2000, 4000, 10_000),
    ),
    minutes={"smoke": 0.2, "laptop": 6.0, "paper": 25.0},
    runs=lambda settings: cross(
        seed=range(settings["runs"]), **{"lambda": (settings["lambda"], 0.0)}
    ),
    compute=compute,
    concerns=lambda run, setting: setting not in ("lambda", "runs"),
    draw=draw,
    check=check,
)

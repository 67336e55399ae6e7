"""Figure 7: training and test accuracy during training without bias, loss-based rate."""

from typing import Any

import numpy as np

from ...figures.style import BOTH, OUTPUT, open_canvas
from ..gallery.figure import Check, Row, Settings
from ._training import LOSS_BASED, SUBSET, SUBSET_VGG, WITHOUT_BIAS, make_figure, runs

NETS = {"cnn": "CNN on MNIST", "vgg": "VGGNet on CIFAR-10"}


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw single runs (thin) and their mean (thick), as far as all runs go."""
    drawn, (axes,) = open_canvas(2)
    for axis, (net, title) in zip(axes, NETS.items(), strict=True):
        of_net = [row["looks"] for row in rows if row["net"] == net]
        grid = np.unique([look["epochs"] for looks in of_net for look in looks])
        grid = grid[grid <= min(looks[-1]["epochs"] for looks in of_net)]
        for name, label, colour in (
            ("accuracy", "training", BOTH),
            ("test_accuracy", "test", OUTPUT),
        ):
            means = []
            for looks in of_net:
                curve = [look["epochs"] for look in looks], [look[name] for look in looks]
                axis.plot(*curve, color=colour, linewidth=0.5, alpha=0.4)
                means.append(np.interp(grid, *curve))
            axis.plot(grid, np.mean(means, axis=0), color=colour, linewidth=2, label=label)
        axis.set_xscale("log")
        count = "1 run" if len(of_net) == 1 else f"mean of {len(of_net)} runs"
        axis.set(xlabel="epochs", ylabel="accuracy", title=f"{title}, {count}", ylim=(0, 1.03))
        axis.legend(frameon=False, loc="lower right")
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that from the first fitted look on margins grow and test accuracy hardly changes."""
    found = []
    for net, title in NETS.items():
        of_net, changes, growths = [row for row in rows if row["net"] == net], [], []
        for row in of_net:
            look = next((look for look in row["looks"] if look["accuracy"] == 1), row["looks"][-1])
            changes.append(row["test_accuracy"] - look["test_accuracy"])
            growths.append(row["layer_margin"] / look["layer_margin"])
        fitted = sum(row["accuracy"] == 1 for row in of_net)
        change, growth = float(np.mean(changes)), float(np.mean(growths))
        test = np.mean([row["test_accuracy"] for row in of_net])
        sentence = (
            f"{title}: fitted in {fitted} of {len(of_net)} runs; from then on the margin grows"
            f" {growth:.1f} times and the test accuracy changes by {100 * change:+.1f} points, to"
            f" {100 * test:.1f}%"
        )
        slightly = growth > 1 and abs(change) <= settings["slightly"]
        found.append(Check(sentence, slightly and fitted == len(of_net)))
    return found


FIGURE = make_figure(
    finding="the test accuracy changes only slightly in all the time that the margin grows",
    differs=f"CNN: {SUBSET}; VGGNet: {SUBSET_VGG}; 3 runs and 1 instead of 10 and 3",
    minutes={"smoke": 0.2, "laptop": 9.0, "paper": 4_700_000.0},
    runs=lambda settings: [
        row
        for net in NETS
        for row in runs(net, LOSS_BASED, biases=(WITHOUT_BIAS,), seeds=settings[f"{net}_seeds"])
    ],
    draw=draw,
    check=check,
)

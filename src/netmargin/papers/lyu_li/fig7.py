"""Figure 7: training and test accuracy with the loss-based rate, averaged over runs."""

import numpy as np

from ...figures.style import BOTH, OUTPUT, open_canvas
from ..gallery.figure import Check, Figure, Row, Settings
from ._training import (
    LOSS_BASED,
    RUNS,
    SCALES,
    SUBSET,
    SUBSET_VGG,
    WITHOUT_BIAS,
    concerns,
    runs,
    train_net,
)

NETS = {"cnn": "CNN on MNIST", "vgg": "VGGNet on CIFAR-10"}


def draw(settings: Settings, rows: list[Row]):
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
            curves = [
                ([look["epochs"] for look in looks], [look[name] for look in looks])
                for looks in of_net
            ]
            for curve in curves:
                axis.plot(*curve, color=colour, linewidth=0.5, alpha=0.4)
            axis.plot(
                grid,
                np.mean([np.interp(grid, *curve) for curve in curves], axis=0),
                color=colour,
                linewidth=2,
                label=label,
            )
        axis.set_xscale("log")
        axis.set(
            xlabel="epochs",
            ylabel="accuracy",
            title=f"{title}, {'1 run' if len(of_net) == 1 else f'mean of {len(of_net)} runs'}",
            ylim=(0, 1.03),
        )
        axis.legend(frameon=False, loc="lower right")
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the margin grows and the test accuracy hardly changes.

    Compared are the first look at which all training samples are correct and the last one.
    """
    found = []
    for net, title in NETS.items():
        of_net = [row for row in rows if row["net"] == net]
        first = [
            next((look for look in row["looks"] if look["accuracy"] == 1), row["looks"][-1])
            for row in of_net
        ]
        change = float(
            np.mean(
                [
                    row["test_accuracy"] - look["test_accuracy"]
                    for row, look in zip(of_net, first, strict=True)
                ]
            )
        )
        growth = float(
            np.mean(
                [
                    row["layer_margin"] / look["layer_margin"]
                    for row, look in zip(of_net, first, strict=True)
                ]
            )
        )
        test = np.mean([row["test_accuracy"] for row in of_net])
        sentence = (
            f"{title}: fitted in {sum(row['accuracy'] == 1 for row in of_net)} of {len(of_net)}"
            f" runs; from then on the margin grows {growth:.1f} times and the test accuracy changes"
            f" by {100 * change:+.1f} points, to {100 * test:.1f}%"
        )
        found.append(
            Check(
                sentence,
                growth > 1
                and abs(change) <= settings["slightly"]
                and all(row["accuracy"] == 1 for row in of_net),
            )
        )
    return found


FIGURE = Figure(
    id="lyu-li/fig7",
    title="training and test accuracy during training without bias, loss-based rate",
    finding="the test accuracy changes only slightly in all the time that the margin grows",
    differs=f"CNN: {SUBSET}; VGGNet: {SUBSET_VGG}; 3 runs and 1 instead of 10 and 3",
    scales=SCALES,
    minutes={"smoke": 0.2, "laptop": 9.0, "paper": 4_700_000.0},
    runs=lambda settings: (
        runs("cnn", LOSS_BASED, biases=(WITHOUT_BIAS,), seeds=settings["cnn_seeds"])
        + runs("vgg", LOSS_BASED, biases=(WITHOUT_BIAS,), seeds=settings["vgg_seeds"])
    ),
    compute=train_net,
    concerns=concerns,
    draw=draw,
    check=check,
    runs_of=RUNS,
)

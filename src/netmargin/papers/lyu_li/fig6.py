"""Figure 6: VGGNet on CIFAR-10, with the loss-based rate."""

from ..gallery.figure import Check, Figure, Row, Settings
from ._curves import draw_curves, fitted, rising
from ._training import LOSS_BASED, RUNS, SCALES, SUBSET_VGG, concerns, runs, train_net


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """For the nets without and with bias, down to the last level of the loss."""
    level = settings["vgg_levels"][-1]
    deep = Check(
        f"both losses fall below 10^{level}", all(row["log10_loss"] < level for row in rows)
    )
    return [*map(fitted, rows), deep, *map(rising, rows)]


FIGURE = Figure(
    id="lyu-li/fig6",
    title="VGGNet on CIFAR-10 with the loss-based rate",
    finding="a deep net shows the same as the CNN: once it is fitted, its normalized margin rises",
    differs=SUBSET_VGG,
    scales=SCALES,
    minutes={"smoke": 0.2, "laptop": 6.0, "paper": 2_750_000.0},
    runs=lambda settings: runs("vgg", LOSS_BASED),
    compute=train_net,
    concerns=concerns,
    draw=lambda settings, rows: draw_curves(
        rows, {LOSS_BASED: "loss-based rate"}, ("log10_loss", "accuracy", "layer_margin")
    ),
    check=check,
    runs_of=RUNS,
)

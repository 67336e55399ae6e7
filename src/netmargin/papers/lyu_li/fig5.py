"""Figure 5: VGGNet on CIFAR-10, with the constant rate."""

from ..gallery.figure import Check, Figure, Row, Settings
from ._curves import draw_curves, fitted, rising
from ._training import CONSTANT, RUNS, SCALES, SUBSET_VGG, concerns, runs, train_net


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """For the nets without and with bias."""
    return [*map(fitted, rows), *map(rising, rows)]


FIGURE = Figure(
    id="lyu-li/fig5",
    title="VGGNet on CIFAR-10 with the constant rate",
    finding="a deep net shows the same as the CNN: once it is fitted, its normalized margin rises",
    differs=SUBSET_VGG,
    scales=SCALES,
    minutes={"smoke": 0.2, "laptop": 2.0, "paper": 830_000.0},
    runs=lambda settings: runs("vgg", CONSTANT),
    compute=train_net,
    concerns=concerns,
    draw=lambda settings, rows: draw_curves(
        rows, {CONSTANT: "constant rate"}, ("log10_loss", "accuracy", "layer_margin")
    ),
    check=check,
    runs_of=RUNS,
)

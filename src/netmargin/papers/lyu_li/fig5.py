"""Figure 5: VGGNet on CIFAR-10 with the constant rate."""

from ..gallery.figure import Check, Row, Settings
from ._curves import fitted, make_curves, rising
from ._training import CONSTANT


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """For the nets without and with bias."""
    return [*map(fitted, rows), *map(rising, rows)]


FIGURE = make_curves(
    "vgg",
    (CONSTANT,),
    ("log10_loss", "accuracy", "layer_margin"),
    check,
    finding=(
        "a deep net shows the same as the CNN: once it is fitted, its normalized margin rises"
    ),
    minutes={"smoke": 0.2, "laptop": 2.0, "paper": 830_000.0},
)

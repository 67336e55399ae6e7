"""Figure 6: VGGNet on CIFAR-10, with the loss-based rate."""

from ..gallery.figure import Check, Row, Settings
from ._curves import fitted, make_figure, rising
from ._training import LOSS_BASED


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """For the nets without and with bias, down to the last level of the loss."""
    level = settings["vgg_levels"][-1]
    deep = Check(
        f"both losses fall below 10^{level}", all(row["log10_loss"] < level for row in rows)
    )
    return [*map(fitted, rows), deep, *map(rising, rows)]


FIGURE = make_figure(
    "lyu-li/fig6",
    "vgg",
    (LOSS_BASED,),
    ("log10_loss", "accuracy", "layer_margin"),
    check,
    title="VGGNet on CIFAR-10 with the loss-based rate",
    finding=(
        "a deep net shows the same as the CNN: once it is fitted, its normalized margin rises"
    ),
    minutes=(0.2, 6.0, 2_750_000.0),
)

"""Figure 6: VGGNet on CIFAR-10 with the loss-based rate."""

from ..gallery.figure import Check, Row, Settings
from ._curves import check_fit, make_curves
from ._training import LOSS_BASED
from .fig5 import FIGURE as FIGURE_5


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """For the nets without and with bias, down to the last level of the loss."""
    level = settings["vgg_levels"][-1]
    deep = all(row["log10_loss"] < level for row in rows)
    return [*check_fit(rows, "layer_margin"), Check(f"both losses fall below 10^{level}", deep)]


FIGURE = make_curves(
    "vgg",
    (LOSS_BASED,),
    ("log10_loss", "accuracy", "layer_margin"),
    check,
    finding=FIGURE_5.finding,
    minutes={"smoke": 0.2, "laptop": 6.0, "paper": 2_750_000.0},
)

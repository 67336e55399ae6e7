"""Figure 1: training loss and normalized margin of CNNs on MNIST: constant rate (top), loss-based
rate (bottom).
"""

from ..gallery.figure import Check, Row, Settings
from ._curves import make_curves, net_name, rising
from ._training import CONSTANT, LOSS_BASED


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that both margins rise, and that the loss-based rate is far ahead in fewer epochs."""
    found = []
    for bias in dict.fromkeys(row["bias"] for row in rows):
        constant, based = (
            next(r for r in rows if (r["rate"], r["bias"]) == (rate, bias))
            for rate in (CONSTANT, LOSS_BASED)
        )
        sentence = (
            f"{net_name(based)}: log10-loss {based['log10_loss']:.1f} and margin"
            f" {based['layer_margin']:.3g} after {based['epochs']} epochs with the loss-based rate;"
            f" {constant['log10_loss']:.1f} and {constant['layer_margin']:.3g} after"
            f" {constant['epochs']} with the constant one"
            f" ({based['layer_margin'] / constant['layer_margin']:.1f} times; paper: 6.7 times)"
        )
        ahead = (
            based["log10_loss"] < constant["log10_loss"]
            and based["layer_margin"] > constant["layer_margin"]
        )
        found += [Check(sentence, ahead), rising(constant), rising(based)]
    return found


FIGURE = make_curves(
    "cnn",
    (CONSTANT, LOSS_BASED),
    ("log10_loss", "layer_margin"),
    check,
    finding=(
        "after the data are fitted the normalized margin keeps rising: slowly with a constant"
        " rate, many times faster with the loss-based rate, whose loss falls exponentially"
    ),
    minutes={"smoke": 0.15, "laptop": 8.0, "deep": 115.0, "paper": 143_000.0},
)

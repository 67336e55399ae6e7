"""Figure 4: training accuracy and the margin by the original definition, and the relative learning
rate, with the loss-based rate.
"""

from ..gallery.figure import Check, Figure, Row, Settings
from ._curves import draw_curves, fitted, rising
from ._training import LOSS_BASED, RUNS, SCALES, SUBSET, concerns, runs, train_net


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the samples are fitted and the margin rises.

    For the net with bias the norm leaves out the biases beyond the first layer, as in the paper.
    """
    return [*map(fitted, rows), *(rising(row, "margin") for row in rows)]


FIGURE = Figure(
    id="lyu-li/fig4",
    title=(
        "CNNs on MNIST with the loss-based rate: training accuracy and normalized margin by the"
        " original definition, and the relative learning rate"
    ),
    finding=(
        "the training accuracy reaches 100%, and from then on the margin over ||theta||^L rises as"
        " well"
    ),
    differs=SUBSET,
    scales=SCALES,
    minutes={"smoke": 0.1, "laptop": 5.0, "paper": 110_000.0},
    runs=lambda settings: runs("cnn", LOSS_BASED),
    compute=train_net,
    concerns=concerns,
    draw=lambda settings, rows: draw_curves(
        rows, {LOSS_BASED: "loss-based rate"}, ("accuracy", "margin", "alpha")
    ),
    check=check,
    runs_of=RUNS,
)

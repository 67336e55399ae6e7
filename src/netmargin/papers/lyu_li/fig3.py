"""Figure 3: training accuracy and the margin by the original definition, with the constant rate."""

from ..gallery.figure import Check, Figure, Row, Settings
from ._curves import draw_curves, fitted, rising
from ._training import CONSTANT, RUNS, SCALES, SUBSET, concerns, runs, train_net


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that the samples are fitted and the margin rises.

    For the net with bias the norm leaves out the biases beyond the first layer, as in the paper.
    """
    return [*map(fitted, rows), *(rising(row, "margin") for row in rows)]


FIGURE = Figure(
    id="lyu-li/fig3",
    title=(
        "CNNs on MNIST with the constant rate: training accuracy and normalized margin by the"
        " original definition"
    ),
    finding=(
        "the training accuracy reaches 100%, and from then on the margin over ||theta||^L rises as"
        " well"
    ),
    differs=SUBSET,
    scales=SCALES,
    minutes={"smoke": 0.1, "laptop": 2.0, "paper": 33_000.0},
    runs=lambda settings: runs("cnn", CONSTANT),
    compute=train_net,
    concerns=concerns,
    draw=lambda settings, rows: draw_curves(
        rows, {CONSTANT: "constant rate"}, ("accuracy", "margin")
    ),
    check=check,
    runs_of=RUNS,
)

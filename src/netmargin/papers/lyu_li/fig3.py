"""Figure 3: CNNs on MNIST with the constant rate: training accuracy and normalized margin by the
original definition.
"""

from ..gallery.figure import Check, Row, Settings
from ._curves import fitted, make_curves, rising
from ._training import CONSTANT


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """For the net with bias the norm leaves out later biases, as in the paper."""
    return [*map(fitted, rows), *(rising(row, "margin") for row in rows)]


FIGURE = make_curves(
    "cnn",
    (CONSTANT,),
    ("accuracy", "margin"),
    check,
    finding=(
        "the training accuracy reaches 100%, and from then on the margin over ||theta||^L rises"
        " as well"
    ),
    minutes={"smoke": 0.1, "laptop": 5.0, "paper": 33_000.0},
)

"""Figure 4: as figure 3, with the loss-based rate, and the relative learning rate."""

from ._curves import make_figure
from ._training import LOSS_BASED
from .fig3 import check

FIGURE = make_figure(
    "lyu-li/fig4",
    "cnn",
    (LOSS_BASED,),
    ("accuracy", "margin", "alpha"),
    check,
    title=(
        "CNNs on MNIST with the loss-based rate: training accuracy and normalized margin by the"
        " original definition, and the relative learning rate"
    ),
    finding=(
        "the training accuracy reaches 100%, and from then on the margin over ||theta||^L rises"
        " as well"
    ),
    minutes=(0.1, 5.0, 110_000.0),
)

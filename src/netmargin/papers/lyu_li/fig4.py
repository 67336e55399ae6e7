"""Figure 4: CNNs on MNIST with the loss-based rate: training accuracy and normalized margin by the
original definition, and the relative learning rate.
"""

from ._curves import make_curves
from ._training import LOSS_BASED
from .fig3 import FIGURE as FIGURE_3

FIGURE = make_curves(
    "cnn",
    (LOSS_BASED,),
    ("accuracy", "margin", "alpha"),
    finding=FIGURE_3.finding,
    minutes={"smoke": 0.1, "laptop": 5.0, "deep": 110.0, "paper": 110_000.0},
)

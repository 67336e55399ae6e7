"""Figure 3: CNNs on MNIST with the constant rate: training accuracy and normalized margin by the
original definition.
"""

from ._curves import make_curves
from ._training import CONSTANT

# The norm of the net with bias leaves out later biases, as in the paper.
FIGURE = make_curves(
    "cnn",
    (CONSTANT,),
    ("accuracy", "margin"),
    finding=(
        "the training accuracy reaches 100%, and from then on the margin over ||theta||^L rises"
        " as well"
    ),
    minutes={"smoke": 0.1, "laptop": 5.0, "paper": 33_000.0},
)

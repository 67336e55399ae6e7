"""Figure 5: VGGNet on CIFAR-10 with the constant rate."""

from ._curves import make_curves
from ._training import CONSTANT

FIGURE = make_curves(
    "vgg",
    (CONSTANT,),
    ("log10_loss", "accuracy", "layer_margin"),
    finding=(
        "a deep net shows the same as the CNN: once it is fitted, its normalized margin rises"
    ),
    minutes={"smoke": 0.2, "laptop": 2.0, "paper": 830_000.0},
)

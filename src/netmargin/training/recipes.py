"""Named training set-ups: a net, its data and its batch size. A new one is one line here."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

from .. import models
from ..core.records import Shown


@dataclass(frozen=True)
class Recipe(Shown):
    """A net of the papers with the data it is trained on."""

    title: str
    make_model: Callable[..., nn.Module]  # anew, with `bias` as an optional argument
    data: str  # a key of `netmargin.datasets.BY_NAME`
    batch_size: int = 100  # samples per step of training


# Nets on digits train in seconds on a CPU. The others are the papers' own, and versions with a
# quarter or an eighth of the channels for machines without a GPU.
RECIPES = {
    "digits-mlp": Recipe(
        "ReLU net 64-256-10 on digits", partial(models.mlp, [64, 256, 10]), "digits"
    ),
    "digits-relu2": Recipe(
        "squared-ReLU net 64-64-10 on digits", partial(models.mlp, [64, 64, 10], power=2), "digits"
    ),
    "mnist-cnn": Recipe("the CNN of Lyu and Li (2019) on MNIST", models.mnist_cnn, "mnist"),
    "mnist-cnn-small": Recipe(
        "the same CNN with 8 and 16 channels, 128 hidden units",
        partial(models.mnist_cnn, channels=(8, 16), hidden=128),
        "mnist",
    ),
    "cifar10-vgg": Recipe(
        "the VGG variant of Lyu and Li (2019) on CIFAR-10", models.vgg, "cifar10"
    ),
    "cifar10-vgg-narrow": Recipe(
        "the same VGG variant with 8 to 64 channels", partial(models.vgg, width=8), "cifar10"
    ),
}

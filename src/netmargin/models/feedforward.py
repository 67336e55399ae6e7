"""Feed-forward nets: fully connected ones, and the convolutional ones of Lyu and Li 2019."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from ..core.arguments import check_count, check_numbers
from ..errors import ArgumentError
from .activations import ReLUPower
from .initialization import has_bias, set_he_normal, set_he_normal_for_images


def mlp(widths: Sequence[int], *, bias: str = "first", power: int = 1) -> nn.Sequential:
    """A fully connected net with ReLU, or a power of it, between its layers.

    With bias "first" or "none" the scores are homogeneous in the parameters.

    Parameters
    ----------
    widths : sequence of int
        Numbers of inputs, of the units of each hidden layer, and of scores: at least two.
    bias : "first", "none" or "all", default "first"
        Layers that have a bias.
    power : int, default 1
        Exponent of the activation; 1 is ReLU.

    Returns
    -------
    nn.Sequential
        The net, which maps (N, widths[0]) to (N, widths[-1]), in torch's default dtype.

    Raises
    ------
    ArgumentError
        If fewer than two widths are given or an argument is out of range.

    Examples
    --------
    >>> from netmargin.models import mlp
    >>> [tuple(p.shape) for p in mlp([2, 5, 1]).parameters()]          # a two-layer net
    [(5, 2), (5,), (1, 5)]

    Source: Lyu and Li 2019, Section 4.1 (homogeneous nets); Wei et al. 2018, Section 3.1.
    """
    widths, power = check_numbers("widths", widths, check_count), check_count("power", power)
    if len(widths) < 2:
        raise ArgumentError(
            f"widths must hold at least two numbers, those of inputs and of scores; got {widths}"
        )
    layers: list[nn.Module] = []
    for index, (inputs, outputs) in enumerate(pairwise(widths)):
        layers += [
            nn.Linear(inputs, outputs, bias=has_bias(bias, index)),
            nn.ReLU() if power == 1 else ReLUPower(power),
        ]
    return set_he_normal(nn.Sequential(*layers[:-1]))  # scores are not cut off at 0


def mnist_cnn(
    *, bias: str = "first", channels: Sequence[int] = (32, 64), hidden: int = 1024
) -> nn.Sequential:
    """The convolutional net of Lyu and Li (2019) for MNIST, with 3.24M parameters.

    Its layers are conv 5x5, pool, conv 3x3, pool, fully connected, scores, with ReLU between.

    Parameters
    ----------
    bias : str, default "first"
        As of `mlp`.
    channels, hidden : sequence of two int and int, default (32, 64) and 1024
        Channels of the two convolutions, and units of the fully connected layer.

    Returns
    -------
    nn.Sequential
        The net, which maps (N, 1, 28, 28) to (N, 10).

    Raises
    ------
    ArgumentError
        If there are not two channels or an argument is out of range.

    Examples
    --------
    >>> from netmargin.models import mnist_cnn
    >>> sum(p.numel() for p in mnist_cnn(channels=(8, 16), hidden=128).parameters())
    102992

    Source: Lyu and Li 2019, Appendix J.
    """
    channels = check_numbers("channels", channels, check_count)
    hidden = check_count("hidden", hidden)
    if len(channels) != 2:
        raise ArgumentError(
            f"channels must hold two numbers, one for each convolution; got {channels}"
        )
    first, second = channels
    return set_he_normal_for_images(
        nn.Sequential(
            nn.Conv2d(1, first, 5, padding="same", bias=has_bias(bias, 0)),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 3, padding="same", bias=has_bias(bias, 1)),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(second * 7 * 7, hidden, bias=has_bias(bias, 2)),
            nn.ReLU(),
            nn.Linear(hidden, 10, bias=has_bias(bias, 3)),
        )
    )


def vgg(*, bias: str = "first", width: int = 64) -> nn.Sequential:
    """The VGG-16 variant of Lyu and Li (2019) for CIFAR-10.

    Thirteen 3x3 convolutions in five groups, each followed by pooling, and one dense layer, with
    ReLU between.

    Parameters
    ----------
    bias : str, default "first"
        As of `mlp`.
    width : int, default 64
        Channels of the first group, 64 in the paper; the others have 2, 4, 8 and 8 times as many.

    Returns
    -------
    nn.Sequential
        The net, which maps (N, 3, 32, 32) to (N, 10).

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> from netmargin.models import vgg
    >>> sum(p.numel() for p in vgg(width=8).parameters())
    230688

    Source: Lyu and Li 2019, Appendix J.
    """
    width = check_count("width", width)
    layers: list[nn.Module] = []
    channels, index = 3, 0
    for factor, repeats in ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3)):
        for _ in range(repeats):
            layers += [
                nn.Conv2d(channels, factor * width, 3, padding="same", bias=has_bias(bias, index)),
                nn.ReLU(),
            ]
            channels, index = factor * width, index + 1
        layers.append(nn.MaxPool2d(2))
    return set_he_normal_for_images(
        nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 10, bias=has_bias(bias, index)))
    )

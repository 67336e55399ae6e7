"""The nets of the papers, with He normal weights and zero biases.

`bias` says which layers have one: "first" (homogeneous in the parameters, as the "CNN without bias"
of Lyu and Li 2019), "none", or "all" (not homogeneous; its margins ignore the biases outside the
first layer). Arguments out of range raise ArgumentError.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from .core.arguments import check_choice, check_count, check_instance, check_numbers
from .errors import ArgumentError

BIASES = ("first", "none", "all")
"""The layers that have a bias, as words; see the text above."""


class ReLUPower(nn.Module):
    """The activation max(z, 0)^power, homogeneous of degree `power`.

    Its derivatives up to order power - 1 are continuous.

    Parameters
    ----------
    power : int, default 2
        The exponent, at least 1.

    Raises
    ------
    ArgumentError
        If the power is no whole number of at least 1.

    Examples
    --------
    >>> import torch
    >>> from netmargin.models import ReLUPower
    >>> ReLUPower(2)(torch.tensor([-1.0, 3.0]))
    tensor([0., 9.])
    """

    def __init__(self, power: int = 2):
        super().__init__()
        self.power = check_count("power", power)

    def forward(self, z: Tensor) -> Tensor:
        """Return max(z, 0)^power, elementwise."""
        return z.relu() ** self.power

    def extra_repr(self) -> str:
        """Return what torch prints between the parentheses of this module."""
        return f"power={self.power}"


class SignedSum(nn.Module):
    """The output layer sum_j signs_j h_j, which is not trained.

    Parameters
    ----------
    signs : Tensor, shape (units,)
        Weights of the hidden units, kept as a buffer.

    Raises
    ------
    ArgumentError
        If `signs` is no tensor.

    Examples
    --------
    >>> import torch
    >>> from netmargin.models import SignedSum
    >>> SignedSum(torch.tensor([1.0, -1.0]))(torch.tensor([[5.0, 2.0]]))
    tensor([[3.]])
    """

    signs: Tensor

    def __init__(self, signs: Tensor):
        super().__init__()
        check_instance(
            "signs", signs, Tensor, "a tensor of one number per unit, such as torch.ones(10)"
        )
        self.register_buffer("signs", signs)

    def forward(self, h: Tensor) -> Tensor:
        """Return the scores of hidden units of shape (N, units), shape (N, 1)."""
        return h @ self.signs[:, None]


def mlp(widths: Sequence[int], *, bias: str = "first", power: int = 1) -> nn.Sequential:
    """A fully connected net with ReLU, or a power of it, between its layers.

    Weights are He normal, biases zero; with bias "first" or "none" the scores are homogeneous in
    the parameters.

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
            nn.Linear(inputs, outputs, bias=_has_bias(bias, index)),
            nn.ReLU() if power == 1 else ReLUPower(power),
        ]
    return _set_he_normal(nn.Sequential(*layers[:-1]))


def mnist_cnn(
    *, bias: str = "first", channels: Sequence[int] = (32, 64), hidden: int = 1024
) -> nn.Sequential:
    """The convolutional net of Lyu and Li (2019) for MNIST, with 3.24M parameters.

    Its layers are conv 5x5, pool, conv 3x3, pool, fully connected, scores, with ReLU between.
    Weights are He normal, biases zero.

    Parameters
    ----------
    bias : "first", "none" or "all", default "first"
        Layers that have a bias.
    channels : sequence of two int, default (32, 64)
        Channels of the two convolutions.
    hidden : int, default 1024
        Units of the fully connected layer.

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
    channels, hidden = (
        check_numbers("channels", channels, check_count),
        check_count("hidden", hidden),
    )
    if len(channels) != 2:
        raise ArgumentError(
            f"channels must hold two numbers, one for each convolution; got {channels}"
        )
    first, second = channels
    return _set_he_normal_for_images(
        nn.Sequential(
            nn.Conv2d(1, first, 5, padding="same", bias=_has_bias(bias, 0)),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 3, padding="same", bias=_has_bias(bias, 1)),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(second * 7 * 7, hidden, bias=_has_bias(bias, 2)),
            nn.ReLU(),
            nn.Linear(hidden, 10, bias=_has_bias(bias, 3)),
        )
    )


def vgg(*, bias: str = "first", width: int = 64) -> nn.Sequential:
    """The VGG-16 variant of Lyu and Li (2019) for CIFAR-10.

    Thirteen 3x3 convolutions in five groups, each followed by pooling, and one dense layer, with
    ReLU between. Weights are He normal, biases zero.

    Parameters
    ----------
    bias : "first", "none" or "all", default "first"
        Layers that have a bias.
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
                nn.Conv2d(channels, factor * width, 3, padding="same", bias=_has_bias(bias, index)),
                nn.ReLU(),
            ]
            channels, index = factor * width, index + 1
        layers.append(nn.MaxPool2d(2))
    return _set_he_normal_for_images(
        nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 10, bias=_has_bias(bias, index)))
    )


class _Residual(nn.Module):
    """A residual block h + conv(relu(conv(relu(h)))), without normalization.

    Where the shape changes, a 1x1 convolution of relu(h) takes the place of the first h.
    """

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        z = h.relu()
        residual = self.second(self.first(z).relu())
        return residual + (h if self.shortcut is None else self.shortcut(z))


def wide_resnet(*, depth: int = 16, widen: int = 10) -> nn.Sequential:
    """A WideResNet without batch normalization for CIFAR-10; it is not homogeneous.

    It has 3 groups of (depth - 4) / 6 residual blocks with 16, 32 and 64 times `widen` channels.
    The last convolution of each block begins at 0, so that the net starts shallow, without which it
    would diverge at the rates of nets with normalization; all other weights are He normal.

    Parameters
    ----------
    depth : int, default 16
        Number of layers, 6 B + 4 with B >= 1 blocks in each group.
    widen : int, default 10
        Factor of the channels.

    Returns
    -------
    nn.Sequential
        The net, which maps (N, 3, 32, 32) to (N, 10).

    Raises
    ------
    ArgumentError
        If the depth is not 6 B + 4 or an argument is out of range.

    Examples
    --------
    >>> from netmargin.models import wide_resnet
    >>> sum(p.numel() for p in wide_resnet(widen=1).parameters())
    174138

    Source: Wei et al. 2018, Appendix F.
    """
    depth, widen = check_count("depth", depth), check_count("widen", widen)
    if depth < 10 or (depth - 4) % 6:
        raise ArgumentError(
            f"depth must be 6 B + 4 with B >= 1 blocks in each group: 10, 16, 22, ...; got {depth}"
        )
    blocks, channels = (depth - 4) // 6, 16
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
    for group, width in enumerate((16 * widen, 32 * widen, 64 * widen)):
        for block in range(blocks):
            layers.append(_Residual(channels, width, 2 if group and not block else 1))
            channels = width
    net = nn.Sequential(
        *layers, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)
    )
    # Set to 0 last, since He's rule sets every weight of the net.
    net = _set_he_normal_for_images(net)
    with torch.no_grad():
        for layer in net:
            if isinstance(layer, _Residual):
                layer.second.weight.zero_()
    return net


def _has_bias(bias: str, layer: int) -> bool:
    """Whether the layer of this number, from 0, has a bias."""
    bias = check_choice("bias", bias, BIASES)
    return bias == "all" or (bias == "first" and layer == 0)


def _set_he_normal(net: nn.Sequential) -> nn.Sequential:
    """Draw all weights by He's rule, set all biases to 0, and return the net."""
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
    return net


def _set_he_normal_for_images(net: nn.Sequential) -> nn.Sequential:
    """Draw the weights as `_set_he_normal` does, and lay them out for convolutions."""
    # With channels last, convolutions on a CPU run up to twice as fast.
    return _set_he_normal(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

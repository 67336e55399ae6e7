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


class ReLUPower(nn.Module):
    """max(z, 0)^power, homogeneous of degree `power`; smooth for power 2 and above up to its
    derivative of order power - 1.
    """

    def __init__(self, power: int = 2):
        super().__init__()
        self.power = check_count("power", power)

    def forward(self, z: Tensor) -> Tensor:
        return z.relu() ** self.power

    def extra_repr(self) -> str:
        return f"power={self.power}"


class SignedSum(nn.Module):
    """sum_j signs_j h_j, shape (N, 1): an output layer that is not trained."""

    signs: Tensor

    def __init__(self, signs: Tensor):
        super().__init__()
        check_instance(
            "signs", signs, Tensor, "a tensor of one number per unit, such as torch.ones(10)"
        )
        self.register_buffer("signs", signs)

    def forward(self, h: Tensor) -> Tensor:
        return h @ self.signs[:, None]


def mlp(widths: Sequence[int], *, bias: str = "first", power: int = 1) -> nn.Sequential:
    """A fully connected net with layers of the given widths, inputs first and scores last, and
    (powers of) ReLU between.

    Examples
    --------
    >>> from netmargin.models import mlp
    >>> [tuple(p.shape) for p in mlp([2, 5, 1]).parameters()]          # a two-layer net
    [(5, 2), (5,), (1, 5)]
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
    return _he_normal(nn.Sequential(*layers[:-1]))


def mnist_cnn(
    *, bias: str = "first", channels: Sequence[int] = (32, 64), hidden: int = 1024
) -> nn.Sequential:
    """conv 5x5, pool, conv 3x3, pool, fully connected, scores: the net of Lyu and Li (2019,
    Appendix J); 3.24M parameters.
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
    return _he_normal_images(
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
    """The VGG-16 variant of Lyu and Li (2019, Appendix J) for 3x32x32 inputs; `width` 64 is the
    paper's.
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
    return _he_normal_images(
        nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 10, bias=_has_bias(bias, index)))
    )


class _Residual(nn.Module):
    """h + conv(relu(conv(relu(h)))), with a 1x1 convolution of relu(h) as the shortcut where the
    shape changes.
    """

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        z = h.relu()
        moved = self.second(self.first(z).relu())
        return moved + (h if self.shortcut is None else self.shortcut(z))


def wide_resnet(*, depth: int = 16, widen: int = 10) -> nn.Sequential:
    """A WideResNet without batch normalization, as in Wei et al. (2018, Appendix F), for 3x32x32
    inputs and 10 classes; not homogeneous.

    3 groups of (depth - 4) / 6 residual blocks with 16, 32 and 64 times `widen` channels. The last
    convolution of each block begins at 0, so that the net starts shallow, without which it would
    diverge at the rates of nets with normalization; all else by He's rule.

    Examples
    --------
    >>> from netmargin.models import wide_resnet
    >>> sum(p.numel() for p in wide_resnet(widen=1).parameters())
    174138
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
    net = _he_normal_images(net)
    with torch.no_grad():
        for layer in net:
            if isinstance(layer, _Residual):
                layer.second.weight.zero_()
    return net


def _has_bias(bias: str, layer: int) -> bool:
    bias = check_choice("bias", bias, BIASES)
    return bias == "all" or (bias == "first" and layer == 0)


def _he_normal(net: nn.Sequential) -> nn.Sequential:
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
    return net


def _he_normal_images(net: nn.Sequential) -> nn.Sequential:
    # With channels last, convolutions on a CPU run up to twice as fast.
    return _he_normal(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

"""Residual nets without normalization."""

import torch
from torch import Tensor, nn

from ..core.arguments import check_count
from ..errors import ArgumentError
from .initialization import set_he_normal_for_images


class _Residual(nn.Module):
    """A residual block h + conv(relu(conv(relu(h)))), without normalization."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        # Where the shape changes, a 1x1 convolution of relu(h) takes the place of the first h.
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        """Return the block's output for h of shape (N, inputs, height, width)."""
        z = h.relu()
        residual = self.second(self.first(z).relu())
        return torch.add(residual, h if self.shortcut is None else self.shortcut(z))


def wide_resnet(*, depth: int = 16, widen: int = 10) -> nn.Sequential:
    """A WideResNet without batch normalization for CIFAR-10; it is not homogeneous.

    It has 3 groups of (depth - 4) / 6 residual blocks with 16, 32 and 64 times `widen` channels.
    The last convolution of each block begins at 0, so that the net starts shallow, without which it
    would diverge at the rates of nets with normalization; all other weights are He normal.

    Parameters
    ----------
    depth, widen : int, default 16 and 10
        Number of layers, 6 B + 4 with B >= 1 blocks in each group, and factor of the channels.

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
    net = set_he_normal_for_images(net)
    with torch.no_grad():
        for layer in net:
            if isinstance(layer, _Residual):
                layer.second.weight.zero_()
    return net

"""Which layers of a net have a bias, and the weights that it begins with."""

import torch
from torch import nn

from ..core.arguments import check_choice

BIASES = ("first", "none", "all")
"""Words for the layers that have a bias: the first, which keeps a net homogeneous, none, or all."""


def has_bias(bias: str, layer: int) -> bool:
    """Whether the layer of this number, from 0, has a bias."""
    bias = check_choice("bias", bias, BIASES)
    return bias == "all" or (bias == "first" and layer == 0)


def set_he_normal(net: nn.Sequential) -> nn.Sequential:
    """Draw all weights by He's rule, set all biases to 0, and return the net."""
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
    return net


def set_he_normal_for_images(net: nn.Sequential) -> nn.Sequential:
    """Draw the weights as `set_he_normal` does, and lay them out for convolutions."""
    # With channels last, convolutions on a CPU run up to twice as fast.
    return nn.utils.convert_conv2d_weight_memory_format(set_he_normal(net), torch.channels_last)

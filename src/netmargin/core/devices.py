"""Devices without float64: what needs it is done on the CPU."""

import torch
from torch import Tensor

_WITHOUT_FLOAT64 = ("mps",)
"""Types of devices whose tensors cannot be float64: Apple's graphics processors."""


def holds_float64(device: torch.device) -> bool:
    """Whether tensors on a device can be float64."""
    return device.type not in _WITHOUT_FLOAT64


def where_float64_is(tensor: Tensor) -> Tensor:
    """The tensor where it can be turned into float64: on its own device, or else on the CPU."""
    return tensor if holds_float64(tensor.device) else tensor.cpu()

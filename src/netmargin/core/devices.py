"""Devices without float64: what needs it is done on the CPU."""

import torch
from torch import Tensor

_WITHOUT_FLOAT64 = ("mps",)
"""Types of devices whose tensors cannot be float64: Apple's graphics processors."""


def holds_float64(device: torch.device) -> bool:
    """Whether tensors on a device can be float64."""
    return device.type not in _WITHOUT_FLOAT64


def draw_normal(like: Tensor, source: torch.Generator) -> Tensor:
    """Normal numbers in the shape and type of a tensor, and on its device: the same on each."""
    drawn = torch.randn(like.shape, generator=source, dtype=like.dtype, device="cpu")
    return drawn.to(like.device)


def where_float64_is(tensor: Tensor) -> Tensor:
    """The tensor where it can be turned into float64: on its own device, or else on the CPU."""
    return tensor if holds_float64(tensor.device) else tensor.cpu()

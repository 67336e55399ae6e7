"""Floating-point numbers too small for full speed, set to 0 while steps are taken."""

from contextlib import contextmanager
from typing import Any

import torch

_SMALLEST = 5e-324


@contextmanager
def flush_denormals(on: bool = True) -> Any:
    """Treat denormal floats as 0 within, which is for steps only: no number measured so is true."""
    # Late in training slopes of far samples are denormal, which slows steps down 2-3x.
    # Torch has no getter for the setting: a product with a denormal number tells it.
    was_on = _SMALLEST * 1.0 == 0
    torch.set_flush_denormal(on)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_on)

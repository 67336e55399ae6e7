"""Floating-point numbers too small for full speed, set to 0 while steps are taken."""

from contextlib import contextmanager

import torch


@contextmanager
def flush_denormals():
    """Treat denormal floats as 0 within, which is for steps only: no number measured so is true."""
    # Late in training slopes of far samples are denormal, which slows steps down 2-3x.
    # Torch has no getter for the setting: a product with a denormal number tells it.
    smallest = torch.tensor([5e-324], dtype=torch.float64, device="cpu")
    was_on = bool((smallest * 1.0 == 0).item())
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_on)

"""Inputs of another scale than those of training, told by what BatchNorm has stored of these."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from .arrays import Arrays
from .data import batches
from .forward_faults import SAMPLES
from .model import call_net

_FACTOR = 5.0
"""Ratio of variances that is told. Standardized images of MNIST have ten times the variance of
pixels from 0 to 1; behind a dense layer one class of digits alone has 0.29 times that of all.
"""
_LEFT = 0.1
"""Share of the statistics that a layer was made with, beyond which they are not yet those of data:
with the usual momentum 22 steps of training leave less.
"""

_ENOUGH = 64
"""Samples that are looked at: of 16 images of MNIST the ratio was 0.8 to 1.2 in 200 draws."""


def doubt_scale(model: nn.Module, samples: Any, x: Any) -> str:
    """A sentence where samples vary otherwise than the first BatchNorm has stored, or "".

    The net is in evaluation mode; x is the first batch, which is looked at where there is no other.
    """
    stored = {part: name for name, part in model.named_modules() if _has_stored(part)}
    if isinstance(samples, Arrays) and stored:  # evenly, as they may be in the order of classes
        rows = torch.linspace(0, len(samples) - 1, min(len(samples), _ENOUGH), device="cpu").long()
        spread = Arrays(samples.X[rows], samples.y[rows])
        x, _ = next(batches(spread, _ENOUGH, model))
    if not stored or len(x) < SAMPLES:
        return ""
    seen: list[tuple[_BatchNorm, Tensor]] = []  # the first layer, and variances of its channels

    def see(part: Any, inputs: tuple[Any, ...]) -> None:
        if not seen:  # later layers see what the first one made of its input
            values = inputs[0].detach().float()
            seen.append((part, values.var([d for d in range(values.ndim) if d != 1])))

    with ExitStack() as hooks, torch.no_grad(), torch.random.fork_rng():
        for part in stored:
            hooks.enter_context(part.register_forward_pre_hook(see))
        call_net(model, x[:_ENOUGH])
    if not seen:
        return ""
    part, variances = seen[0]
    assert part.running_var is not None  # as it has stored
    ratio = (variances / part.running_var.float().clamp(min=part.eps)).median().item()
    if 1 / _FACTOR <= ratio <= _FACTOR:
        return ""
    return (
        "The inputs may be scaled otherwise than in training: what enters BatchNorm"
        f" {stored[part]!r} has {ratio:.2g} times the variance that it stored. Give them as in"
        " training: pixels 0 to 1 or 0 to 255, less the same mean, over the same deviation."
    )


def _has_stored(part: nn.Module) -> bool:
    """Whether a layer stores statistics, and steps of training made them."""
    if not isinstance(part, _BatchNorm) or part.running_var is None or part.training:
        return False
    steps = 0 if part.num_batches_tracked is None else int(part.num_batches_tracked)
    left = 1 / (steps + 1) if part.momentum is None else (1 - part.momentum) ** steps
    return left <= _LEFT

"""Slopes of scores in the inputs: gradients, or a sentence on why they are none."""

from typing import Any

import torch
from torch import Tensor, nn

from ..core.devices import draw_normal
from ..errors import ModelError
from .advice import explain_forward_errors
from .forward_faults import SAMPLES, scoring_in_float64
from .named_inputs import as_one_tensor

_STEP = 1e-7
"""Length of the steps that gradients are held against, relative to the spread of each input: steps
of 1e-6 cross kinks in 10 of 16 images of a CNN with max-pools; rounding changes a rise by 1e-8.
"""
_ASIDE = 1e-3
"""Length of the step off the sample itself, relative to the largest spread: far from ties of equal
pixels beside the steps above, and within what rounding to hundredths leaves equal.
"""
_SAME_SLOPE = 1e-3
"""Relative difference up to which a rise is that of the gradient, curvature and rounding beside."""
_ROUNDING = 1e-13
"""Rises below this share of the scores are rounding."""


def differentiate(value: Tensor, point: Tensor, *, keep: bool = False) -> Tensor:
    """The gradient of a number in inputs, or what a layer made of them; `keep` keeps its graph."""
    slope = None
    if value.requires_grad:
        with explain_forward_errors(point):
            (slope,) = torch.autograd.grad(value, point, retain_graph=keep, allow_unused=True)
    if slope is None:
        raise ModelError(
            "The model's scores carry no gradient in its inputs. Its forward detaches or rounds"
            " them, or works under torch.no_grad(): take operations that have a derivative."
        )
    return slope


def doubt_slopes(model: nn.Module, x: Any) -> str:
    """A sentence where gradients in a few inputs are not what scores do on short steps, or ""."""
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng():
        model, x = as_one_tensor(model, x[:SAMPLES])
        x, score = x.detach().double(), scoring_in_float64(model)

        def value(z: Tensor) -> Tensor:
            found = score(z).reshape(len(z), -1)
            weights = torch.arange(found.shape[1], dtype=z.dtype, device=z.device).cos()
            return found.masked_fill(found.isinf(), 0.0) @ weights

        spread = (x - x.mean(0)).abs().amax(0)
        spread = spread if spread.any() else x.abs().amax(0) + 1e-3
        source = torch.Generator().manual_seed(0)
        aside, step = draw_normal(x, source), _STEP * spread * draw_normal(x, source)
        # Backgrounds of one colour lie on the kinks of max-pools, where no gradient is the slope.
        x = x + _ASIDE * spread.max() * aside
        try:
            here = value(point := x.clone().requires_grad_())
            slope = differentiate(here.sum(), point)
            rise = ((value(x + step) - value(x - step)) / 2).detach()
        except Exception:  # whoever needs slopes says why there are none
            return ""
    told = (slope * step).flatten(1).sum(1)
    least = _SAME_SLOPE * torch.maximum(rise.abs(), told.abs()) + _ROUNDING * here.abs().max()
    masked = ((rise - told).abs() > least) | ~slope.flatten(1).any(1)
    if 2 * int(masked.sum()) <= len(x):
        return ""
    return (
        f"The gradient of the scores in the inputs is 0, or not their slope, at {int(masked.sum())}"
        f" of {len(x)} samples that were looked at: rounding, sign, clamping or detach() in forward"
        " mask it. Distances by slopes mean nothing there, and attacks by slopes miss points."
    )

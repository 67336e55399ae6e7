"""Minimization of a function of a net's parameters, all samples at once."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_HISTORY = 30


def minimize(parameters: Sequence[Tensor], loss: Callable[[], Tensor], iterations: int) -> None:
    """L-BFGS with a strong Wolfe line search, about as many evaluations of the differentiable loss
    as iterations; in place.

    The parameters end as those of the least loss that was seen: the method can run into NaN once
    rounding is all that is left to gain.
    """
    optimizer = torch.optim.LBFGS(
        list(parameters),
        max_iter=iterations,
        history_size=_HISTORY,
        line_search_fn="strong_wolfe",
        tolerance_grad=0,
        tolerance_change=0,
    )

    least, best = math.inf, [p.detach().clone() for p in parameters]

    def closure():
        nonlocal least
        optimizer.zero_grad()
        value = loss()
        if value.item() < least:
            least = value.item()
            for kept, p in zip(best, parameters, strict=True):
                kept.copy_(p.detach())
        value.backward()
        for p in parameters:
            if p.grad is not None:
                p.grad = p.grad.contiguous()  # the optimizer flattens gradients, and convolutions may return channels-last ones
        return value.detach()

    optimizer.step(closure)
    with torch.no_grad():
        for kept, p in zip(best, parameters, strict=True):
            p.copy_(kept)

"""Minimization of a function of a net's parameters by L-BFGS, all samples at once."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_HISTORY = 30
"""Steps that the estimate of the Hessian is built from: more save iterations, and each costs two
copies of the parameters in memory.
"""


def minimize(parameters: Sequence[Tensor], loss: Callable[[], Tensor], iterations: int) -> None:
    """Minimize a loss in place by L-BFGS with a strong Wolfe search; the least seen stays."""
    # Both tolerances are 0: callers set the number of iterations, and want the last digits too.
    optimizer = torch.optim.LBFGS(
        list(parameters),
        max_iter=iterations,
        history_size=_HISTORY,
        line_search_fn="strong_wolfe",
        tolerance_grad=0,
        tolerance_change=0,
    )

    # At the end, where rounding is all that is left to gain, the method can run into NaN.
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
                # The optimizer flattens gradients, and convolutions may return channels-last ones.
                p.grad = p.grad.contiguous()
        return value.detach()

    optimizer.step(closure)
    with torch.no_grad():
        for kept, p in zip(best, parameters, strict=True):
            p.copy_(kept)

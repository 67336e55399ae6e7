"""Minimization of a function of a net's parameters, all samples at once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_HISTORY = 30


def minimize(parameters: Sequence[Tensor], loss: Callable[[], Tensor], iterations: int) -> None:
    """L-BFGS with a strong Wolfe line search, about as many evaluations of the differentiable loss as iterations; in place."""
    optimizer = torch.optim.LBFGS(
        list(parameters),
        max_iter=iterations,
        history_size=_HISTORY,
        line_search_fn="strong_wolfe",
        tolerance_grad=0,
        tolerance_change=0,
    )

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        for p in parameters:
            if p.grad is not None:
                p.grad = p.grad.contiguous()  # the optimizer flattens gradients, and convolutions may return channels-last ones
        return value.detach()

    optimizer.step(closure)

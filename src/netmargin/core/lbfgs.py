"""Minimization of a function of a net's parameters by L-BFGS, all samples at once."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

_HISTORY = 30
"""Steps that the estimate of the Hessian is built from: more save iterations, and each costs two
copies of the parameters in memory.
"""
_GRADIENTS = 1.25
"""The most gradients for each iteration, on average: line searches take hardly more than one, and
many only where rounding is all that is left to gain.
"""


def minimize(
    parameters: Sequence[Tensor], loss: Callable[[], Tensor], iterations: int, unit: float = 1.0
) -> None:
    """Minimize a loss in place by L-BFGS with a strong Wolfe search; the least seen stays. Its
    first step has the length `unit`, a power of 2, whatever the loss.
    """
    from scipy.optimize import fmin_l_bfgs_b  # late, as scipy.optimize takes long to load

    sizes = [parameter.numel() for parameter in parameters]
    start = _flatten(parameters) / unit
    # At the end, where rounding is all that is left to gain, the method can run into NaN.
    least, best = math.inf, start

    @torch.no_grad()
    def put(theta: np.ndarray) -> None:
        for parameter, part in zip(
            parameters, torch.from_numpy(unit * theta).split(sizes), strict=True
        ):
            parameter.copy_(part.view_as(parameter))

    def differentiate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal least, best
        put(theta)
        for parameter in parameters:
            parameter.grad = None
        found = loss()
        found.backward()
        value = found.item()
        if value < least:
            least, best = value, theta.copy()
        # What the loss does not depend on has no gradient.
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        return value, unit * _flatten(gradients)

    # Both tolerances are 0: callers set the number of iterations, and want the last digits too.
    fmin_l_bfgs_b(
        differentiate,
        start,
        m=_HISTORY,
        factr=0,
        pgtol=0,
        maxiter=iterations,
        maxfun=math.ceil(_GRADIENTS * iterations),
    )
    put(best)


def _flatten(tensors: Sequence[Tensor]) -> np.ndarray:
    """The numbers of tensors as one vector in float64."""
    parts = [tensor.detach().reshape(-1).to("cpu", torch.float64) for tensor in tensors]
    return torch.cat(parts).numpy()

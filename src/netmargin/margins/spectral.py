"""The norm of spectrally normalized margins, of a chain of matrices."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..core.matrices import floor_to_powers

_BETWEEN = (nn.ReLU, nn.ReLU6, nn.Tanh, nn.Identity, nn.Dropout)
"""Activations with Lipschitz constant 1 and value 0 at 0, as the theorem asks for."""


def read_chain(model: nn.Module) -> tuple[list[Tensor], str]:
    """Copies of the matrices of a Sequential of linear layers, and what the norm leaves out."""
    layers = _parts(model)
    for layer in layers:
        if type(layer) is nn.LeakyReLU and abs(layer.negative_slope) <= 1:
            continue
        if type(layer) is nn.Flatten and layer.start_dim == 1:
            continue
        if type(layer) not in (nn.Linear, *_BETWEEN):
            return [], f"only for Sequentials of Linear and ReLU; found {type(layer).__name__}"
    linear: list[Any] = [layer for layer in layers if type(layer) is nn.Linear]
    if any(not bool(layer.weight.detach().any()) for layer in linear):
        return [], "a weight matrix is zero"
    biases = any(layer.bias is not None and bool(layer.bias.detach().any()) for layer in linear)
    # Copies, since the net may train on before the norm is asked for.
    weights = [layer.weight.detach().clone() for layer in linear]
    return weights, "leaves out the biases" if biases else ""


def log_spectral_norm(weights: list[Tensor]) -> float:
    """The log of prod_i ||W_i||_2 (sum_i (||W_i||_{2,1} / ||W_i||_2)^{2/3})^{3/2}, in float64.

    ||W||_{2,1} sums the norms of the rows. Source: Bartlett, Foster and Telgarsky 2017, (1.2).
    """
    matrices = [weight.to("cpu", torch.float64) for weight in weights]
    sizes = [float(floor_to_powers(matrix.abs().max().item())) for matrix in matrices]
    # Squares of 1e160 would be infinite.
    matrices = [matrix / size for matrix, size in zip(matrices, sizes, strict=True)]
    norms = [_largest_singular_value(matrix) for matrix in matrices]
    rows = [torch.linalg.vector_norm(matrix, dim=1).sum().item() for matrix in matrices]
    return math.fsum(map(math.log, norms + sizes)) + 1.5 * math.log(
        math.fsum((row / norm) ** (2 / 3) for row, norm in zip(rows, norms, strict=True))
    )


def _largest_singular_value(matrix: Tensor) -> float:
    """The spectral norm of a matrix."""
    # Lanczos needs a vector to start from that is not orthogonal to the solution, and one that is
    # always the same; on small matrices it does not apply.
    if min(matrix.shape) < 3:
        return float(torch.linalg.matrix_norm(matrix, 2).item())
    from scipy.sparse.linalg import svds

    start = torch.randn(min(matrix.shape), generator=torch.Generator().manual_seed(0), device="cpu")
    found = svds(matrix.numpy(), k=1, return_singular_vectors=False, v0=start.double().numpy())
    return float(found[0])


def _parts(model: nn.Module) -> list[nn.Module]:
    """The layers of nested Sequentials, in order."""
    # Exact types only, since a subclass may have another forward; hooks may change it as well.
    hooked = model._forward_hooks or model._forward_pre_hooks or "forward" in vars(model)
    if type(model) is nn.Sequential and not hooked:
        return [layer for part in model for layer in _parts(part)]
    return [nn.Module() if hooked else model]

"""The norm of spectrally normalized margins, of a chain of matrices."""

import math
from typing import Any

import torch
from torch import Tensor, nn

_BETWEEN = (nn.ReLU, nn.ReLU6, nn.Tanh, nn.Identity, nn.Dropout)
"""Activations with Lipschitz constant 1 and value 0 at 0, as the theorem asks for."""


class SpectralNorm:
    """The spectral complexity of a chain, computed when it is first asked for.

    The norm is prod_i ||W_i||_2 (sum_i (||W_i||_{2,1} / ||W_i||_2)^{2/3})^{3/2}, where ||W||_{2,1}
    is the sum of the norms of the rows (one per unit). It takes as long as a few hundred forward
    passes, so that copies of the matrices are kept until then.

    Parameters
    ----------
    weights : list of Tensor, shape (outputs, inputs)
        The matrices of the chain.
    note : str, default ""
        Why there are none, or what the norm leaves out.

    Source: Bartlett, Foster and Telgarsky 2017, (1.2), with reference matrices 0.
    """

    def __init__(self, weights: list[Tensor], *, note: str = ""):
        self._weights = [weight.detach().clone() for weight in weights]
        self._log: float | None = None
        self.note = note

    def log(self) -> float | None:
        """Return the natural log of the norm; None where it does not exist."""
        if self._weights:
            self._log = log_spectral_norm(self._weights)
            self._weights = []
        return self._log

    def __getstate__(self) -> dict[str, Any]:
        self.log()  # a saved report holds no weights
        return vars(self)


def read_chain(model: nn.Module) -> SpectralNorm:
    """Read the matrices of a Sequential of linear layers and activations off a model."""
    layers = _parts(model)
    for layer in layers:
        if type(layer) is nn.LeakyReLU and abs(layer.negative_slope) <= 1:
            continue
        if type(layer) is nn.Flatten and layer.start_dim == 1:
            continue
        if type(layer) not in (nn.Linear, *_BETWEEN):
            kind = type(layer).__name__
            return SpectralNorm([], note=f"only for Sequentials of Linear and ReLU; found {kind}")
    linear = [layer for layer in layers if type(layer) is nn.Linear]
    if any(not bool(layer.weight.detach().any()) for layer in linear):
        return SpectralNorm([], note="a weight matrix is zero")
    biases = any(layer.bias is not None and bool(layer.bias.detach().any()) for layer in linear)
    return SpectralNorm(
        [layer.weight for layer in linear], note="leaves out the biases" if biases else ""
    )


def log_spectral_norm(weights: list[Tensor]) -> float:
    """The natural log of the spectral complexity of matrices, in float64.

    Examples
    --------
    >>> round(math.exp(log_spectral_norm([3 * torch.eye(2)])), 12)  # 3 (6 / 3)
    6.0
    """
    matrices = [weight.to("cpu", torch.float64) for weight in weights]
    norms = [_largest_singular_value(matrix) for matrix in matrices]
    ratios = [
        torch.linalg.vector_norm(matrix, dim=1).sum().item() / norm
        for matrix, norm in zip(matrices, norms, strict=True)
    ]
    return math.fsum(map(math.log, norms)) + 1.5 * math.log(
        math.fsum(ratio ** (2 / 3) for ratio in ratios)
    )


def _largest_singular_value(matrix: Tensor) -> float:
    """The spectral norm of a matrix."""
    # Lanczos needs a vector to start from that is not orthogonal to the solution, and one that is
    # always the same; on small matrices it does not apply.
    if min(matrix.shape) < 3:
        return torch.linalg.matrix_norm(matrix, 2).item()
    from scipy.sparse.linalg import svds

    start = torch.randn(min(matrix.shape), generator=torch.Generator().manual_seed(0))
    found = svds(matrix.numpy(), k=1, return_singular_vectors=False, v0=start.double().numpy())
    return float(found[0])


def _parts(model: nn.Module) -> list[nn.Module]:
    """The layers of nested Sequentials, in order."""
    # Exact types only, since a subclass may have another forward; hooks may change it as well.
    hooked = model._forward_hooks or model._forward_pre_hooks or "forward" in vars(model)
    if type(model) is nn.Sequential and not hooked:
        return [layer for part in model for layer in _parts(part)]
    return [nn.Module() if hooked else model]

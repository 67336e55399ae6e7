"""L2 Lipschitz constants of a chain of layers: the product of the norms of its linear stretches."""

import math
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..nets.gradients import differentiate_each
from .layer_rules import LINEAR
from .layers import Branches, Moved, Scaled
from .products import LARGEST_MATRIX, SMALLEST_NORMAL, multiply_absolute, without_biases

_LARGEST_SIDE = 3200
"""Smaller side up to which a linear map is written out: its eigenvalues take half a minute."""
_LEAST_FREQUENCIES = 32
"""Frequencies per dimension at which the norm of a convolution is computed, at least: the bound
between them is loose by 1 / cos(pi / 32) = 1.005 in each dimension for a kernel of size 3.
"""
_ROUNDING = 1 + 1e-9
"""Factor by which norms are raised, more than the rounding of an eigenvalue problem."""
_LEAST = 2.0**-1074
"""The smallest float64 number: a product below it vanishes, and one result may lose that much."""
_LOGARITHMS = 1 + 1e-12
"""Factor by which a product is raised that is taken by logarithms: these are below 1e5 in sum."""


def multiply_norms(norms: list[float], last: Tensor) -> Tensor:
    """Bound products of norms and a last layer's part; none that vanishes among floats is 0."""
    if 0.0 in norms:
        return torch.zeros_like(last)
    logarithm = last.log2() + sum(math.log2(value) for value in norms)
    product = (_LOGARITHMS * logarithm.exp2()).clamp(min=SMALLEST_NORMAL)
    return torch.where(last == 0, 0.0, product.nan_to_num(nan=torch.inf, posinf=torch.inf))


def chain_norms(layers: list[nn.Module], x: Tensor) -> tuple[list[float], Tensor]:
    """Bound the norms of all stretches of layers but a last linear one, and its part.

    Returns the list of norms and the norms of the differences of the rows of that last stretch,
    (C, C), or its norm, (1, 1), for one output.
    """
    stretches = stretches_of(layers)
    last = stretches.pop()[1] if stretches and stretches[-1][0] else None
    norms, h = _list_norms(stretches, torch.zeros_like(x[:1]))
    if last is None:  # two scores that each change by 1 change their gap by sqrt(2)
        outputs = h.reshape(1, -1).shape[1]
        return norms, torch.full(
            (outputs, outputs), 2**0.5 if outputs > 1 else 1.0, dtype=torch.float64, device=x.device
        )
    rows = _write_out_by_rows(last, h).double()
    sizes = norm(rows)
    differences = (
        sizes[:, None] if len(rows) == 1 else torch.stack([norm(row - rows) for row in rows])
    )
    if _is_written_out_exactly(last):
        return norms, _ROUNDING * differences
    # Rows of several layers are rounded sums, and their difference may consist of rounding.
    errors = multiply_absolute(last, h).row_errors
    return norms, _ROUNDING * differences + (errors[:, None] + errors)


def _list_norms(
    stretches: list[tuple[bool, list[nn.Module]]], h: Tensor
) -> tuple[list[float], Tensor]:
    """Bound the norms of stretches on samples like h, (1, ...); and what they make of h."""
    norms = []
    with torch.no_grad():
        for linear, part in stretches:
            if linear:
                norms.append(operator_norm(part, h))
            else:
                starts = [run_layers(part[:index], h) for index in range(len(part))]
                norms.append(math.prod(map(kink_constant, part, starts)))
            h = run_layers(part, h)
    return norms, h


def stretches_of(layers: list[nn.Module]) -> list[tuple[bool, list[nn.Module]]]:
    """Group consecutive linear and consecutive nonlinear layers; each with whether it is linear."""
    return [(linear, list(part)) for linear, part in groupby(layers, is_linear)]


def is_linear(layer: nn.Module) -> bool:
    """Whether a layer is linear up to its biases."""
    return isinstance(layer, LINEAR)


def run_layers(layers: list[nn.Module], x: Tensor) -> Tensor:
    """Apply layers one after the other."""
    for layer in layers:
        x = layer(x)
    return x


def norm(vectors: Tensor) -> Tensor:
    """Compute Euclidean norms over the last dimension, whatever the size of its entries."""
    # Rescaled first, as squares of 1e-200 would vanish.
    largest = vectors.abs().amax(-1, keepdim=True)
    unit = vectors / torch.where(largest > 0, largest, 1.0)
    # The smallest numbers have no digits that could be rounded down.
    return torch.mul(unit.norm(dim=-1), largest[..., 0]) + _LEAST * (largest[..., 0] > 0)


def operator_norm(layers: list[nn.Module], x: Tensor) -> float:
    """Bound the norm of a chain of linear layers on x, (1, ...), or the product of their norms."""
    inputs, outputs = x.numel(), run_layers(layers, x).numel()
    if min(inputs, outputs) <= _LARGEST_SIDE and inputs * outputs <= LARGEST_MATRIX:
        matrix = (
            _write_out_by_rows(layers, x) if outputs <= inputs else _write_out_by_columns(layers, x)
        )
        exact = _is_written_out_exactly(layers)
        return _matrix_norm(matrix) + (0.0 if exact else multiply_absolute(layers, x).error)
    if len(layers) > 1:
        factors = []
        for layer in layers:
            factors.append(operator_norm([layer], x))
            x = layer(x)
        return multiply_norms(
            factors[:-1], torch.tensor(factors[-1:], dtype=torch.float64, device="cpu")
        ).item()
    (layer,) = layers
    if isinstance(layer, (Moved, nn.Identity)):
        return 1.0
    if isinstance(layer, Scaled):
        size = layer.weight.abs().max().item()
        return max(size, SMALLEST_NORMAL) * _ROUNDING if size > 0 else 0.0
    if isinstance(layer, nn.Linear):
        return _matrix_norm(layer.weight if outputs <= inputs else layer.weight.T)
    if isinstance(layer, nn.Conv2d) and layer.padding_mode == "zeros":
        return _bound_by_fourier(layer)
    if isinstance(layer, nn.AvgPool2d) and layer.divisor_override is None:
        windows = zip(_spread(layer.kernel_size), _spread(layer.stride), strict=True)
        if all(stride >= size for size, stride in windows):
            return 1.0  # means over windows that do not overlap shrink distances
    raise ModelError(
        f"{layer} on inputs of shape {tuple(x.shape[1:])} is too large for an exact norm, and no"
        " bound is known."
    )


def _matrix_norm(matrix: Tensor) -> float:
    """Bound the largest singular value of a matrix, whatever the size of its entries."""
    largest = matrix.abs().max().item()
    if largest == 0 or not math.isfinite(largest):
        return 0.0 if largest == 0 else math.inf
    matrix = matrix / largest  # or the product would under- or overflow
    try:
        square = max(torch.linalg.eigvalsh(matrix @ matrix.T)[-1].item(), 0.0)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # LAPACK did not converge
        square = matrix.square().sum().item()
    return largest * math.sqrt(square) * _ROUNDING + _LEAST


def _is_written_out_exactly(layers: list[nn.Module]) -> bool:
    """Whether the matrix of layers is the weight of one of them, and so no rounded product."""
    acting = [layer for layer in layers if not isinstance(layer, (Moved, nn.Identity))]
    return len(acting) <= 1 and all(isinstance(layer, nn.Linear) for layer in acting)


def _write_out_by_rows(layers: list[nn.Module], x: Tensor) -> Tensor:
    """Write out the matrix (outputs, inputs) of a linear map, by gradients."""
    with torch.enable_grad():
        start = torch.zeros_like(x, requires_grad=True)
        z = run_layers(layers, start).flatten()
        one_hot = torch.eye(len(z), dtype=z.dtype, device=z.device)
        return differentiate_each(z, [start], one_hot)[0].flatten(1)


def _write_out_by_columns(layers: list[nn.Module], x: Tensor) -> Tensor:
    """Write out the matrix (inputs, outputs) of a linear map, by its values on unit vectors."""
    units = torch.eye(x.numel(), dtype=x.dtype, device=x.device).reshape(-1, *x.shape[1:])
    with torch.no_grad():
        # Copies without biases, since small values would be lost in rounding beside large biases.
        layers = [without_biases(layer) for layer in layers]
        return torch.cat([run_layers(layers, part) for part in units.split(256)]).flatten(1)


def _bound_by_fourier(layer: nn.Conv2d) -> float:
    """Bound the norm of a convolution on inputs of any size by that of its Fourier symbol.

    Between the points of a grid of N frequencies a trigonometric polynomial of degree n grows by at
    most 1 / cos(pi n / N) (Duffin and Schaeffer 1937). Strides and zero padding only leave outputs
    or inputs out.
    """
    kernel = layer.weight.reshape(layer.groups, -1, *layer.weight.shape[1:])
    size = max(_LEAST_FREQUENCIES, 8 * max(layer.kernel_size))
    largest = kernel.abs().max().item()
    if largest == 0 or not math.isfinite(largest):
        return 0.0 if largest == 0 else math.inf
    symbol = torch.fft.fft2(kernel.double() / largest, s=(size, size)).permute(0, 3, 4, 1, 2)
    growth = math.prod(1 / math.cos(math.pi * (k - 1) / 2 / size) for k in layer.kernel_size)
    norms = [torch.linalg.matrix_norm(part, 2).max().item() for part in symbol.flatten(0, 1)]
    return float(max(norms) * growth * _ROUNDING * largest + _LEAST)


def _spread(value: Any, dimensions: int = 2) -> tuple[int, ...]:
    """Spread a size that may stand for all dimensions over them."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * dimensions


def kink_constant(layer: nn.Module, x: Tensor) -> float:
    """Bound the Lipschitz constant of a nonlinear layer on samples like x, (1, ...)."""
    if isinstance(layer, Branches):
        of_parts = [_list_norms(stretches_of([*part]), x)[0] for part in layer.parts]
        ones = torch.ones(1, dtype=torch.float64, device="cpu")
        grown = [multiply_norms(norms, ones).item() for norms in of_parts]
        return _ROUNDING * (sum(grown) if layer.joined == "add" else math.hypot(*grown))
    if isinstance(layer, nn.LeakyReLU):
        return max(1.0, abs(layer.negative_slope))
    if isinstance(layer, nn.PReLU):
        return layer.weight.abs().max().clamp(min=1.0).item()
    if isinstance(layer, (nn.MaxPool1d, nn.MaxPool2d)):
        dimensions = 1 if isinstance(layer, nn.MaxPool1d) else 2
        given = (layer.kernel_size, layer.stride, layer.dilation)
        sides = zip(*(_spread(value, dimensions) for value in given), strict=True)
        windows = [k if d > 1 else math.ceil(k / s) for k, s, d in sides]
        return math.sqrt(math.prod(windows))
    return 1.0

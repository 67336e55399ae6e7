"""Which layer an operation of a traced net is: modules by their type, functions by their name."""

import copy
import math
import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from ..errors import ModelError
from .layers import Moved, Scaled
from .products import SMALLEST_NORMAL

_DROPOUT_LAYERS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
_RESHAPING = (nn.Flatten, nn.Unflatten)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
KINKS = (nn.ReLU, nn.LeakyReLU, nn.PReLU)
"""Layers that are linear on both sides of 0, unit by unit."""
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d)
LINEAR = (
    nn.Linear, *_CONVOLUTIONS,
    nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    nn.Identity, Moved, Scaled,
)  # fmt: skip
"""Layers that are linear up to biases."""
_KNOWN = (
    *KINKS, *LINEAR, *_BATCH_NORMS, *_DROPOUT_LAYERS, *_RESHAPING,
    nn.ReLU6, nn.Hardtanh, nn.Tanh, nn.MaxPool1d, nn.MaxPool2d,
)  # fmt: skip
"""Layers with a Lipschitz constant; any other one, and so any new one, is refused."""
_CALLS = {
    F.relu: nn.ReLU, F.relu_: nn.ReLU, torch.relu: nn.ReLU, torch.relu_: nn.ReLU,
    "relu": nn.ReLU, "relu_": nn.ReLU, F.relu6: nn.ReLU6, F.hardtanh: nn.Hardtanh,
    F.leaky_relu: nn.LeakyReLU, F.leaky_relu_: nn.LeakyReLU,
    torch.tanh: nn.Tanh, F.tanh: nn.Tanh, "tanh": nn.Tanh, "tanh_": nn.Tanh,
    F.max_pool1d: nn.MaxPool1d, F.max_pool2d: nn.MaxPool2d,
    F.avg_pool1d: nn.AvgPool1d, F.avg_pool2d: nn.AvgPool2d,
    F.adaptive_avg_pool1d: nn.AdaptiveAvgPool1d, F.adaptive_avg_pool2d: nn.AdaptiveAvgPool2d,
}  # fmt: skip
"""Functions, and the modules that take the same arguments in the same order."""
_ABSOLUTES = (torch.abs, torch.absolute, operator.abs, "abs", "absolute", "abs_")
_PRELUS = (F.prelu, torch.prelu)
_MEANS = (torch.mean, "mean")
_PRODUCTS = (operator.matmul, torch.matmul, torch.mm, "matmul", "mm")
RESHAPING_CALLS = (
    torch.flatten, torch.reshape, torch.squeeze, torch.unsqueeze,
    "flatten", "reshape", "view", "squeeze", "unsqueeze", "unflatten", "view_as", "reshape_as",
)  # fmt: skip
_MOVES = (
    torch.permute, torch.transpose, torch.flip, operator.getitem, torch.narrow, torch.select,
    "permute", "transpose", "flip", "narrow", "select", "t", torch.t,
)  # fmt: skip
_IDENTITY_CALLS = ("contiguous", "clone")
CASTS = ("double", "float", "half", "bfloat16", "to", "type", "type_as")
_DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, torch.dropout)
ARITHMETIC = {
    operator.add: "add", operator.iadd: "add", torch.add: "add", "add": "add", "add_": "add",
    operator.sub: "sub", operator.isub: "sub", torch.sub: "sub", "sub": "sub", "sub_": "sub",
    operator.mul: "mul", operator.imul: "mul", torch.mul: "mul", "mul": "mul", "mul_": "mul",
    operator.truediv: "div", operator.itruediv: "div", torch.div: "div", "div": "div",
    operator.neg: "neg", torch.neg: "neg", "neg": "neg",
    torch.cat: "cat", torch.concat: "cat",
}  # fmt: skip
_MOST_ARGUMENTS = 5
"""Arguments in whose order functions and modules agree: max-pools differ in later ones."""
_NO_OPTIONS = ("input", "inplace", "return_indices")
_INSTEAD = {
    "MaxPool": "an average pool or a convolution with stride",
    "Norm": "BatchNorm with running statistics",
    "oftmax": "the scores without a softmax, which changes no class",
}
"""What to use instead of a layer, by a part of its name; for others see `refuse`."""


def refuse(what: str, lacks: str) -> ModelError:
    """The error for an operation that lacks something, which says what to use instead."""
    instead = next(
        (advice for part, advice in _INSTEAD.items() if part in what),
        "ReLU, LeakyReLU or the absolute value between linear layers",
    )
    return ModelError(f"{what} has no {lacks}. Use {instead}.")


def describe(node: fx.Node, modules: dict[str, nn.Module]) -> str:
    """Name an operation as the caller wrote it."""
    if node.op == "call_module":
        module = modules[str(node.target)]
        named = type(module).__name__ if list(module.children()) else module  # not all it holds
        return f"The layer {node.target!r}, {named},"
    name = node.target if isinstance(node.target, str) else node.target.__name__
    return f"The operation {name!r} in the model's forward"


def make_layer(node: fx.Node, module: nn.Module | None, values: Tensor, said: str) -> nn.Module:
    """The layer that a node applies to values, (2, ...), or a Sequential of several.

    module : what it calls, if that is one. The nodes of a trace hold their values as
    `meta["value"]`. Raises ModelError without a rule.
    """
    shape = node.meta["value"].shape[1:]
    if module is not None:
        return _take_layer(module, values, shape, said)
    args = [_read_value(a) for a in node.args]
    named = {key: _read_value(value) for key, value in node.kwargs.items()}
    call = node.target
    if call in RESHAPING_CALLS:
        return Moved(shape)
    if call in _MOVES:
        return _move(node, values, shape, said)
    if call in _ABSOLUTES:
        return nn.LeakyReLU(-1.0)
    if call in _PRELUS and isinstance(args[-1], Tensor):
        slopes = args[-1]
        layer = nn.PReLU(slopes.numel(), device=slopes.device, dtype=slopes.dtype)
        layer.weight.data.copy_(slopes.flatten())
        return layer
    if call in _CALLS and len(args) <= _MOST_ARGUMENTS:
        options = {key: value for key, value in named.items() if key not in _NO_OPTIONS}
        try:
            return _without_in_place(_CALLS[call](*args[1:], **options))
        except TypeError:  # an argument that the layer has not
            raise refuse(said, "known Lipschitz constant") from None
    trains = args[2] if len(args) > 2 else named.get("training", True)
    # In float64, from which no cast between floating types leads away.
    cast = call in CASTS and node.meta["value"].dtype == torch.float64
    if cast or call in _IDENTITY_CALLS or (call in _DROPOUTS and not trains):
        return nn.Identity()
    if call is F.linear and values.ndim > 1:
        return _make_linear(node)
    matrix = args[-1] if call in _PRODUCTS else None
    if isinstance(matrix, Tensor) and matrix.ndim == 2 and values.ndim > 1:
        return _as_linear(matrix.T, None)
    if call in _MEANS and set(named) <= {"dim", "keepdim"}:
        dims = args[1] if len(args) > 1 else named.get("dim")
        dims = [d % values.ndim for d in ([dims] if isinstance(dims, int) else dims or [0])]
        if 0 not in dims:
            return _make_mean(dims, values[0], shape)
    constants = [a for a in args if isinstance(a, (int, float, Tensor))]  # all but the samples
    if ARITHMETIC.get(call, "cat") != "cat" and not named and len(constants) == len(args) - 1:
        return calculate(ARITHMETIC[call], args, values[:1])
    raise refuse(said, "known Lipschitz constant")


def _read_value(argument: Any) -> Any:
    """A constant, the tensor of a parameter, moved at most, or None for any other node."""
    if not isinstance(argument, fx.Node):
        return argument
    value = argument.meta["value"] if _is_constant(argument) else None
    # Tensors that are no parameters have kept their type, and casts follow in the net alone.
    return value.double() if isinstance(value, Tensor) else value


def _is_constant(node: fx.Node) -> bool:
    """Whether a node is a parameter, moved at most: what is computed of one has rounding."""
    moves = node.target in (*_MOVES, *RESHAPING_CALLS, *_IDENTITY_CALLS, "detach")
    moves = moves or (node.target is getattr and node.args[1] == "T")
    inputs = node.all_input_nodes
    if node.target in CASTS and node.meta["value"].dtype == torch.float64:
        moves, inputs = True, inputs[:1]
    return node.op == "get_attr" or (moves and all(map(_is_constant, inputs)))


def _make_linear(node: fx.Node) -> nn.Linear:
    """The layer of a call of F.linear."""
    given = dict(zip(("input", "weight", "bias"), node.args, strict=False)) | node.kwargs
    weight, bias = _read_value(given["weight"]), _read_value(given.get("bias"))
    if isinstance(weight, Tensor) and (bias is None) == (given.get("bias") is None):
        return _as_linear(weight, bias)
    raise ModelError(
        "A linear layer computes its weight or bias from other parameters. For certified radii"
        " make them plain: torch.nn.utils.parametrize.remove_parametrizations."
    )


def _take_layer(layer: nn.Module, values: Tensor, shape: torch.Size, said: str) -> nn.Module:
    """What a layer does, by its exact type, as a subclass may have another forward."""
    kind = type(layer)
    least = len(getattr(layer, "stride", "")) + 2 if kind in _CONVOLUTIONS else 2
    if values.ndim < least and not isinstance(layer, KINKS):
        raise ModelError(f"{said} takes the samples of a batch for channels of one.")
    by_batch = isinstance(layer, _BATCH_NORMS) and (layer.running_var is None or layer.training)
    if kind in _KNOWN and not by_batch and not (kind in _DROPOUT_LAYERS and layer.training):
        if kind in _RESHAPING:
            return Moved(shape)
        if isinstance(layer, _BATCH_NORMS):
            return _write_batch_norm(layer, [1] * (len(shape) - 1))
        return nn.Identity() if kind in _DROPOUT_LAYERS else _without_in_place(layer)
    raise refuse(said, "known Lipschitz constant")


def _without_in_place(layer: nn.Module) -> nn.Module:
    """A layer that leaves its inputs as they are, with the same parameters."""
    layer = copy.copy(layer)
    if hasattr(layer, "inplace"):
        setattr(layer, "inplace", False)  # noqa: B010
    return layer


def _write_batch_norm(layer: nn.BatchNorm1d | nn.BatchNorm2d, ones: list[int]) -> nn.Sequential:
    """A batch norm as what it subtracts from each channel, and what it makes of the difference."""
    assert layer.running_mean is not None
    assert layer.running_var is not None
    scale = (layer.running_var + layer.eps).rsqrt()
    given: Any = layer.bias
    bias = torch.zeros_like(scale) if given is None else given.detach()
    if layer.weight is not None:
        # No scale vanishes but those of weight 0.
        weight, least = layer.weight.detach(), 2.0**-1074
        scale = (
            torch.where(weight == 0, 0.0, (scale * weight.abs()).clamp(min=least)) * weight.sign()
        )
    mean, scale, bias = (part.reshape(-1, *ones) for part in (layer.running_mean, scale, bias))
    return nn.Sequential(Scaled(torch.ones_like(mean), -mean), Scaled(scale, bias))


def _make_mean(dims: list[int], sample: Tensor, shape: torch.Size) -> nn.Sequential:
    """The mean over dimensions of a batch: what is averaged is moved to the end."""
    kept = [d for d in range(sample.ndim) if d + 1 not in dims]
    places = torch.arange(sample.numel(), device=sample.device).reshape(sample.shape)
    index = places.permute(*kept, *(d - 1 for d in dims)).flatten()
    together = Moved((math.prod(sample.shape[d] for d in kept), -1), index)
    return nn.Sequential(together, nn.AdaptiveAvgPool1d(1), Moved(shape))


def _move(node: fx.Node, values: Tensor, shape: torch.Size, said: str) -> Moved:
    """Where an operation that only moves numbers puts those of a sample."""
    places = torch.arange(values.numel(), device=values.device).reshape(values.shape)
    if len(node.all_input_nodes) > 1 or node.args[:1] != (node.all_input_nodes[0],):
        raise refuse(said, "known Lipschitz constant")
    call = getattr(Tensor, node.target) if isinstance(node.target, str) else node.target
    first, second = call(places, *node.args[1:], **node.kwargs).reshape(2, -1)
    if not (second - first == values[0].numel()).all():
        raise ModelError(f"{said} mixes samples. Certified radii need them one by one.")
    if len(first.unique()) < len(first):
        raise refuse(said, "known Lipschitz constant")
    return Moved(shape, first)


def _as_linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A layer of a weight and a bias that a forward uses by hand."""
    like = {"device": weight.device, "dtype": weight.dtype}
    layer = nn.Linear(weight.shape[1], len(weight), bias is not None, **like)
    layer.weight.data.copy_(weight)
    if bias is not None:
        layer.bias.data.copy_(bias)
    return layer


def calculate(name: str, args: list[Any], like: Tensor) -> Scaled:
    """Add, subtract, multiply or divide values like (1, ...), None among `args`, by a constant."""
    first = len(args) == 2 and args[1] is None
    constant = next((a for a in args if a is not None), -1.0)
    constant = torch.as_tensor(constant, dtype=torch.float64, device=like.device).detach()
    nothing, one = torch.zeros_like(constant), torch.ones_like(constant)
    fits = torch.broadcast_shapes(constant.shape, like.shape) == like.shape
    small = (1 / constant).abs() < SMALLEST_NORMAL  # and has lost digits
    if not fits or (name == "div" and (first or small.any() or not constant.all())):
        raise refuse(f"The operation {name!r} of activations and a constant", "rule")
    if name == "sub":
        return Scaled(-one, constant) if first else Scaled(one, -constant)
    if name == "add":
        return Scaled(one, constant)
    return Scaled(1 / constant if name == "div" else constant, nothing)

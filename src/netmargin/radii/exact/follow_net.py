"""Following the operations of a net: affine stretches, and the kinks between them."""

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.fx.passes.shape_prop import ShapeProp

from ...errors import ModelError
from ...nets.casts import following_casts
from .affine import Affine, add, apply_linear, multiply, reshape, start_stretch

_LINEAR = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.AvgPool1d, nn.AvgPool2d,
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.BatchNorm1d, nn.BatchNorm2d,
)  # fmt: skip
_IDENTITIES = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
_RESHAPING = (nn.Flatten, nn.Unflatten)
_RESHAPING_CALLS = (
    torch.flatten, torch.reshape, torch.squeeze, torch.unsqueeze,
    "flatten", "reshape", "view", "squeeze", "unsqueeze", "unflatten", "view_as", "reshape_as",
)  # fmt: skip
_IDENTITY_CALLS = ("contiguous", "clone")
_CASTS = ("double", "float", "half", "bfloat16", "to", "type", "type_as")
_DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, torch.dropout)
_RELUS = (F.relu, F.relu_, torch.relu, torch.relu_, "relu", "relu_")
_PRELUS = (F.prelu, torch.prelu)
_ABSOLUTES = (torch.abs, torch.absolute, operator.abs, "abs", "absolute", "abs_")
_ARITHMETIC = {
    operator.add: "add", operator.iadd: "add", torch.add: "add", "add": "add", "add_": "add",
    operator.sub: "sub", operator.isub: "sub", torch.sub: "sub", "sub": "sub", "sub_": "sub",
    operator.mul: "mul", operator.imul: "mul", torch.mul: "mul", "mul": "mul", "mul_": "mul",
    operator.truediv: "div", operator.itruediv: "div", torch.div: "div", "div": "div",
    operator.neg: "neg", torch.neg: "neg", "neg": "neg",
}  # fmt: skip
_INSTEAD = {
    "MaxPool": "an average pool or a convolution with stride",
    "Norm": "BatchNorm with running statistics",
    "oftmax": "the scores without a softmax, which changes no class",
}
"""What to use instead of a layer, by a part of its name; for others see `_refuse`."""

Rule = Tensor | Callable[[Affine], Affine]
"""The slopes of a kink, one or one per channel, or what an operation does to an affine map."""


def follow_net(net: nn.Module, x: Tensor) -> tuple[list[Affine], list[np.ndarray]]:
    """Follow the operations of a net: K + 1 affine stretches, and the slopes of K kinks.

    Raises ModelError where the net cannot be traced, is no chain, or does what no rule is for.
    """
    for name, module in net.named_modules():
        if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
            raise ModelError(
                f"{name or 'The model'} has hooks or a forward of its own object, which may change"
                " what its class computes. Remove them (torch.nn.utils.parametrize.remove_"
                "parametrizations or remove_weight_norm for normalized weights)."
            )
    try:
        graph = fx.symbolic_trace(net)
    except Exception as error:  # the forward is the caller's code, and may raise anything
        raise ModelError(
            f"torch.fx cannot trace the model: {error}. Exact radii need a forward without"
            " branches on the values of its inputs."
        ) from error
    # Two samples show which operations keep samples apart.
    pair = torch.cat([x[:1], x[:1]])
    with following_casts(net):
        ShapeProp(graph).propagate(pair)
    return _Follower(graph, pair).follow()


def _shape(node: fx.Node) -> torch.Size | None:
    """The shape of the tensor of a node, for two samples; None for what is no tensor."""
    return getattr(node.meta.get("tensor_meta"), "shape", None)


class _Follower:
    """One walk along the nodes of a traced net, with the affine map so far."""

    def __init__(self, graph: fx.GraphModule, x: Tensor):
        self.graph, self.x = graph, x
        self.modules = dict(graph.named_modules())
        self.done: list[Affine] = []
        self.slopes: list[np.ndarray] = []
        self.last: fx.Node | None = None

    def follow(self) -> tuple[list[Affine], list[np.ndarray]]:
        """Apply the rule of every node that depends on the samples."""
        for node in self.graph.graph.nodes:
            if node.op == "placeholder":
                self._start(node)
            elif node.op == "output":
                self._require_last(node)
            elif _shape(node) is not None and self._depends_on_samples(node):
                self._apply(node)
        return [*self.done, self.state], self.slopes

    def _start(self, node: fx.Node) -> None:
        if self.last is not None:
            if _shape(node) is not None:
                raise ModelError("The model takes several inputs. Exact radii need one.")
            return  # an argument with a default
        self.last, self.origins = node, {node}
        self.state = start_stretch(self.x[:1])

    def _depends_on_samples(self, node: fx.Node) -> bool:
        """Whether a node's values come from the samples; those that do stand in `origins`."""
        if not self.origins.isdisjoint(node.all_input_nodes):
            self.origins.add(node)
            return True
        return False

    def _require_last(self, node: fx.Node) -> None:
        if self.last not in node.all_input_nodes or len(node.all_input_nodes) != 1:
            raise ModelError(
                "The model is no chain of layers: what it returns is not one tensor of scores."
            )

    def _apply(self, node: fx.Node) -> None:
        """Apply one operation to the last values."""
        shape = _shape(node)
        assert shape is not None  # as of all nodes that come here
        inputs = [n for n in node.all_input_nodes if n in self.origins and _shape(n) is not None]
        # In y.view_as(x) an earlier value gives its shape alone, which makes no branch.
        reshapes = node.target in _RESHAPING_CALLS
        if inputs != [self.last] and not (reshapes and inputs[0] is self.last):
            raise ModelError(
                f"The model is no chain of layers: {_describe(node, self.modules)} does not take"
                " the values of the layer before it alone. Exact radii know no skip connections,"
                " branches or products of activations."
            )
        if shape[:1] != (2,):
            raise ModelError(
                f"{_describe(node, self.modules)} mixes samples. Exact radii need layers that treat"
                " samples one by one, such as Flatten(1)."
            )
        rule = self._look_up(node, partial(reshape, shape=shape[1:]))
        if isinstance(rule, Tensor):
            self.done.append(self.state)
            self.slopes.append(_spread_slopes(rule, shape[1:]))
            self.state = start_stretch(self.state.offset)
        else:
            self.state = rule(self.state)
        self.last = node

    def _look_up(self, node: fx.Node, reshaped: Rule) -> Rule:
        """The rule of a node; `reshaped` is that of those which only reshape."""
        if node.op == "call_module":
            return _look_up_layer(self.modules[str(node.target)], str(node.target), reshaped)
        args = [self._value(a) for a in node.args]
        named = {key: self._value(value) for key, value in node.kwargs.items()}
        call = node.target
        if call in _RESHAPING_CALLS:
            return reshaped
        if call in _RELUS:
            return torch.tensor(0.0, device="cpu")
        if call in _ABSOLUTES:
            return torch.tensor(-1.0, device="cpu")
        if call in (F.leaky_relu, F.leaky_relu_):
            slope = args[1] if len(args) > 1 else named.get("negative_slope", 0.01)
            return torch.tensor(float(slope), dtype=torch.float64, device="cpu")
        if call in _PRELUS and isinstance(args[-1], Tensor):
            return args[-1]
        trains = args[2] if len(args) > 2 else named.get("training", True)
        # In float64, from which no cast between floating types leads away.
        cast = call in _CASTS and node.meta["tensor_meta"].dtype == torch.float64
        if cast or call in _IDENTITY_CALLS or (call in _DROPOUTS and not trains):
            return _keep
        if call is F.linear:
            weight = args[1] if len(args) > 1 else named.get("weight")
            bias = args[2] if len(args) > 2 else named.get("bias")
            # Tensors that are computed have no value here, as those of samples.
            computed = sum(isinstance(a, fx.Node) for a in [*node.args, *node.kwargs.values()])
            given = 1 + (bias is not None)
            if isinstance(weight, Tensor) and computed == 1 + given:
                return partial(apply_linear, _make_linear(weight, bias))
            raise ModelError(
                "A linear layer computes its weight or bias from other parameters. For exact radii"
                " make them plain: torch.nn.utils.parametrize.remove_parametrizations."
            )
        if call in _ARITHMETIC and not named and _are_constants(args):
            return partial(_calculate, _ARITHMETIC[call], args)
        raise _refuse(_describe(node, self.modules))

    def _value(self, argument: Any) -> Any:
        """A constant, a parameter's tensor, or None for the values of a node that has samples."""
        if not isinstance(argument, fx.Node):
            return argument
        if argument.op == "get_attr":
            return operator.attrgetter(str(argument.target))(self.graph)
        return None


def _spread_slopes(slopes: Tensor, shape: torch.Size) -> np.ndarray:
    """The slope of each unit of a sample of this shape, flat: one for all, or one per channel."""
    of_channels = slopes.double().reshape(-1, *[1] * (len(shape) - 1)) if shape else slopes
    return of_channels.expand(shape).flatten().cpu().numpy()


def _keep(state: Affine) -> Affine:
    """The rule of what changes no value."""
    return state


def _look_up_layer(layer: nn.Module, name: str, reshaped: Rule) -> Rule:
    """The rule of a layer by its exact type, as a subclass may have another forward."""
    kind = type(layer)
    if kind is nn.ReLU:
        return torch.tensor(0.0, device="cpu")
    if kind is nn.LeakyReLU:
        return torch.tensor(layer.negative_slope, dtype=torch.float64, device="cpu")
    if isinstance(layer, nn.PReLU) and kind is nn.PReLU:
        return layer.weight.detach()
    if kind in _IDENTITIES:
        return _keep
    if kind in _RESHAPING:
        return reshaped
    if kind in _LINEAR and not (
        isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)) and layer.running_var is None
    ):
        return partial(apply_linear, layer)
    raise _refuse(f"The layer {name!r}, {layer}")


def _refuse(what: str) -> ModelError:
    """The error for an operation without a rule, which says what to use instead."""
    instead = next(
        (advice for part, advice in _INSTEAD.items() if part in what),
        "ReLU, LeakyReLU or the absolute value between linear layers",
    )
    return ModelError(f"{what} has no rule for exact radii. Use {instead}.")


def _describe(node: fx.Node, modules: dict[str, nn.Module]) -> str:
    """Name an operation as the caller wrote it."""
    if node.op == "call_module":
        return f"The layer {node.target!r}, {modules[str(node.target)]},"
    name = node.target if isinstance(node.target, str) else node.target.__name__
    return f"The operation {name!r} in the model's forward"


def _are_constants(args: list[Any]) -> bool:
    """Whether all arguments but one, that of the samples, are numbers or tensors."""
    constants = [a for a in args if isinstance(a, (int, float, Tensor))]
    return len(constants) == len(args) - 1


def _make_linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A layer of a weight and a bias that a forward uses by hand."""
    layer = nn.Linear(weight.shape[1], len(weight), bias is not None).to(weight)
    layer.weight.data.copy_(weight)
    if bias is not None:
        layer.bias.data.copy_(bias)
    return layer


def _calculate(name: str, args: Sequence[Any], state: Affine) -> Affine:
    """Add, subtract, multiply by or divide by constants; None stands for the values of samples."""
    constant_first = len(args) == 2 and args[1] is None
    if name == "neg":
        return multiply(state, torch.tensor(-1.0, device="cpu").double())
    shape = state.offset.shape
    constant = next(a for a in args if a is not None)
    constant = torch.as_tensor(constant, dtype=torch.float64, device=state.offset.device)
    if torch.broadcast_shapes(constant.shape, shape) != shape or (name == "div" and constant_first):
        raise _refuse(f"The operation {name!r} of activations and a constant")
    if name == "add":
        return add(state, constant)
    if name == "sub" and constant_first:
        return add(multiply(state, torch.tensor(-1.0, device="cpu").double()), constant)
    if name == "sub":
        return add(state, -constant)
    return multiply(state, constant if name == "mul" else 1 / constant)

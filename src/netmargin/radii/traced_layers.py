"""The layers of a net, read off its forward pass: a chain of modules of known kinds."""

import operator
from functools import partialmethod
from typing import Any

import torch
from torch import Tensor, fx, nn

from ..errors import ModelError
from ..nets.casts import following_casts
from ..nets.named_scores import read_outputs
from ..nets.score_outputs import tensor_of_scores
from .layer_rules import ARITHMETIC, CASTS, RESHAPING_CALLS, calculate, describe, make_layer, refuse
from .layers import Branches, Moved, NamedLayer

_SHAPES = ("size", "dim", "ndimension", "numel", "nelement")
_ATTRIBUTES = ("shape", "ndim", "dtype", "device")
_SIGMOIDS = (torch.sigmoid, torch.nn.functional.sigmoid, "sigmoid")
_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv)


def trace_layers(net: nn.Module, x: Tensor) -> list[NamedLayer]:
    """The layers that a float64 net in evaluation mode applies to samples like x, (N, ...), one
    after the other, none of them in place.

    The net is traced by torch.fx, which refuses what branches on values: what comes out is the net
    for all inputs, unless its forward changes a state. Raises ModelError for a net that cannot be
    traced, is no chain of layers and branches, or has a layer without a known Lipschitz constant.
    """
    for name, module in net.named_modules():
        if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
            raise ModelError(
                f"{name or 'The model'} has hooks or a forward of its own object, which may change"
                " what its class computes. Remove them (torch.nn.utils.parametrize.remove_"
                "parametrizations or remove_weight_norm for normalized weights)."
            )
    try:
        traced = fx.GraphModule(net, _Tracer().trace(net))
        values = _Values(traced)
        values.extra_traceback = False  # which would end up in the message
        with following_casts(net), torch.no_grad():
            # Two samples show which operations keep samples apart.
            pair = torch.cat([x[:1], x[:1]])
            outputs = read_outputs(net, lambda: values.run(pair))
    except Exception as error:  # the forward is the caller's code, and may raise anything
        raise ModelError(
            f"torch.fx cannot trace the model: {error}. Certified radii need a forward without"
            " branches on the values of its inputs."
        ) from error
    return _Reader(traced).read(tensor_of_scores(outputs, 2))


class _Proxy(fx.Proxy):
    """A value in a trace, where `y += z` is not `y = y + z`."""

    def _record(self, call: Any, other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", call, (self, other), {})

    __iadd__ = partialmethod(_record, operator.iadd)
    __isub__ = partialmethod(_record, operator.isub)
    __imul__ = partialmethod(_record, operator.imul)
    __itruediv__ = partialmethod(_record, operator.itruediv)


class _Tracer(fx.Tracer):
    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)


class _Values(fx.Interpreter):
    """Runs a trace, and keeps the value of every node."""

    def run_node(self, n: fx.Node) -> Any:
        n.meta["value"] = super().run_node(n)
        return n.meta["value"]


def _shape(node: fx.Node) -> torch.Size | None:
    """The shape of the tensor of a node, for two samples; None for what is no tensor."""
    return getattr(node.meta["value"], "shape", None)


class _Reader:
    """One walk along the nodes of a trace."""

    def __init__(self, traced: fx.GraphModule) -> None:
        self.traced = traced
        self.modules = dict(traced.named_modules())
        # Of each value that comes from the samples: the one before it, and the layer between both.
        self.steps: dict[fx.Node, tuple[fx.Node | None, NamedLayer | None]] = {}

    def read(self, scores: Tensor) -> list[NamedLayer]:
        """The layers from the samples to the scores."""
        for node in self.traced.graph.nodes:
            if node.op == "placeholder":
                if self.steps and _shape(node) is not None:
                    raise ModelError("The model takes several inputs. Certified radii need one.")
                self.steps = self.steps or {node: (None, None)}
            elif node.op == "output":
                ends = [n for n in node.all_input_nodes if n.meta["value"] is scores]
            elif self._comes_from_samples(node):
                self.steps[node] = self._read(node)
        if not (ends and ends[0] in self.steps):
            raise ModelError(
                "The model is no chain of layers: what it returns is not one tensor of scores."
            )
        return self._list_between(None, ends[0])

    def _comes_from_samples(self, node: fx.Node) -> bool:
        """Whether values of a node come from the samples, and not their shape alone."""
        if node.target in _SHAPES or (node.target is getattr and node.args[1] in _ATTRIBUTES):
            return False
        # In y.view_as(x) and y.to(x), x gives its shape or type alone.
        like = node.target in (*RESHAPING_CALLS, *CASTS)
        return any(n in self.steps for n in node.all_input_nodes[: 1 if like else None])

    def _read(self, node: fx.Node) -> tuple[fx.Node, NamedLayer]:
        """The value before a node, and the layer between both."""
        said, shape = describe(node, self.modules), _shape(node)
        if shape is None:
            raise refuse(said, "known Lipschitz constant")
        if shape[:1] != (2,):
            raise ModelError(
                f"{said} mixes samples. Certified radii need layers that treat samples one by one,"
                " such as Flatten(1)."
            )
        inputs = [n for n in node.all_input_nodes if n in self.steps]
        if node.target in (*RESHAPING_CALLS, *CASTS):
            inputs = inputs[:1]
        self._require_own_memory(node, said)
        if len(inputs) > 1:
            return self._join(node, inputs, said)
        module = self.modules[str(node.target)] if node.op == "call_module" else None
        # A sigmoid that the caller's scores are read in front of hands on what it is given.
        sigmoid = isinstance(module, nn.Sigmoid) or node.target in _SIGMOIDS
        if sigmoid and node.meta["value"] is inputs[0].meta["value"]:
            return inputs[0], NamedLayer(said, nn.Identity())
        return inputs[0], NamedLayer(said, make_layer(node, module, inputs[0].meta["value"], said))

    def _require_own_memory(self, node: fx.Node, said: str) -> None:
        """Refuse an operation in place on values that others see as well."""
        while (changed := self._memory_of(node)) is not None:
            users = {user for user in changed.users if self._comes_from_samples(user)}
            if users != {node}:
                raise ModelError(f"{said} changes values in place that are used elsewhere as well.")
            node = changed

    def _memory_of(self, node: fx.Node) -> fx.Node | None:
        """The node whose memory a node changes or, once it has been read, may share."""
        module = self.modules.get(str(node.target)) if node.op == "call_module" else node
        name = getattr(node.target, "__name__", str(node.target))
        named = bool(node.kwargs.get("inplace", False)) or any(a is True for a in node.args)
        named = named or (module is node and name.endswith("_")) or node.target in _IN_PLACE
        layer = self.steps.get(node, (None, None))[1]
        shares = layer is not None and isinstance(layer.layer, (Moved, nn.Identity))
        changes = named or getattr(module, "inplace", False)
        return node.all_input_nodes[0] if changes or shares else None

    def _join(self, node: fx.Node, inputs: list[fx.Node], said: str) -> tuple[fx.Node, NamedLayer]:
        """The branches that meet in a node, and the value where they part."""
        kind = ARITHMETIC.get(node.target)
        shapes = {_shape(n) for n in inputs}
        adds = kind in ("add", "sub") and shapes == {_shape(node)} and node.args == (*inputs,)
        along = node.args[1:] == (1,) or node.kwargs == {"dim": 1}
        joins = kind == "cat" and node.args[0] == inputs and along
        if not (joins or (adds and not node.kwargs)):
            raise ModelError(
                f"The model is no chain of layers: {said} does not take the values of the layer"
                " before it alone. Certified radii know sums of branches, and no products."
            )
        paths = [self._list_before(n) for n in inputs]
        start = next(n for n in paths[0] if all(n in path for path in paths))
        chains = [self._list_between(start, n) for n in inputs]
        parts = [nn.Sequential(*(step.layer for step in chain)) for chain in chains]
        if kind == "sub":
            parts[1].append(calculate("neg", [None], inputs[1].meta["value"][:1]))
        return start, NamedLayer(said, Branches("cat" if joins else "add", parts))

    def _list_before(self, node: fx.Node) -> list[fx.Node]:
        """The values from a node back to the samples."""
        found = [node]
        while (before := self.steps[found[-1]][0]) is not None:
            found.append(before)
        return found

    def _list_between(self, start: fx.Node | None, end: fx.Node) -> list[NamedLayer]:
        """The layers from one value, or the samples, to another."""
        found = []
        for node in self._list_before(end):
            layer = self.steps[node][1]
            if node is start or layer is None:
                break
            parts = layer.layer if isinstance(layer.layer, nn.Sequential) else [layer.layer]
            found += [NamedLayer(layer.said, part) for part in reversed(parts)]
        return found[::-1]

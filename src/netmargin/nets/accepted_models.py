"""Models as callers give them: freed of their wrappers, or refused with what to give instead."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..errors import ModelError

_QUANTIZED = (
    "torch.ao.nn.quantized",
    "torch.ao.nn.intrinsic.quantized",
    "torch.nn.quantized",
    "torchao",
)
"""Packages whose modules hold integer weights, which are no parameters."""
_INSTEAD_OF_SHARDS = (
    "Give every process the whole net: torch.distributed.checkpoint.state_dict.get_model_state_dict"
    " with full_state_dict=True gives its weights, and split_samples divides the samples."
)


def check_model(model: Any) -> nn.Module:
    """The module that the caller gave, freed of `DataParallel` and its kin. Raises ModelError."""
    model = unwrap(model)
    if not isinstance(model, nn.Module):
        raise ModelError(f"The model must be a torch.nn.Module; {describe_other_thing(model)}")
    for name, module in model.named_modules():
        if reason := _why_no_module(module, f"its module {name!r}" if name else "the model"):
            raise ModelError(reason)
    for name, parameter in model.named_parameters():
        # Lazy parameters have no type yet; `device_and_dtype` refuses them.
        if is_lazy(parameter):
            continue
        if hasattr(parameter, "full_tensor"):
            raise ModelError(
                f"Sharded: of parameter {name!r} every process holds a part (fully_shard)."
                f" {_INSTEAD_OF_SHARDS}"
            )
        if parameter.is_complex():
            raise ModelError(
                f"Complex: parameter {name!r} is of type {parameter.dtype}. Hold both parts in one"
                " real parameter of shape (..., 2), and use torch.view_as_complex in forward."
            )
        if not parameter.is_floating_point():
            raise ModelError(
                f"Integer: parameter {name!r} is of type {parameter.dtype}. Give the float model"
                " that it was made from."
            )
    _leave_inference_mode(model)
    return model


def _leave_inference_mode(model: nn.Module) -> None:
    """Put ordinary tensors in place of those of inference mode, which nothing can train."""
    made: dict[int, Any] = {}
    with torch.inference_mode(False):
        for own in (held for m in model.modules() for held in (m._parameters, m._buffers)):
            for name, old in own.items():
                if old is not None and not is_lazy(old) and old.is_inference():
                    own[name] = copy.deepcopy(old, made)  # type: ignore[assignment]  # tied: once


def require_shapes(model: nn.Module) -> nn.Module:
    """The model; raises ModelError for one whose parameters hold no numbers yet."""
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        raise ModelError(
            "The model has lazy parameters without a shape yet. Run it once on a batch first."
        )
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ModelError(
            "Its parameters live on the 'meta' device. Materialize them first: model.to_empty(...)."
        )
    return model


def unwrap(model: Any) -> Any:
    """The module inside `DataParallel` and its kin and `torch.compile`; others as they are."""
    while True:
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        # A compiled module is known by its attribute: its class would take a slow import.
        elif isinstance(model, nn.Module) and "_orig_mod" in model._modules:
            model = model._modules["_orig_mod"]
        else:
            return model


def _why_no_module(module: nn.Module, where: str) -> str:
    """Why a module cannot be part of a net, or ''."""
    kind = type(module).__name__
    if isinstance(module, torch.jit.ScriptModule):
        return (
            f"TorchScript: {where} was scripted or traced. Give the Python module that it was made"
            " from, with the same weights (load_state_dict)."
        )
    if isinstance(module, torch.fx.GraphModule) and "train" in vars(module):  # of torch.export
        return (
            f"Exported: {where} is fixed in one mode and, mostly, one size of batch. Give the"
            " Python module that it was made from."
        )
    if type(module).__module__.startswith(_QUANTIZED):
        return f"Quantized: the weights of {where} ({kind}) are integers. Give its float model."
    if isinstance(module, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        return f"Parallel: {where} is a {kind}. Put the module that it holds in its place."
    # Known by its name: its own module takes a slow import.
    if kind == "FullyShardedDataParallel":
        return f"Sharded: {where} is a FullyShardedDataParallel. {_INSTEAD_OF_SHARDS}"
    return ""


def describe_other_thing(given: Any) -> str:
    """A sentence that names what was given in place of a module, and what to do instead."""
    kind = type(given).__name__
    if isinstance(given, type):
        return f"got the class {given.__name__}. Write {given.__name__}(...), with its arguments."
    if given is None:
        return "got None. Does the function that makes it return it?"
    if isinstance(given, (str, Path)):
        return (
            f"got {str(given)!r}. Build the model first, then load its weights:"
            f" netmargin.load_weights(model, {str(given)!r})."
        )
    if isinstance(given, Mapping) and given and all(isinstance(v, Tensor) for v in given.values()):
        return f"got a state dict ({kind}). Build the model first, then model.load_state_dict(...)."
    # Estimators are known by their methods, without an import of scikit-learn.
    if hasattr(given, "get_params") and hasattr(given, "fit"):
        return (
            f"got the scikit-learn estimator {kind}. Copy coef_ and intercept_ of a linear one into"
            " a torch.nn.Linear(..., dtype=torch.float64). Those of netmargin.estimators have the"
            " largest margin as margin_."
        )
    forms_of_data = (torch.utils.data.DataLoader, tuple, list, Mapping)
    if hasattr(given, "shape") or isinstance(given, forms_of_data):
        return f"got {kind}. The model comes first and the data second: measure(model, (X, y))."
    if callable(given):
        name = getattr(given, "__name__", kind)
        called = "Otherwise" if name[0] == "<" else "Call it, if it makes the model; otherwise"
        return (
            f"got the function {name}, which has no parameters to measure. {called} write it as the"
            " forward of a torch.nn.Module that holds its weights as nn.Parameter."
        )
    return f"got {kind}. Nets of other libraries have to be written in torch first."

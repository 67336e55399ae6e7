"""Nets as netmargin calls them: scores, device and dtype, mode, and copies in float64."""

import copy
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..core.devices import holds_float64, where_float64_is
from ..errors import ModelError
from .accepted_models import check_model, require_finite
from .forward_failures import call_net, copy_inputs
from .score_outputs import rows_of_scores, tensor_of_scores


def scores(model: nn.Module, x: Tensor) -> Tensor:
    """The model's outputs on a batch as shape (N, C); C = 1 for a binary net.

    They lie on the device of the model, or on the CPU where that device has no float64.

    Raises DataError for inputs that the model cannot take, ModelError for outputs that are no
    scores.
    """
    return where_float64_is(rows_of_scores(call_net(model, x), len(x)))


def call_with(model: nn.Module, tensors: Mapping[str, Tensor], x: Any) -> Tensor:
    """The scores of a net with these tensors in place of its parameters and buffers of these names.

    Every derivative of torch.func goes through. The net is left as it is.

    Parameters
    ----------
    model : nn.Module
        The net.
    tensors : mapping of str to Tensor
        What is put in, by the names of `named_parameters` and `named_buffers`.
    x : Tensor, or tuple of them
        The one argument of its forward.

    Returns
    -------
    Tensor
        The scores, in the shape that the net gives them.

    Raises
    ------
    ModelError
        If the net returns no scores.
    """
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    new = {id(named[name]): tensor for name, tensor in tensors.items()}
    # Every place of a tied weight once: torch's own `tie_weights` exchanges the weights of a module
    # with several names once for each, and puts the exchanged ones back at the end.
    places = {
        f"{path}.{name}" if path else name: new[id(old)]
        for path, module in model.named_modules()
        for own in (module._parameters, module._buffers)
        for name, old in own.items()
        if id(old) in new
    }
    outputs = torch.func.functional_call(model, places, (copy_inputs(x),), tie_weights=False)
    return tensor_of_scores(outputs)


def require_differentiable(model: nn.Module, x: Tensor) -> int:
    """The number of outputs of a net, which are seen to have derivatives in its parameters.

    Two samples are looked at, as a net with batch statistics has no outputs of one. Raises
    ModelError where there are none, though a parameter requires a gradient.
    """
    with torch.enable_grad():
        outputs = scores(model, x[:2])
    if not outputs.requires_grad and any(p.requires_grad for p in model.parameters()):
        raise ModelError(
            "The model's outputs have no derivative in its parameters. Remove .detach(), .data,"
            " torch.no_grad() and detours over numpy from its forward."
        )
    return outputs.shape[1]


def device_and_dtype(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """The device and the floating dtype that the model computes with.

    Raises ModelError for a model without parameters, or whose parameters hold no numbers yet.
    """
    parameters = list(check_model(model).parameters())
    if not parameters:
        raise ModelError(
            "The model has no parameters, so its margin has no normalization. Pass a model with"
            " weights."
        )
    if any(is_lazy(p) for p in parameters):
        raise ModelError(
            "The model has lazy parameters without a shape yet. Run it once on a batch first."
        )
    if any(p.is_meta for p in parameters):
        raise ModelError(
            "The model's parameters live on the 'meta' device. Materialize them first, with"
            " model.to_empty(...)."
        )
    floating = [p for p in parameters if p.is_floating_point()]
    return parameters[0].device, floating[0].dtype if floating else torch.get_default_dtype()


def able_to_float64(model: nn.Module) -> nn.Module:
    """The model itself, or a copy on the CPU of one whose device has no float64.

    Raises ModelError for a model whose parameters hold no numbers.
    """
    device, _ = device_and_dtype(model)
    return model if holds_float64(device) else copy.deepcopy(model).cpu()


def float64_copy(model: nn.Module) -> nn.Module:
    """A copy of the model in float64 and evaluation mode, which certificates are about.

    Raises ModelError for a model that cannot be copied, or is not finite.
    """
    model = check_model(model)
    able = able_to_float64(model)
    require_finite(model)
    # Tensors that a module computed from its parameters, as `nn.utils.weight_norm` keeps them, are
    # copied by value: with their graph they cannot be, and the next forward pass makes them anew.
    computed = {
        id(value): value.detach().clone()
        for module in model.modules()
        for value in vars(module).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    try:
        twin = copy.deepcopy(model, computed) if able is model else able
    except Exception as error:  # modules are the caller's code, and may raise anything
        raise ModelError(
            f"The model cannot be copied: {type(error).__name__}: {error}. A copy in float64 is"
            " what is computed with: keep what copy.deepcopy refuses (files, locks, generators)"
            " outside of the model."
        ) from error
    twin = twin.double().eval()
    # Channels last, quicker for float32 convolutions, is the slower layout in float64.
    return twin.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]


@contextmanager
def in_mode(model: nn.Module, *, training: bool):
    """Set every module to training or evaluation mode within, and back to its own afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.train(training)
    try:
        yield
    finally:
        for module, own in modes:
            module.training = own

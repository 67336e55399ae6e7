"""Nets as netmargin calls them: scores, device and dtype, mode, and copies in float64."""

import copy
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..errors import ModelError
from .accepted_models import check_model, require_finite, tensor_of_scores
from .forward_failures import explain_forward_errors


def scores(model: nn.Module, x: Tensor) -> Tensor:
    """The model's outputs on a batch as shape (N, C); C = 1 for a binary net.

    Raises DataError for inputs that the model cannot take, ModelError for outputs that are no
    scores.
    """
    with explain_forward_errors(x):
        outputs = tensor_of_scores(model(x))
    if outputs.shape == (len(x),):
        outputs = outputs[:, None]
    if outputs.ndim != 2 or len(outputs) != len(x) or outputs.shape[1] == 0:
        raise ModelError(
            f"The model returned shape {tuple(outputs.shape)} for {len(x)} inputs. "
            "Scores must have shape (N,), (N, 1) (binary) or (N, C) (C classes)."
        )
    return outputs


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


def float64_copy(model: nn.Module) -> nn.Module:
    """A copy of the model in float64 and evaluation mode, which certificates are about.

    Raises ModelError for a model that cannot be copied, or is not finite.
    """
    model = check_model(model)
    device_and_dtype(model)  # raises for lazy and meta parameters, which cannot be copied
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
        twin = copy.deepcopy(model, computed).double().eval()
    except Exception as error:  # modules are the caller's code, and may raise anything
        raise ModelError(
            f"The model cannot be copied: {type(error).__name__}: {error}. A copy in float64 is"
            " what is computed with: keep what copy.deepcopy refuses (files, locks, generators)"
            " outside of the model."
        ) from error
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

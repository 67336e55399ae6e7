"""A net as netmargin calls it: its scores, where it computes, its mode, and a float64 copy of
it.
"""

import copy
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..errors import ModelError
from .accepted_models import check_model, require_finite, tensor_of_scores
from .forward_failures import explain_forward_errors


def scores(model: nn.Module, x: Tensor) -> Tensor:
    """The model's outputs as shape (N, C); C = 1 for a binary net. Raises ModelError or
    DataError.
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
    """The device and floating dtype that the model computes with. Raises ModelError."""
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
    """A copy in float64 and evaluation mode; what it computes is what certificates are about.
    Raises ModelError.
    """
    model = check_model(model)
    device_and_dtype(model)  # refuses what cannot be copied
    require_finite(model)
    twin = copy.deepcopy(model).double().eval()
    return twin.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]  # the quicker layout for float64 convolutions


@contextmanager
def in_mode(model: nn.Module, *, training: bool):
    """Every module in training or evaluation mode, and back in its own mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.train(training)
    try:
        yield
    finally:
        for module, own in modes:
            module.training = own

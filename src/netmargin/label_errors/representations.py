"""How samples are given to the kernel: by their numbers, by patches, or by a net's convolutions."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..nets.images import as_images
from ..nets.model import call_net, device_and_dtype, in_mode
from .patches import have_patches, patch_features, scale_rows, standardize

Representation = Callable[[Tensor], np.ndarray]
"""A function from samples, shape (n, ...), to rows of features, shape (n, D), float32."""

_SAMPLES_AT_ONCE = 200
"""Samples per forward pass, as in `measure`."""


def list_representations(
    X: Tensor, model: nn.Module | None, seed: int
) -> dict[str, Representation]:
    """The representations that samples allow, by what they are called in reports; errors choose
    one.

    Raises ModelError for a net without a dense layer behind a convolution.
    """
    found: dict[str, Representation] = {
        "the inputs, each scaled to norm 1": partial(_flat_rows, scale_rows),
        "the inputs, each column standardized": partial(_flat_rows, standardize),
    }
    # All samples are asked, since a negative value in any of them tells vectors from images.
    images = as_images(X)
    if images is not None and have_patches(images):
        # Whether left and right may be exchanged, as in photographs, errors decide as well.
        for mirrored, more in ((False, ""), (True, " and their mirror images")):
            found[f"patches of the images{more}"] = partial(_patches, mirrored=mirrored, seed=seed)
    if model is not None:
        found["the convolutions of the net"] = partial(
            _net_features, model, _first_dense_layer(model)
        )
    return found


def _flat_rows(change: Callable[[np.ndarray], None], X: Tensor) -> np.ndarray:
    """The samples as float32 rows, brought to a largest size of 1, and changed in place."""
    flat = X.detach().cpu().reshape(len(X), -1).to(torch.float64)
    # No representation depends on the unit, and squares of 1e200 would be infinite.
    features = (flat / (flat.abs().max() or 1.0)).to(torch.float32).numpy()
    change(features)
    return features


def _patches(X: Tensor, mirrored: bool, seed: int) -> np.ndarray:
    """Responses to patches of the images themselves."""
    images = as_images(X)
    assert images is not None  # as all samples together are images
    return patch_features(images, mirrored=mirrored, seed=seed)


def _net_features(model: nn.Module, layer: nn.Linear, X: Tensor) -> np.ndarray:
    """What enters a layer of the net, columns standardized, rows of norm 1."""
    kept: list[Tensor] = []
    hook = layer.register_forward_pre_hook(
        lambda _, inputs: kept.append(inputs[0].detach().flatten(1).float().cpu())
    )
    device, dtype = device_and_dtype(model)
    try:
        with in_mode(model, training=False), torch.no_grad():
            for x in X.split(_SAMPLES_AT_ONCE):
                call_net(model, x.to(device, dtype))
    finally:
        hook.remove()
    features = torch.cat(kept).numpy()
    standardize(features)
    scale_rows(features)
    return features


def _first_dense_layer(model: nn.Module) -> nn.Linear:
    """The first dense layer behind a convolution. Raises ModelError where there is none.

    Later layers will not do: a net that has learned wrong labels by heart holds them there, and its
    leave-one-out errors would be too good to be true. Convolutions were found to hold few.
    """
    behind = False
    for module in model.modules():
        behind |= isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
        if behind and isinstance(module, nn.Linear):
            return module
    raise ModelError(
        "The net has no dense layer behind a convolution, and what other layers hold is learned"
        " from the labels in question. Leave `model` out; or pass what another net computes, such"
        " as embeddings of a pretrained one, in place of the inputs."
    )

"""How samples are given to the kernel: by their numbers, by patches, or by a net's convolutions."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..nets.model import call_net, device_and_dtype, in_mode
from .images import LEAST_SIDE, open_images, scale_samples
from .patches import patch_features, scale_rows, standardize

Representation = tuple[Callable[[Tensor], np.ndarray], Tensor]
"""A function from samples, (n, ...), to rows of features, (n, D), float32; and all samples."""

_SAMPLES_AT_ONCE = 200
"""Samples per forward pass, as in `measure`."""


def list_representations(
    X: Tensor, small: Tensor, model: nn.Module | None, seed: int
) -> dict[str, Representation]:
    """Representations of X, or of `small` images of it, by what they are called in reports."""
    size = "" if small.shape == X.shape else f", shrunk to {small.shape[-2]} x {small.shape[-1]}"
    found: dict[str, Representation] = {
        f"the inputs{size}, each scaled to norm 1": (partial(scale_samples, scale_rows), small),
        f"the inputs{size}, each column standardized": (partial(scale_samples, standardize), small),
    }
    # All samples are asked, since a negative value in any of them tells vectors from images.
    images = open_images(small)
    if images is not None and min(images.shape[1:3]) >= LEAST_SIDE:
        if X.ndim == 2 and X.shape[1] > images[0].numel():
            size = f", shrunk to {images.shape[1]} x {images.shape[2]}"
        # Whether left and right may be exchanged, as in photographs, errors decide as well.
        for mirrored, more in ((False, ""), (True, " and their mirror images")):
            compute = partial(patch_features, mirrored=mirrored, seed=seed)
            found[f"patches of the images{more}{size}"] = compute, images
    if model is not None:
        compute = partial(_net_features, model, _first_dense_layer(model))
        found["the convolutions of the net"] = compute, X
    return found


def _net_features(model: nn.Module, layer: nn.Linear, X: Tensor) -> np.ndarray:
    """What enters a layer of the net, columns standardized, rows of norm 1."""
    kept: list[Tensor] = []
    hook = layer.register_forward_pre_hook(
        lambda _, inputs: kept.append(inputs[0].detach().flatten(1).float().cpu())
    )
    device, dtype = device_and_dtype(model)
    with hook, in_mode(model, training=False), torch.no_grad():
        for x in X.split(_SAMPLES_AT_ONCE):
            call_net(model, x.to(device, dtype))
    return scale_rows(standardize(torch.cat(kept).numpy()))


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
        " from the labels in question. Leave `model` out; or pass embeddings of a pretrained one."
    )

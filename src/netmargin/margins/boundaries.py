"""First-order distances of the inputs of one batch to the decision boundary of a net."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import ArgumentError, DataError, ModelError, OutOfMemoryError
from ..nets.input_slopes import differentiate
from ..nets.model import scores
from ..nets.named_inputs import as_one_tensor, tensors_of
from ..nets.whole_tensors import row_norms
from .of_outputs import score_gaps

_ALL_RIVALS = 20
"""Up to so many classes every one is looked at as a rival, with a backward pass each."""
_SOME_RIVALS = 10
"""Rivals of a net with more classes: of 360 classes ten took a 28th of the time, and the nearest
boundary is nearly always among them.
"""
_WITHOUT = "nm.measure and nm.compare do without distances: input_margins=False."


class Boundaries(NamedTuple):
    """Attributes of `InputMargins`, for one batch or all; on the CPU, one entry per sample."""

    distances: Tensor
    rivals: Tensor
    relative: Tensor
    headroom: Tensor


Embedding = nn.Embedding | nn.EmbeddingBag
"""What looks up tokens."""


def token_layer(model: nn.Module, x: Any) -> tuple[str, Embedding] | None:
    """The first embedding of a net whose inputs are whole numbers, and its name, else None."""
    if x.is_floating_point():
        return None
    parts = list(model.named_modules())[1:]  # a net that is one itself returns scores
    return next(((name, part) for name, part in parts if isinstance(part, Embedding)), None)


def differentiable_scores(
    model: nn.Module, x: Any, layer: nn.Module | None
) -> tuple[Tensor, Tensor]:
    """The inputs, or the output of a layer that runs once, as a leaf, and its scores (N, C)."""
    # The caller may have switched gradients off, and tensors made in inference mode have none.
    with torch.inference_mode(False), torch.enable_grad():
        if layer is None:
            if not x.is_floating_point():
                raise DataError(
                    f"The inputs are whole numbers ({tensors_of(x)[0].dtype}), in which there is no"
                    " gradient, and the model holds no embedding. Give images and tables as"
                    " X.float(), scaled as in training; measure tokens behind the layer that takes"
                    f" them: nm.input_margins(..., layer=model.first). {_WITHOUT}"
                )
            model, x = as_one_tensor(model, x)
            point = x.detach().clone().requires_grad_()
            outputs = scores(model, point)
        else:
            point, outputs = _scores_from(model, x, layer)
    return point, outputs


def find_boundaries(
    point: Tensor, outputs: Tensor, y: Tensor, *, rivals: int | None = None
) -> Boundaries:
    """Differentiate the score gaps of a batch, those to the nearest `rivals` first."""
    with torch.inference_mode(False), torch.enable_grad():
        gaps, classes = _ordered_gaps(outputs, y.clone())
        some = _SOME_RIVALS if outputs.shape[1] > _ALL_RIVALS else _ALL_RIVALS
        seen = min(rivals or some, classes.shape[1])
        sizes = [
            _gradient_sizes(gaps[:, rank], point, last=rank == seen - 1) for rank in range(seen)
        ]
    gaps, norms = gaps.detach(), torch.stack([size for size, _ in sizes], 1)
    distances, index = _ratio(gaps[:, :seen], norms).min(1)
    relative = _ratio(gaps[:, :seen], torch.stack([size for _, size in sizes], 1)).amin(1)
    headroom = torch.full_like(distances, math.inf)
    if seen < classes.shape[1]:
        # A class j left out has s_nj >= the next gap: s_nj / ||grad|| < d needs ||grad|| > gap / d.
        left_out = gaps[:, seen]
        needed = torch.where(distances > 0, left_out / (distances * norms.amax(1)), math.inf)
        # It may have the larger score; where all gradients are 0, any other is nearer.
        headroom = torch.where((left_out < 0) | (distances == math.inf), 0.0, needed)
    rival = classes.gather(1, index[:, None])[:, 0]
    return Boundaries(*(found.cpu() for found in (distances, rival, relative, headroom)))


def _scores_from(model: nn.Module, x: Any, layer: nn.Module) -> tuple[Tensor, Tensor]:
    """The output of a layer as a leaf, and the scores as functions of it."""
    if not any(layer is module for module in model.modules()):
        raise ArgumentError(
            "layer must be a module of the model, such as layer=model.embedding; the model does not"
            f" hold this {type(layer).__name__}"
        )
    with _cut_at(layer, len(x)) as points:
        outputs = scores(model, x)
    if len(points) != 1:
        raise ArgumentError(
            f"layer must run once in a forward pass; this {type(layer).__name__} ran {len(points)}"
            " times. Name a module that does."
        )
    return points[0], outputs


@contextmanager
def _cut_at(layer: nn.Module, samples: int) -> Iterator[list[Tensor]]:
    """Put a leaf of the graph in place of each output of a module within; yield these leaves."""
    points: list[Tensor] = []

    def cut(module: Any, inputs: Any, output: Any) -> Any:
        kind = type(module).__name__
        if not isinstance(output, Tensor) or not output.is_floating_point():
            raise ArgumentError(
                f"layer must return one tensor of floating numbers; this {kind} does not. Name"
                " another module, such as an embedding."
            )
        if output.ndim == 0 or len(output) != samples:
            raise ArgumentError(
                f"layer must return one row per sample; this {kind} returned shape"
                f" {tuple(output.shape)} for {samples} samples. Name another module."
            )
        points.append(output.detach().clone().requires_grad_())
        return points[-1].clone()

    with layer.register_forward_hook(cut):
        yield points


def _ordered_gaps(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Score gaps to all other classes, the smallest first, and these classes; (N, rivals) each."""
    if outputs.shape[1] == 1:
        return score_gaps(outputs, y), (y < 0).long()[:, None]
    # The sample's own class has gap infinity, and so comes last.
    gaps, classes = score_gaps(outputs, y).sort(dim=1, stable=True)
    return gaps[:, :-1], classes[:, :-1]


def _gradient_sizes(gaps: Tensor, point: Tensor, *, last: bool) -> tuple[Tensor, Tensor]:
    """The norms of the gradients of the gaps (N,), and of point * gradient, in float64."""
    try:
        gradient = differentiate(gaps.sum(), point, keep=not last)
    except OutOfMemoryError:
        raise
    except ModelError as error:
        raise ModelError(f"{error} {_WITHOUT}") from error
    rows = gradient.reshape(len(gradient), -1).double()
    if not torch.isfinite(rows).all():
        first = int(torch.nonzero(~torch.isfinite(rows).all(1))[0, 0])
        raise ModelError(
            f"The gradient of the scores in the inputs is NaN or infinite, first for sample {first}"
            " of a batch. A root or a quotient at 0 does that: add a small number inside."
            f" {_WITHOUT}"
        )
    weighted = rows * point.detach().reshape(len(rows), -1)
    return row_norms(rows), row_norms(weighted)


def _ratio(gaps: Tensor, sizes: Tensor) -> Tensor:
    """Distances gap / size: 0 on the boundary, infinite where the scores do not move at all."""
    return torch.where(gaps == 0, 0.0, gaps / sizes)

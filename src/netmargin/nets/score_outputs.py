"""The scores among what a net returns: one row of class scores per sample, or a sentence on why
there are none.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ..errors import ModelError


def tensor_of_scores(outputs: Any) -> Tensor:
    """The scores among what a forward pass returned, as they are.

    It is a tensor; a dict or a record with `logits`, such as the outputs of transformers; a dict
    with one tensor that is not a single number; or a tuple, whose first tensor that is not a single
    number is taken, so that (loss, scores) and (scores, features) both do. Raises ModelError.
    """
    found, _ = _find_scores(outputs)
    if not found.is_floating_point():
        raise ModelError(
            f"The model returned numbers of type {found.dtype}, and scores are floating. Return"
            " what argmax or a comparison was taken of."
        )
    return found


def rows_of_scores(outputs: Any, n: int) -> Tensor:
    """The scores of n samples as shape (n, C); C = 1 for a binary net. Raises ModelError."""
    found, taken = tensor_of_scores(outputs), _find_scores(outputs)[1]
    shape = f"shape {tuple(found.shape)} for {n} inputs"
    if found.ndim > 2 and len(found) == n:
        raise ModelError(
            f"The model returned {shape}: several rows of scores per sample."
            f" {_describe_rows(found, taken)}"
        )
    rows = found[:, None] if found.shape == (n,) else found
    if rows.ndim != 2 or len(rows) != n or rows.shape[1] == 0:
        raise ModelError(
            f"The model returned {shape}. Scores must have shape (N,), (N, 1) (binary) or (N, C)"
            " (C classes)."
        )
    return rows


def _find_scores(outputs: Any) -> tuple[Tensor, str]:
    """The scores, and the expression that takes them out of the outputs."""
    if isinstance(outputs, Tensor):
        return outputs, ""
    kind = type(outputs).__name__
    if isinstance(outputs, Mapping):
        tensors = {key: value for key, value in outputs.items() if _may_be_scores(value)}
        if isinstance(outputs.get("logits"), Tensor):
            return outputs["logits"], "['logits']"
        if len(tensors) == 1:
            (key,) = tensors
            return tensors[key], f"[{key!r}]"
        keys = ", ".join(map(str, list(outputs)[:6]))
        key = next(iter(tensors), next(iter(outputs), "logits"))
        raise ModelError(
            f"The model returned {kind} with the keys {keys}; netmargin needs one tensor of scores"
            f" per batch, and takes 'logits', or the only one. {_show_wrapper(f'[{key!r}]')}"
        )
    if isinstance(getattr(outputs, "logits", None), Tensor):
        return outputs.logits, ".logits"
    if isinstance(outputs, (tuple, list)):
        for index, part in enumerate(outputs):
            if _may_be_scores(part):
                return part, f"[{index}]"
        kind = f"{kind} of {len(outputs)} without a tensor of scores"
    raise ModelError(
        f"The model returned {kind}; netmargin needs one tensor of scores per batch. Let forward"
        " return it."
    )


def _may_be_scores(value: Any) -> bool:
    """Whether a value is a tensor of more than one number a batch: a loss is a single one."""
    return isinstance(value, Tensor) and value.ndim > 0


def _describe_rows(found: Tensor, taken: str) -> str:
    """What outputs of more than two dimensions may be, and a wrapper that makes them fit."""
    if found.ndim == 3:
        said, taken = (
            "token, as language models have? Choose one, here the last.",
            f"{taken}[:, -1]",
        )
    else:
        dimensions = ", ".join(map(str, range(2, found.ndim)))
        said = "pixel, as in segmentation? Choose one or take means."
        taken = f"{taken}.mean(({dimensions}))"
    return f"One per {said} {_show_wrapper(taken)}"


def _show_wrapper(taken: str) -> str:
    """The code of a module that takes the scores out of the outputs of another one."""
    return (
        "Wrap it, and give Scores(model):\n  class Scores(torch.nn.Module):\n      def"
        " __init__(self, net): super().__init__(); self.net = net\n      def forward(self, *x,"
        f" **named): return self.net(*x, **named){taken}"
    )

"""The scores among what a net returns: one row of class scores per sample, or a sentence on why
there are none.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from torch import Tensor

from ..errors import ArgumentError, ModelError

Choice = str | int | tuple | Callable[[Any], Tensor]
"""What names an output: its key or attribute, its index, several of these one inside the other, or
a function of all that the net returns.
"""

_said: ContextVar[dict[str, None] | None] = ContextVar("said", default=None)
"""Which outputs were read in the call of a public function; without values, to keep their order."""


class Part(NamedTuple):
    """A tensor among the outputs of a net: how `scores=` names it, how code does, and itself."""

    path: tuple
    code: str
    tensor: Tensor


class OutputsError(ModelError):
    """The scores are not what a net returns as it is.

    `choose` returns the fields of `Reading` that labels decide on; None is no decision.
    """

    def __init__(self, message: str, choose: Callable[[Any], dict | None] = lambda _: None):
        super().__init__(message)
        self.choose = choose


@contextmanager
def hear_outputs() -> Iterator[dict[str, None]]:
    """Yield what is said within of the outputs that were read."""
    heard: dict[str, None] = {}
    before = _said.set(heard)
    try:
        yield heard
    finally:
        _said.reset(before)
        tell_outputs(*heard)


def tell_outputs(*sentences: str) -> None:
    """Say in the reports of the functions that run now which outputs were read."""
    heard = _said.get()
    if heard is not None:
        heard |= dict.fromkeys(sentences)


def check_choice_of_scores(scores: Any) -> Choice | None:
    """The argument `scores` of public functions. Raises ArgumentError for what names no output."""
    keys = scores if isinstance(scores, tuple) and scores else (scores,)
    named = all(isinstance(key, (str, int)) and not isinstance(key, bool) for key in keys)
    if scores is not None and not named and not callable(scores):
        raise ArgumentError(
            "scores must name an output of the net: a key, an index, or a function of what it"
            f" returns, such as 'logits', 1 or lambda out: out[1]; got {scores!r:.100}"
        )
    return scores


def take_output(outputs: Any, choice: Choice) -> tuple[Tensor, str]:
    """The output that a choice names, the only one where there is no other, and what is said of it.

    Raises ModelError.
    """
    parts = list(_list_tensors(outputs))
    if isinstance(outputs, Tensor) and not callable(choice):
        return outputs, ""
    if callable(choice):
        parts.append(Part((choice,), "a function", choice(outputs)))
    path = choice if isinstance(choice, tuple) else (choice,)
    named = [part for part in parts if part.path == path and isinstance(part.tensor, Tensor)]
    if not named:
        known = ", ".join(_name(part.path) for part in parts if part.code and part.path != path)
        raise ModelError(
            f"scores={choice!r:.100} is no tensor among the outputs of the net, which are"
            f" {known or 'none'}."
        )
    return named[0].tensor, f"{named[0].code} of the net's outputs"


def tensor_of_scores(outputs: Any, n: int | None = None) -> Tensor:
    """The scores among what a forward pass on n inputs returned, as they are.

    They are a tensor; what is called `logits`, as in the outputs of transformers; or the only
    tensor of one number, or one row, per sample, in whatever tuples, dicts and records. Raises
    ModelError, of kind OutputsError where several would do.
    """
    found = find_scores(outputs, n).tensor
    if not found.is_floating_point():
        raise ModelError(
            f"The model returned numbers of type {found.dtype}, and scores are floating. Return"
            " what argmax or a comparison was taken of."
        )
    return found


def rows_of_scores(outputs: Any, n: int) -> Tensor:
    """The scores of n samples as shape (n, C); C = 1 for a binary net. Raises ModelError."""
    found = tensor_of_scores(outputs, n)
    shape = f"shape {tuple(found.shape)} for {n} inputs"
    if found.ndim > 2 and len(found) == n:
        code = find_scores(outputs, n).code
        raise ModelError(
            f"The model returned {shape}: several rows of scores per sample."
            f" {_describe_rows(found, code)}"
        )
    rows = found[:, None] if found.shape == (n,) else found
    if rows.ndim != 2 or len(rows) != n or rows.shape[1] == 0:
        raise ModelError(
            f"The model returned {shape}. Scores must have shape (N,), (N, 1) (binary) or (N, C)"
            " (C classes)."
        )
    return rows


def find_scores(outputs: Any, n: int | None) -> Part:
    """The scores among what a forward pass on n inputs returned. Raises ModelError."""
    if isinstance(outputs, Tensor):
        return Part((), "", outputs)
    parts = [part for part in _list_tensors(outputs) if part.tensor.ndim]  # a loss has none
    fitting = [part for part in parts if part.path[-1] == "logits"] or [
        part
        for part in parts
        if part.tensor.ndim <= 2
        and part.tensor.is_floating_point()
        and n in (None, len(part.tensor))
    ]
    if len(fitting) > 1:
        listed = ", ".join(f"{_name(p.path)} of shape {tuple(p.tensor.shape)}" for p in fitting)
        raise OutputsError(
            f"Several outputs of the model may be its scores: {listed}. Name one:"
            f" scores={_name(fitting[-1].path)}, for example.",
            lambda y: _choose_by_classes(fitting, y),
        )
    if not parts:
        size = f" of {len(outputs)}" if isinstance(outputs, (tuple, list)) else ""
        raise ModelError(
            f"The model returned {type(outputs).__name__}{size} without a tensor of scores;"
            " netmargin needs one per batch. Let forward return it."
        )
    found = (fitting or parts)[0]
    tell_outputs(f"{found.code} of the net's outputs")
    return found


def zero_absent(outputs: Tensor) -> Tensor:
    """Scores with 0 in place of minus infinity, the score of a class that is not offered."""
    return outputs.masked_fill(outputs == -math.inf, 0.0)


def _choose_by_classes(parts: Sequence[Part], y: Tensor | None) -> dict | None:
    """The path of the only output with a column for each class of the labels y; None if several."""
    if y is None or not len(y):
        return None
    classes = max(int(y.max()) + 1, 2)
    columns = [(part.tensor.shape[1] if part.tensor.ndim > 1 else 1, part.path) for part in parts]
    columns = [(2 if count == 1 else count, path) for count, path in columns]
    # As many as there are classes; or at least so many, where the last ones have no samples.
    for able in (
        [path for count, path in columns if count == classes],
        [path for count, path in columns if count >= classes],
    ):
        if len(able) == 1:
            return {"choice": able[0]}
    return None


def _list_tensors(outputs: Any, path: tuple = (), code: str = "") -> Iterator[Part]:
    """Every tensor in nested tuples, lists, dicts and records, in order."""
    if isinstance(outputs, Tensor):
        yield Part(path, code, outputs)
        return
    names: list[Any] = []
    if isinstance(outputs, Mapping):
        items = [(key, f"[{key!r}]", value) for key, value in outputs.items()]
    else:
        if dataclasses.is_dataclass(outputs):
            names = [field.name for field in dataclasses.fields(outputs)]
        elif isinstance(outputs, (tuple, list)):
            names = list(getattr(outputs, "_fields", ()))
        elif isinstance(getattr(outputs, "logits", None), Tensor):
            names = ["logits"]
        items = [(name, f".{name}", getattr(outputs, name, None)) for name in names]
        if not names and isinstance(outputs, (tuple, list)):
            items = [(index, f"[{index}]", value) for index, value in enumerate(outputs)]
    for key, shown, value in items:
        yield from _list_tensors(value, (*path, key), code + shown)


def _name(path: tuple) -> str:
    """A path as `scores=` takes it."""
    return repr(path[0] if len(path) == 1 else path)


def _describe_rows(found: Tensor, code: str) -> str:
    """What outputs of more than two dimensions may be, and a choice that makes them fit."""
    if found.ndim == 3:
        return (
            "One per token, as language models have? Choose one, here the last:"
            f" scores=lambda out: out{code}[:, -1]"
        )
    dimensions = ", ".join(map(str, range(2, found.ndim)))
    return (
        "One per pixel, as in segmentation? Choose one or take means:"
        f" scores=lambda out: out{code}.mean(({dimensions}))"
    )

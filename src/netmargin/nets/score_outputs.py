"""The scores among what a net returns: one row per sample, or a sentence on why there are none."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from torch import Tensor

from ..errors import ModelError

Choice = str | int | tuple[Any, ...] | Callable[[Any], Tensor]
"""What names an output: its key, attribute or index, a tuple of these one inside the other, or a
function of all that the net returns.
"""
_said: ContextVar[dict[str, None]] = ContextVar("said")
"""What was said of outputs in the call of a public function, in order; without values."""


class Part(NamedTuple):
    """A tensor among the outputs of a net, and how `scores=` and code name it."""

    path: tuple[Any, ...]
    code: str
    tensor: Tensor

    @property
    def name(self) -> str:
        return repr(self.path[0] if len(self.path) == 1 else self.path)


class OutputsError(ModelError):
    """Scores are not what a net returns; `choose` finds the `Reading` by labels, or None."""

    def __init__(
        self, message: str, choose: Callable[[Any], dict[str, Any] | None] = lambda _: None
    ) -> None:
        super().__init__(message)
        self.choose = choose


@contextmanager
def hear_outputs() -> Iterator[dict[str, None]]:
    """Yield what is said within of the outputs that were read; it is said around it as well."""
    heard: dict[str, None] = {}
    before = _said.set(heard)
    try:
        yield heard
    finally:
        _said.reset(before)
        tell_outputs(*heard)


def tell_outputs(*sentences: str) -> None:
    """Say which outputs were read."""
    _said.get({}).update(dict.fromkeys(sentences))


def take_output(outputs: Any, choice: Choice) -> tuple[Tensor, str]:
    """The output that a choice names, or the only one, and what is said of it."""
    parts = list(_list_tensors(outputs))
    if callable(choice):
        parts.append(Part((choice,), "a function", choice(outputs)))
    elif isinstance(outputs, Tensor):
        return outputs, ""
    if isinstance(choice, int) and choice < 0 and isinstance(outputs, (tuple, list)):
        choice += len(outputs)
    path = choice if isinstance(choice, tuple) else (choice,)
    named = [part for part in parts if part.path == path and isinstance(part.tensor, Tensor)]
    if not named:
        known = ", ".join(part.name for part in parts if not callable(choice)) or "other than that"
        raise ModelError(
            f"scores={choice!r:.100} is no tensor among the outputs of the net, which are {known}."
        )
    return named[0].tensor, f"{named[0].code} of the net's outputs"


def tensor_of_scores(outputs: Any, n: int | None = None) -> Tensor:
    """The scores of a pass: a tensor, `logits`, or the only one of a row per sample."""
    found = _find_scores(outputs, n).tensor
    if not found.is_floating_point():
        raise ModelError(
            f"Scores are of type {found.dtype}, not floating. Return what argmax was taken of."
        )
    return found


def rows_of_scores(outputs: Any, n: int) -> Tensor:
    """The scores of n samples as shape (n, C); C = 1 for a binary net. Raises ModelError."""
    found = tensor_of_scores(outputs, n)
    rows = found[:, None] if found.shape == (n,) else found
    if rows.ndim == 2 and len(rows) == n and rows.shape[1]:
        return rows
    shape = f"shape {tuple(found.shape)} for {n} inputs"
    if found.ndim > 2 and len(found) == n:
        token, axes = found.ndim == 3, ", ".join(map(str, range(2, found.ndim)))
        said = "One per token? Choose one, here the last" if token else "One per pixel? Take means"
        code = _find_scores(outputs, n).code + ("[:, -1]" if token else f".mean(({axes}))")
        raise ModelError(
            f"The model returned {shape}: several rows of scores per sample. {said}:"
            f" scores=lambda out: out{code}"
        )
    raise ModelError(f"The model returned {shape}. Scores must have shape (N,), (N, 1) or (N, C).")


def zero_absent(outputs: Tensor) -> Tensor:
    """Scores with 0 in place of minus infinity, the score of a class that is not offered."""
    return outputs.masked_fill(outputs == -math.inf, 0.0)


def _find_scores(outputs: Any, n: int | None) -> Part:
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
        listed = ", ".join(f"{part.name} of shape {tuple(part.tensor.shape)}" for part in fitting)
        raise OutputsError(
            f"Several outputs of the model may be its scores: {listed}. Name one:"
            f" scores={fitting[-1].name}, for example.",
            lambda y: None if y is None else _choose_by_classes(fitting, max(int(y.max()) + 1, 2)),
        )
    if not parts:
        size = f" of {len(outputs)}" if isinstance(outputs, (tuple, list)) else ""
        raise ModelError(
            f"The model returned {type(outputs).__name__}{size} without a tensor of scores. Let"
            " forward return it."
        )
    found = (fitting or parts)[0]
    tell_outputs(f"{found.code} of the net's outputs")
    return found


def _choose_by_classes(parts: list[Part], classes: int) -> dict[str, Any] | None:
    """The choice of the only output with a column for each class; None if there are several."""
    # One column, which has no second dimension or 1 there, is of two classes.
    columns = {p.path: max(math.prod(p.tensor.shape[1:]), 1) for p in parts}
    able = [path for path, count in columns.items() if max(count, 2) >= classes]
    # As many as there are classes; or more, where the last ones have no samples.
    exact = [path for path in able if max(columns[path], 2) == classes]
    chosen = exact if len(exact) == 1 else able
    return {"choice": chosen[0]} if len(chosen) == 1 else None


def _list_tensors(outputs: Any, path: tuple[Any, ...] = (), code: str = "") -> Iterator[Part]:
    """Every tensor in nested tuples, lists, dicts and records, in order."""
    if isinstance(outputs, Tensor):
        yield Part(path, code, outputs)
        return
    fields = list(getattr(outputs, "_fields", ()))  # of named tuples
    if dataclasses.is_dataclass(outputs):
        fields = [field.name for field in dataclasses.fields(outputs)]
    if not fields and isinstance(getattr(outputs, "logits", None), Tensor):
        fields = ["logits"]
    if isinstance(outputs, Mapping):
        items, shown = list(outputs.items()), "{}[{!r}]"
    elif fields:
        items, shown = [(name, getattr(outputs, name, None)) for name in fields], "{}.{}"
    else:
        listed = isinstance(outputs, (tuple, list))
        items, shown = list(enumerate(outputs)) if listed else [], "{}[{!r}]"
    for key, value in items:
        yield from _list_tensors(value, (*path, key), shown.format(code, key))

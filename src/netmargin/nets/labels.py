"""Labels as signs or class indices, and the names of classes, for tables and pictures."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.records import printable
from ..errors import ArgumentError, DataError

text_classes: ContextVar[int] = ContextVar("text_classes", default=0)
"""How many classes there are in labels that were text, in the call of a public function; or 0."""


class Labels:
    """Encoder of labels, as signs (one output) or class indices, that remembers earlier batches."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs
        classes = max(outputs, 2)  # a net with one output has two
        if text_classes.get() not in (0, classes):
            raise DataError(
                f"The labels are text of {text_classes.get()} classes, and the net has {classes}."
                " Number them in the order of its outputs."
            )
        self.seen: set[float] = set()

    def encode(self, y: Tensor) -> Tensor:
        """The labels of one batch as float64 signs or int64 indices, (N,). Raises DataError."""
        # Over all batches: one batch of a single class does not tell which labels are in use.
        values = torch.unique(y)
        self.seen |= set(values.tolist())
        # With two outputs signs are taken too: -1 is class 0.
        wrong = self.seen - ({-1.0, 0.0, 1.0} if self.outputs <= 2 else set(range(self.outputs)))
        if not wrong and {-1.0, 0.0} <= self.seen:
            wrong = {-1.0, 0.0}  # one of the two is
        if wrong:
            shown = ", ".join(f"{value:.15g}" for value in sorted(wrong)[:8])
            shown += f" and {len(wrong) - 8} more" if len(wrong) > 8 else ""
            taken = f"class indices 0 to {self.outputs - 1} as labels"
            from_one = min(self.seen) == 1 and wrong == {self.outputs}
            recode = "They begin at 1: give y - 1" if from_one else "Recode them"
            raise DataError(
                f"A net with one output takes labels {{-1, +1}} or {{0, 1}}; found {shown}. Recode"
                " them, or use a net with one output per class."
                if self.outputs == 1
                else f"A net with {self.outputs} outputs takes {taken}; found {shown}. {recode},"
                " or give the last layer as many outputs as there are classes."
            )
        if self.outputs == 1:
            return torch.where(y > 0, 1.0, -1.0).to(torch.float64)
        return y.clamp(min=0).to(torch.int64)


TRUTH = "False", "True"
"""The names of the classes where labels are truth values."""


class FoundNames(tuple[str, ...]):
    """Names of classes that came with a data set: left out where the net has other classes."""

    @classmethod
    def of(cls, names: Sequence[Any]) -> "FoundNames":
        """The names as texts, those that occur twice with their number, as some of ImageNet's."""
        texts = [", ".join(name) if isinstance(name, tuple) else str(name) for name in names]
        double = {text for text in texts if texts.count(text) > 1}
        return cls(f"{text} ({n})" if text in double else text for n, text in enumerate(texts))


class ClassNames:
    """What labels are called: `names` in the order of the class numbers, or numbers for None."""

    def __init__(self, names: Any) -> None:
        self._found = isinstance(names, FoundNames)
        # Of arrays, and of the categories of pandas.
        given = names.tolist() if hasattr(names, "tolist") else names
        fits = given is None or (
            isinstance(given, Sequence)
            and not isinstance(given, (str, bytes))
            and len(given) > 1
            and all(isinstance(name, str) for name in given)
        )
        if not fits:
            raise ArgumentError(
                "class_names must be a list of names in the order of the class numbers, such as"
                f' ["cat", "dog"]; got {names!r:.100}'
            )
        self.names: tuple[str, ...] | None = given and tuple(map(printable, given))
        double = next((name for name in self.names or () if given.count(name) > 1), None)
        if double is not None:
            raise ArgumentError(
                f"class_names has {double!r} more than once. Give every class one name of its own;"
                " of a pandas column y of categories they are y.cat.categories."
            )

    def of(self, label: float) -> str:
        """The name of a label; a number beyond the names stays a number."""
        index = max(int(label), 0)  # the labels of two classes may be signs
        if self.names is None or index >= len(self.names):
            return str(int(label))
        return self.names[index]

    def require_number(self, outputs: int) -> None:
        """Raise ArgumentError where there are names, but not one for each class of a net; names
        that came with a data set are left out there.
        """
        classes = max(outputs, 2)  # a net with one output has two
        if self._found and self.names is not None and len(self.names) != classes:
            self.names = None
        if self.names is not None and len(self.names) != classes:
            raise ArgumentError(
                f"There are {len(self.names)} names, and the net {classes} classes. Give one for"
                " each as class_names, in the order of the class numbers: labels that are text lack"
                " some where not all classes occur."
            )


def name_labels(labels: Tensor, names: Sequence[str] | None) -> np.ndarray:
    """The names of class indices, an array of texts, or of truth values where they are such;
    without names the indices themselves.
    """
    if names is None or tuple(names) == TRUTH:
        return labels.numpy() if names is None else labels.numpy() > 0
    return np.array(names, dtype=object)[labels.numpy()]

"""Labels that are text or categories of pandas, as class numbers, and the names of classes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ..errors import DataError
from .arrays import require_values
from .labels import TRUTH, FoundNames
from .named_inputs import find_label


def encode_text_labels(
    several: Sequence[Any], names: Sequence[str] | None
) -> tuple[list[Any], Sequence[str] | None]:
    """Data sets with class numbers in place of labels that are text, and the names of the classes.

    Classes are in the order of `names`; of None in that of the categories, or of the alphabet, and
    over all data sets together. Data sets with other labels are returned as they are.
    """
    encoded = list(several)
    places = {n: place for n, data in enumerate(several) if (place := _find_labels(data))}
    texts = {n: text for n, (labels, _) in places.items() if (text := read_text(labels))}
    if not texts:
        return encoded, names
    if names is None:
        orders = [order for _, order in texts.values() if order is not None]
        kinds = {label for labels, _ in texts.values() for label in labels}
        number = int if all(kind.isdecimal() for kind in kinds) else None  # 10 comes after 9
        names = orders[0] if orders and kinds <= set(orders[0]) else sorted(kinds, key=number)
        if len(names) < 2:
            raise DataError(
                f"All labels are {names[0]!r}. Pass samples of at least two classes, or, for a"
                " net, the names of all its outputs in their order, as class_names."
            )
    numbers = {name: number for number, name in enumerate(names)}
    for n, (labels, _) in texts.items():
        unknown = next((label for label in labels if label not in numbers), None)
        if unknown is not None:
            shown = ", ".join(map(repr, list(names)[:8]))
            raise DataError(
                f"y holds {unknown!r}, which is none of the classes {shown}. Give all of them, in"
                " the order of the class numbers, as class_names."
            )
        encoded[n] = places[n][1]([numbers[label] for label in labels])
    return encoded, list(names)


def find_class_names(data: Any) -> FoundNames | None:
    """The names that sets of torchvision, Hugging Face or scikit-learn give classes, or those of
    truth values; or None.
    """
    if (place := _find_labels(data)) and _are_truth(place[0]):
        return FoundNames(TRUTH)
    while data is not None:
        features = getattr(data, "features", None)
        if isinstance(features, Mapping) and (key := find_label(features)):
            names = getattr(features[key], "names", None)
        else:
            names = getattr(data, "classes", getattr(data, "target_names", None))
        names = names.tolist() if isinstance(names, np.ndarray) else names
        if isinstance(names, (list, tuple)) and len(names) > 1:
            return FoundNames.of(names)
        data = getattr(data, "dataset", None)
    return None


def find_output_names(nets: Any) -> FoundNames | None:
    """The names that the config of the first of some nets gives outputs; None for mere numbers."""
    several = list(nets.values()) if isinstance(nets, Mapping) else nets
    first = several[0] if isinstance(several, (list, tuple)) and several else several
    for part in first.modules() if isinstance(first, nn.Module) else ():
        named = getattr(getattr(part, "config", None), "id2label", None)
        if isinstance(named, Mapping) and len(named) > 1:
            names = [str(named[number]) for number in sorted(named, key=int)]
            return (
                None if all(name.startswith("LABEL_") for name in names) else FoundNames.of(names)
            )
    return None


def _find_labels(data: Any) -> tuple[Any, Callable[[list[int]], Any]] | None:
    """The labels of a dict, a pair or dicts of samples, and what puts numbers there; else None."""
    if isinstance(data, Mapping):
        key = find_label(data)
        return None if key is None else (data[key], lambda y: {**data, key: _tensor(y)})
    first = data[0] if (isinstance(data, list) or hasattr(data, "column_names")) and data else None
    if isinstance(first, Mapping) and (key := find_label(first)):
        if not isinstance(first[key], str):
            return None
        rows = [data[n] for n in range(len(data))]
        return [row[key] for row in rows], lambda y: [
            {**row, key: number} for row, number in zip(rows, y, strict=True)
        ]
    if isinstance(data, (tuple, list)) and len(data) == 2:
        labels: Any = data[1]
        if hasattr(labels, "iloc"):  # its index names the rows
            return labels, lambda y: (data[0], type(labels)(y, index=labels.index))
        return labels, lambda y: (data[0], _tensor(y))
    return None


def _tensor(numbers: list[int]) -> torch.Tensor:
    """Class numbers as labels of a pair."""
    return torch.tensor(numbers, dtype=torch.int64, device="cpu")


def _are_truth(y: Any) -> bool:
    """Whether labels are True and False, in an array, a tensor, a series or a list."""
    if isinstance(y, (list, tuple)):
        return bool(y) and all(isinstance(label, (bool, np.bool_)) for label in y)
    return str(getattr(y, "dtype", "")) in ("bool", "boolean", "torch.bool")


def read_text(y: Any) -> tuple[list[str], list[str] | None] | None:
    """Labels that are text, and the order of their categories if they have one; else None."""
    if isinstance(y, (list, tuple)):
        if not any(isinstance(label, str) for label in (*y[:1], *y[-1:])):
            return None
    elif isinstance(y, torch.Tensor) or not getattr(y, "ndim", 0):
        return None
    # Of a series, or a Categorical; a frame may have a column of such a name.
    held = getattr(y, "cat", y) if getattr(y, "ndim", 1) == 1 else None
    categories = getattr(held, "categories", None)
    values = np.asarray(y).reshape(-1)
    text = values.dtype.kind in "US" or (
        values.dtype == object and any(isinstance(label, str) for label in values)
    )
    if categories is None and not text:
        return None
    require_values(values, "y")
    order = None if categories is None else [str(name) for name in categories]
    return values.astype(str).tolist(), order

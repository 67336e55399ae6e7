"""Labels that are text or categories of pandas, as class numbers and class names."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ..errors import DataError
from .named_inputs import LABELS


def encode_text_labels(
    several: Sequence[Any], names: Sequence[str] | None
) -> tuple[list[Any], Sequence[str] | None]:
    """Data sets with class numbers in place of labels that are text, and the names of the classes.

    Classes are in the order of `names`; of None in that of the categories, or of the alphabet, and
    over all data sets together. Data sets with other labels are returned as they are.
    """
    places = [_find_labels(data) for data in several]
    texts = [None if place is None else _read(place[1]) for place in places]
    found = [text for text in texts if text is not None]
    if not found:
        return list(several), names
    if names is None:
        orders = [order for _, order in found if order is not None]
        kinds = {label for labels, _ in found for label in labels.tolist()}
        names = orders[0] if orders and kinds <= set(orders[0]) else sorted(kinds)
        if len(names) < 2:
            raise DataError(
                f"All labels are {names[0]!r}. Give the names of all classes, in the order of the"
                " class numbers, as class_names."
            )
    numbers = {name: number for number, name in enumerate(names)}
    encoded = []
    for data, place, text in zip(several, places, texts, strict=True):
        if text is None or place is None:
            encoded.append(data)
            continue
        labels = text[0].tolist()
        unknown = next((label for label in labels if label not in numbers), None)
        if unknown is not None:
            shown = ", ".join(map(repr, list(names)[:8]))
            raise DataError(
                f"y holds {unknown!r}, which is none of the classes {shown}. Give all of them, in"
                " the order of the class numbers, as class_names."
            )
        y = torch.tensor([numbers[label] for label in labels], dtype=torch.int64, device="cpu")
        key, _ = place
        encoded.append({**data, key: y} if isinstance(data, Mapping) else (data[0], y))
    return encoded, list(names)


def _find_labels(data: Any) -> tuple[Any, Any] | None:
    """Where a pair or a dict holds its labels, and these; None for anything else."""
    if isinstance(data, Mapping):
        key = next((key for key in LABELS if key in data), None)
        return None if key is None else (key, data[key])
    if isinstance(data, (tuple, list)) and len(data) == 2:
        return 1, data[1]
    return None


def _read(y: Any) -> tuple[np.ndarray, list[str] | None] | None:
    """Labels that are text, and the order of their categories if they have one; else None."""
    if isinstance(y, torch.Tensor) or not hasattr(y, "__len__") or isinstance(y, (str, Mapping)):
        return None
    categories = getattr(getattr(y, "cat", y), "categories", None)  # of a series, or a Categorical
    if categories is not None:
        categories = [str(name) for name in categories]
        values = np.asarray(y)
    elif hasattr(y, "dtype") or (len(y) and isinstance(y[0], str)):
        values = np.asarray(y)
    else:
        return None
    text = values.dtype.kind in "US" or (
        values.dtype == object and all(isinstance(label, str) for label in values.flat)
    )
    if categories is None and not text:
        return None
    return values.reshape(-1).astype(str), categories

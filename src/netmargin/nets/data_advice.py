"""Sentences about things that are no data set or no batch: what they are, and what to give."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from .named_inputs import LABELS

STREAM_HINT = "Pass a pair (X, y), or an iterable of (x, y) batches such as a DataLoader."


def why_no_data(data: Any) -> str:
    """A sentence on why something iterable is no data set, or ''."""
    kind = type(data).__name__
    if isinstance(data, nn.Module) or (isinstance(data, type) and issubclass(data, nn.Module)):
        return f"The data are a model ({kind}): the model comes first and the data second."
    if isinstance(data, (str, bytes, Path)):
        return (
            f"The data are text, {data!r}. Named data sets are functions, such as"
            " netmargin.datasets.digits()."
        )
    if isinstance(data, Mapping):
        keys = ", ".join(map(repr, list(data)[:6]))
        return (
            f"The data are a {kind} with the keys {keys}. Take the inputs and the labels out of it."
        )
    if hasattr(data, "iloc"):  # of pandas
        return (
            f"The data are a {kind}. Take df[features].to_numpy() as X and df[label].to_numpy()"
            " as y."
        )
    if hasattr(data, "shape"):
        return f"The data are one {kind} of shape {tuple(data.shape)}, without labels."
    if isinstance(data, tuple) and data and all(hasattr(part, "shape") for part in data):
        return f"The data are {len(data)} arrays. The first two of them would be data[:2]."
    return ""


def how_to_pair(batch: Any) -> str:
    """A description of a batch that is no pair, and a wrapper of its loader that makes pairs."""
    kind = type(batch).__name__
    if isinstance(batch, Mapping):
        keys = [str(key) for key in batch]
        label = next((key for key in keys if key in LABELS), keys[-1] if keys else "y")
        inputs = next((key for key in keys if key != label), "x")
        held, pair = f"{kind} with the keys {', '.join(keys[:6])}", f'b["{inputs}"], b["{label}"]'
    elif isinstance(batch, (tuple, list)) and len(batch) > 2:
        held, pair = f"{kind} of {len(batch)}", "b[0], b[1]"
    else:
        return f"{kind}. {STREAM_HINT}"
    return (
        f"{held}. Wrap the loader, and give Pairs(loader):\n"
        "  class Pairs:\n"
        "      def __init__(self, loader): self.loader = loader\n"
        f"      def __iter__(self): return (({pair}) for b in self.loader)\n"
        "      def __len__(self): return len(self.loader)"
    )


def describe_several_labels(y: Tensor) -> str:
    """A sentence about labels of which a sample has several, and a wrapper that makes them fit."""
    # A row with a single 1 is one label, written otherwise.
    if y.ndim == 2 and bool(((y == 0) | (y == 1)).all() and (y.sum(1) == 1).all()):
        return "one label per sample, spread over columns. Give class numbers, y.argmax(1)."
    places = ", 0" * (y.ndim - 1)
    taken = "[:, 0]" if y.ndim == 2 else f"[:, :{places}]"
    return (
        "several labels per sample, and a margin is about one. Choose one of them, here the first,"
        f" and give OneLabel(model) with (X, y[:{places}]):\n"
        "  class OneLabel(torch.nn.Module):\n"
        "      def __init__(self, net): super().__init__(); self.net = net\n"
        f"      def forward(self, *x, **named): return self.net(*x, **named){taken}"
    )

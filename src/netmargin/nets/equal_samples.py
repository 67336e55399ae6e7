"""Samples that are given twice: as held out and for training, or with different labels."""

import hashlib

import torch
from torch import nn

from ..core.caller import warn_caller
from .data import Data, batches, open_data
from .named_inputs import tensors_of

_AT_ONCE = 1000
"""Samples of pairs that are read at once: enough for the work of a batch not to count."""


def warn_of_seen(model: nn.Module, training: Data, heldout: Data) -> str:
    """Warn of held-out inputs that are, bit for bit, in the training data: what was said, or ""."""
    known = {digest for digest, _ in _digest_rows(model, training)}
    seen = [digest in known for digest, _ in _digest_rows(model, heldout)]
    if not any(seen):
        return ""
    said = (
        f"{sum(seen):,} of the {len(seen):,} held-out samples are also in the training data. What"
        " is measured on them says nothing of new data: leave them out of one of the two."
    )
    warn_caller(said)
    return said


def warn_of_contradictions(model: nn.Module, data: Data) -> None:
    """Warn of what `describe_contradictions` finds."""
    if said := describe_contradictions(model, data):
        warn_caller(said)


def describe_contradictions(model: nn.Module, data: Data) -> str:
    """Say which inputs are equal, bit for bit, and have different labels; "" where none are."""
    first: dict[bytes, tuple[int, float]] = {}
    rows = enumerate(_digest_rows(model, data))
    pairs = [
        (known[0], row)
        for row, (digest, label) in rows
        if (known := first.setdefault(digest, (row, label)))[1] != label
    ]
    if not pairs:
        return ""
    i, j = pairs[0]
    more = f" (and {len(pairs) - 1:,} more such pairs)" if len(pairs) > 1 else ""
    return (
        f"Samples {i} and {j} are equal and have different labels{more}: no net is right on both,"
        " and no training separates the data. Correct or drop one of them."
    )


def _digest_rows(model: nn.Module, data: Data) -> list[tuple[bytes, float]]:
    """A digest of the input of each sample, as the net takes it, and its label."""
    found = []
    for x, y in batches(open_data(data, model), _AT_ONCE, model):
        # Adding 0 turns -0 into 0. Bytes, as numpy has no bfloat16.
        parts = [
            (part.detach() + 0).cpu().flatten().view(torch.uint8).reshape(len(y), -1).numpy()
            for part in tensors_of(x)
        ]
        for label, *row in zip(y.tolist(), *parts, strict=True):
            digest = hashlib.blake2b(digest_size=16)  # no two of 2^40 samples share one by chance
            for part in row:
                digest.update(part.data)
            found.append((digest.digest(), label))
    return found

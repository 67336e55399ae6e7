"""Held-out samples that are training samples as well."""

from typing import Any

from torch import nn

from ..core.caller import warn_caller
from .data import Data, batches, open_data
from .named_inputs import map_tensors
from .shared import digest_of

_AT_ONCE = 1000
"""Samples of pairs that are read at once: enough for the work of a batch not to count."""


def warn_of_seen(model: nn.Module, training: Data, heldout: Data) -> str:
    """Warn of held-out inputs that are, bit for bit, in the training data: what was said, or ""."""
    known = set(_digest_rows(model, training))
    seen = [digest in known for digest in _digest_rows(model, heldout)]
    if not any(seen):
        return ""
    said = (
        f"{sum(seen):,} of the {len(seen):,} held-out samples are also in the training data. What"
        " is measured on them says nothing of new data: leave them out of one of the two."
    )
    warn_caller(said)
    return said


def _digest_rows(model: nn.Module, data: Data) -> list[bytes]:
    """A digest of the input of each sample, as the net takes it."""
    found = []
    for x, _ in batches(open_data(data, model), _AT_ONCE, model):
        rows: Any = map_tensors(lambda part: part.cpu(), x)
        found += [digest_of(rows[row : row + 1]) for row in range(len(rows))]
    return found

"""The folder of a run: its history and its checkpoint, and a check that both belong to this run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import nn

from ..core.files import make_folder
from ..errors import CheckpointError
from ..losses import Loss
from ..losses.accepted_losses import TESTED_CLASSES
from ..nets.arrays import Arrays
from ..nets.shared import digest_of
from . import checkpoint
from .history_file import HistoryFile
from .module_state import is_extra_state

_TOLD_BY = (-3.0, -0.7, 0.4, 1.0, 2.5, 9.0, 40.0, 1000.0)
"""Margins by which losses are told apart: of both signs, and small, moderate and large."""


class RunFiles:
    """The files of a run: every row goes to `history`; checkpoint.pt is replaced now and then."""

    def __init__(self, folder: Path, settings: dict[str, Any], every_seconds: float) -> None:
        self.folder = folder
        self.checkpoint = self.folder / checkpoint.CHECKPOINT
        self.history = HistoryFile(self.folder)
        self._settings, self._every_seconds = settings, every_seconds
        self._saved_at = time.monotonic()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing here. Raises CheckpointError where one already does."""
        make_folder(self.folder)
        try:
            # Without waiting: the other run may take hours, and this one would seem to hang.
            lock = FileLock(self.folder / ".lock", timeout=0).acquire()
        except Timeout:
            raise CheckpointError(
                f"Another process is training in {self.folder}. Wait, or choose another folder."
            ) from None
        with lock:
            yield

    def read(self, resume: str) -> dict[str, Any] | None:
        """The saved state, or None. CheckpointError for another run, or if `resume` is "never"."""
        if not self.checkpoint.exists():
            return None
        if resume == "never":
            raise CheckpointError(
                f'{self.folder} already holds a run. Choose another folder, or resume="auto".'
            )
        state = checkpoint.read_checkpoint(self.checkpoint)
        # Stopping rules are not among the settings: a run may go on further than first asked.
        other = [
            f"{name} was {old}, now {self._settings.get(name)}"
            for name, old in ({"shuffle": True} | state["settings"]).items()  # once the only way
            if old != self._settings.get(name)
        ]
        if other:
            raise CheckpointError(
                f"{self.folder} holds another run: {'; '.join(other)}. Use the same settings to go"
                " on, or another folder."
            )
        return state

    def save(self, state: dict[str, Any], *, now: bool = False) -> None:
        """Replace the checkpoint, unless it is only seconds old. Raises CheckpointError."""
        if not now and time.monotonic() - self._saved_at < self._every_seconds:
            return
        self.history.sync()
        head = {"netmargin_format": checkpoint.FORMAT, "settings": self._settings}
        checkpoint.save(self.checkpoint, head | state)
        self._saved_at = time.monotonic()


def describe_settings(model: nn.Module, data: Any, **settings: Any) -> dict[str, Any]:
    """What must agree for a run to be the same: names and shapes, the data, and what is given."""
    shapes = {
        name: list(p.shape)
        for name, p in model.state_dict().items()
        if isinstance(p, torch.Tensor) and not is_extra_state(name)
    }
    return {"model": shapes, "data": fingerprint(data), **settings}


def fingerprint(data: Any) -> str:
    """A short digest of a data set in memory; iterables of batches are not read."""
    if not isinstance(data, Arrays):
        return type(data).__name__
    return digest_of(data.X, data.y, size=8).hex()


def describe_loss(loss: Loss) -> str:
    """The name of a loss; of a user's own also what it computes, as another may have that name."""
    if type(loss) in TESTED_CLASSES:
        return loss.name
    values = loss.f(torch.tensor(_TOLD_BY, dtype=torch.float64, device="cpu")).tolist()
    shown = (f"f({q:g}) = {value:.6g}" for q, value in zip(_TOLD_BY, values, strict=True))
    return f"{loss.name} with {', '.join(shown)}"

"""The folder of a run: its history and its checkpoint, and a check that both belong to this run."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn

from ..core.files import make_folder, write_atomically
from ..errors import CheckpointError
from ..losses import Loss
from ..losses.accepted_losses import TESTED_CLASSES
from ..nets.arrays import Arrays
from ..nets.shared import digest_of
from . import checkpoint
from .history import History, json_line
from .sample_margins import SampleMargins

_TOLD_BY = (-3.0, -0.7, 0.4, 1.0, 2.5, 9.0, 40.0, 1000.0)
"""Margins by which losses are told apart: of both signs, and small, moderate and large."""


class RunFiles:
    """The files of a run: every row is appended to history.jsonl; every few seconds checkpoint.pt
    is replaced.

    The history is on disk before a checkpoint refers to it; what it holds beyond the checkpoint is
    cut off on resume, because the resumed run writes the same rows again, bit for bit.
    """

    def __init__(
        self,
        folder: str | Path,
        settings: dict,
        *,
        every_seconds: float,
        margins: SampleMargins | None = None,
    ):
        self.folder = Path(folder)
        self._settings, self._every_seconds, self._margins = settings, every_seconds, margins
        self._saved_at = time.monotonic()

    @property
    def checkpoint(self) -> Path:
        """The file that a resume starts from."""
        return self.folder / checkpoint.CHECKPOINT

    @property
    def history(self) -> Path:
        """The file with one JSON line per accepted epoch."""
        return self.folder / checkpoint.HISTORY

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing here. Raises CheckpointError where one already does."""
        make_folder(self.folder)
        # Without waiting: the other run may take hours, and this one would seem to hang.
        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise CheckpointError(
                f"Another process is training in {self.folder}. Wait until it has ended, or choose"
                " another folder."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def read(self, resume: str) -> dict | None:
        """Read the saved state, or None if there is none.

        resume : "never" refuses a folder that holds a run. Raises CheckpointError, also where the
        state is of another run.
        """
        if not self.checkpoint.exists():
            return None
        if resume == "never":
            raise CheckpointError(
                f'{self.folder} already holds a run. Choose another folder, or resume="auto" to go'
                " on with it."
            )
        state = checkpoint.read_checkpoint(self.checkpoint)
        # Stopping rules are not among the settings: a run may go on further than first asked.
        other = {
            k: (v, self._settings.get(k))
            for k, v in state["settings"].items()
            if v != self._settings.get(k)
        }
        if other:
            text = "; ".join(f"{name} was {old}, now {new}" for name, (old, new) in other.items())
            raise CheckpointError(
                f"{self.folder} holds another run: {text}. Use the same settings to go on, or"
                " another folder."
            )
        return state

    def start(self) -> History:
        """Begin an empty history on disk.

        Raises CheckpointError where one with rows lies there without a checkpoint: it is somebody's
        work.
        """
        # The first row is of the net before training, and is no work lost.
        if self.history.exists() and len(History.load(self.history)) > 1:
            raise CheckpointError(
                f"{self.history} has no checkpoint beside it. Move it away or choose another"
                " folder."
            )
        write_atomically(self.history, b"")
        if self._margins:
            self._margins.start()
        return History()

    def cut_back(self, state: dict) -> History:
        """Cut off what was written after a saved state, and return the history up to there.

        Raises CheckpointError.
        """
        try:
            size = self.history.stat().st_size
            if size < state["history_bytes"]:
                raise CheckpointError(
                    f"{self.history} is shorter than its checkpoint says. Restore it, or start in a"
                    " new folder."
                )
            os.truncate(self.history, state["history_bytes"])
        except OSError as error:
            raise CheckpointError(
                f"Cannot go on with {self.history}: {error.strerror}. Make it writable."
            ) from error
        if self._margins:
            self._margins.cut_back(state["epoch"] + 1)
        return History.load(self.history)

    def append(self, row: dict, q: Tensor) -> int:
        """Add one row to the history, and return its new size in bytes. Raises CheckpointError.

        q : the margins of all samples, which are kept where they are recorded.
        """
        # First, so that there is a row of margins for every row that a checkpoint counts.
        if self._margins:
            self._margins.append(q)
        try:
            with open(self.history, "ab") as file:
                file.write(json_line(row).encode())
                return file.tell()
        except OSError as error:
            raise CheckpointError(
                f"Cannot write {self.history}: {error.strerror}. The last checkpoint is intact. "
                "Free some space, then start the same command again to go on."
            ) from error

    def save(self, state: dict, *, now: bool = False) -> None:
        """Replace the checkpoint, unless the last one is only seconds old, with a state that holds
        its `history_bytes`.

        Raises CheckpointError.
        """
        if not now and time.monotonic() - self._saved_at < self._every_seconds:
            return
        # The history must be on disk before a checkpoint refers to its size.
        try:
            with open(self.history, "rb") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise CheckpointError(
                f"Lost the history {self.history}: {error.strerror}. Restore it, or start in a new"
                " folder."
            ) from error
        checkpoint.save(
            self.checkpoint,
            {"netmargin_format": checkpoint.FORMAT, "settings": self._settings, **state},
        )
        self._saved_at = time.monotonic()


def describe_settings(model: nn.Module, data, **settings) -> dict:
    """The settings that must agree for a run to be the same run.

    They are the model's parameters by name and shape, a digest of the data, and what is given.
    """
    shapes = {
        name: list(p.shape) for name, p in model.state_dict().items() if isinstance(p, torch.Tensor)
    }
    return {"model": shapes, "data": fingerprint(data), **settings}


def describe_loss(loss: Loss) -> str:
    """The name of a loss; of a user's own also what it computes, as another may have that name."""
    if type(loss) in TESTED_CLASSES:
        return loss.name
    values = loss.f(torch.tensor(_TOLD_BY, dtype=torch.float64)).tolist()
    shown = (f"f({q:g}) = {value:.6g}" for q, value in zip(_TOLD_BY, values, strict=True))
    return f"{loss.name} with {', '.join(shown)}"


def fingerprint(data) -> str:
    """A short digest of a data set in memory; iterables of batches are not read."""
    if not isinstance(data, Arrays):
        return type(data).__name__
    return digest_of(data.X, data.y, size=8).hex()

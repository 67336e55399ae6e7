"""The history of a run on disk, row by row."""

import os
from pathlib import Path
from typing import Any

from ..core.files import explain_unwritable, make_folder, write_atomically
from ..errors import CheckpointError
from .checkpoint import HISTORY
from .history import History, json_line


class HistoryFile:
    """The history.jsonl of a folder; call `begin` first."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / HISTORY
        self._written, self._end, self._waiting = b"", 0, b""

    def begin(self, rows: list[dict[str, Any]]) -> None:
        """Go on from these rows, and cut off others. CheckpointError if they are of another run."""
        make_folder(self.path.parent)
        content = "".join(map(json_line, rows)).encode()
        found = self.path.read_bytes() if self.path.exists() else b""
        found = found[: found.rfind(b"\n") + 1]  # a crash may cut off the last line
        lines = found.count(b"\n")
        fits = found.startswith(content) or content.startswith(found)
        # The first row is of the net before training, and is no work lost.
        if not (fits if rows else lines <= 1):
            raise CheckpointError(
                f"{self.path} holds the history of another run ({lines} rows), and no checkpoint or"
                " state that fits it was given. Choose another folder."
            )
        write_atomically(self.path, content)
        self._written, self._end, self._waiting = content, len(content), b""

    def read(self, rows: int) -> list[dict[str, Any]]:
        """The first rows of the file. Raises CheckpointError where it has fewer."""
        found = History.load(self.path).rows
        if len(found) < rows:
            raise CheckpointError(
                f"{self.path} is shorter than its checkpoint says. Start in a new folder."
            )
        return found[:rows]

    def append(self, row: dict[str, Any]) -> None:
        """Add a row, after what could not be written before."""
        self._waiting += json_line(row).encode()
        with explain_unwritable(self.path), open(self.path, "r+b") as file:
            file.seek(self._end - len(self._written))
            found, end, _ = file.read().rpartition(b"\n")
            if found + end != self._written:
                raise CheckpointError(
                    f"{self.path} was changed by somebody else, such as a second watch. Give each"
                    " run a folder of its own."
                )
            file.truncate(self._end)  # half a line of a write that failed
            file.seek(self._end)
            file.write(self._waiting)
        self._written, self._waiting = self._waiting, b""
        self._end += len(self._written)

    def sync(self) -> None:
        """Wait until all rows are on the disk. Raises CheckpointError."""
        with explain_unwritable(self.path), open(self.path, "rb") as file:
            os.fsync(file.fileno())

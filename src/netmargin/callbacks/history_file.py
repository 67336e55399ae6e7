"""The history.jsonl of a watched run, row by row."""

from pathlib import Path

from ..core.files import make_folder, write_atomically
from ..errors import CheckpointError
from ..training import History
from ..training.checkpoint import HISTORY
from ..training.history import json_line


class HistoryFile:
    """The history of a watch on disk.

    Parameters
    ----------
    folder : Path
        Its folder, made where it is not there.
    rows : list of dict
        The rows to go on from; none for a new run. Rows of the file beyond them are cut off.

    Raises
    ------
    CheckpointError
        If the folder cannot be written, or its history does not begin with these rows.
    """

    def __init__(self, folder: Path, rows: list[dict]):
        make_folder(folder)
        self.path = folder / HISTORY
        found = History.load(self.path).rows if self.path.exists() else []
        # The first row is of the net before training, and is no work lost.
        other = len(found) > 1 if not rows else found[: len(rows)] != rows[: len(found)]
        if other:
            raise CheckpointError(
                f"{self.path} holds the history of another run ({len(found)} rows). Choose another"
                " folder; or, to go on with that run, give the state that was saved with it."
            )
        content = "".join(map(json_line, rows)).encode()
        write_atomically(self.path, content)
        self._written, self._bytes = len(rows), len(content)

    def write(self, rows: list[dict]) -> None:
        """Append the rows that are not on disk yet. Raises CheckpointError."""
        content = "".join(map(json_line, rows[self._written :])).encode()
        try:
            with open(self.path, "r+b") as file:
                file.truncate(self._bytes)  # half a line of a write that failed
                file.seek(self._bytes)
                file.write(content)
        except OSError as error:
            raise CheckpointError(
                f"Cannot write {self.path}: {error.strerror}. Free some space; rows that are"
                " missing are written with the next one."
            ) from error
        self._written, self._bytes = len(rows), self._bytes + len(content)

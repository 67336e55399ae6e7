"""Files that survive a crash: written whole or not at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ..errors import CheckpointError


def make_folder(path: Path) -> None:
    """Before work whose results could not be kept. Raises CheckpointError where no file can be
    written there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise CheckpointError(
            f"Cannot write to the folder {path}: {error.strerror}. Free some space or choose a"
            " writable folder."
        ) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`; whatever happens, the file is the old one or the new one. Raises
    CheckpointError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CheckpointError(
            f"Cannot write {path}: {error.strerror}. What was saved before is intact. Free some"
            " space or choose a writable folder, then start the same command again to go on."
        ) from error

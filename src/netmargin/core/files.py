"""Files that survive a crash: written whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ArgumentError, CheckpointError


def make_folder(path: Path) -> None:
    """Make a folder in which files can be written, before work whose results need it."""
    with explain_unwritable(path):
        path.mkdir(parents=True, exist_ok=True)
        # Read-only disks and missing permissions show only when a file is written.
        tempfile.TemporaryFile(dir=path).close()


def require_writable(path: Path) -> None:
    """Check before minutes of work that a file can be written; makes its folder."""
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not path.is_file():
        raise ArgumentError(
            f"{path} is no ordinary file, and would be replaced by one. Give another name."
        )
    make_folder(path.parent)


@contextmanager
def explain_unreadable(path: Path, what: str, *damage: type[Exception]) -> Iterator[None]:
    """Raise CheckpointError where a file cannot be read, or raises `damage` and so is `what`."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"Cannot read {path}: {error.strerror or error}. Check the path and its permissions."
        ) from error
    except CheckpointError:
        raise
    except damage as error:
        said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise CheckpointError(
            f"{path} is damaged or {what} ({said}). Give another file, or restore it from a copy."
        ) from error


@contextmanager
def explain_unwritable(path: Path) -> Iterator[None]:
    """Raise CheckpointError where a file cannot be written in a block."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        what = (
            "What was saved before is intact. Free some space, then start the same command again."
            if full
            else "Check the path and its permissions, or choose a writable folder."
        )
        raise CheckpointError(f"Cannot write {path}: {error.strerror}. {what}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`; whatever happens, the file is the old one or the new one."""
    # In the same folder, as a rename is atomic within one file system only; with the process id, as
    # two processes may write the same file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with explain_unwritable(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            # The rename itself survives a power failure once the folder is on the disk too.
            directory = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise

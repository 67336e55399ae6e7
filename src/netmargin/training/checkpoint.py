"""Files of a run that survive a crash: written whole or not at all, read without executing code."""

import io
import pickle
import zipfile
import zlib
from pathlib import Path

import torch

from ..core.files import write_atomically
from ..errors import CheckpointError

FORMAT = 3
"""Version of the checkpoints of runs; 1 and 2 held other random states."""
CHECKPOINT = "checkpoint.pt"
HISTORY = "history.jsonl"
_DAMAGED = (
    *(RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What torch and zipfile raise for files of other bytes."""


def save(path: Path, state: dict) -> None:
    """Write a dict of tensors and plain values, whole or not at all. Raises CheckpointError."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getvalue())


def load(path: Path) -> dict:
    """Read a dict of tensors and plain values, onto the CPU.

    Raises CheckpointError, also for anything that would need code to unpickle.
    """
    try:
        _check_sums(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CheckpointError(
            f"Cannot read {path}: {error.strerror}. Check the path and its permissions."
        ) from error
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"Refused {path}: it is damaged or holds objects other than tensors, numbers and"
            " strings, which could run code. Save state_dict() instead of the whole model."
        ) from error
    except _DAMAGED as error:
        raise CheckpointError(
            f"{path} is damaged or not a PyTorch file: {error}. Restore it from a copy."
        ) from error
    if not isinstance(state, dict):
        raise CheckpointError(
            f"{path} holds a {type(state).__name__}, not a state dict. Save model.state_dict()."
        )
    return state


def read_checkpoint(path: Path) -> dict:
    """Read the checkpoint of a run, of the present format. Raises CheckpointError."""
    state = load(path)
    if "netmargin_format" not in state or not all(
        isinstance(state.get(key), dict) for key in ("model", "settings", "lr")
    ):
        raise CheckpointError(
            f"{path} is not a checkpoint of a netmargin run. Choose another folder."
        )
    if state["netmargin_format"] != FORMAT:
        raise CheckpointError(
            f"{path} was written by another version of netmargin. Go on with that one, or start in"
            " a new folder."
        )
    return state


def _check_sums(path: Path) -> None:
    """Compare the check sums in the file: torch reads past a flipped bit without a word.

    Raises ValueError. A file of another format has none.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if (damaged := archive.testzip()) is not None:
                raise ValueError(f"the check sum of its part {damaged} is wrong")

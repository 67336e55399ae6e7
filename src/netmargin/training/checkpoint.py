"""Files of a run that survive a crash: written whole or not at all, read without executing code."""

import io
import pickle
import zipfile
import zlib
from pathlib import Path

import torch

from ..core.files import explain_unreadable, write_atomically
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
    with explain_unreadable(path, "not a PyTorch file", *_DAMAGED):
        # Torch reads past a flipped bit without a word; a file of another format has no sums.
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                if (damaged := archive.testzip()) is not None:
                    raise ValueError(f"the check sum of its part {damaged} is wrong")
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            state = error
    if isinstance(state, pickle.UnpicklingError):
        raise CheckpointError(
            f"Refused {path}: it is damaged or holds objects other than tensors, numbers and"
            " strings, which could run code. Save state_dict() instead of the whole model."
        ) from state
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

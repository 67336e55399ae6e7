"""Files of a run that survive a crash: written whole or not at all, read without executing code."""

import io
import os
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import CheckpointError

FORMAT = 1
CHECKPOINT = "checkpoint.pt"
HISTORY = "history.jsonl"


def make_folder(path: Path) -> None:
    """Before work whose results could not be kept. Raises CheckpointError where no file can be written there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise CheckpointError(
            f"Cannot write to the folder {path}: {error.strerror}. Free some space or choose a writable folder."
        ) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`; whatever happens, the file is the old one or the new one. Raises CheckpointError."""
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
            f"Cannot write {path}: {error.strerror}. What was saved before is intact. "
            "Free some space or choose a writable folder, then start the same command again to go on."
        ) from error


def save(path: Path, state: dict) -> None:
    """Write a dict of tensors and plain values. Raises CheckpointError."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getvalue())


def load(path: str | Path) -> dict:
    """Read a dict of tensors and plain values; anything that would need code to unpickle is refused. Raises CheckpointError."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror}. Check the path and its permissions.") from error
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"Refused {path}: it is damaged or holds objects other than tensors, numbers and strings, which could run code. "
            "Save state_dict() instead of the whole model."
        ) from error
    except (RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged or not a PyTorch file: {error}. Restore it from a copy.") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{path} holds a {type(state).__name__}, not a state dict. Save model.state_dict().")
    return state


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load a state dict, or the model of a run's checkpoint, into `model`. Raises CheckpointError."""
    state = load(path)
    put_weights(model, state["model"] if _is_checkpoint(state) else state, path)


def put_weights(model: nn.Module, weights: dict, path: str | Path) -> None:
    """Copy weights into `model` if names and shapes agree. Raises CheckpointError and leaves the model as it was."""
    own, given = tensors_of(model), {n: t for n, t in weights.items() if isinstance(t, Tensor)}
    saved = {n for n, t in model.state_dict().items() if isinstance(t, Tensor)}
    problems = [f"{n} is missing in the file" for n in saved if n not in given]
    problems += [f"{n} is unknown to the model" for n in given if n not in own]
    problems += [
        f"{n} has shape {tuple(given[n].shape)} in the file and {tuple(own[n].shape)} in the model"
        for n in own
        if n in given and given[n].shape != own[n].shape
    ]
    if problems:
        raise CheckpointError(
            f"{path} belongs to another model: {'; '.join(problems[:4])}{' ...' if len(problems) > 4 else ''}. "
            "Build the model that the file was saved from."
        )
    with torch.no_grad():
        for name, tensor in given.items():
            own[name].copy_(tensor)


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """All tensors that training may change: those of the state dict, and buffers that are not saved in it."""
    saved = {name: tensor for name, tensor in model.state_dict().items() if isinstance(tensor, Tensor)}
    return dict(model.named_buffers()) | saved


def read_checkpoint(path: Path) -> dict:
    """The checkpoint of a run. Raises CheckpointError."""
    state = load(path)
    if not _is_checkpoint(state):
        raise CheckpointError(f"{path} is not a checkpoint of a netmargin run. Choose another folder.")
    return state


def _is_checkpoint(state: dict) -> bool:
    return state.get("netmargin_format") == FORMAT and all(isinstance(state.get(key), dict) for key in ("model", "settings", "lr"))

"""Files of a run that survive a crash: written whole or not at all, read without executing code."""

import io
import pickle
import zipfile
from pathlib import Path

import torch
from torch import Tensor, nn

from ..core.arguments import check_path
from ..core.caller import warn_caller
from ..core.files import write_atomically
from ..errors import ArgumentError, CheckpointError
from ..nets.accepted_models import check_model
from .safetensors_files import (
    SUFFIX,
    find_in_folder,
    is_safetensors,
    memory_of,
    read_safetensors,
    write_safetensors,
)
from .weight_names import find_weights

FORMAT = 2
"""Version of the checkpoints of runs; 1 held other random states."""
CHECKPOINT = "checkpoint.pt"
HISTORY = "history.jsonl"


def save(path: Path, state: dict) -> None:
    """Write a dict of tensors and plain values, whole or not at all. Raises CheckpointError."""
    # Into memory first, so that the file is written whole or not at all.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getvalue())


def load(path: str | Path) -> dict:
    """Read a dict of tensors and plain values, onto the CPU.

    Raises CheckpointError, also for anything that would need code to unpickle.
    """
    _check_sums(path)
    try:
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
    except (RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path} is damaged or not a PyTorch file: {error}. Restore it from a copy."
        ) from error
    if not isinstance(state, dict):
        raise CheckpointError(
            f"{path} holds a {type(state).__name__}, not a state dict. Save model.state_dict()."
        )
    return state


def _check_sums(path: str | Path) -> None:
    """Compare the check sums in the file: torch reads past a flipped bit without a word.

    Raises CheckpointError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except (OSError, ValueError, zipfile.BadZipFile):
        # Missing, unreadable or of an older format: reading it says so in better words.
        return
    if damaged is not None:
        raise CheckpointError(
            f"{path} is damaged: the check sum of its part {damaged} is wrong. Restore it from a"
            " copy."
        )


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load the weights in a file into `model`, without executing code.

    The file may be a state dict, the checkpoint of a run of netmargin, or a usual checkpoint such
    as {"model_state_dict": ..., "epoch": 3} or one of Lightning; a .safetensors file, or the index
    of several; or the folder of a Hugging Face model, which holds one of these. The names of its
    tensors may begin with "module.", "model.", "_orig_mod." or any other prefix that all of the
    model's names have there. What had to be unwrapped is said in a warning.

    Parameters
    ----------
    model : torch.nn.Module
        The net; changed in place, and only if names and shapes agree. It keeps its device and
        dtype.
    path : str or path
        A file that torch.save or safetensors wrote, or a folder with one.

    Returns
    -------
    None
        The weights are in `model`.

    Raises
    ------
    CheckpointError
        The file cannot be read, is damaged, holds NaN, holds objects that could run code, or is of
        another model.
    ArgumentError
        `path` is no path.
    ModelError
        `model` is no model that can be used.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> net, copy = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.save(net.state_dict(), f"{folder}/weights.pt")
    ...     nm.load_weights(copy, f"{folder}/weights.pt")
    >>> torch.equal(net.weight, copy.weight)
    True

    Beyond the papers.
    """
    file: Path = check_path("path", path)
    model = check_model(model)
    file = find_in_folder(file) if file.is_dir() else file
    state: dict = read_safetensors(file) if is_safetensors(file) else load(file)
    if "netmargin_format" in state and isinstance(state.get("model"), dict):
        put_weights(model, state["model"], path)
        return
    weights, said = find_weights(state, model, path)
    put_weights(model, weights, path)
    if said:
        warn_caller(said)


def save_weights(model: nn.Module, path: str | Path) -> Path:
    """Write the weights of `model` to a .safetensors file, which `load_weights` and others read.

    Such a file holds tensors only, and no code can run from it. Of tied weights it holds one.

    Parameters
    ----------
    model : torch.nn.Module
        The net, also inside `DistributedDataParallel` or `torch.compile`, whose own names are
        written.
    path : str or path
        The file, whose name ends in .safetensors; folders are made as needed, an older file is
        replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CheckpointError
        The file cannot be written, or the weights are of a type that the format has not.
    ArgumentError
        `path` is no path, or ends otherwise.
    ModelError
        `model` is no model that can be used.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> net, copy = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nm.load_weights(copy, nm.save_weights(net, f"{folder}/model.safetensors"))
    >>> torch.equal(net.weight, copy.weight)
    True

    Beyond the papers.
    """
    file: Path = check_path("path", path)
    if file.suffix != SUFFIX:
        raise ArgumentError(
            f"path must end in {SUFFIX}; got {str(path)!r}. torch.save(model.state_dict(), path)"
            " writes other files."
        )
    model = check_model(model)
    state = {n: t for n, t in model.state_dict().items() if isinstance(t, Tensor)}
    write_safetensors(file, state)
    return file


def put_weights(model: nn.Module, weights: dict, path: str | Path) -> None:
    """Copy weights into `model` if names and shapes agree.

    Otherwise raises CheckpointError, and leaves the model as it was.
    """
    own, given = tensors_of(model), {n: t for n, t in weights.items() if isinstance(t, Tensor)}
    saved = {n for n, t in model.state_dict().items() if isinstance(t, Tensor)}
    # Of tied weights safetensors keeps one: the others are the same memory.
    tied = {memory_of(own[n]) for n in given if n in own}
    problems = [
        f"{n} is missing in the file"
        for n in saved
        if n not in given and memory_of(own[n]) not in tied
    ]
    problems += [f"{n} is unknown to the model" for n in given if n not in own]
    problems += [
        f"{n} has shape {tuple(given[n].shape)} in the file and {tuple(own[n].shape)} in the model"
        for n in own
        if n in given and given[n].shape != own[n].shape
    ]
    # Every problem is looked for before the first tensor is copied.
    if problems:
        raise CheckpointError(
            f"{path} belongs to another model:"
            f" {'; '.join(problems[:4])}{' ...' if len(problems) > 4 else ''}. Build the model that"
            " the file was saved from."
        )
    parameters = {name for name, _ in model.named_parameters()}
    for name, tensor in given.items():
        # Masks of attention are buffers that are infinite on purpose: only NaN is refused there.
        if (
            tensor.is_floating_point()
            and not torch.isfinite(tensor).all()
            and (name in parameters or tensor.isnan().any())
        ):
            count = int((~torch.isfinite(tensor)).sum())
            raise CheckpointError(
                f"{path}: {count} of the {tensor.numel()} values of {name} are NaN or infinite. The"
                " run diverged or the file is damaged: take an earlier one."
            )
    with torch.no_grad():
        for name, tensor in given.items():
            own[name].copy_(tensor)


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """All tensors that training may change, by name: those of the state dict, and buffers that are
    not saved in it.
    """
    saved = {
        name: tensor for name, tensor in model.state_dict().items() if isinstance(tensor, Tensor)
    }
    return dict(model.named_buffers()) | saved


def read_checkpoint(path: Path) -> dict:
    """Read the checkpoint of a run, of the present format. Raises CheckpointError."""
    state = load(path)
    # Another format is named as such: "not a checkpoint" would send its owner on a wrong search.
    if (
        _is_checkpoint(state | {"netmargin_format": FORMAT})
        and state.get("netmargin_format") != FORMAT
    ):
        raise CheckpointError(
            f"{path} was written by another version of netmargin. Go on with that one, or start in"
            " a new folder."
        )
    if not _is_checkpoint(state):
        raise CheckpointError(
            f"{path} is not a checkpoint of a netmargin run. Choose another folder."
        )
    return state


def _is_checkpoint(state: dict) -> bool:
    """Whether a saved dict is a checkpoint of a run, of the present format."""
    return state.get("netmargin_format") == FORMAT and all(
        isinstance(state.get(key), dict) for key in ("model", "settings", "lr")
    )

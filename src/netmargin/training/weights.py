"""The weights of a net in files of its own or of other people's training."""

from pathlib import Path

import torch
from torch import Tensor, nn

from ..core.arguments import check_path
from ..core.caller import warn_caller
from ..errors import ArgumentError, CheckpointError
from ..nets.accepted_models import check_model
from .checkpoint import load
from .safetensors_files import (
    SUFFIX,
    find_in_folder,
    is_safetensors,
    memory_of,
    read_safetensors,
    write_safetensors,
)

_COMPILED = "_orig_mod."
"""Put into names by torch.compile, at every module that was compiled."""
_PREFIXES = ("module.", "model.", "net.", "network.", "backbone.")
"""Put before names by DataParallel, Lightning's modules and other modules around a net."""
_KEYS = ("state_dict", "model_state_dict", "model", "weights", "net", "module")
"""Where training scripts and Lightning keep the weights; tried first, as a file may hold several
nets.
"""


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load the weights in a file into `model`, without executing code.

    The file may be a state dict, the checkpoint of a run of netmargin, or a usual checkpoint such
    as {"model_state_dict": ..., "epoch": 3} or one of Lightning; a .safetensors file, or the index
    of several. The prefixes "module.", "model.", "net.", "network." and "backbone.", and
    "_orig_mod." of torch.compile are taken off the names; a warning says so.

    Parameters
    ----------
    model : torch.nn.Module
        The net; changed in place if names and shapes agree. It keeps its device and dtype.
    path : str or path
        A file, or a folder with one, such as that of a Hugging Face model.

    Raises
    ------
    CheckpointError
        The file cannot be read, is damaged, holds NaN, holds objects that could run code, or is of
        another model.
    ArgumentError, ModelError
        `path` is no path, or `model` cannot be used.

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
    weights, said = _unwrap(state, model, path)
    put_weights(model, weights, path)
    if said:
        warn_caller(f"{path}: {'; '.join(said)}.")


def save_weights(model: nn.Module, path: str | Path) -> Path:
    """Write the weights of `model` to a .safetensors file, which `load_weights` and others read.

    Such a file holds tensors only, and no code can run from it. Of tied weights it holds one.

    Parameters
    ----------
    model : torch.nn.Module
        The net, also inside `DistributedDataParallel` or `torch.compile`.
    path : str or path
        The file, whose name ends in .safetensors; it is replaced, its folder made as needed.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CheckpointError
        The file cannot be written, or the weights are of a type that the format has not.
    ArgumentError, ModelError
        `path` is no path or ends otherwise, or `model` cannot be used.

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
    write_safetensors(file, _saved_tensors(check_model(model)))
    return file


def put_weights(model: nn.Module, weights: dict, path: str | Path) -> None:
    """Copy weights into `model` if they fit; else raise CheckpointError, and leave it as it was."""
    own, given = tensors_of(model), _tensors_in(weights)
    # Of tied weights safetensors keeps one: the others are the same memory.
    tied = {memory_of(own[n]) for n in given if n in own}
    problems = [
        f"{n} is missing in the file"
        for n in _saved_tensors(model)
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
        wrong = ~torch.isfinite(tensor) if name in parameters else torch.isnan(tensor)
        if wrong.any():
            raise CheckpointError(
                f"{path}: {int(wrong.sum())} of the {tensor.numel()} values of {name} are NaN or"
                " infinite. The run diverged or the file is damaged: take an earlier one."
            )
    with torch.no_grad():
        for name, tensor in given.items():
            own[name].copy_(tensor)


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """All tensors that training may change: those of the state dict, and buffers beside it."""
    return dict(model.named_buffers()) | _saved_tensors(model)


def _saved_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of the state dict, which may hold other things as well."""
    return _tensors_in(model.state_dict())


def _tensors_in(state: dict) -> dict[str, Tensor]:
    """The tensors of a dict by name."""
    return {str(name): value for name, value in state.items() if isinstance(value, Tensor)}


def _unwrap(state: dict, model: nn.Module, path: str | Path) -> tuple[dict[str, Tensor], list[str]]:
    """The tensors in a file under a model's names, and what was unwrapped; or CheckpointError."""
    wanted = _saved_tensors(model)
    # Of transformers, whose files hold a net with its head under the name of the net.
    prefixes = (*_PREFIXES, f"{getattr(model, 'base_model_prefix', '') or 'model'}.")
    keys = [key for key, value in state.items() if isinstance(value, dict)]
    keys.sort(key=lambda key: key not in _KEYS)
    parts = {None: _tensors_in(state)} | {key: _tensors_in(state[key]) for key in keys}
    read_as = {
        key: {old: _strip(old, wanted, prefixes) for old in part} for key, part in parts.items()
    }
    key = max(parts, key=lambda k: sum(name in wanted for name in read_as[k].values()))
    names = read_as[key]
    if not set(names.values()) & set(wanted):
        raise CheckpointError(
            f"{path} belongs to another model, or holds no weights: it holds {_list_names(state)}."
            f" The model has {_list_names(wanted)}. Build the model that the file was saved from,"
            " and save model.state_dict()."
        )
    said = [f"the weights were found under the key {key!r}"] if key is not None else []
    renamed = [old for old, new in names.items() if new in wanted and new != old]
    if renamed:
        said.append(f"names such as {renamed[0]!r} were read as {names[renamed[0]]!r}")
        # What lies beside the wrapped net is of something else, such as a metric of Lightning's.
        if left := [old for old, new in names.items() if old == new and new not in wanted]:
            said.append(f"{len(left)} other tensors, such as {left[0]}, were left aside")
            names = {old: new for old, new in names.items() if old not in left}
    return {new: parts[key][old] for old, new in names.items()}, said


def _strip(name: str, wanted: dict, prefixes: tuple[str, ...]) -> str:
    """A name without what wrappers have put into it."""
    name = name if name in wanted else name.replace(_COMPILED, "")
    while name not in wanted and name.startswith(prefixes):
        name = name.partition(".")[2]
    return name


def _list_names(names: dict) -> str:
    """The first six names, in quotes."""
    shown = ", ".join(repr(str(name)) for name in list(names)[:6])
    return shown + (" ..." if len(names) > 6 else "") if shown else "nothing"

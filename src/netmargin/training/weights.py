"""The weights of a net in files of its own or of other people's training."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..core.arguments import check_flag, check_path
from ..core.caller import warn_caller
from ..errors import ArgumentError, CheckpointError
from ..nets.accepted_models import check_model, require_shapes
from .checkpoint import load
from .module_state import COMPILED, is_extra_state, make_state, put_state, tensors_of
from .safetensors_files import (
    SUFFIX,
    find_in_folder,
    is_safetensors,
    read_safetensors,
    write_safetensors,
)

_PREFIXES = ("module.", "model.", "net.", "network.", "backbone.")
"""Put before names by DataParallel, Lightning's modules and other modules around a net."""
_KEYS = ("state_dict", "model_state_dict", "model", "weights", "net", "module")
"""Where scripts and Lightning keep the weights; tried first, as a file may hold several nets."""
_REWRITTEN = (
    ("_g", "_v", "torch.nn.utils.remove_weight_norm"),
    ("_orig", "_mask", "torch.nn.utils.prune.remove"),
)
"""Ends of the names of two tensors that a weight is made of, and what makes it one again."""
Reading = tuple[Any, dict[str, Any], list[str]]
"""A key of a file or None, the state dict found there, and what was unwrapped."""
_MOST_WRAPPERS = 4
"""Prefixes before one name: a run of Lightning on several GPUs puts two or three."""
_MOST_READINGS = 8
"""Ways to read a file that are tried where no name is known: usual files have two or three."""


def load_weights(model: nn.Module, path: str | Path, *, strict: bool = True) -> None:
    """Load the weights in a file into `model`, without executing code from it.

    The file may be a state dict, a checkpoint such as {"model_state_dict": ..., "epoch": 3}, one of
    Lightning or of a run of netmargin; one of safetensors, or the index of several. Prefixes such
    as "module." and "_orig_mod." of torch.compile are taken off the names; a warning says so. Then
    the model reads them by its own `load_state_dict`, with its hooks, older forms and extra state.

    Parameters
    ----------
    model : torch.nn.Module
        The net; changed in place if it takes the weights, else left as it was. It keeps its device
        and dtype.
    path : str or path
        A file, or a folder with one, such as that of a Hugging Face model.
    strict : bool, default True
        False leaves aside what the model does not have, and leaves as it is what the file does not
        have; a warning names both.

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
    file = check_path("path", path)
    strict = check_flag("strict", strict)
    model = check_model(model)
    file = find_in_folder(file) if file.is_dir() else file
    content: dict[str, Any] = read_safetensors(file) if is_safetensors(file) else load(file)
    if "netmargin_format" in content and isinstance(content.get("model"), dict):
        content = content["model"]
    wanted = model.state_dict().keys()
    readings = _read_in_all_ways(content, model)
    (key, first, _), *_ = readings
    known = not wanted or not wanted.isdisjoint(first)
    others = _say_what_else_fits(model, [r for r in readings if r[0] != key])
    # Where no name is known, the module may rename them all itself: it says what it takes.
    for _, state, said in readings[: 1 if known else _MOST_READINGS]:
        try:
            said = said + put_state(model, state, path, strict=strict or not known) + others
            if said:
                warn_caller(f"{path}: {'; '.join(said)}.")
            return
        except CheckpointError as error:
            if known:
                advice = [*others, *_advise_on_rewritten(first, wanted)]
                raise CheckpointError(". ".join([str(error).rstrip("."), *advice]) + ".") from error
    told = [
        f"{path} belongs to another model, or holds no weights: it holds {_list_names(content)}",
        f"The model has {_list_names(wanted)}",
        "Build the model that the file was saved from, and save model.state_dict()",
        *_advise_on_rewritten(first, wanted),
    ]
    raise CheckpointError(". ".join(told) + ".")


def save_weights(model: nn.Module, path: str | Path) -> Path:
    """Write the weights of `model` to a .safetensors file, which `load_weights` and others read.

    No code can run from it. Of tied weights it holds one; its metadata are the extra state of
    modules (`get_extra_state`) and their versions.

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
        The file cannot be written, or the format has no place for a type of weights or extra state.
    ArgumentError, ModelError
        `path` is no path or ends otherwise, or `model` cannot be used or has no weights yet.

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
    file = check_path("path", path)
    if file.suffix != SUFFIX:
        raise ArgumentError(
            f"path must end in {SUFFIX}; got {str(path)!r}. torch.save(model.state_dict(), path)"
            " writes other files."
        )
    write_safetensors(file, require_shapes(check_model(model)).state_dict())
    return file


def _say_what_else_fits(model: nn.Module, readings: list[Reading]) -> list[str]:
    """A sentence on the sets of weights in a file, under other keys, that the model could take."""
    shapes = {
        name: tensor.shape for name, tensor in tensors_of(model).items() if not is_lazy(tensor)
    }
    keys = [
        repr(key)
        for key, state, _ in readings
        if shapes and all(getattr(state.get(n), "shape", None) == s for n, s in shapes.items())
    ]
    if not keys:
        return []
    save = f"torch.save(torch.load(path)[{keys[0]}], other_path)"
    return [f"the weights under {' and '.join(keys)} fit the model, too: {save} takes them out"]


def _advise_on_rewritten(held: Collection[str], wanted: Collection[str]) -> list[str]:
    """How weights become one tensor each that only a file, or only a model, has as several."""
    undo = [_find_rewriting(names) for names in (held, wanted)]
    where = ("in its net before it is saved", "in the model before loading")
    pairs = zip(undo, where, strict=True)
    return [f"{name} undoes that {place}" for name, place in pairs if name and undo[0] != undo[1]]


def _find_rewriting(names: Collection[str]) -> str:
    """The function of torch that makes one tensor of those by which a weight is written, or ""."""
    for name in names:
        if ".parametrizations." in f".{name}":
            return "torch.nn.utils.parametrize.remove_parametrizations"
        for end, other, undo in _REWRITTEN:
            if name.endswith(end) and name.removesuffix(end) + other in names:
                return undo
    return ""


def _read_in_all_ways(content: dict[str, Any], model: nn.Module) -> list[Reading]:
    """State dicts that a file may stand for, with what was unwrapped; most known names first."""
    wanted = {name.replace(COMPILED, ""): name for name in model.state_dict()}
    # Of transformers, whose files hold a net with its head under the name of the net.
    prefixes = (*_PREFIXES, f"{getattr(model, 'base_model_prefix', '') or 'model'}.")
    keys = [key for key, value in dict.items(content) if isinstance(value, dict)]
    keys.sort(key=lambda key: key not in _KEYS)
    found = []
    for key in (None, *keys):
        part = content if key is None else content[key]
        bare = {
            name: name.replace(COMPILED, "")
            for name, value in dict.items(part)
            if isinstance(name, str) and (isinstance(value, Tensor) or is_extra_state(name))
        }
        chains = [""]
        for chain in chains:  # grows within
            longer = {chain + prefix for prefix in prefixes if chain.count(".") < _MOST_WRAPPERS}
            chains += [c for c in sorted(longer) if any(n.startswith(c) for n in bare.values())]
        for chain in chains:
            names = {
                wanted.get(new := name.removeprefix(chain), new): old
                for old, name in bare.items()
                if name.startswith(chain) or name in wanted
            }
            said = [] if key is None else [f"the weights were found under the key {key!r}"]
            if renamed := [(old, new) for new, old in names.items() if new != old]:
                said.append("names such as {!r} were read as {!r}".format(*renamed[0]))
            # What lies beside a wrapped net is of something else, such as a metric of Lightning's.
            if left := list(bare.keys() - names.values()):
                said.append(f"{len(left)} other tensors, such as {min(left)}, were left aside")
            state = make_state({new: part[old] for new, old in names.items()}, part, chain)
            found.append((key, state, said))
    known = set(wanted.values())
    return sorted(found, key=lambda reading: -len(reading[1].keys() & known))


def _list_names(names: Collection[str]) -> str:
    """The first six names, in quotes."""
    shown = ", ".join(repr(str(name)) for name in list(names)[:6])
    return shown + (" ..." if len(names) > 6 else "") if shown else "nothing"

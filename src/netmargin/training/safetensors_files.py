"""Weights in files of safetensors: one, the shards of an index, or a folder of Hugging Face."""

import base64
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ..core.files import explain_unreadable, write_atomically
from ..core.records import printable
from ..errors import CheckpointError
from .checkpoint import from_bytes, load, to_bytes

SUFFIX = ".safetensors"
_INDEX = ".index.json"
_BEGINNING = 8
"""Bytes before the header of a file."""
_REST = "netmargin"
"""The key of the metadata with what a state dict holds beside tensors: extra state and versions."""
_IN_FOLDER = (
    *("model.safetensors", "model.safetensors.index.json"),
    *("pytorch_model.bin", "pytorch_model.bin.index.json"),
)
"""What `save_pretrained` writes into a folder, in the order in which it is looked for."""


def find_in_folder(folder: Path) -> Path:
    """The file with the weights in the folder of a model. Raises CheckpointError without one."""
    found = [folder / name for name in _IN_FOLDER if (folder / name).is_file()]
    # A single file under another name, as adapters and other libraries call theirs.
    found = found or sorted(folder.glob(f"*{SUFFIX}"))
    if len(found) != 1 and (not found or found[0].name not in _IN_FOLDER):
        told = "holds no weights" if not found else f"holds {len(found)} files of weights"
        raise CheckpointError(
            f"path names the folder {folder}, which {told}; looked for"
            f" {', '.join(_IN_FOLDER)}. Give the file itself."
        )
    return found[0]


def is_safetensors(path: Path) -> bool:
    """Whether a file is an index of shards, or of this format by its name or how it begins."""
    if path.name.endswith((SUFFIX, _INDEX)):
        return True
    with explain_unreadable(path, "no file of weights"), path.open("rb") as file:
        # The length of the header, in eight bytes, and the header, an object of JSON.
        return file.read(_BEGINNING + 2)[_BEGINNING:] == b'{"'


def read_safetensors(path: Path) -> dict[str, Any]:
    """The state dict in a file, or in all shards of an index. Raises CheckpointError."""
    if not path.name.endswith(_INDEX):
        return _read_file(path)
    found: dict[str, Any] = {}
    for shard, names in _read_index(path).items():
        tensors = (_read_file if shard.endswith(SUFFIX) else load)(path.parent / shard)
        if lacking := sorted(set(names) - set(tensors)):
            raise CheckpointError(
                f"{path} says that {shard} holds {lacking[0]}, and it does not. The shards are"
                " of different models, or damaged: fetch them anew."
            )
        found |= {name: tensors[name] for name in names}
    return found


def write_safetensors(path: Path, state: dict[str, Any]) -> None:
    """Write a state dict, of tensors that share memory the first. Raises CheckpointError."""
    tensors = {name: value for name, value in state.items() if isinstance(value, Tensor)}
    rest = OrderedDict((name, value) for name, value in state.items() if name not in tensors)
    rest._metadata = getattr(state, "_metadata", {})  # type: ignore[attr-defined]
    kept: dict[tuple[Any, ...], str] = {}
    for name, tensor in tensors.items():
        kept.setdefault(memory_of(tensor) if tensor.numel() else (name,), name)
    metadata = {"format": "pt", _REST: base64.b64encode(to_bytes(rest, path)).decode()}
    try:
        # Contiguous copies: a view of a larger tensor would bring all of it along.
        content = {
            name: tensors[name].detach().cpu().contiguous().clone() for name in kept.values()
        }
        data = save(content, metadata=metadata)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"Cannot write {path}: {error}. Save model.state_dict() with torch.save instead."
        ) from error
    write_atomically(path, data)


def memory_of(tensor: Tensor) -> tuple[Any, ...]:
    """What two tensors have in common exactly if they are the same numbers in the same memory."""
    return tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def _read_file(path: Path) -> dict[str, Any]:
    """The state dict in one file. Raises CheckpointError."""
    with (
        explain_unreadable(path, "no safetensors file", Exception),  # of the library and torch
        open(path, "rb") as opened,  # the library's own error for a missing file names no reason
    ):
        # The library opens no names that are not UTF-8.
        place = path if printable(str(path)) == str(path) else f"/dev/fd/{opened.fileno()}"
        with safe_open(place, framework="pt", device="cpu") as file:
            rest = (file.metadata() or {}).get(_REST)
            state = from_bytes(base64.b64decode(rest)) if rest else {}
            state.update((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118
            return state


def _read_index(path: Path) -> dict[str, list[str]]:
    """The names of the tensors in each shard. Raises CheckpointError."""
    with explain_unreadable(path, "no index of shards", ValueError, RecursionError):
        index = json.loads(path.read_text(encoding="utf-8"))
        places = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict) or not places:
            raise ValueError('it has no "weight_map"')
    shards: dict[str, list[str]] = {}
    for name, shard in places.items():
        # A shard lies beside its index: a path could name any file of this machine.
        known = isinstance(shard, str) and shard.endswith((SUFFIX, ".bin"))
        if not known or Path(shard).name != shard:
            raise CheckpointError(
                f"Refused {path}: it says that {name!r} lies in {shard!r}, which is no file of"
                " weights beside it. Fetch the model anew, from somebody you trust."
            )
        shards.setdefault(shard, []).append(name)
    return shards

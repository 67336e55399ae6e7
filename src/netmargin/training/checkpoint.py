"""Files of a run that survive a crash: written whole or not at all, read without executing code."""

import io
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.files import explain_unreadable, write_atomically
from ..errors import CheckpointError

FORMAT = 3
"""Version of the checkpoints of runs; 1 and 2 held other random states."""
CHECKPOINT = "checkpoint.pt"
HISTORY = "history.jsonl"
_FOREIGN = {
    "/constants.pkl": "a TorchScript archive: torch.jit.load(path).state_dict() gives its weights",
    "/archive_format": "of torch.export: torch.export.load(path).state_dict gives its weights",
    ".npy": "numpy's: np.load(path) gives its arrays, torch.from_numpy tensors",
    ".onnx": "an ONNX graph: onnx.numpy_helper.to_array gives its weights",
}
"""Ends of the names of files, or of their parts, of other kinds, and how their weights are read."""
_BEGINNINGS = {
    b"version https://git-lfs": "a pointer of git-lfs: `git lfs pull` fetches the weights",
    b"<": "a web page: download the file itself",
}
"""What other files begin with that are taken for weights."""
_LONGEST_BEGINNING = 200
"""Bytes that are compared with them, with white space before."""


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a dict of tensors and plain values, whole or not at all. Raises CheckpointError."""
    held = state.get("model", {})
    to_bytes({name: value for name, value in held.items() if not isinstance(value, Tensor)}, path)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getvalue())


def to_bytes(extra: dict[str, Any], path: Path) -> bytes:
    """Extra states of modules as torch saves them; CheckpointError where reading would run code."""
    buffer = io.BytesIO()
    try:
        torch.save(extra, buffer)
        from_bytes(buffer.getvalue())
    except Exception as error:  # objects may raise anything when they are pickled
        raise CheckpointError(
            f"Cannot write {path}: an extra state of the model holds {_find_object(error)}. Let"
            " get_extra_state return tensors, numbers, strings, and lists and dicts of such."
        ) from error
    return buffer.getvalue()


def from_bytes(content: bytes) -> dict[str, Any]:
    """What `to_bytes` wrote, read without executing code. Raises what torch raises."""
    state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return state


def load(path: Path) -> dict[str, Any]:
    """Read a dict of tensors and plain values, onto the CPU. CheckpointError for any other file."""
    with explain_unreadable(path, "not a PyTorch file", Exception):  # of torch and zipfile
        names = [path.name]
        # Torch reads past a flipped bit without a word; a file of another format has no sums.
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names += archive.namelist()
                if (damaged := archive.testzip()) is not None:
                    raise ValueError(f"the check sum of its part {damaged} is wrong")
        with path.open("rb") as file:
            begins = file.read(_LONGEST_BEGINNING).lstrip()
        found = [kind for start, kind in _BEGINNINGS.items() if begins.startswith(start)]
        kinds = [kind for end, kind in _FOREIGN.items() if any(n.endswith(end) for n in names)]
        found += [f"{kind}. Save them with torch.save, and load that" for kind in kinds]
        try:
            state = found or torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            state = error
    if found:
        raise CheckpointError(f"{path} is {found[0]}.")
    if isinstance(state, pickle.UnpicklingError):
        held, instead = _find_object(state), "Save state_dict() instead of the whole model"
        if "(numpy" in held:
            held = "arrays or numbers of numpy, which torch reads by running code only"
            instead = "Save torch.from_numpy(array) of each array, and float(number) of each number"
        damaged = "" if "GLOBAL" in str(state) else "is damaged or "
        raise CheckpointError(f"Refused {path}: it {damaged}holds {held}. {instead}.") from state
    if not isinstance(state, dict):
        raise CheckpointError(
            f"{path} holds a {type(state).__name__}, not a state dict. Save model.state_dict()."
        )
    return state


def _find_object(error: Exception) -> str:
    """What cannot be read without running code, as torch says or in general."""
    named = re.search(r"GLOBAL (\S+) was not", str(error))
    such = f" ({named[1]})" if named else ""
    return f"objects other than tensors, numbers and strings{such}, which could run code"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read the checkpoint of a run, of the present format. Raises CheckpointError."""
    state = load(path)
    parts = [state.get(key) for key in ("model", "settings", "lr")]
    if "netmargin_format" not in state or not all(isinstance(part, dict) for part in parts):
        raise CheckpointError(
            f"{path} is not a checkpoint of a netmargin run. Choose another folder."
        )
    if state["netmargin_format"] != FORMAT:
        raise CheckpointError(
            f"{path} is of another version of netmargin. Go on with that, or start in a new folder."
        )
    return state

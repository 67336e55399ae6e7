"""What a module holds, put into it by its own `load_state_dict`: all of it, or nothing."""

import copy
import textwrap
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..errors import CheckpointError, ModelError
from ..nets.accepted_models import require_shapes
from ..nets.model import copy_model, require_finite
from .safetensors_files import memory_of

COMPILED = "_orig_mod."
"""Put into names by torch.compile, at every module that was compiled."""


def is_extra_state(name: str) -> bool:
    """Whether a name of a state dict is that of what `get_extra_state` of a module returned."""
    return name.rpartition(".")[2] == "_extra_state"


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """All tensors that training may change: those of the state dict, and buffers beside it."""
    saved = {n: t for n, t in model.state_dict().items() if isinstance(t, Tensor)}
    return dict(model.named_buffers()) | {n: t for n, t in saved.items() if not is_extra_state(n)}


def copy_state(model: nn.Module) -> dict[str, Any]:
    """A copy of all that training may change: also the extra state of modules."""
    state = model.state_dict(keep_vars=True)  # so that tied weights are one, also in the copy
    held = dict(model.named_buffers()) | state
    tensors = {id(v): v.detach().clone() for v in held.values() if isinstance(v, Tensor)}
    return make_state(copy.deepcopy(held, tensors), state)


def make_state(
    tensors: dict[str, Any], like: dict[str, Any], prefix: str = ""
) -> OrderedDict[str, Any]:
    """A state dict with the versions of modules that another one names, with a prefix there."""
    state, versions = OrderedDict(tensors), getattr(like, "_metadata", None)
    state._metadata = {  # type: ignore[attr-defined]
        name.removeprefix(prefix)[:-1]: version
        for old, version in (versions.items() if isinstance(versions, dict) else ())
        if (name := f"{old}.".replace(COMPILED, "")).startswith(prefix)
    }
    return state


def restore_state(model: nn.Module, state: dict[str, Any], *, strict: bool = True) -> Any:
    """Let a module load a state, and put buffers beside it; what `load_state_dict` returns."""
    beside = {n: b for n, b in model.named_buffers() if n in state}
    if beside:  # without buffers there is no need to know what it saves
        own = model.state_dict()
        beside = {n: b for n, b in beside.items() if n not in own}
    # What a module takes for its own state may change with it: it gets a copy.
    given = {
        n: copy.deepcopy(v) if is_extra_state(n) else v for n, v in state.items() if n not in beside
    }
    found = model.load_state_dict(make_state(given, state), strict=strict)
    for name, buffer in beside.items():
        if state[name].shape != buffer.shape:
            raise ValueError(f"{name} has another shape in the model: {tuple(buffer.shape)}")
        buffer.detach().copy_(state[name])
    return found


def put_state(
    model: nn.Module, state: dict[str, Any], path: str | Path, *, strict: bool = True
) -> list[str]:
    """Let a module load a state from a file, or leave it; sentences on what only one has."""
    # Of tied weights a file may hold one: the others are the same memory.
    known = {n: t for n, t in tensors_of(model).items() if not is_lazy(t) and not t.is_meta}
    own = {name: memory_of(tensor) for name, tensor in known.items()}
    held = {own[n]: t for n, t in state.items() if n in own}
    weights = dict(model.named_parameters())
    try:
        for n in own.keys() & state.keys():
            if state[n] is not (twin := held[own[n]]) and not torch.equal(state[n], twin):
                raise ModelError(f"{n} is tied to another tensor in the model, not in the file.")
        for n in weights.keys() & state.keys():
            if weights[n].is_floating_point() > state[n].is_floating_point():
                raise ModelError(
                    f"{n} is of type {state[n].dtype} in the file, which weights are not."
                )
        tied = {n: held[memory] for n, memory in own.items() if memory in held}
        given = make_state(tied | state, state)
        restore_state(trial := copy_model(model), given, strict=strict)
        require_finite(require_shapes(trial))
        found = restore_state(model, given, strict=strict)
    except ModelError as error:
        raise CheckpointError(f"{path}: {error}") from error
    except Exception as error:  # a module loads by code of its own, which may raise anything
        _, *lines = str(error).strip().split("\n\t")  # of torch, after its head
        told = [textwrap.shorten(line, 200, placeholder=" ...").rstrip(". ") for line in lines[:4]]
        lenient = strict and bool(lines) and "size mismatch" not in str(error)
        hint = ", or pass strict=False to leave aside what only one of the two has"
        raise CheckpointError(
            f"{path} belongs to another model: {'; '.join(told) or repr(error)}. Build the model"
            f" that the file was saved from{hint * lenient}."
        ) from error
    lacking = {"missing": "not in the file and stay as they were", "unexpected": "left aside"}
    return [
        f"{len(names)} names, such as {names[0]!r}, are {what}"
        for kind, what in lacking.items()
        if (names := getattr(found, f"{kind}_keys", ()))
    ]

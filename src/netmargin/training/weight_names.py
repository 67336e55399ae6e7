"""Where the weights of a net are in a file that somebody else's training wrote, and under which
names.
"""

from typing import Any

from torch import Tensor, nn

from ..errors import CheckpointError

_COMPILED = "_orig_mod."
_USUAL = ("state_dict", "model_state_dict", "model", "weights", "net", "module")
"""Under which keys training scripts and Lightning keep the weights, beside those of the optimizer
and the epoch.
"""


def find_weights(state: dict, model: nn.Module, path: Any) -> tuple[dict[str, Tensor], str]:
    """The tensors of `state` that are the model's, under the model's names, and a sentence on what
    was unwrapped (or "").

    state : as read from a file: a state dict, or a dict that holds one under some key; its names
        may have a common prefix, such as "module." of DataParallel, "model." of Lightning, or
        "_orig_mod." of torch.compile.
    model : whose names count.
    path : of the file, for errors.

    Raises
    ------
    CheckpointError : no part of the file has the model's names; the keys that were found are named.
    """
    wanted = [name for name, value in model.state_dict().items() if isinstance(value, Tensor)]
    candidates = [((), state)] + [((key,), state[key]) for key in _ordered(state)]
    for keys, held in candidates:
        tensors = {str(name): value for name, value in held.items() if isinstance(value, Tensor)}
        plain = {name.replace(_COMPILED, ""): name for name in tensors}
        for prefix in _prefixes(plain, wanted):
            # With a prefix, what lies outside of it belongs to something else, such as a metric of
            # Lightning's module.
            own = {
                name.removeprefix(prefix): tensors[old]
                for name, old in plain.items()
                if name.startswith(prefix)
            }
            said = [f"the weights were found under the key {key!r}" for key in keys]
            if any(_COMPILED in name for name in tensors):
                said.append(f'"{_COMPILED}" of torch.compile was taken out of their names')
            if prefix:
                said.append(f'the prefix "{prefix}" was taken off their names')
            if left := sorted(name for name in plain if not name.startswith(prefix)):
                said.append(f"{len(left)} other tensors, such as {left[0]}, were left aside")
            return own, f"{path}: {', '.join(said)}." if said else ""
    raise CheckpointError(_complaint(state, wanted, path))


def _ordered(state: dict) -> list[str]:
    inner = [key for key, value in state.items() if isinstance(value, dict)]
    return [key for key in _USUAL if key in inner] + [key for key in inner if key not in _USUAL]


def _prefixes(names: dict[str, str], wanted: list[str]) -> list[str]:
    """The prefix, the empty one first, under which most of the wanted names are there; none where
    fewer than half are.

    Names that are missing are the caller's affair: they show that the file is of another net, and
    are named then.
    """
    ends = sorted(
        {name.removesuffix(own) for own in wanted for name in names if name.endswith(own)}, key=len
    )
    shares = {
        prefix: sum(prefix + own in names for own in wanted)
        for prefix in ends
        if not prefix or prefix.endswith(".")
    }
    best = max(shares, key=lambda prefix: shares[prefix], default="")
    return [best] if shares and 2 * shares[best] >= len(wanted) else []


def _complaint(state: dict, wanted: list[str], path: Any) -> str:
    def listed(keys: Any) -> str:
        shown = [repr(str(key)) for key in list(keys)[:6]]
        return ", ".join(shown) + (" ..." if len(keys) > 6 else "") if shown else "nothing"

    inner = "".join(f"; under {key!r} it holds {listed(state[key])}" for key in _ordered(state)[:3])
    return (
        f"{path} belongs to another model, or holds no weights: it holds {listed(state)}{inner}."
        f" The model has {listed(wanted)}. Build the model that the file was saved from, and save"
        " model.state_dict()."
    )

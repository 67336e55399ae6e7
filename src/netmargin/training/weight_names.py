"""A search for the weights of a net in a file that somebody else's training wrote, under whatever
names.
"""

from typing import Any

from torch import Tensor, nn

from ..errors import CheckpointError

_COMPILED = "_orig_mod."
"""Put into names by torch.compile, at every module that was compiled."""
_USUAL = ("state_dict", "model_state_dict", "model", "weights", "net", "module")
"""Keys under which training scripts and Lightning keep the weights, beside those of the optimizer
and the epoch; tried first, because a file may hold several nets.
"""


def find_weights(state: dict, model: nn.Module, path: Any) -> tuple[dict[str, Tensor], str]:
    """Find the tensors of a model in a saved dict.

    state : as read from a file: a state dict, or a dict that holds one under some key; its names
        may have a common prefix, such as "module." of DataParallel, "model." of Lightning, or
        "_orig_mod." of torch.compile.
    model : the model whose names are looked for.
    path : of the file, for errors.

    Returns the tensors under the model's names, and a sentence on what was unwrapped (or "").
    Raises CheckpointError where no part of the file has the model's names; it names the keys that
    are there.
    """
    wanted = [name for name, value in model.state_dict().items() if isinstance(value, Tensor)]
    candidates = [((), state)] + [((key,), state[key]) for key in _order_keys(state)]
    for keys, held in candidates:
        tensors = {str(name): value for name, value in held.items() if isinstance(value, Tensor)}
        plain = {name.replace(_COMPILED, ""): name for name in tensors}
        for prefix in _find_prefixes(plain, wanted):
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
    raise CheckpointError(_describe_mismatch(state, wanted, path))


def _order_keys(state: dict) -> list[str]:
    """The keys of `state` that hold dicts, the usual ones first."""
    inner = [key for key, value in state.items() if isinstance(value, dict)]
    return [key for key in _USUAL if key in inner] + [key for key in inner if key not in _USUAL]


def _find_prefixes(names: dict[str, str], wanted: list[str]) -> list[str]:
    """The prefix under which most of the wanted names are there, the shortest if several tie; none
    where fewer than half are.

    Names that are missing are left to `put_weights`, which names them.
    """
    ends = sorted(
        {name.removesuffix(own) for own in wanted for name in names if name.endswith(own)}, key=len
    )
    shares = {
        prefix: sum(prefix + own in names for own in wanted)
        for prefix in ends
        if not prefix or prefix.endswith(".")
    }
    # By count, not by length: a file may hold a metric's tensors beside the net's. The first of the
    # largest is the shortest, as they are in that order.
    best = max(shares, key=lambda prefix: shares[prefix], default="")
    return [best] if shares and 2 * shares[best] >= len(wanted) else []


def _describe_mismatch(state: dict, wanted: list[str], path: Any) -> str:
    """A message that names what the file holds, what the model has, and what to do."""

    def listed(keys: Any) -> str:
        """The first six keys, in quotes."""
        shown = [repr(str(key)) for key in list(keys)[:6]]
        return ", ".join(shown) + (" ..." if len(keys) > 6 else "") if shown else "nothing"

    inner = "".join(
        f"; under {key!r} it holds {listed(state[key])}" for key in _order_keys(state)[:3]
    )
    return (
        f"{path} belongs to another model, or holds no weights: it holds {listed(state)}{inner}."
        f" The model has {listed(wanted)}. Build the model that the file was saved from, and save"
        " model.state_dict()."
    )

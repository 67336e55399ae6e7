"""What an answer says about the means and variances that normalization layers have stored."""

from collections.abc import Iterable

from torch import nn

_NAMED = 2
"""Layers that a sentence names: a ResNet has dozens of them."""


def describe_statistics(model: nn.Module, buffers: Iterable[str]) -> tuple[str, ...]:
    """Say that these stored statistics follow the parameters, and which were never estimated."""
    followed = list(dict.fromkeys(name.rpartition(".")[0] for name in buffers))
    fresh = [
        name for name, module in model.named_modules() if not module.training and _is_fresh(module)
    ]
    notes = []
    if followed:
        notes.append(
            f"the stored statistics of {_name(followed)} follow the parameters, as if they were"
            " estimated again: a mean scales like its signal, a variance like the square"
            ' (statistics="fixed" holds them)'
        )
    if fresh:
        notes.append(
            f"the stored statistics of {_name(fresh)} were never estimated (mean 0, variance 1):"
            " run the net in training mode on the data before it is measured"
        )
    return tuple(notes)


def _is_fresh(module: nn.Module) -> bool:
    """Whether a module stores statistics, and those are still what it was made with."""
    mean, variance = (getattr(module, f"running_{name}", None) for name in ("mean", "var"))
    if mean is None or variance is None or getattr(module, "num_batches_tracked", None):
        return False
    return not mean.any() and bool((variance == 1).all())


def _name(layers: list[str]) -> str:
    """Count layers, and name the first."""
    named = ", ".join(repr(layer) for layer in layers[:_NAMED]) + ", ..." * (len(layers) > _NAMED)
    count = "a normalization layer" if len(layers) == 1 else f"{len(layers)} normalization layers"
    return f"{count} ({named})"

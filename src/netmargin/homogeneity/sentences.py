"""The sentences of an answer that name parameters and layers, of which there may be dozens."""

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from torch import nn

from .vocabulary import Blocker

Exponent = int | Fraction  # whole numbers are ints, so that they print as such

_SHOWN = 3
"""Things of one kind that are named one by one: a transformer has dozens of equal ones."""
_NAMED = 2
"""Layers that a sentence in brackets names: a ResNet has dozens of them."""


def tidy(exponent: Fraction | int) -> Exponent:
    """Turn a fraction that is a whole number into an int."""
    return int(exponent) if exponent == int(exponent) else exponent


def describe_ignored(order: Exponent | None, biases: Sequence[str]) -> str:
    """Say what it means that later biases are ignored."""
    layers = dict.fromkeys(name.rpartition(".")[0] or "the model itself" for name in biases)
    return (
        f"Order {order} with the later biases {', '.join(map(repr, biases))}"
        " ignored: normalized margins do that, nm.certify and nm.maximize_margin only where"
        " these biases are 0, since with them the net is not homogeneous; use bias=False in"
        f" {', '.join(layers)}, or set them to 0 and keep them there."
    )


def describe_fixed_statistics(layers: Sequence[str]) -> str:
    """Say what stored statistics do that do not follow the parameters, and what to do about it."""
    more = f" and {len(layers) - _SHOWN} more" * (len(layers) > _SHOWN)
    divide = "divides" if len(layers) == 1 else "divide"
    return (
        f"In evaluation mode {', '.join(map(repr, layers[:_SHOWN]))}{more} {divide} by stored"
        " statistics, which do not grow with the weights before them, so that scores do not scale"
        " with those weights. Fold these normalizations into the layers before them"
        " (torch.nn.utils.fusion, then requires_grad_(True)), or use nn.GroupNorm, which stores"
        " nothing."
    )


def list_neglected(neglected: Sequence[str]) -> list[str]:
    """Name what exponents neglect, one line each."""
    lines = [f"neglects {text}" for text in neglected[:_SHOWN]]
    return lines + [f"neglects {len(neglected) - _SHOWN} more like these"] * (
        len(neglected) > _SHOWN
    )


def describe_quasi(exponents: dict[str, Exponent]) -> str:
    """Say which power of c each parameter is multiplied by, those that stay left out."""
    by_power: dict[Exponent, list[str]] = {}
    for name, exponent in exponents.items():
        if exponent:
            by_power.setdefault(exponent, []).append(name)
    parts = []
    for power, names in sorted(by_power.items()):
        more = f" and {len(names) - _SHOWN} more" * (len(names) > _SHOWN)
        parts.append(f"{power} ({', '.join(names[:_SHOWN])}{more})")
    return f"quasi-homogeneous: c to the powers {', '.join(parts)} multiplies the outputs by c"


def group_blockers(blockers: Iterable[Blocker]) -> list[str]:
    """One text for each kind of blocker, with the number of modules and the names of some."""
    kinds: dict[str, list[Blocker]] = {}
    for blocker in blockers:
        # The name of a parameter is all that differs within a kind.
        kinds.setdefault(re.sub(r"\bbias '[^']*'", "its bias", blocker.reason), []).append(blocker)
    texts = []
    for reason, alike in kinds.items():
        # A module may have several parameters of one kind.
        modules = list(dict.fromkeys(blocker.module or "the model itself" for blocker in alike))
        where = ", ".join(modules)
        if len(modules) > _SHOWN:
            where = ", ".join([*modules[: _SHOWN - 1], "...", modules[-1]])
        if len(modules) > 1:
            where = f"{len(modules)} modules ({where})"
        instead = " or ".join(dict.fromkeys(blocker.replacement for blocker in alike))
        # Of a single one the name of its parameter can be told.
        told = alike[0].reason if len(alike) == 1 else reason
        texts.append(f"{where}: {told}. Instead: {instead}")
    return texts


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

"""The sentences of an answer that name parameters and layers, of which there may be dozens."""

from collections.abc import Sequence
from fractions import Fraction

Exponent = int | Fraction  # whole numbers are ints, so that they print as such

_SHOWN = 3
"""Things of one kind that are named one by one: a transformer has dozens of equal ones."""


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

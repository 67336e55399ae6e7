"""Curves of the training runs against epochs, and what they show."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ...figures.style import BOTH, OUTPUT, open_canvas
from ..gallery.figure import Check, Figure, Row, Settings
from ._training import CONSTANT, LOSS_BASED, SUBSET, SUBSET_VGG, WITHOUT_BIAS, make_figure, runs

_RISING_SHARE = 0.8
"""Looks at which the margin has to rise: SGD lets it fall at a few, noise alone at half."""
PANELS = {
    "log10_loss": r"$\log_{10}$ training loss",
    "accuracy": "training accuracy",
    "layer_margin": r"margin $q_{\min}/\Pi_i\|W_i\|$",
    "margin": r"margin $q_{\min}/\|\theta\|^L$",
    "alpha": r"relative learning rate $\alpha$",
}


def make_curves(
    net: str,
    rates: tuple[str, ...],
    names: tuple[str, ...],
    check: Callable[..., Any] | None = None,
    **given: Any,
) -> Figure:
    """A figure with a row for each rate, `names` in columns; `check_fit` is the default check."""
    margin = next(name for name in names if "margin" in name)
    titles = {CONSTANT: "constant rate", LOSS_BASED: "loss-based rate"}

    def draw(settings: Settings, rows: list[Row]) -> Any:
        drawn, axes = open_canvas(len(names), len(rates), width=3.6, height=2.9)
        for row_of_axes, rate in zip(axes, rates, strict=True):
            for axis, name in zip(row_of_axes, names, strict=True):
                for row in (row for row in rows if row["rate"] == rate):
                    epochs, values = row["curve"]["epochs"], row["curve"][name]
                    first = 1 if values[0] is None else 0  # there is no rate before training
                    colour = BOTH if row["bias"] == WITHOUT_BIAS else OUTPUT
                    line = axis.plot(epochs[first:], values[first:], color=colour, linewidth=1.5)
                    line[0].set_label(net_name(row))
                axis.set(xlabel="epochs", ylabel=PANELS[name], title=titles[rate])
                if "margin" in name:
                    axis.axhline(0, color="#bbbbbb", linewidth=0.7)
                if name == "alpha":
                    axis.set_yscale("log")
                axis.legend(frameon=False, fontsize=8)
        return drawn

    return make_figure(
        differs=SUBSET if net == "cnn" else SUBSET_VGG,
        runs=lambda settings: runs(net, *rates, biases=settings["biases"]),
        draw=draw,
        check=check or (lambda settings, rows: check_fit(rows, margin)),
        **given,
    )


def net_name(row: Row) -> str:
    """Name a net as the paper does."""
    return "without bias" if row["bias"] == WITHOUT_BIAS else "with bias"


def check_fit(rows: list[Row], margin: str) -> list[Check]:
    """Check that every training sample is correct in the end, and that fitted margins rise."""
    found = []
    for row in rows:
        share = f"{100 * row['accuracy']:.4g}% of the training samples are correct"
        sentence = f"{_name_run(row)}: {share}, log10-loss {row['log10_loss']:.1f}"
        found.append(Check(sentence, row["accuracy"] == 1))
    return found + [rising(row, margin) for row in rows]


def rising(row: Row, name: str = "layer_margin") -> Check:
    """Check that the margin of a fitted net rises at most looks (SGD is noisy), to its largest."""
    margins = [look[name] for look in row["looks"] if look["accuracy"] == 1]
    steps = sum(b > a for a, b in pairwise(margins))
    first, last = (margins[0], margins[-1]) if margins else (float("nan"),) * 2
    return Check(
        f"{_name_run(row)}: once it is fitted, the normalized margin rises from {first:.3g} to"
        f" {last:.3g}, at {steps} of {max(len(margins) - 1, 0)} looks",
        len(margins) > 1 and steps >= _RISING_SHARE * (len(margins) - 1) and last == max(margins),
    )


def _name_run(row: Row) -> str:
    """Name the net and the rate of a run."""
    return f"{net_name(row)}, {row['rate']} rate"

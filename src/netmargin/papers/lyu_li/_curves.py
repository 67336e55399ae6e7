"""Curves of the training runs against epochs, and what they show."""

from collections.abc import Callable
from itertools import pairwise

from ...figures.style import BOTH, OUTPUT, open_canvas
from ..gallery.figure import Check, Figure, Row
from ._training import (
    CONSTANT,
    LOSS_BASED,
    RUNS,
    SCALES,
    SUBSET,
    SUBSET_VGG,
    WITHOUT_BIAS,
    concerns,
    runs,
    train_net,
)

_RISING_SHARE = 0.8
"""The share of the looks at which the margin has to rise. SGD lets it fall at single ones; a margin
that only fluctuates rises at about half of them.
"""
PANELS = {
    "log10_loss": r"$\log_{10}$ training loss",
    "accuracy": "training accuracy",
    "layer_margin": r"margin $q_{\min}/\Pi_i\|W_i\|$",
    "margin": r"margin $q_{\min}/\|\theta\|^L$",
    "alpha": r"relative learning rate $\alpha$",
}


def make_figure(
    id: str,
    net: str,
    rates: tuple[str, ...],
    names: tuple[str, ...],
    check: Callable,
    *,
    title: str,
    finding: str,
    minutes: tuple[float, float, float],
) -> Figure:
    """A figure of curves of training runs, which all figures of this paper share."""
    titles = {CONSTANT: "constant rate", LOSS_BASED: "loss-based rate"}
    return Figure(
        id=id,
        title=title,
        finding=finding,
        differs=SUBSET if net == "cnn" else SUBSET_VGG,
        scales=SCALES,
        minutes=dict(zip(SCALES, minutes, strict=True)),
        runs=lambda settings: runs(net, *rates),
        compute=train_net,
        concerns=concerns,
        draw=lambda settings, rows: draw_curves(
            rows, {rate: titles[rate] for rate in rates}, names
        ),
        check=check,
        runs_of=RUNS,
    )


def draw_curves(rows: list[Row], rates: dict[str, str], names: tuple[str, ...]):
    """Draw one row of panels for each rate, with its title: quantities by name, for the nets
    without and with bias.
    """
    drawn, axes = open_canvas(len(names), len(rates), width=3.6, height=2.9)
    for row_of_axes, (rate, title) in zip(axes, rates.items(), strict=True):
        for axis, name in zip(row_of_axes, names, strict=True):
            for row in rows:
                if row["rate"] == rate:
                    epochs, values = row["curve"]["epochs"], row["curve"][name]
                    first = 1 if values[0] is None else 0  # there is no rate before training
                    axis.plot(
                        epochs[first:],
                        values[first:],
                        label=net_name(row),
                        color=_choose_colour(row),
                        linewidth=1.5,
                    )
            axis.set(xlabel="epochs", ylabel=PANELS[name], title=title)
            if "margin" in name:
                axis.axhline(0, color="#bbbbbb", linewidth=0.7)
            if name == "alpha":
                axis.set_yscale("log")
            axis.legend(frameon=False, fontsize=8)
    return drawn


def net_name(row: Row) -> str:
    """Name a net as the paper does."""
    return "without bias" if row["bias"] == WITHOUT_BIAS else "with bias"


def _choose_colour(row: Row) -> str:
    """The colour of a net, the same in all panels."""
    return BOTH if row["bias"] == WITHOUT_BIAS else OUTPUT


def fitted(row: Row) -> Check:
    """Check that every training sample is correct in the end."""
    return Check(
        f"{_name_run(row)}: {100 * row['accuracy']:.4g}% of the training samples are correct,"
        f" log10-loss {row['log10_loss']:.1f}",
        row["accuracy"] == 1,
    )


def rising(row: Row, name: str = "layer_margin") -> Check:
    """Check that the margin rises once all samples are correct: at most of the looks, because SGD
    is noisy, and to its largest value.
    """
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

"""Test errors of both ways to train a wide two-layer net, on the clusters of Section 7."""

from pathlib import Path

import numpy as np

from ...datasets import clusters
from ...figures.style import BOTH, OUTPUT, draw_band, open_canvas
from ...kernels import random_features
from ...twolayer import train_both_layers
from ..gallery.figure import Check, Figure, Row, Settings
from ._fixed_features import train_output_layer


def make_figure(id: str, name: str, values: list[int], small: dict, fixed: dict, **given) -> Figure:
    """A figure of test errors against `name`, n or d; at smoke scale of the `small` settings."""
    shared = {"runs": 6, "width": 400, "steps": 10_000, "tested": 5000}
    paper = {"runs": 20, "width": 1000, "steps": 50_000, "tested": 10_000}
    smoke = {"runs": 6, "width": 100, "steps": 2000, "tested": 1000}
    return Figure(
        id=id,
        differs="balanced start on the sphere instead of N(0, 1) for both layers",
        scales={
            "smoke": small | smoke,
            "laptop": fixed | {name: values} | shared,
            "paper": fixed | {name: values} | paper,
        },
        runs=lambda settings: [
            {name: value, "seed": seed}
            for value in settings[name]
            for seed in range(settings["runs"])
        ],
        compute=_compute,
        concerns=lambda run, setting: setting not in (name, "runs"),
        **given,
    )


def _compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Measure the test errors of one experiment."""
    n, d = (run[key] if key in run else settings[key] for key in ("n", "d"))
    return errors(n, d, run["seed"], settings)


def larger_half(name: str, rows: list[Row]) -> Check:
    """Check that both layers err less than the output layer, over the larger half of the values."""
    values, both, output = errors_by(name, rows)
    half = slice(len(values) // 2, None)
    where = f"for {name} = {', '.join(map(str, values[half]))}"
    return difference(both[:, half], output[:, half], where)


def errors(n: int, d: int, seed: int, settings: Settings) -> Row:
    """Measure the shares of new samples that both nets misclassify after `steps` iterations, each
    with `width` neurons.
    """
    X, y = clusters(n + settings["tested"], d, k=3, seed=seed)
    T, t = X[n:], y[n:].numpy()
    X, y = X[:n], y[:n]
    runs = train_both_layers(
        X, y, width=settings["width"], steps=settings["steps"], seeds=(seed,), progress=False
    )
    both = runs.measures[0].decision_function(T)
    features, tested = (random_features(part, settings["width"], seed=seed) for part in (X, T))
    output = tested @ train_output_layer(features, y, steps=settings["steps"]).weights
    return {
        "both_layers": float((t * both <= 0).mean()),
        "output_layer": float((t * output <= 0).mean()),
    }


def errors_by(name: str, rows: list[Row]) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Collect the test errors by the values of the parameter `name`.

    Returns the values, and the errors of both layers and of the output layer, (seeds, values).
    """
    values = sorted({row[name] for row in rows})
    by = {
        method: (
            np.array([[row[method] for row in rows if row[name] == value] for value in values]).T
        )
        for method in ("both_layers", "output_layer")
    }
    return values, by["both_layers"], by["output_layer"]


def draw_errors(name: str, label: str, rows: list[Row], *, logarithmic: bool = False):
    """Draw test errors as the paper does: thick lines are means, thin ones single experiments."""
    values, both, output = errors_by(name, rows)
    drawn, ((axis,),) = open_canvas()
    draw_band(axis, values, output, colour=OUTPUT, label="output layer")
    draw_band(axis, values, both, colour=BOTH, label="both layers")
    if logarithmic:
        axis.set_xscale("log", base=2)
    axis.set_xticks(values, [str(value) for value in values])
    axis.set(xlabel=label, ylabel="test error", ylim=(0, None))
    axis.legend(frameon=False)
    return drawn


def difference(both: np.ndarray, output: np.ndarray, where: str) -> Check:
    """Check that training both layers has the smaller error, (seeds, values), in the mean by more
    than two standard errors.
    """
    gain = (output - both).mean(1)
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    sentence = (
        f"both layers err on {100 * both.mean():.1f}%, the output layer on"
        f" {100 * output.mean():.1f}% {where} (difference {100 * gain.mean():.1f} +-"
        f" {100 * error:.1f})"
    )
    return Check(sentence, bool(gain.mean() > 2 * error))

"""Test errors of both ways to train a wide two-layer net, on the clusters of Section 7."""

from typing import Any

from ...datasets import clusters
from ...figures.style import BOTH, OUTPUT, draw_band, open_canvas
from ...kernels import random_features
from ...twolayer import train_both_layers
from ..gallery.comparison import is_positive, larger_half, standard_errors, tabulate
from ..gallery.figure import Check, Figure, Row, Settings, by_scale, cross
from ._fixed_features import train_output_layer


def make_figure(name: str, label: str, *, logarithmic: bool = False, **given: Any) -> Figure:
    """A figure of test errors against `name`, n or d; `given` has both as `by_scale` takes them."""
    fixed = "nd".replace(name, "")

    def draw(settings: Settings, rows: list[Row]) -> Any:
        """Draw test errors as the paper does: thick lines are means, thin ones single runs."""
        drawn, ((axis,),) = open_canvas()
        values, output = tabulate(rows, "output_layer", name)
        draw_band(axis, values, output, colour=OUTPUT, label="output layer")
        both = tabulate(rows, "both_layers", name)[1]
        draw_band(axis, values, both, colour=BOTH, label="both layers")
        if logarithmic:
            axis.set_xscale("log", base=2)
        axis.set_xticks(values, [str(value) for value in values])
        axis.set(xlabel=f"{label} {name} ({fixed} = {settings[fixed]})", ylabel="test error")
        axis.set_ylim(0, None)
        axis.legend(frameon=False)
        return drawn

    return Figure(
        differs="balanced start on the sphere instead of N(0, 1) for both layers",
        scales=by_scale(
            n=given.pop("n"),
            d=given.pop("d"),
            runs=(6, 6, 20),
            width=(100, 400, 1000),
            steps=(2000, 10_000, 50_000),
            tested=(1000, 5000, 10_000),
        ),
        runs=lambda settings: cross(**{name: settings[name]}, seed=range(settings["runs"])),
        compute=compute,
        concerns=lambda run, setting: setting not in (name, "runs"),
        draw=draw,
        **given,
    )


def compute(run: Row, settings: Settings) -> Row:
    """Measure the shares of new samples that both nets misclassify, with `width` neurons each."""
    given = {**settings, **run}
    n, seed, width, steps = (given[name] for name in ("n", "seed", "width", "steps"))
    X, y = clusters(n + given["tested"], given["d"], k=3, seed=seed)
    (X, T), (y, t) = (X[:n], X[n:]), (y[:n], y[n:].numpy())
    runs = train_both_layers(X, y, width=width, steps=steps, seeds=(seed,), progress=False)
    features, tested = (random_features(part, width, seed=seed) for part in (X, T))
    output = tested @ train_output_layer(features, y, steps=steps).weights
    return {
        "both_layers": float((t * runs.measures[0].decision_function(T) <= 0).mean()),
        "output_layer": float((t * output <= 0).mean()),
    }


def check_larger_half(name: str, rows: list[Row]) -> Check:
    """Check that both layers err less over the larger half of values, by two standard errors."""
    values, (both, output) = larger_half(rows, name, "both_layers", "output_layer")
    gain = output - both
    sentence = (
        f"both layers err on {100 * both.mean():.1f}%, the output layer on"
        f" {100 * output.mean():.1f}% for {name} = {', '.join(map(str, values))} (difference"
        f" {100 * gain.mean():.1f} +- {100 * standard_errors(gain):.1f})"
    )
    return Check(sentence, is_positive(gain))

"""Figure 3: test error and normalized margin against the hidden layer size, synthetic data and
MNIST.
"""

from functools import partial
from typing import Any

import numpy as np

from ... import datasets
from ...figures.style import BOTH, open_canvas
from ...margins import measure
from ...models import mlp
from ...regularization.path import regularization_path
from ..gallery.comparison import draw_means, is_positive, standard_errors, tabulate
from ..gallery.figure import Check, Figure, Row, Settings, by_scale, cross
from ..wei_2018._interpolation import load_minimizer


def compute(run: Row, settings: Settings) -> Row:
    """Measure margin and test error of a weakly regularized minimizer of one width."""
    of_teacher = run["data"] == "teacher"
    (X, y), (T, t) = _teacher(run, settings) if of_teacher else _images(run, settings)
    strongest, weakest = settings["lambdas"] if of_teacher else settings["image_lambdas"]
    lambdas = np.geomspace(strongest, weakest, settings["stages"]).tolist()
    make = partial(mlp, [X.shape[1], run["width"], 1 if of_teacher else 10], bias="none")
    options = {"starts": 1, "iterations": settings["iterations"], "seed": run["seed"]}
    path = regularization_path(make, (X, y), lambdas=lambdas, progress=False, **options)
    error = 1 - measure(load_minimizer(make, path), (T, t)).accuracy
    return {"test_error": error, "margin": path.rows[-1]["normalized_margin"]}


def _teacher(run: Row, settings: Settings) -> Any:
    """Draw training and test samples of a random teacher."""
    n, tested = settings["n"], settings["tested"]
    X, y = datasets.teacher(n + tested, settings["d"], units=10, margin=0.01, seed=run["seed"])
    return (X[:n], y[:n]), (X[n:], y[n:])


def _images(run: Row, settings: Settings) -> Any:
    """Load training and test images, flattened."""
    load = datasets.BY_NAME[run["data"]]
    train = load("train", limit=settings["images"])
    tested = load("test", limit=settings["tested_images"])
    return [(X.flatten(1), y) for X, y in (train, tested)]


def by_width(rows: list[Row], data: str, name: str) -> tuple[list[int], np.ndarray]:
    """Collect the widths, and a result (runs, widths) of the runs that fit at every width."""
    bad = {row["seed"] for row in rows if row["data"] == data and row["margin"] <= 0}
    fit = [row for row in rows if row["data"] == data and row["seed"] not in bad]
    return tabulate(fit, name, "width")


RESULTS = {
    "test_error": ("test error", "test error", -1),
    "margin": ("normalized margin", r"margin $q_{\min}/\|\Theta\|^2$", 1),
}
"""The results in words, as axes call them, and whether they should fall or rise with the width."""


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw test errors (top) and margins (bottom), with two standard errors."""
    names = {"teacher": f"teacher of 10 units, d = {settings['d']}, n = {settings['n']}"}
    names[settings["image_data"]] = f"{settings['image_data']}, {settings['images']:,} images"
    drawn, axes = open_canvas(2, 2, height=2.6)
    for column, (data, title) in zip(axes.T, names.items(), strict=True):
        for axis, (name, (_, label, _)) in zip(column, RESULTS.items(), strict=True):
            draw_means(axis, *by_width(rows, data, name), color=BOTH)
            axis.set_xscale("log", base=2)
            axis.set(xlabel="hidden units m", ylabel=label)
        column[0].set_title(title)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Compare the wider with the narrower half of the widths, on the same samples."""
    checks = []
    for data in ("teacher", settings["image_data"]):
        for name, (words, _, sign) in RESULTS.items():
            widths, values = by_width(rows, data, name)
            half = len(widths) // 2
            narrow, wide = values[:, :half].mean(1), values[:, half:].mean(1)
            gain = wide - narrow
            noise = f" +- {standard_errors(gain):.2g}" if len(values) > 1 else ""
            sentence = (
                f"{data}: mean {words} {narrow.mean():.3g} for m ="
                f" {', '.join(map(str, widths[:half]))}, {wide.mean():.3g} for m ="
                f" {', '.join(map(str, widths[half:]))} (difference {gain.mean():.2g}{noise})"
            )
            checks.append(Check(sentence, is_positive(sign * gain, settings["standard_errors"])))
    return checks


def runs(settings: Settings) -> list[Row]:
    """List the runs; the widest, which take longest, come first."""
    widths, seeds = reversed(settings["widths"]), range(settings["runs"])
    images = {"data": [settings["image_data"]], "width": reversed(settings["image_widths"])}
    return cross(**images, seed=[0]) + cross(data=["teacher"], width=widths, seed=seeds)


_WIDTHS = [2**k for k in range(4, 11)]

FIGURE = Figure(
    finding="the wider the net, the larger the margin and the smaller the test error",
    differs=(
        "L-BFGS minimizes to lambda = 1e-5 and 1e-6 (images) in place of 80,000 gradient steps and"
        " 600 epochs, and n = 200 is assumed; at paper scale the widest nets need about 60 GB of"
        " memory each"
    ),
    scales=by_scale(
        d=(6, 20, 20),
        n=(60, 200, 200),
        widths=([4, 16, 64], _WIDTHS, _WIDTHS),
        iterations=(30, 60, 60),
        # The strongest and weakest lambda of a path, and the number of its stages. Few stages keep
        # the wide nets within minutes; a weaker lambda would bring the margin nearer to its limit.
        lambdas=[1e-2, 1e-5],
        image_lambdas=[1e-3, 1e-6],
        stages=4,
        runs=(3, 10, 20),
        standard_errors=(0, 2, 2),
        tested=(1000, 4000, 10_000),
        image_data=("digits", "mnist", "mnist"),
        images=(200, 1000, 60_000),
        tested_images=(300, 4000, 10_000),
        image_widths=([8, 32, 128], [2**k for k in range(4, 10)], [2**k for k in range(6, 16)]),
    ),
    minutes={"smoke": 0.2, "laptop": 6.0, "paper": 4_000.0},
    runs=runs,
    compute=compute,
    concerns=lambda run, setting: (
        setting not in ("widths", "image_widths", "runs", "standard_errors")
    ),
    draw=draw,
    check=check,
)

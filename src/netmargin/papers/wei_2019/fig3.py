"""Figure 3: test error and margin against the width, on data of a teacher and on images."""

from pathlib import Path

import numpy as np

from ... import datasets
from ...figures.style import BOTH, open_canvas
from ...margins import measure
from ...models import mlp
from ...regularization.path import regularization_path
from ..gallery.figure import Check, Figure, Row, Settings


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Measure margin and test error of a weakly regularized minimizer of one width."""
    of_teacher = run["data"] == "teacher"
    (X, y), (T, t) = _teacher(run, settings) if of_teacher else _images(run, settings)
    strongest, weakest = settings["lambdas"] if of_teacher else settings["image_lambdas"]
    lambdas = np.geomspace(strongest, weakest, settings["stages"]).tolist()
    widths = [X.shape[1], run["width"], 1 if of_teacher else 10]
    make = lambda: mlp(widths, bias="none")  # noqa: E731
    options = {
        "starts": 1,
        "iterations": settings["iterations"],
        "seed": run["seed"],
        "progress": False,
    }
    path = regularization_path(make, (X, y), lambdas=lambdas, **options)
    net = make().double()
    net.load_state_dict(path.states[lambdas[-1]])
    return {
        "test_error": 1 - measure(net, (T, t)).accuracy,
        "margin": path.rows[-1]["normalized_margin"],
    }


def _teacher(run: Row, settings: Settings):
    """Draw training and test samples of a random teacher."""
    n, tested = settings["n"], settings["tested"]
    X, y = datasets.teacher(n + tested, settings["d"], units=10, margin=0.01, seed=run["seed"])
    return (X[:n], y[:n]), (X[n:], y[n:])


def _images(run: Row, settings: Settings):
    """Load training and test images, flattened."""
    load = datasets.BY_NAME[run["data"]]
    return [
        (X.flatten(1), y)
        for X, y in (
            load("train", limit=settings["images"]),
            load("test", limit=settings["tested_images"]),
        )
    ]


def by_width(rows: list[Row], data: str, name: str) -> tuple[list[int], np.ndarray]:
    """Collect the widths, and a result of the runs whose nets fit their samples at every width,
    (runs, widths).
    """
    of_data = [row for row in rows if row["data"] == data]
    bad = {row["seed"] for row in of_data if row["margin"] <= 0}
    widths = sorted({row["width"] for row in of_data})
    found = {(row["seed"], row["width"]): row[name] for row in of_data}
    return widths, np.array(
        [
            [found[seed, m] for m in widths]
            for seed in sorted({row["seed"] for row in of_data} - bad)
        ]
    )


def _estimate_noise(values: np.ndarray) -> np.ndarray | float:
    """Standard errors of means over runs; 0 for a single one, from which they are unknown."""
    return values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0


def draw(settings: Settings, rows: list[Row]):
    """Draw test errors (top) and margins (bottom), with two standard errors."""
    names = {"teacher": f"teacher of 10 units, d = {settings['d']}, n = {settings['n']}"}
    names[settings["image_data"]] = f"{settings['image_data']}, {settings['images']:,} images"
    drawn, axes = open_canvas(2, 2, height=2.6)
    for column, (data, title) in enumerate(names.items()):
        for axis, name, label in (
            (axes[0, column], "test_error", "test error"),
            (axes[1, column], "margin", r"margin $q_{\min}/\|\Theta\|^2$"),
        ):
            widths, values = by_width(rows, data, name)
            axis.errorbar(
                widths,
                values.mean(0),
                2 * _estimate_noise(values),
                color=BOTH,
                marker="o",
                markersize=4,
                capsize=2,
            )
            axis.set_xscale("log", base=2)
            axis.set(xlabel="hidden units m", ylabel=label)
        axes[0, column].set_title(title)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Compare the wider with the narrower half of the widths, on the same samples."""
    checks = []
    for data in ("teacher", settings["image_data"]):
        for words, name, better in (
            ("test error", "test_error", -1),
            ("normalized margin", "margin", 1),
        ):
            widths, values = by_width(rows, data, name)
            half = len(widths) // 2
            narrow, wide = values[:, :half].mean(1), values[:, half:].mean(1)
            noise = f" +- {_estimate_noise(wide - narrow):.2g}" if len(values) > 1 else ""
            sentence = (
                f"{data}: mean {words} {narrow.mean():.3g} for m ="
                f" {', '.join(map(str, widths[:half]))}, {wide.mean():.3g} for m ="
                f" {', '.join(map(str, widths[half:]))} (difference"
                f" {(wide - narrow).mean():.2g}{noise})"
            )
            checks.append(
                Check(
                    sentence,
                    bool(
                        better * (wide - narrow).mean()
                        > settings["standard_errors"] * _estimate_noise(wide - narrow)
                    ),
                )
            )
    return checks


def runs(settings: Settings) -> list[Row]:
    """List the runs; the widest, which take longest, come first."""
    teachers = [
        {"data": "teacher", "width": m, "seed": seed}
        for m in reversed(settings["widths"])
        for seed in range(settings["runs"])
    ]
    return [
        {"data": settings["image_data"], "width": m, "seed": 0}
        for m in reversed(settings["image_widths"])
    ] + teachers


# The strongest and weakest lambda of a path, and the number of its stages. Few stages keep the wide
# nets within minutes; a weaker lambda would bring the margin nearer to its limit.
_PATHS = {"lambdas": [1e-2, 1e-5], "image_lambdas": [1e-3, 1e-6], "stages": 4}
_TEACHER = {"d": 20, "n": 200, "widths": [2**k for k in range(4, 11)], "iterations": 60} | _PATHS

FIGURE = Figure(
    id="wei-2019/fig3",
    title=(
        "test error and normalized margin against the hidden layer size, synthetic data and MNIST"
    ),
    finding="the wider the net, the larger the margin and the smaller the test error",
    differs=(
        "L-BFGS minimizes to lambda = 1e-5 and 1e-6 (images) in place of 80,000 gradient steps and"
        " 600 epochs, and n = 200 is assumed; at paper scale the widest nets need about 60 GB of"
        " memory each"
    ),
    scales={
        "smoke": {
            "d": 6,
            "n": 60,
            "widths": [4, 16, 64],
            "iterations": 30,
            **_PATHS,
            "runs": 3,
            "standard_errors": 0,
            "tested": 1000,
            "image_data": "digits",
            "images": 200,
            "tested_images": 300,
            "image_widths": [8, 32, 128],
        },
        "laptop": (
            _TEACHER
            | {
                "runs": 10,
                "standard_errors": 2,
                "tested": 4000,
                "image_data": "mnist",
                "images": 1000,
                "tested_images": 4000,
                "image_widths": [2**k for k in range(4, 10)],
            }
        ),
        "paper": (
            _TEACHER
            | {
                "runs": 20,
                "standard_errors": 2,
                "tested": 10_000,
                "image_data": "mnist",
                "images": 60_000,
                "tested_images": 10_000,
                "image_widths": [2**k for k in range(6, 16)],
            }
        ),
    },
    minutes={"smoke": 0.2, "laptop": 6.0, "paper": 4_000.0},
    runs=runs,
    compute=compute,
    concerns=lambda run, setting: (
        setting
        not in (
            "widths",
            "image_widths",
            "runs",
            "standard_errors",
        )
    ),
    draw=draw,
    check=check,
)

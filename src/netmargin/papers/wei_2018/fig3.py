"""Figure 3: neural networks and kernel methods, classification and regression, with bounds."""

import math
from functools import partial
from typing import Any

import numpy as np

from ...bounds import kernel_bound, regression_bound, truncated_squares, two_layer_bound
from ...datasets import teacher, teacher_net
from ...figures.style import BOTH, OUTPUT, open_canvas
from ...kernels import arc_cosine
from ...models import mlp
from ...regularization import regularization_path
from ...solvers import f2_max_margin, min_norm_interpolation
from ..gallery.comparison import draw_means, is_positive, larger_half, standard_errors, tabulate
from ..gallery.figure import Check, Figure, Row, Settings, by_scale, cross
from ._interpolation import evaluate_minimizer, interpolation_path

COMPLEXITY = "complexity, 4 Rad / gamma"
KINDS = {"": ("classification", "0-1 error"), "_squares": ("regression", "squared error")}
"""What is learnt and its error, by the ending of the names of results."""


def compute(run: Row, settings: Settings) -> Row:
    """Errors and bounds of the weakly regularized net, m = n, and the kernel, for one teacher."""
    n, d, seed, tested = run["n"], settings["d"], run["seed"], settings["tested"]
    X, y = teacher(n + tested, d, units=6, margin=0.1, seed=seed)
    values = teacher_net(d, units=6, seed=seed)(X)[:, 0].detach()
    T, t, v = X[n:], y[n:].numpy(), values[n:]
    scale = values[:n].std()
    X, y, values, v = X[:n], y[:n], values[:n] / scale, (v / scale).numpy()
    radius = float(X.norm(dim=1).max())
    found: Row = {}
    make = partial(mlp, [d, n, 1], bias="none")
    options = {"starts": 1, "iterations": settings["iterations"], "seed": seed}
    lambdas = [1e-2, 1e-4, 1e-6, 1e-8]
    path = regularization_path(make, (X, y), lambdas=lambdas, progress=False, **options)
    found["net"] = float((t * evaluate_minimizer(make, path, T) <= 0).mean())
    q = path.rows[-1]["normalized_margin"]
    # Only the smallest margin and the norms of the inputs enter the leading terms.
    bound = two_layer_bound(np.full(n, q), X, radius=radius) if q > 0 else None
    found["net_bound"] = bound.terms[COMPLEXITY] if bound else None
    kernel, K = f2_max_margin(X, y, bias=False), arc_cosine(X, bias=False)
    outputs = kernel.decision_function(arc_cosine(T, X, bias=False))
    found["kernel"] = float((t * outputs <= 0).mean())
    bound = kernel_bound(np.full(n, kernel.margin), K, largest=radius / math.sqrt(2 * d))
    found["kernel_bound"] = bound.terms[COMPLEXITY]

    path = interpolation_path(make, X, values, lambdas=[1e-1, 1e-2, 1e-4, 1e-8], **options)
    smooth = min_norm_interpolation(X, values, bias=False, norm="l2")
    for name, outputs, norm in (
        ("net", evaluate_minimizer(make, path, T), path.rows[-1]["norm"] ** 2 / 2),
        ("kernel", smooth.decision_function(T), smooth.norm),
    ):
        found[f"{name}_squares"] = float(((outputs - v) ** 2).mean())
        terms: Row = {"largest_loss": 1.0, "lipschitz": 2.0, "kernel": name == "kernel"}
        bound = regression_bound(truncated_squares(values, values), X, norm=norm, **terms)
        found[f"{name}_squares_bound"] = bound.terms["complexity"]
    return found


def draw(settings: Settings, rows: list[Row], *, bounds: bool = True) -> Any:
    """Draw test errors with two standard errors (solid), and the terms of the bounds (dotted)."""
    drawn, (axes,) = open_canvas(2)
    for axis, (suffix, (title, label)) in zip(axes, KINDS.items(), strict=True):
        for method, colour in (("net", BOTH), ("kernel", OUTPUT)):
            draw_means(axis, *tabulate(rows, method + suffix, "n"), color=colour, label=method)
            if bounds:
                ns, terms = tabulate(rows, f"{method}{suffix}_bound", "n")
                line = {"color": colour, "linestyle": ":", "label": f"{method}, bound"}
                axis.plot(ns, np.nanmean(terms, 0), **line)
        axis.set(xlabel=f"samples n (d = {settings['d']})", ylabel=f"test {label}", title=title)
        axis.set_yscale("log" if bounds else "linear")
        axis.legend(frameon=False, fontsize=8)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that nets beat kernels over the larger half of n by so many standard errors."""
    checks = []
    for suffix, (_, words) in KINDS.items():
        # One difference per teacher: samples of different n share it.
        ns, (net, kernel) = larger_half(rows, "n", "net" + suffix, "kernel" + suffix)
        gain = kernel - net
        sentence = (
            f"mean {words} for n = {', '.join(map(str, ns))}: net {net.mean():.4f}, kernel"
            f" {kernel.mean():.4f} (difference {gain.mean():.4f} +- {standard_errors(gain):.4f})"
        )
        checks.append(Check(sentence, is_positive(gain, settings["standard_errors"])))
    return checks


def check_with_bounds(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check in addition that the bounds say nothing yet about the errors."""
    net, kernel = (
        min(
            np.min(
                np.nanmean(tabulate(rows, f"{method}{suffix}_bound", "n")[1], 0)
                / tabulate(rows, method + suffix, "n")[1].mean(0)
            )
            for suffix in KINDS
        )
        for method in ("net", "kernel")
    )
    sentence = (
        f"the leading terms of the bounds are at least {net:.0f} times the errors of the net,"
        f" {kernel:.0f} times those of the kernel"
    )
    return [*check(settings, rows), Check(sentence, bool(min(net, kernel) > 1))]


FIGURE = Figure(
    finding=(
        "the net's test error is below that of the kernel as n grows, most of all in regression;"
        " the leading terms of the bounds are far above both"
    ),
    differs=(
        "minimized by L-BFGS to lambda = 1e-8 instead of 20,000 gradient steps; the kernel is"
        " exact; targets are divided by the standard deviation of those in training; regression has"
        " the same inputs as classification, after rejection; the values of n are assumed"
    ),
    scales=by_scale(
        d=(6, 20, 20),
        n=([40, 150], [50, 100, 200, 400], [50, 100, 150, 200, 250, 300, 400, 500]),
        runs=(3, 4, 100),
        tested=(1000, 4000, 10_000),
        iterations=(30, 60, 100),
        standard_errors=(0, 2, 2),
    ),
    minutes={"smoke": 0.2, "laptop": 1.0, "paper": 200.0},
    runs=lambda settings: cross(n=reversed(settings["n"]), seed=range(settings["runs"])),
    compute=compute,
    concerns=lambda run, setting: setting not in ("n", "runs", "standard_errors"),
    draw=draw,
    check=check_with_bounds,
)

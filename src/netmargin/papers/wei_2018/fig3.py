"""Figure 3: test errors of nets and of kernel methods against n, classification and regression,
with the leading terms of their bounds.
"""

import math
from pathlib import Path

import numpy as np
import torch

from ...bounds import kernel_bound, regression_bound, truncated_squares, two_layer_bound
from ...datasets import teacher, teacher_net
from ...figures.style import BOTH, OUTPUT, open_canvas
from ...kernels import arc_cosine
from ...models import mlp
from ...regularization import regularization_path
from ...solvers import f2_max_margin, min_norm_interpolation
from ..gallery.figure import Check, Figure, Row, Settings
from ._interpolation import interpolation_path

COMPLEXITY = "complexity, 4 Rad / gamma"


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Measure errors and leading terms of bounds for one teacher and one sample.

    Compared are the weakly regularized net with m = n and the kernel method with relu features.
    """
    n, d, seed, tested = run["n"], settings["d"], run["seed"], settings["tested"]
    X, y = teacher(n + tested, d, units=6, margin=0.1, seed=seed)
    values = teacher_net(d, units=6, seed=seed)(X)[:, 0].detach()
    T, t, v = X[n:], y[n:].numpy(), values[n:]
    scale = values[:n].std()
    X, y, values, v = X[:n], y[:n], values[:n] / scale, (v / scale).numpy()
    radius = float(X.norm(dim=1).max())
    found: Row = {}

    make = lambda: mlp([d, n, 1], bias="none")  # noqa: E731
    options = {"starts": 1, "iterations": settings["iterations"], "seed": seed}
    lambdas = [1e-2, 1e-4, 1e-6, 1e-8]
    path = regularization_path(make, (X, y), lambdas=lambdas, progress=False, **options)
    found["net"] = _error(make(), path.states[1e-8], T, t)
    q = path.rows[-1]["normalized_margin"]
    # Only the smallest margin and the norms of the inputs enter the leading terms.
    found["net_bound"] = (
        two_layer_bound(np.full(n, q), X, radius=radius).terms[COMPLEXITY] if q > 0 else None
    )
    kernel, K = f2_max_margin(X, y, bias=False), arc_cosine(X, bias=False)
    found["kernel"] = float(
        (t * kernel.decision_function(arc_cosine(T, X, bias=False)) <= 0).mean()
    )
    found["kernel_bound"] = kernel_bound(
        np.full(n, kernel.margin), K, largest=radius / math.sqrt(2 * d)
    ).terms[COMPLEXITY]

    path = interpolation_path(make, X, values, lambdas=[1e-1, 1e-2, 1e-4, 1e-8], **options)
    net = make().double()
    net.load_state_dict(path.states[1e-8])
    with torch.no_grad():
        found["net_squares"] = float(((net(T)[:, 0].numpy() - v) ** 2).mean())
    smooth = min_norm_interpolation(X, values, bias=False, norm="l2")
    found["kernel_squares"] = float(((smooth.decision_function(T) - v) ** 2).mean())
    none = truncated_squares(values, values)
    for name, norm, kernel_features in (
        ("net", path.rows[-1]["norm"] ** 2 / 2, False),
        ("kernel", smooth.norm, True),
    ):
        bound = regression_bound(
            none, X, norm=norm, largest_loss=1.0, lipschitz=2.0, kernel=kernel_features
        )
        found[f"{name}_squares_bound"] = bound.terms["complexity"]
    return found


def _error(net: torch.nn.Module, state: dict, T: torch.Tensor, t: np.ndarray) -> float:
    """The share of test samples that a net with these parameters misclassifies."""
    net.double().load_state_dict(state)
    with torch.no_grad():
        return float((t * net(T)[:, 0].numpy() <= 0).mean())


def by_n(name: str, rows: list[Row]) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Collect n, means, and standard errors of a result, over the teachers for which it exists."""
    ns = sorted({row["n"] for row in rows})
    groups = [
        np.array([row[name] for row in rows if row["n"] == n and row[name] is not None]) for n in ns
    ]
    return (
        ns,
        np.array([g.mean() for g in groups]),
        np.array([g.std(ddof=1) / math.sqrt(len(g)) for g in groups]),
    )


def draw(settings: Settings, rows: list[Row], *, bounds: bool = True):
    """Draw test errors with two standard errors (solid), and the terms of the bounds (dotted)."""
    drawn, axes = open_canvas(2)
    for axis, suffix, title, label in zip(
        axes[0],
        ("", "_squares"),
        ("classification", "regression"),
        ("0-1 error", "squared error"),
        strict=True,
    ):
        for method, colour in (("net", BOTH), ("kernel", OUTPUT)):
            ns, means, errors = by_n(method + suffix, rows)
            axis.errorbar(
                ns,
                means,
                2 * errors,
                color=colour,
                marker="o",
                markersize=3,
                capsize=2,
                label=method,
            )
            if bounds:
                axis.plot(
                    *by_n(f"{method}{suffix}_bound", rows)[:2],
                    color=colour,
                    linestyle=":",
                    label=f"{method}, bound",
                )
        axis.set(xlabel=f"samples n (d = {settings['d']})", ylabel=f"test {label}", title=title)
        axis.set_yscale("log" if bounds else "linear")
        axis.legend(frameon=False, fontsize=8)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that nets beat kernels over the larger half of n, in the mean by more than so many
    standard errors.
    """
    ns = sorted({row["n"] for row in rows})
    larger, checks = ns[len(ns) // 2 :], []
    for suffix, words in (("", "0-1 error"), ("_squares", "squared error")):
        # One difference per teacher: samples of different n share it.
        seeds = sorted({row["seed"] for row in rows})
        net, kernel = (
            np.array(
                [
                    np.mean(
                        [
                            row[method + suffix]
                            for row in rows
                            if row["seed"] == seed and row["n"] in larger
                        ]
                    )
                    for seed in seeds
                ]
            )
            for method in ("net", "kernel")
        )
        error = (kernel - net).std(ddof=1) / math.sqrt(len(seeds))
        sentence = (
            f"mean {words} for n = {', '.join(map(str, larger))}: net {net.mean():.4f}, kernel"
            f" {kernel.mean():.4f} (difference {(kernel - net).mean():.4f} +- {error:.4f})"
        )
        checks.append(
            Check(sentence, bool((kernel - net).mean() > settings["standard_errors"] * error))
        )
    return checks


def check_with_bounds(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check in addition that the bounds say nothing yet about the errors."""
    times = {
        method: min(
            np.min(by_n(f"{method}{suffix}_bound", rows)[1] / by_n(method + suffix, rows)[1])
            for suffix in ("", "_squares")
        )
        for method in ("net", "kernel")
    }
    sentence = (
        f"the leading terms of the bounds are at least {times['net']:.0f} times the errors of the"
        f" net, {times['kernel']:.0f} times those of the kernel"
    )
    return [*check(settings, rows), Check(sentence, bool(min(times.values()) > 1))]


def concerns(run: Row, setting: str) -> bool:
    """Whether a run depends on a setting: each has its own n."""
    return setting not in ("n", "runs", "standard_errors")


FIGURE = Figure(
    id="wei-2018/fig3",
    title="neural networks and kernel methods, classification and regression, with bounds",
    finding=(
        "the net's test error is below that of the kernel as n grows, most of all in regression;"
        " the leading terms of the bounds are far above both"
    ),
    differs=(
        "minimized by L-BFGS to lambda = 1e-8 instead of 20,000 gradient steps; the kernel is"
        " exact; targets are divided by the standard deviation of those in training; regression has"
        " the same inputs as classification, after rejection; the values of n are assumed"
    ),
    scales={
        "smoke": {
            "d": 6,
            "n": [40, 150],
            "runs": 3,
            "tested": 1000,
            "iterations": 30,
            "standard_errors": 0,
        },
        "laptop": {
            "d": 20,
            "n": [50, 100, 200, 400],
            "runs": 4,
            "tested": 4000,
            "iterations": 60,
            "standard_errors": 2,
        },
        "paper": {
            "d": 20,
            "n": [50, 100, 150, 200, 250, 300, 400, 500],
            "runs": 100,
            "tested": 10_000,
            "iterations": 100,
            "standard_errors": 2,
        },
    },
    minutes={"smoke": 0.2, "laptop": 1.0, "paper": 200.0},
    runs=lambda settings: [
        {"n": n, "seed": seed} for n in reversed(settings["n"]) for seed in range(settings["runs"])
    ],
    compute=compute,
    concerns=concerns,
    draw=draw,
    check=check_with_bounds,
)

"""Exact radii on 100 test images a net: how many are closed to which tolerance, in what time.

Attack, search and proof are timed together, image by image, in seconds of CPU on one thread. Each
image is written to runs/exact-radii/ as soon as it is done, and the same call goes on from there.
"""

import time
from pathlib import Path

import numpy as np
import torch

import netmargin as nm

from .radii_nets import NETS, Trained, make_mlp, split_digits, train_net
from .rows import add_row, read_rows

FOLDER = Path("runs/exact-radii")
_TIME_LIMIT = 600.0
"""Seconds of wall clock after which an image is left open; far more than any goal."""
GOALS = [
    ("digits 64-64-10", 1e-3, 1.0),
    ("digits 64-64-10", 1e-4, 1.0),
    ("MNIST 784-100-10", 1e-3, 1.0),
    ("MNIST 784-100-10", 1e-4, 10.0),
    ("digits 64-128-64-10", 1e-2, 5.0),
    ("digits 64-128-64-10", 1e-3, 10.0),
    ("digits 64-64-64-64-10", 1e-2, 10.0),
    ("MNIST 784-256-256-10", 1e-2, 60.0),
    ("digits 64-64-10, robust", 1e-3, 1.0),
    ("digits 64-128-64-10, robust", 1e-2, 10.0),
    ("MNIST 784-100-10, robust", 1e-2, 60.0),
]
"""Nets, tolerances, and the seconds within which most images should be closed."""
NETS["digits 64-64-64-64-10"] = (lambda: make_mlp(64, 64, 64, 64, 10), split_digits, 60)


def measure_image(
    trained: Trained, index: int, effort: str, tol: float, *, time_limit: float = _TIME_LIMIT
) -> dict:
    """Bracket the radius of one image: lower, upper, what it rests on, seconds of CPU."""
    image = (trained.X[index : index + 1], trained.y[index : index + 1])
    start = time.process_time()
    report = nm.robustness(
        trained.net, image, effort=effort, tol=tol, time_limit=time_limit, progress=False
    )
    return {
        "index": index,
        "lower": float(report.lower[0]),
        "upper": float(report.upper[0]),
        "by": str(report.certified_by[0]),
        "seconds": time.process_time() - start,
    }


def measure_net(trained: Trained, effort: str, tol: float) -> list[dict]:
    """Bracket the radii of all images that are not in the folder yet; returns all."""
    path = FOLDER / f"{trained.name.replace(', ', '-').replace(' ', '-')}-{effort}-{tol:g}.jsonl"
    for index in range(len(read_rows(path)), len(trained.X)):
        add_row(path, measure_image(trained, index, effort, tol))
    return read_rows(path)


def describe(rows: list[dict], tol: float, limit: float) -> str:
    """One line: shares closed at all and in time, seconds, attacked over certified radius."""
    lower, upper, seconds = (
        np.array([row[key] for row in rows]) for key in ("lower", "upper", "seconds")
    )
    closed = lower >= (1 - tol) * upper
    branched = np.mean([row["by"] == "tree of regions" for row in rows])
    ratio = np.median(upper / np.where(lower > 0, lower, np.nan))
    return (
        f"{len(rows)} images: {closed.mean():.0%} closed to {tol:g},"
        f" {(closed & (seconds <= limit)).mean():.0%} within {limit:g} s; seconds median"
        f" {np.median(seconds):.2f}, 90% {np.quantile(seconds, 0.9):.2f}, worst"
        f" {seconds.max():.2f}; by trees {branched:.0%}; attacked over certified, median"
        f" {ratio:.5f}"
    )


def main() -> None:
    """Print a line for each goal, and for the bounds of whole balls alone."""
    torch.set_num_threads(1)
    for name, tol, limit in GOALS:
        trained = train_net(name)
        for effort in ("exact", "standard"):
            rows = measure_net(trained, effort, tol)
            print(f"{name}, {effort}: {describe(rows, tol, limit)}", flush=True)
